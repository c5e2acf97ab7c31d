/** The page `/subscriptions`: state, expiry, gaps and history of each subscription. */
import type { Gap, HistoryEntry, Registration } from '../../domain/account.ts';
import { queueOutlook } from '../../domain/pull-queue.ts';
import type { Status } from '../../domain/status.ts';
import { pathOf, readSubscriptionRows, type SubscriptionRow } from '../subscription-rows.ts';
import { choice, stateForm } from './layout.ts';
import {
  age,
  badge,
  command,
  count,
  emptyState,
  facts,
  type Html,
  html,
  panel,
  type TableColumn,
  type Tone,
  table,
  time,
  withCommands,
} from './markup.ts';
import { commandList, itemPanel, partState } from './operation.ts';
import type { PageParts, PageRequest, PageRoute } from './page-route.ts';
import { linkTo } from './page-state.ts';

/** Changes and gaps shown of each subscription. */
const entriesShown = 10;

/** Changes read to find those of removed subscriptions. */
const removedRead = 500;

export const subscriptionsPage: PageRoute = {
  path: '/subscriptions',
  back: '7d',
  list: async ({ administration }, request) => {
    const { status, state, nowUs } = request;
    const rows = await readSubscriptionRows(administration, status);
    const shown = rows.filter(
      ({ name }) => state.subscription === undefined || name === state.subscription,
    );
    const names = rows.flatMap(({ name }) => (name === null ? [] : [[name, name] as const]));
    return {
      title: 'Subscriptions',
      refresh: true,
      controls: stateForm(
        '/subscriptions',
        choice('subscription', 'subscription', [['', 'all'], ...names], state.subscription),
        { since: state.since, until: state.until },
      ),
      body: html`${partState(status, 'subscriptions')}
${shown.length === 0 ? noneShown(state.subscription) : shown.map((row) => subscriptionPanel(row, request))}
${await removedPanel({ administration }, rows, nowUs)}${endpointPanel(status, nowUs)}`,
    };
  },
};

function noneShown(name: string | undefined): Html {
  if (name !== undefined) {
    return emptyState(
      `No subscription "${name}" is known.`,
      html`<a href="/subscriptions">Show all subscriptions</a>`,
    );
  }
  const why = 'No subscription is registered, so no notifications will arrive.';
  return panel(
    'No subscription',
    html`${emptyState(why, 'Describe subscriptions in earshot.config.ts, or with the flags of the command.')}
${commandList([
  ['Show the plan', `earshot register --dry-run`],
  ['Register', `earshot register`],
])}`,
  );
}

const states: Readonly<Record<NonNullable<SubscriptionRow['state']>, readonly [Tone, string]>> = {
  running: ['good', 'running'],
  paused: ['warn', 'paused'],
  unfinished: ['warn', 'change not complete'],
  absent: ['bad', 'not in the catalogue'],
  unregistered: ['plain', 'not registered'],
};

function stateBadge({ state, status }: SubscriptionRow): Html {
  if (state === null) return badge('plain', 'unknown');
  const [tone, text] = states[state];
  const isChosen = state === 'paused' && status?.pausedOnPurpose === true;
  return isChosen ? badge('note', 'paused on purpose') : badge(tone, text);
}

function subscriptionPanel(row: SubscriptionRow, { nowUs }: PageRequest): Html {
  const { name, registration, history, gaps } = row;
  const scope = { subscription: name };
  const links =
    name === null
      ? ''
      : html`<a href="${linkTo('/live', scope)}">live</a> ·
    <a href="${linkTo('/coverage', scope)}">coverage</a> · <a href="${linkTo('/products', scope)}">products</a>`;
  return itemPanel(
    { id: name ?? 'unnamed', title: name ?? '/notifications', state: stateBadge(row), links },
    html`<div class="columns">${registration === null ? unregisteredFacts(row, nowUs) : registeredFacts(row, registration, nowUs)}
${commandList(commandsOf(row))}</div>
${gaps.length === 0 ? '' : html`<h3>Gaps</h3>${table(gapColumns(nowUs), gaps.slice(0, entriesShown), { caption: `Gaps of ${name}, newest first` })}`}
${history.length === 0 ? '' : historyOf(row, nowUs)}`,
  );
}

const unlessPushed = html`<span class="dim">unless a notification arrives earlier</span>`;

function registeredFacts(row: SubscriptionRow, known: Registration, nowUs: number): Html {
  const { type, events, filter, subscriptionId, runningSeenAtUs, pausedSeenAtUs } = known;
  const { status } = row;
  const at = (us: number | null | undefined) => (us == null ? null : time(us, nowUs, 'minute'));
  const end = (us: number | null | undefined) =>
    us == null ? null : html`${time(us, nowUs, 'minute')} ${unlessPushed}`;
  const isPull = type === 'pull';
  return facts([
    ['type', type],
    ['events', events.join(', ')],
    ['filter', filter === '' ? 'none: all products' : code(filter)],
    ['URL path', isPull ? null : code(pathOf(row.name))],
    ...queueFacts(row, nowUs),
    ['catalogue id', subscriptionId === null ? 'none' : code(subscriptionId)],
    ['last notification', lastDelivery(row, nowUs)],
    ['last seen running', time(runningSeenAtUs, nowUs, 'minute')],
    ['paused since', at(pausedSeenAtUs)],
    [
      'maintenance',
      known.changedByPerson ? 'keeps the status: changed by a person in the catalogue' : null,
    ],
    ['automatic pause', end(status?.pausesAtUs)],
    ['automatic deletion', end(status?.cancelsAtUs)],
    ['credentials', isPull ? null : credentials(row, known, nowUs)],
  ]);
}

/** Facts of the queue of a pull subscription; none without a known state. */
function queueFacts({ queue }: SubscriptionRow, nowUs: number): [string, Html | string | null][] {
  if (queue === null) return [];
  const { length, oldestAgeUs } = queueOutlook(queue, nowUs);
  const { lengthMax, emptiedAtUs, entriesPerHour, failure, otherReader } = queue;
  const at = (us: number | null) => (us === null ? null : time(us, nowUs));
  return [
    [
      'unread entries',
      length === null ? 'not known yet' : html`${count(length)} of at most ${count(lengthMax)}`,
    ],
    ['oldest unread entry', oldestAgeUs ? age(nowUs - oldestAgeUs, nowUs) : null],
    ['last read to the end', at(emptiedAtUs)],
    ['entries per hour', entriesPerHour === null ? null : count(Math.round(entriesPerHour))],
    ['last failure', failure === null ? null : withCommands(failure)],
    ['another reader', at(otherReader?.atUs ?? null)],
  ];
}

function unregisteredFacts(row: SubscriptionRow, nowUs: number): Html {
  return facts([
    ['URL path', code(pathOf(row.name))],
    ['last notification', lastDelivery(row, nowUs)],
    ['user name', senders(row, nowUs)],
    ['meaning', 'Notifications arrive on this path, and are stored. They are not compared.'],
  ]);
}

const code = (text: string) => html`<code>${text}</code>`;

function lastDelivery({ status, senders: [sender] }: SubscriptionRow, nowUs: number): Html {
  const lastAtUs = status?.lastDeliveryAtUs ?? sender?.lastAtUs ?? null;
  return lastAtUs === null ? html`none received yet` : time(lastAtUs, nowUs);
}

function credentials(row: SubscriptionRow, known: Registration, nowUs: number): Html {
  if (row.senders.length > 0) return senders(row, nowUs);
  return html`${known.credentialsDigest === null ? 'not known which ones the catalogue uses' : 'sent to the catalogue; no push has used them yet'}`;
}

function senders(row: SubscriptionRow, nowUs: number): Html {
  return html`${row.senders.map(({ username, lastAtUs }, i) => html`${i === 0 ? '' : ', '}${username} <span class="dim">(last used ${age(lastAtUs, nowUs)})</span>`)}`;
}

function commandsOf({ name, state, registration }: SubscriptionRow) {
  if (name === null || registration === null) {
    return [
      ['Find it in the account', `earshot subscriptions list`],
      ...(name === null
        ? []
        : [['Register it', `earshot register --subscription ${name}`] as const]),
    ] as const;
  }
  const toggle =
    state === 'paused'
      ? (['Resume', `earshot subscriptions resume ${name}`] as const)
      : (['Pause', `earshot subscriptions pause ${name}`] as const);
  const isChangeable = state === 'paused' || state === 'running';
  return [
    ['Check in the catalogue', `earshot subscriptions show ${name}`],
    ...(isChangeable ? [toggle] : []),
    ['Change', `earshot register --subscription ${name} --dry-run`],
    ['Check the coverage', `earshot coverage --subscription ${name}`],
  ] as const;
}

function gapColumns(nowUs: number): TableColumn<Gap>[] {
  return [
    { title: 'from (UTC)', value: ({ fromUs }) => time(fromUs, nowUs) },
    { title: 'to (UTC)', value: ({ toUs }) => (toUs === null ? 'open' : time(toUs, nowUs)) },
    { title: 'reason', value: ({ reason }) => withCommands(reason), class: 'wrap' },
  ];
}

function historyOf({ name, history }: SubscriptionRow, nowUs: number): Html {
  const shown = history.slice(0, entriesShown);
  const more =
    history.length > shown.length ? command(`earshot subscriptions history ${name}`) : '';
  return html`<h3>History</h3>${table(historyColumns(nowUs), shown, { caption: `Changes of ${name}, newest first` })}${more}`;
}

function historyColumns(nowUs: number): TableColumn<HistoryEntry>[] {
  return [
    { title: 'time (UTC)', value: ({ atUs }) => time(atUs, nowUs) },
    { title: 'change', value: ({ action }) => action },
    { title: 'by', value: ({ actor }) => code(actor) },
    { title: 'reason', value: ({ reason }) => withCommands(reason), class: 'wrap' },
  ];
}

/** The history of a removed subscription stays. */
async function removedPanel(
  { administration }: Pick<PageParts, 'administration'>,
  rows: readonly SubscriptionRow[],
  nowUs: number,
): Promise<Html | string> {
  const all = await administration.history({ limit: removedRead });
  const known = new Set(rows.map(({ name }) => name));
  const removed = all.filter(({ subscription }) => !known.has(subscription));
  if (removed.length === 0) return '';
  const name: TableColumn<HistoryEntry> = {
    title: 'subscription',
    value: ({ subscription }) => subscription,
  };
  const [at, ...rest] = historyColumns(nowUs);
  const columns = [...(at === undefined ? [] : [at]), name, ...rest];
  const caption = 'Changes of removed subscriptions, newest first';
  return panel(
    'Removed subscriptions',
    table(columns, removed.slice(0, 2 * entriesShown), { caption }),
    count(removed.length),
  );
}

/** Certificate and credentials apply to all subscriptions. */
function endpointPanel(status: Status, nowUs: number): Html | string {
  if (!status.hasEndpoint) return '';
  const rows = [
    ['Check the endpoint', `earshot doctor`],
    ['Replace the credentials', `earshot credentials rotate`],
  ] as const;
  return panel(
    'Endpoint of all subscriptions',
    html`<div class="columns">${certificateFacts(status, nowUs)}
${commandList(status.behindProxy ? rows : [...rows, ['Show the certificate', `earshot certificate show`]])}</div>`,
  );
}

function certificateFacts({ certificate, behindProxy }: Status, nowUs: number): Html {
  if (behindProxy) {
    return facts([['certificate', 'A reverse proxy terminates HTTPS, and has the certificate.']]);
  }
  if (certificate === null) return facts([['certificate', 'not known']]);
  const { notAfterUs, lastAttemptAtUs, lastSuccessAtUs, lastFailure } = certificate;
  const at = (us: number | null) => (us === null ? null : time(us, nowUs, 'minute'));
  return facts([
    ['certificate expires', at(notAfterUs) ?? 'no certificate yet'],
    ['last renewal', at(lastSuccessAtUs)],
    ['last attempt', at(lastAttemptAtUs)],
    ['last failure', lastFailure],
  ]);
}
