/** The page `/sinks`: position, lag, errors and dead letters of each sink. */
import type { NotificationLog, NotificationRow } from '../../domain/ports.ts';
import { type SinkDeliveries, type SinkItem, sinkTrouble } from '../../domain/sinks.ts';
import {
  type ReaderStatus,
  type SinkStatus,
  type Status,
  sinkCounts,
} from '../../domain/status.ts';
import { notificationAt } from '../../domain/streams.ts';
import { minuteUs } from '../../domain/time-units.ts';
import { collect } from '../notifications-route.ts';
import { spanText } from './browser/texts.ts';
import {
  badge,
  command,
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
import { commandList, itemPanel, partState } from './operation.ts';
import type { PageParts, PageRequest, PageRoute } from './page-route.ts';
import { productLink } from './page-state.ts';

/** Dead letters shown of each sink. */
const deadShown = 50;

/** Failed deliveries shown of each sink. */
const retriesShown = 5;

export const sinksPage: PageRoute = {
  path: '/sinks',
  back: '7d',
  list: async (parts, request) => {
    const { status } = request;
    const [counts, deliveries, replays] = await Promise.all([
      parts.sinks.counts(),
      parts.sinks.deliveries(),
      parts.sinks.replays({ all: false }),
    ]);
    const views = await Promise.all(
      status.sinks.map(async (sink): Promise<SinkView> => {
        const { name } = sink;
        const failed = counts.find((one) => one.sink === name)?.failed ?? 0;
        return {
          sink,
          reader: status.readers.find((one) => one.of === 'sink' && one.name === `sink ${name}`),
          done: deliveries.find((one) => one.sink === name),
          replays: replays.filter((one) => one.sink === name).length,
          retries:
            failed === 0
              ? { count: 0, newest: [] }
              : { count: failed, newest: await retriesOf(parts, name, request.signal) },
          dead: sink.dead === 0 ? [] : await deadLetters(parts, name, request.signal),
        };
      }),
    );
    return {
      title: 'Sinks',
      refresh: true,
      body: html`${partState(status, 'sinks', problemList(views, request.nowUs))}
${views.length === 0 ? noSinks(status) : views.map((view) => sinkPanel(view, request))}`,
    };
  },
};

interface QueuedItem {
  item: SinkItem;
  /** Null if it is no longer in the log. */
  notification: NotificationRow | null;
}

interface SinkView {
  sink: SinkStatus;
  /** Undefined until the sink has started once. */
  reader: ReaderStatus | undefined;
  done: SinkDeliveries | undefined;
  replays: number;
  /** Waiting items with a failed attempt. */
  retries: { count: number; newest: QueuedItem[] };
  dead: QueuedItem[];
}

type Sources = Pick<PageParts, 'sinks' | 'notifications'>;

async function retriesOf(
  { sinks, notifications }: Sources,
  sink: string,
  signal: AbortSignal,
): Promise<QueuedItem[]> {
  const items = sinks.items({ sink, state: 'waiting', failed: true, limit: retriesShown });
  return withNotifications(await collect(items, signal), notifications);
}

async function deadLetters(
  { sinks, notifications }: Sources,
  sink: string,
  signal: AbortSignal,
): Promise<QueuedItem[]> {
  const items = await collect(sinks.items({ sink, state: 'dead', limit: deadShown }), signal);
  return withNotifications(items, notifications);
}

function withNotifications(
  items: readonly SinkItem[],
  log: NotificationLog,
): Promise<QueuedItem[]> {
  const found = items.map(async (item) => ({
    item,
    notification: await notificationAt(log, item.position),
  }));
  return Promise.all(found);
}

function noSinks({ rejectedConfig = null }: Status): Html {
  if (rejectedConfig !== null) {
    return panel(
      'Sinks',
      emptyState('The sinks are not known while earshot.config.ts is rejected.'),
    );
  }
  const example = `export default defineConfig({
  sinks: {
    inbox: { command: ['node', '/opt/inbox.mjs'], events: ['created'] },
    hook: { webhook: 'http://127.0.0.1:9000/', secretFile: 'hook-secret' },
  },
});`;
  return panel(
    'No sink is configured',
    html`<p>A sink is a program of yours that gets each matching notification: a command, a webhook, a stream of NATS
JetStream, an MQTT broker, or a PostgreSQL table. A slow or failed sink delays neither the receipt of notifications nor
other sinks.</p>
<p>Add sinks to <code>earshot.config.ts</code>, in the working directory of the receiver. The receiver applies the change
automatically. <code>docs/sinks.md</code> explains all settings.</p>
<pre class="body" tabindex="0">${example}</pre>
${commandList([['Check the configuration', `earshot doctor`]])}`,
  );
}

/** A sink that delivers is usually up to date within this time. */
const lagMaxUs = 5 * minuteUs;

/** Returns the time of the oldest notification that is not delivered; null without one. */
function oldestUsOf({ sink, reader }: SinkView): number | null {
  const since = [sink.oldestWaitingAtUs, reader?.unreadSinceUs ?? null].filter((us) => us !== null);
  return since.length === 0 ? null : Math.min(...since);
}

const hasLag = (view: SinkView, nowUs: number) => nowUs - (oldestUsOf(view) ?? nowUs) > lagMaxUs;

/** Lists the problems of all sinks, with their errors. */
function problemList(views: readonly SinkView[], nowUs: number): Html | string {
  const items = views.flatMap((view) => {
    const { sink, retries } = view;
    const { name, fault, lastError, dead } = sink;
    const trouble = sinkTrouble(sinkCounts(sink), nowUs);
    const lag = spanText((nowUs - (oldestUsOf(view) ?? nowUs)) / 1_000_000);
    const problems = [
      fault === null ? null : withCommands(fault),
      trouble === null ? null : html`${trouble}`,
      retries.count === 0 || lastError === null || trouble !== null
        ? null
        : html`${notifications(retries.count)} will be retried: <q>${lastError}</q>`,
      dead === 0 ? null : html`${count(dead)} dead ${dead === 1 ? 'letter' : 'letters'}`,
      fault === null && trouble === null && retries.count === 0 && hasLag(view, nowUs)
        ? html`lag of ${lag}`
        : null,
    ].filter((one) => one !== null);
    return problems.map(
      (one) => html`<li><a href="#${encodeURIComponent(name)}">${name}</a>: ${one}</li>`,
    );
  });
  return items.length === 0 ? '' : html`<ul class="plain">${items}</ul>`;
}

function stateBadge(view: SinkView, nowUs: number): Html {
  const { sink, reader, retries } = view;
  if (sink.fault !== null) return badge('bad', 'cannot deliver');
  if (sink.isSetUp === false) return badge('warn', 'not configured');
  if (sink.failingSinceUs !== null) return badge('warn', 'failing');
  if (sinkTrouble(sinkCounts(sink), nowUs) !== null) return badge('warn', 'nothing delivered yet');
  if (retries.count > 0 && sink.lastError !== null) return badge('warn', 'deliveries fail');
  if (sink.dead > 0) return badge('warn', 'dead letters');
  const open = sink.waiting + (reader?.behind ?? 0);
  if (open > 0) {
    return hasLag(view, nowUs) ? badge('warn', 'behind') : badge('note', 'delivering');
  }
  return reader === undefined ? badge('plain', 'not started') : badge('good', 'up to date');
}

function sinkPanel(view: SinkView, { nowUs, status }: PageRequest): Html {
  const { sink, dead, retries } = view;
  const { name, target } = sink;
  const kind = target === null ? '' : badge('plain', target);
  const fault = sink.fault === null ? '' : html`<p>${withCommands(sink.fault)}</p>`;
  return itemPanel(
    { id: name, title: name, state: html`${kind} ${stateBadge(view, nowUs)}` },
    html`${fault}<div class="columns">${sinkFacts(view, status.log?.lastPosition ?? null, nowUs)}${commandList(commandsOf(sink))}</div>
${retries.count === 0 ? '' : retriesTable(view, nowUs)}${dead.length === 0 ? '' : deadTable(view, nowUs)}`,
  );
}

function sinkFacts(view: SinkView, lastPosition: number | null, nowUs: number): Html {
  const { sink, reader, done, replays, retries } = view;
  const { waiting, oldestWaitingAtUs, lastError } = sink;
  const oldestUs = oldestUsOf(view);
  const end = lastPosition === null ? '' : ` of ${count(lastPosition)}`;
  const lag = html`${spanText(Math.max(0, nowUs - (oldestUs ?? nowUs)) / 1_000_000)}
    <span class="dim">since the oldest one was ${oldestUs === oldestWaitingAtUs ? 'queued' : 'received'}</span>`;
  return facts([
    ['position', reader === undefined ? 'not started yet' : `${count(reader.position)}${end}`],
    ['not read yet', reader === undefined ? null : notifications(reader.behind)],
    ['waiting', notifications(waiting)],
    ['lag', oldestUs === null ? 'none' : lag],
    ['delivered', notifications(done?.delivered ?? 0)],
    ['last success', done === undefined ? 'none yet' : time(done.lastAtUs, nowUs)],
    ['failing since', sink.failingSinceUs === null ? null : time(sink.failingSinceUs, nowUs)],
    ['last error', lastError ?? 'none'],
    ['retries', retries.count === 0 ? 'none' : `${count(retries.count)} wait for a retry`],
    ['replays', replays === 0 ? null : `${count(replays)} not complete`],
    ['dead letters', sink.dead === 0 ? 'none' : count(sink.dead)],
  ]);
}

function notifications(value: number): string {
  return value === 1 ? '1 notification' : `${count(value)} notifications`;
}

function commandsOf({ name, isSetUp, waiting }: SinkStatus) {
  if (isSetUp === false) {
    return waiting === 0
      ? []
      : [['Drop the queue', `earshot sinks drop ${name} --waiting`] as const];
  }
  return [
    ['Deliver a test notification', `earshot sinks test ${name}`],
    ['Deliver a part of the log again', `earshot replay --sink ${name} --since 24h`],
  ] as const;
}

const product: TableColumn<QueuedItem> = {
  title: 'product',
  class: 'wrap',
  value: ({ item, notification }) => {
    const text = notification?.productName ?? item.productId;
    return html`<a class="name" href="${productLink(item.productId)}">${text}</a>`;
  },
};

const event: TableColumn<QueuedItem> = {
  title: 'event',
  value: ({ notification }) => notification?.event ?? null,
};

const attempts: TableColumn<QueuedItem> = {
  title: 'attempts',
  value: ({ item }) => count(item.attempts),
  isNumber: true,
};

function retriesTable({ sink, retries }: SinkView, nowUs: number): Html {
  const { newest } = retries;
  const columns: TableColumn<QueuedItem>[] = [
    { title: 'next attempt (UTC)', value: ({ item }) => time(item.dueAtUs, nowUs) },
    ...[event, product, attempts],
    { title: 'error', value: ({ item }) => item.error ?? '', class: 'wrap' },
  ];
  const caption = `Deliveries of ${sink.name} to be retried, newest first`;
  const more =
    retries.count > newest.length
      ? html`<p class="note">The newest ${newest.length} of ${count(retries.count)}.</p>`
      : '';
  return html`<h3>To be retried</h3>${table(columns, newest, { caption })}${more}`;
}

function deadTable({ sink, dead }: SinkView, nowUs: number): Html {
  const { name } = sink;
  const columns: TableColumn<QueuedItem>[] = [
    { title: 'id', value: ({ item }) => item.id, isNumber: true },
    { title: 'queued (UTC)', value: ({ item }) => time(item.queuedAtUs, nowUs, 'minute') },
    ...[event, product, attempts],
    { title: 'reason', value: ({ item }) => item.error ?? '-', class: 'wrap' },
  ];
  const more =
    sink.dead > dead.length
      ? html`<p class="note">The newest ${dead.length} of ${count(sink.dead)}. All:</p>${command(`earshot sinks dead ${name} --limit ${sink.dead}`)}`
      : '';
  return html`<h3>Dead letters</h3>
${table(columns, dead, { caption: `Dead letters of ${name}, newest first`, list: true })}${more}
${commandList(deadCommands(sink, dead))}`;
}

/** A sink that is not configured can only drop them. */
function deadCommands({ name, isSetUp }: SinkStatus, dead: readonly QueuedItem[]) {
  const ids = dead.slice(0, 2).map(({ item }) => item.id);
  const some = ids.join(',');
  return [
    ...(isSetUp === false
      ? []
      : ([
          ['Retry all', `earshot sinks retry ${name} --all`],
          ['Retry some, by id (example)', `earshot sinks retry ${name} ${some}`],
        ] as const)),
    ['Drop all', `earshot sinks drop ${name} --all`],
    ['Drop some, by id (example)', `earshot sinks drop ${name} ${some}`],
  ] as const;
}
