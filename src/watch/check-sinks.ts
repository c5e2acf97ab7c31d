/** Alerts of sinks: backlogs and faults, and dead letters. */
import { type SinkCounts, sinkReader, unusedSink } from '../domain/sinks.ts';
import { firstOf } from '../domain/streams.ts';
import type { AlertRow, Moment, Problem, Result, WatchDeps } from './situation.ts';
import { countText, lengthText, minuteUs, momentText, quoted } from './texts.ts';

export interface SinkView extends Omit<SinkCounts, 'failed'> {
  /** True if the configuration defines it; null if that is not known. */
  isSetUp: boolean | null;
  /** Reason why nothing can be delivered to it. */
  fault: string | null;
  /** First notification that was not read for it, and the time for which its cursor has not changed. */
  unread: { receivedAtUs: number; unchangedForUs: number } | null;
}

type When = Pick<Moment, 'nowUs' | 'alert'>;

/** Waiting time that raises the alert, and waiting time below which it is resolved. */
const waitingUs = { raise: 15 * minuteUs, resolve: 5 * minuteUs, critical: 360 * minuteUs };

/** Checks the delivery to a sink. Replayed items only count if their delivery fails. */
export function checkBacklog(view: SinkView, { nowUs, alert }: When): Problem | null {
  const { sink, isSetUp, fault, waiting, unread } = view;
  if (fault !== null) return notStarted(view, fault, { nowUs, alert });
  const drop = `drop the waiting notifications with \`earshot sinks drop ${sink} --waiting\``;
  if (isSetUp === false) {
    if (view.oldestQueuedAtUs === null) return null;
    return {
      severity: 'warning',
      cause: `The sink ${sink} is no longer configured, and ${counted(waiting)} waiting for it.`,
      evidence: [
        'The sink was removed from earshot.config.ts, or renamed (a renamed sink is a new sink).',
      ],
      nextStep: `Add the sink to earshot.config.ts again, or ${drop}.`,
    };
  }
  const limitUs = waitingUs[alert === undefined ? 'raise' : 'resolve'];
  const waitsUs =
    nowUs - Math.min(...[view.oldestLiveQueuedAtUs, view.failingSinceUs].map((us) => us ?? nowUs));
  if (waitsUs > limitUs) {
    return {
      severity: severityOf(waitsUs),
      cause: `The sink ${sink} has a backlog: a notification has waited for ${lengthText(waitsUs)}.`,
      evidence: [
        `The notification was queued at ${momentText(nowUs - waitsUs)}; ${counted(waiting)} waiting.`,
        ...lastFailure(view),
      ],
      nextStep: `Run \`earshot sinks list\` to see the reason, then fix the target: delivery resumes automatically. Otherwise ${drop}.`,
    };
  }
  const unreadUs = unread === null ? 0 : nowUs - unread.receivedAtUs;
  // The cursor of a sink that catches up moves, whatever its backlog.
  if (unread === null || unread.unchangedForUs <= limitUs || unreadUs <= limitUs) return null;
  return {
    severity: severityOf(unreadUs),
    cause: `Nothing is delivered to the sink ${sink}: a notification received ${lengthText(unreadUs)} ago has not been read for this sink.`,
    evidence: [
      `The position of the sink has not changed for ${lengthText(unread.unchangedForUs)}.`,
    ],
    nextStep:
      'Find the reason in the log of the receiver, then restart the receiver. `earshot sinks list` shows the position of each sink.',
  };
}

/** Returns the problem that a sink is not started; without a name, that none is. */
function notStarted({ sink }: SinkView, fault: string, { nowUs, alert }: When): Problem {
  return {
    severity: severityOf(nowUs - (alert?.raisedAtUs ?? nowUs)),
    cause: `Nothing is delivered to ${sink === '' ? 'any sink' : `the sink ${sink}`}.`,
    evidence: [quoted(fault), 'Notifications are stored and wait in the log.'],
    nextStep:
      'Fix the fault; a running receiver reloads earshot.config.ts automatically. `earshot doctor` checks the configuration.',
  };
}

/** Returns the problem that the current `earshot.config.ts` is not in effect. */
export function rejectedProblem(reason: string): Problem {
  return {
    severity: 'warning',
    cause: 'The current earshot.config.ts is rejected.',
    evidence: [
      quoted(reason),
      'A running receiver continues with the last valid version that it has loaded, if there is one.',
    ],
    nextStep:
      'Fix earshot.config.ts; a running receiver reloads it automatically. `earshot doctor` prints each fault.',
  };
}

/** Checks for dead letters. Further ones update the number of the active alert. */
export function checkDeadLetters(view: SinkView): Problem | null {
  const { sink, isSetUp, waiting, dead } = view;
  if (dead === 0) return null;
  const letters = dead === 1 ? '1 notification' : `${countText(dead)} notifications`;
  const about = isSetUp === false ? `${sink}, which is no longer configured,` : sink;
  const drop = `\`earshot sinks drop ${sink} --all\``;
  return {
    severity: 'warning',
    cause: `The sink ${about} has refused ${letters} permanently.`,
    evidence: [
      `Dead letters: ${countText(dead)}. Waiting notifications: ${countText(waiting)}.`,
      ...lastFailure(view),
    ],
    nextStep:
      isSetUp === false
        ? `Add the sink to earshot.config.ts again, or drop the dead letters with ${drop}.`
        : `Run \`earshot sinks dead ${sink}\` to see why. To retry the dead letters: \`earshot sinks retry ${sink} --all\`. To drop them: ${drop}.`,
  };
}

const severityOf = (waitsUs: number) => (waitsUs > waitingUs.critical ? 'critical' : 'warning');

const counted = (waiting: number) =>
  waiting === 1 ? '1 notification is' : `${countText(waiting)} notifications are`;

const lastFailure = ({ error }: SinkView) =>
  error === null ? [] : [`Last failure: ${quoted(error)}`];

/** A sink, or all sinks with the name ''. */
export interface WatchedSink {
  view: SinkView;
  /** True when only the common alert applies, because nothing can be delivered to any sink. */
  isBlocked: boolean;
  /** Reason why the current `earshot.config.ts` is not in effect; only with the name ''. */
  rejected: string | null;
}

export const sinkRows: AlertRow<WatchedSink>[] = [
  {
    kind: 'sink',
    check: ({ view, isBlocked, rejected }, moment): Result => {
      if (isBlocked) return 'unchecked';
      return checkBacklog(view, moment) ?? (rejected === null ? null : rejectedProblem(rejected));
    },
  },
  { kind: 'sink-refused', check: ({ view }) => checkDeadLetters(view) },
];

/** Position of each sink's cursor, and the time since which it has not changed. */
export type CursorMemory = Map<string, { position: number; sinceUs: number }>;

/** Reads the facts of all sinks, by name. Rejects with `unavailable`. */
export async function readSinks(
  { sinks, notifications, deliveryState }: WatchDeps,
  nowUs: number,
  cursors: CursorMemory,
): Promise<[string, WatchedSink][]> {
  const { names, faults, fault, rejected = null } = deliveryState();
  const counts = await sinks.counts();
  const all: SinkView = { ...unusedSink(''), isSetUp: null, fault, unread: null };
  const found: [string, WatchedSink][] = [['', { view: all, isBlocked: false, rejected }]];
  for (const sink of new Set([...(names ?? []), ...counts.map((one) => one.sink)])) {
    const isSetUp = names === null ? null : names.includes(sink);
    const counted = counts.find((one) => one.sink === sink) ?? unusedSink(sink);
    const position = (await notifications.cursor(sinkReader(sink))) ?? 0;
    const before = cursors.get(sink);
    const sinceUs = before?.position === position ? Math.min(before.sinceUs, nowUs) : nowUs;
    cursors.set(sink, { position, sinceUs });
    const first = isSetUp ? await firstOf(notifications, { afterPosition: position }) : null;
    const unread = first && {
      receivedAtUs: first.receivedAtUs,
      unchangedForUs: nowUs - sinceUs,
    };
    const view = { ...counted, isSetUp, fault: faults?.get(sink) ?? null, unread };
    found.push([sink, { view, isBlocked: fault !== null, rejected: null }]);
  }
  return found;
}
