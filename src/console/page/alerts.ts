/** The page `/alerts`: active alerts with cause, evidence and next step, and resolved ones. */
import {
  type AlertDelivery,
  type AlertKind,
  channelVariables,
  type ListedAlert,
} from '../../domain/alerts.ts';
import { hourOf } from '../../domain/coverage.ts';
import { parseDate } from '../../domain/dates.ts';
import { hourUs, weekUs } from '../../domain/time-units.ts';
import { spanText } from './browser/texts.ts';
import { periodChoice, stateForm } from './layout.ts';
import {
  age,
  badge,
  count,
  emptyState,
  facts,
  type Html,
  html,
  panel,
  type TableColumn,
  table,
  time,
  withCommands,
} from './markup.ts';
import { beforeId, commandList, commandsIn, itemPanel, olderLink } from './operation.ts';
import type { PageParts, PageRequest, PageRoute } from './page-route.ts';
import { isoMinute, linkTo, listOfSpan } from './page-state.ts';

/** Active alerts shown. */
const activeMax = 100;

/** Resolved alerts read to count former ones of the same kind and subject. */
const historyMax = 500;

/** Resolved alerts per page. */
const resolvedMax = 50;

export const alertsPage: PageRoute = {
  path: '/alerts',
  back: '30d',
  list: async (parts, request) => {
    const { state, nowUs } = request;
    const [active, history, unsent, resolved] = await Promise.all([
      parts.alerts.alerts({ all: false, limit: activeMax }),
      parts.alerts.alerts({ all: true, resolved: true, limit: historyMax }),
      parts.alerts.unsentDeliveries(nowUs),
      resolvedPanel(parts, request),
    ]);
    return {
      title: 'Alerts',
      refresh: true,
      controls: stateForm('/alerts', periodChoice(state, '30d'), {
        subscription: state.subscription,
      }),
      body: html`${active.length === 0 ? noneActive() : active.map((one) => activePanel(one, { history, unsent, nowUs }))}
${resolved}${channelsPanel(parts)}`,
    };
  },
};

function noneActive(): Html {
  return panel(
    'Active alerts',
    emptyState(
      'No alert is active.',
      'The receiver checks every minute: subscriptions, coverage, certificate, disk, database, backup and sinks.',
    ),
  );
}

/** Page about the subject of each kind. */
const pages: Readonly<Partial<Record<AlertKind, string>>> = {
  silence: '/live',
  'lost-pushes': '/coverage',
  missing: '/coverage',
  lifetime: '/subscriptions',
  'not-running': '/subscriptions',
  certificate: '/subscriptions',
  sink: '/sinks',
  'sink-refused': '/sinks',
};

function detailsLink({ kind, subject }: ListedAlert): Html | string {
  const page = pages[kind];
  if (page === undefined) return '';
  const isSink = page === '/sinks';
  const href = isSink
    ? `/sinks#${encodeURIComponent(subject)}`
    : linkTo(page, { subscription: subject });
  return html`<a href="${href}">${page.slice(1)}</a>`;
}

/** `missing: alps` */
function titleOf({ kind, subject }: ListedAlert): string {
  return subject === '' ? kind : `${kind}: ${subject}`;
}

function severityBadge({ severity }: ListedAlert): Html {
  return badge(severity === 'critical' ? 'bad' : 'warn', severity);
}

type Unsent = AlertDelivery & { isGivenUp: boolean };

interface Known {
  history: readonly ListedAlert[];
  unsent: readonly Unsent[];
  nowUs: number;
}

function activePanel(alert: ListedAlert, { history, unsent, nowUs }: Known): Html {
  const { id, cause, evidence, nextStep, raisedAtUs } = alert;
  const title = { id: `alert-${id}`, title: titleOf(alert), state: severityBadge(alert) };
  const level = alert.severity;
  return itemPanel(
    { ...title, level, links: detailsLink(alert) },
    html`<p class="cause">${withCommands(cause)}</p>
${evidenceList(evidence, alert)}
<div class="next-step"><h3>Next step</h3><p>${withCommands(nextStep)}</p>${commandsIn(nextStep)}</div>
${facts([
  ['active since', time(raisedAtUs, nowUs)],
  ['before', formerText(alert, history, nowUs)],
  ['notified', channelsOf(alert, unsent, nowUs)],
])}`,
  );
}

/** Counts former alerts of the same kind and subject. */
function formerText(
  { kind, subject }: ListedAlert,
  history: readonly ListedAlert[],
  nowUs: number,
): Html {
  const former = history.filter((one) => one.kind === kind && one.subject === subject);
  const lastUs = Math.max(...former.map(({ resolvedAtUs }) => resolvedAtUs ?? 0));
  const isPart = history.length === historyMax;
  if (former.length === 0) {
    return isPart ? html`not among the last ${count(historyMax)} resolved alerts` : html`never`;
  }
  const times = former.length === 1 ? 'once' : `${count(former.length)} times`;
  return html`raised ${isPart ? 'at least ' : ''}${times}, last resolved ${time(lastUs, nowUs, 'minute')}`;
}

function evidenceList(
  evidence: readonly string[],
  alert: Pick<ListedAlert, 'kind' | 'subject'>,
): Html | string {
  if (evidence.length === 0) return '';
  return html`<ul class="evidence">${evidence.map((line) => html`<li>${withTimes(line, alert)}</li>`)}</ul>`;
}

const timeInText = /(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?: UTC|Z))/;

/** Links the times in a text to the data of their hour, for an alert about a subscription. */
function withTimes(text: string, { kind, subject }: Pick<ListedAlert, 'kind' | 'subject'>): Html {
  const page = pages[kind];
  if (subject === '' || (page !== '/live' && page !== '/coverage')) return withCommands(text);
  return html`${text.split(timeInText).map((part, i) => {
    const date = i % 2 === 1 ? parseDate(part.replace(' UTC', 'Z')) : null;
    if (date === null) return withCommands(part);
    const fromUs = hourOf(date.us);
    const list = { subscription: subject };
    const href =
      page === '/live'
        ? listOfSpan(fromUs, fromUs + hourUs, list)
        : linkTo(page, { ...list, until: isoMinute(fromUs + hourUs) });
    return html`<a href="${href}">${part}</a>`;
  })}`;
}

/** Time for which the store reports a delivery that was given up. */
const givenUpShownUs = weekUs;

/** Renders each channel, and why it has not accepted the alert. */
function channelsOf(
  { id, channels, raisedAtUs }: ListedAlert,
  unsent: readonly Unsent[],
  nowUs: number,
): Html {
  if (channels.length === 0) return html`nobody: no channel was configured`;
  const sent = nowUs - raisedAtUs < givenUpShownUs ? 'accepted' : 'nothing to be sent';
  return html`${channels.map((channel, i) => {
    const own = unsent.find((one) => one.alert.id === id && one.channel === channel);
    return html`${i === 0 ? '' : html`<br>`}<code>${channelVariables[channel]}</code> ${own === undefined ? sent : unsentText(own)}`;
  })}`;
}

function unsentText({ error, isGivenUp }: Unsent): Html {
  if (error === null) return html`<span class="dim">not sent yet</span>`;
  return html`${badge('warn', isGivenUp ? 'failed, not retried' : 'failed, will be retried')} ${error}`;
}

async function resolvedPanel(
  { alerts }: Pick<PageParts, 'alerts'>,
  { state, nowUs, url }: PageRequest,
): Promise<Html> {
  const { sinceUs, untilUs } = state;
  const query = { all: true, resolved: true, sinceUs, untilUs, beforeId: beforeId(url) };
  const found = await alerts.alerts({ ...query, limit: resolvedMax + 1 });
  const rows = found.slice(0, resolvedMax);
  if (rows.length === 0) {
    return panel('Resolved alerts', emptyState('No alert was resolved in this period.'));
  }
  const last = found.length > rows.length ? (rows.at(-1)?.id ?? null) : null;
  return panel(
    'Resolved alerts',
    html`${table(columnsAt(nowUs), rows, { caption: 'Resolved alerts, newest first' })}${olderLink(url, last)}`,
    `${count(rows.length)} shown, active at some time in this period`,
  );
}

function columnsAt(nowUs: number): TableColumn<ListedAlert>[] {
  return [
    { title: 'raised (UTC)', value: ({ raisedAtUs }) => time(raisedAtUs, nowUs, 'minute') },
    {
      title: 'active for',
      class: 'tight',
      value: ({ raisedAtUs, resolvedAtUs }) =>
        resolvedAtUs === null ? '' : spanText(Math.max(0, resolvedAtUs - raisedAtUs) / 1_000_000),
    },
    { title: 'severity', value: severityBadge },
    { title: 'alert', value: titleOf, class: 'tight' },
    {
      title: 'cause and evidence',
      class: 'wrap',
      value: (alert) => html`${withCommands(alert.cause)}${evidenceList(alert.evidence, alert)}`,
    },
    {
      title: 'resolved',
      value: ({ resolvedAtUs }) => (resolvedAtUs === null ? '' : age(resolvedAtUs, nowUs)),
    },
  ];
}

function channelsPanel({ hasAlertChannel }: PageParts): Html {
  const has = hasAlertChannel();
  return panel(
    'Notification channels',
    html`<p>Each raised and each resolved alert is sent to <code>EARSHOT_ALERT_URL</code> and
<code>EARSHOT_ALERT_COMMAND</code>, if they are set.${has ? '' : html` Neither is set. <code>docs/monitoring.md</code> explains them.`}</p>
${commandList([
  ...(has ? [['Send a test alert', `earshot alerts --test`] as const] : []),
  ['List all alerts', `earshot alerts --all`],
])}`,
  );
}
