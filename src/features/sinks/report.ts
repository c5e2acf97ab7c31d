/** Sinks: their state, read from the store and the configuration, its evaluation, and its reports. */
import { z } from 'zod';
import type { StatusFacts } from '../../core/status/status.ts';
import { hourUs, minuteUs } from '../../core/terms/dates.ts';
import {
  type Check,
  checkOf,
  type Evaluation,
  evaluate,
  evaluationSchema,
  isProblem,
  ok,
  problem,
  type Situation,
} from '../../core/terms/evaluation.ts';
import {
  firstOf,
  type NotificationLog,
  type NotificationRow,
  notificationAt,
} from '../../core/terms/ports.ts';
import * as report from '../../core/terms/report.ts';
import { counted, lengthText, momentText, quoted } from '../../core/terms/text.ts';
import type { DeliveryState, SinkItem, SinkReader } from './terms.ts';

const count = z.int().min(0);
const timeUs = z.number().nullable();
const reason = z.string().nullable();

/** State of a sink, in `sinks list --json`, `/api/status` and on the page. */
export const sinkSchema = z.object({
  name: z.string(),
  target: z
    .string()
    .nullable()
    .describe('Kind of the target, such as webhook; null if the sink is not defined, or faulty.'),
  isSetUp: z.boolean().nullable().describe('True if earshot.config.ts defines the sink.'),
  position: count.nullable().describe('Last position that it has read; null before its start.'),
  behind: count.nullable().describe('Number of log positions that it has not read.'),
  waiting: count.describe('Number of queued notifications.'),
  failed: count.describe('Number of queued notifications whose last delivery failed.'),
  dead: count.describe('Number of dead letters.'),
  isReplaying: z.boolean().describe('True while a replay is not completely queued.'),
  delivered: count.describe('Number of acknowledged deliveries, with replays.'),
  tooOld: count.describe('Number of notifications that were left out because of maxAge.'),
  lastDeliveredAtUs: timeUs,
  oldestUndeliveredAtUs: timeUs.describe(
    'Time at which the oldest undelivered notification was queued, or received.',
  ),
  oldestWaitingAtUs: timeUs,
  failingSinceUs: timeUs.describe(
    'Time since which the sink accepts nothing; null if the last delivery succeeded.',
  ),
  lastError: reason.describe('Error of the last delivery; null if it succeeded.'),
  deadError: reason.describe('Error of the newest dead letter; null without dead letters.'),
  fault: reason.describe('Reason why no delivery is possible; null if deliveries are possible.'),
  evaluation: evaluationSchema,
});

export type EvaluatedSink = z.infer<typeof sinkSchema>;
export type SinkState = Omit<EvaluatedSink, 'evaluation'>;

/** State of a sink that has never started. */
const unused = {
  ...{
    position: null,
    waiting: 0,
    failed: 0,
    dead: 0,
    isReplaying: false,
    delivered: 0,
    tooOld: 0,
  },
  ...{ lastDeliveredAtUs: null, oldestWaitingAtUs: null },
  ...{ failingSinceUs: null, lastError: null, deadError: null },
};

/** Reads the states of all sinks, by name. Rejects with `unavailable`. */
export async function readSinks(
  store: Pick<NotificationLog, 'find' | 'lastPosition'> & { sinks: Pick<SinkReader, 'counts'> },
  { names, kinds, faults, fault }: DeliveryState,
): Promise<SinkState[]> {
  const counts = new Map((await store.sinks.counts()).map(({ sink, ...own }) => [sink, own]));
  const lastPosition = await store.lastPosition();
  const known = new Set([...(names ?? []), ...counts.keys()]);
  const states = [...known].toSorted().map(async (name): Promise<SinkState> => {
    const own = counts.get(name) ?? unused;
    const { position, oldestWaitingAtUs } = own;
    const unread = position === null ? null : await firstOf(store, { afterPosition: position });
    const oldest = [oldestWaitingAtUs, unread?.receivedAtUs ?? null].filter((us) => us !== null);
    const isSetUp = names?.includes(name) ?? null;
    return {
      ...{ name, isSetUp, target: kinds?.get(name) ?? null, ...own },
      behind: position === null ? null : Math.max(0, lastPosition - position),
      oldestUndeliveredAtUs: oldest.length === 0 ? null : Math.min(...oldest),
      fault: isSetUp === false ? null : (faults?.get(name) ?? fault),
    };
  });
  return Promise.all(states);
}

/** Usual maximum time from queuing to delivery. */
const deliveryUs = minuteUs;

/** Time of a failure that raises the alert, and that makes it critical. */
const failingUs = { raise: 15 * minuteUs, critical: 360 * minuteUs };

/** An active alert is resolved when the oldest notification has waited for less. */
const resolvedUs = 5 * minuteUs;

const levelAfter = (us: number) => (us > failingUs.critical ? 'critical' : 'warning');

const waitingText = (waiting: number) =>
  counted(waiting, 'notification waits', 'notifications wait');

const fixFile =
  'Fix the fault, and restart the receiver. `earshot doctor` checks the configuration.';

/** Checks the delivery. */
const delivery = checkOf<SinkState>('sink', (sink, { nowUs, alert }) => {
  const { name, fault, waiting, lastError, failingSinceUs } = sink;
  if (fault !== null) {
    return problem(
      levelAfter(nowUs - (alert?.raisedAtUs ?? nowUs)),
      `Nothing is delivered to the sink ${name}.`,
      fixFile,
      quoted(fault),
    );
  }
  const drop = `drop the waiting notifications with \`earshot sinks drop ${name} --waiting\``;
  if (sink.isSetUp === false) {
    if (waiting === 0 && !sink.isReplaying) return null;
    return problem(
      'warning',
      `The sink ${name} is no longer configured, and ${waitingText(waiting)} for it.`,
      `Add the sink to earshot.config.ts again, or ${drop}.`,
    );
  }
  const sinceUs = Math.min(sink.oldestWaitingAtUs ?? nowUs, failingSinceUs ?? nowUs);
  const waitsUs = nowUs - sinceUs;
  const limitUs =
    sink.lastDeliveredAtUs === null
      ? deliveryUs
      : alert === undefined
        ? failingUs.raise
        : resolvedUs;
  if (failingSinceUs === null && waitsUs <= limitUs) return null;
  return {
    ...problem(
      levelAfter(waitsUs),
      `The sink ${name} does not deliver: ${waitingText(waiting)}, the oldest for ${lengthText(waitsUs)}.`,
      `Run \`earshot sinks\` to see the reason, then fix the target: delivery resumes automatically. Otherwise ${drop}.`,
      failingSinceUs === null
        ? sink.lastDeliveredAtUs === null && 'Nothing was delivered yet.'
        : `Deliveries fail since ${momentText(failingSinceUs)}.`,
      lastError !== null && `Last error: ${quoted(lastError)}`,
    ),
    ...{ sinceUs, raiseAfterUs: failingUs.raise },
  };
});

/** Checks for dead letters. Further ones update the number of the active alert. */
const deadLetters = checkOf<SinkState>('sink-refused', ({ name, dead, isSetUp, deadError }) => {
  if (dead === 0) return null;
  return problem(
    'warning',
    `The sink ${name} has refused ${counted(dead, 'notification')} permanently.`,
    `Run \`earshot sinks dead ${name}\` to see why. Then retry the dead letters with \`earshot sinks retry ${name}\`, or drop them with \`earshot sinks drop ${name}\`.`,
    isSetUp === false && 'The sink is no longer configured.',
    deadError !== null && `Last error: ${quoted(deadError)}`,
  );
});

export const sinkChecks: readonly Check<SinkState>[] = [delivery, deadLetters];

/** The file, the receiver that uses an earlier version of it, and why nothing is delivered to any sink. */
interface SinkConfig
  extends Pick<StatusFacts, 'configFile' | 'receiver'>,
    Pick<DeliveryState, 'fault'> {}

export const configCheck = checkOf<SinkConfig>(
  'config',
  ({ fault, configFile, receiver }, { nowUs, alert }) => {
    if (fault !== null) {
      return problem(
        levelAfter(nowUs - (alert?.raisedAtUs ?? nowUs)),
        'Nothing is delivered to any sink.',
        fixFile,
        quoted(fault),
      );
    }
    const [modifiedAtUs, startedAtUs] = [configFile.modifiedAtUs, receiver?.startedAtUs ?? null];
    const isKnown = modifiedAtUs !== null && startedAtUs !== null;
    const isOfStart = isKnown && modifiedAtUs <= startedAtUs;
    if (configFile.fault !== null) {
      const text = isOfStart
        ? 'earshot.config.ts is invalid since the start of the receiver: sinks, summaries and maintenance are off.'
        : 'earshot.config.ts is invalid. A running receiver uses the version of its start.';
      const level = isOfStart ? 'critical' : 'warning';
      return problem(level, text, fixFile, quoted(configFile.fault));
    }
    if (!isKnown || isOfStart) return null;
    const text = 'earshot.config.ts has changed since the start of the receiver.';
    const found = problem('warning', text, 'Restart the receiver to apply the change.');
    return { ...found, raiseAfterUs: hourUs };
  },
);

export function evaluateSink(sink: SinkState, situation: Situation): Evaluation {
  const { name, waiting, position, behind } = sink;
  const open = waiting + (behind ?? 0);
  const state = position === null ? 'not started' : open === 0 ? 'up to date' : 'delivering';
  return evaluate(sinkChecks, sink, { subject: name, situation, fine: ok(state) });
}

export function evaluateConfig(
  { configFile, receiver }: Omit<SinkConfig, 'fault'>,
  situation: Situation,
): Evaluation {
  const config = { configFile, receiver, fault: null };
  return evaluate([configCheck], config, { situation, fine: ok('valid') });
}

/** Lists all sinks, or explains why there are none. */
export function sinkTable(
  sinks: readonly EvaluatedSink[],
  { config, nowUs }: { config: Evaluation; nowUs: number },
): report.Block {
  const targetOf = ({ target, isSetUp }: EvaluatedSink) =>
    target ?? (isSetUp === false ? 'gone' : null);
  const lagOf = ({ oldestUndeliveredAtUs: us }: EvaluatedSink) => report.span(us && nowUs - us);
  const columns: report.Column<EvaluatedSink>[] = [
    { title: 'sink', value: ({ name }) => report.link(name, `#${name}`) },
    { title: 'state', value: ({ evaluation }) => report.levelOf(evaluation) },
    { title: 'target', value: targetOf, drop: 1 },
    { title: 'behind', value: ({ behind }) => behind, isNumber: true, drop: 3 },
    { title: 'waiting', value: ({ waiting }) => waiting, isNumber: true },
    { title: 'dead', value: ({ dead }) => dead, isNumber: true },
    { title: 'lag', value: lagOf, isNumber: true },
    { title: 'delivered', value: ({ delivered }) => delivered, isNumber: true, drop: 2 },
    ...(sinks.some(({ tooOld }) => tooOld > 0)
      ? [
          {
            title: 'too old',
            value: ({ tooOld }: EvaluatedSink) => tooOld,
            isNumber: true,
            drop: 3,
          },
        ]
      : []),
    { title: 'last (UTC)', value: (sink) => report.time(sink.lastDeliveredAtUs), drop: 2 },
  ];
  if (sinks.length > 0 || isProblem(config)) return report.table('Sinks', columns, sinks);
  return report.empty(
    'No sinks. A sink is a program of yours that gets each matching notification.',
    'See docs/sinks.md to add one to earshot.config.ts.',
  );
}

/** Reports all sinks, and the problems of each. */
export function sinksReport(
  sinks: readonly EvaluatedSink[],
  context: { config: Evaluation; nowUs: number },
): report.Report {
  const evaluated = sinks.map(({ name, evaluation }) => [name, evaluation] as const);
  const problems = report.evaluations([['earshot.config.ts', context.config], ...evaluated]);
  return { title: 'Sinks', blocks: [sinkTable(sinks, context), problems] };
}

/** Reports one sink in detail, with its newest failed deliveries and dead letters. */
export function sinkSection(
  sink: EvaluatedSink,
  { failed, dead }: { failed: readonly QueuedItem[]; dead: readonly QueuedItem[] },
): report.Block {
  const { name, position, waiting, isSetUp } = sink;
  return {
    ...{ kind: 'section', title: name, id: name, evaluation: sink.evaluation },
    blocks: [
      report.facts(
        ['target', sink.target],
        ['position', position ?? 'not started yet'],
        ['not read yet', sink.behind],
        ['waiting', waiting],
        ['delivered', sink.delivered],
        ['too old (maxAge)', sink.tooOld === 0 ? null : sink.tooOld],
        ['last success', report.time(sink.lastDeliveredAtUs) ?? 'none yet'],
        ['last error', sink.lastError],
        ['replay', sink.isReplaying ? 'not complete' : null],
      ),
      ...(failed.length === 0 ? [] : [itemTable('To be retried', failed, { state: 'waiting' })]),
      ...(dead.length === 0 ? [] : [itemTable('Dead letters', dead, { state: 'dead' })]),
      report.commands(
        isSetUp !== false && ['Deliver a test notification', `earshot sinks test ${name}`],
        isSetUp !== false && [
          'Deliver a part of the log again',
          `earshot sinks replay --sink ${name} --since 24h`,
        ],
        isSetUp === false &&
          waiting > 0 && ['Drop the queue', `earshot sinks drop ${name} --waiting`],
        sink.dead > 0 && [
          'List all dead letters',
          `earshot sinks dead ${name} --limit ${sink.dead}`,
        ],
        sink.dead > 0 && ['Retry all dead letters', `earshot sinks retry ${name}`],
        sink.dead > 0 && ['Drop all dead letters', `earshot sinks drop ${name}`],
      ),
    ],
  };
}

/** A table of queued notifications or dead letters, newest first. */
export function itemTable(
  caption: string,
  items: readonly QueuedItem[],
  { state, isOfOne = true }: { state: SinkItem['state']; isOfOne?: boolean },
): report.Block {
  const sink: report.Column<QueuedItem> = { title: 'sink', value: ({ item }) => item.sink };
  const time: report.Column<QueuedItem> =
    state === 'dead'
      ? { title: 'queued (UTC)', drop: 1, value: ({ item }) => report.time(item.queuedAtUs) }
      : { title: 'next attempt (UTC)', drop: 1, value: ({ item }) => report.time(item.dueAtUs) };
  const productOf = ({ item, notification }: QueuedItem) =>
    report.link(notification?.productName ?? item.productId, `/products/${item.productId}`);
  const columns: report.Column<QueuedItem>[] = [
    { title: 'product', isName: true, value: productOf },
    { title: 'reason', grows: true, value: ({ item }) => item.error },
    time,
    { title: 'event', drop: 2, value: ({ notification }) => notification?.event ?? null },
    { title: 'attempts', isNumber: true, drop: 3, value: ({ item }) => item.attempts },
  ];
  return report.table(caption, isOfOne ? columns : [sink, ...columns], items);
}

/** A notification in the queue of a sink, or a dead letter. */
export interface QueuedItem {
  item: SinkItem;
  /** Null if it is no longer in the log. */
  notification: NotificationRow | null;
}

/** Reads items with their notifications, newest first. */
export async function readItems(
  { sinks, notifications: log }: { sinks: SinkReader; notifications: NotificationLog },
  query: Parameters<SinkReader['items']>[0],
): Promise<QueuedItem[]> {
  const items = await Array.fromAsync(sinks.items(query));
  return Promise.all(
    items.map(async (item) => ({ item, notification: await notificationAt(log, item.position) })),
  );
}
