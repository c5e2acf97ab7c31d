/** Checks one sink: its backlog and its dead letters. */

import { type SinkCounts, sinkReader } from '../domain/sinks.ts';
import { firstOf } from '../domain/streams.ts';
import {
  type CheckResult,
  checkOf,
  countText,
  joinResults,
  lengthText,
  minuteUs,
  momentText,
  quoted,
  type Situation,
  type WatchDeps,
} from './situation.ts';

type Active = Pick<Situation, 'active' | 'nowUs'>;

/** The part of the log that was not read for a sink. */
interface UnreadLog {
  /** Time of receipt of its first notification. */
  receivedAtUs: number;
  /** Time for which the cursor of the sink has not changed. */
  unchangedForUs: number;
}

export interface SinkView extends Omit<SinkCounts, 'failed'> {
  /** True if the configuration defines it; null if that is not known. */
  isSetUp: boolean | null;
  unread: UnreadLog | null;
}

/** Waiting time that raises the alert, and waiting time below which it is resolved. */
const waitingUs = 15 * minuteUs;

const waitingResolveUs = 5 * minuteUs;

const waitingCriticalUs = 6 * 60 * minuteUs;

/** Checks a sink. `fault` is the reason why nothing can be delivered to it. */
export function checkSink(view: SinkView, fault: string | null, situation: Active): CheckResult {
  const delivery =
    fault === null ? checkBacklog(view, situation) : notStarted(view.sink, fault, situation);
  return joinResults([delivery, checkDeadLetters(view)]);
}

/** Checks the backlog of a sink. Replayed items do not count, as they have lower priority than new ones. */
export function checkBacklog(view: SinkView, situation: Active): CheckResult {
  const { sink, isSetUp, waiting, oldestQueuedAtUs, oldestLiveQueuedAtUs, error, unread } = view;
  const { alert, fine, found } = checkOf('sink', sink, situation);
  if (isSetUp === false) {
    if (oldestQueuedAtUs === null) return fine;
    return found({
      severity: 'warning',
      cause: `The sink ${sink} is no longer configured, and ${counted(waiting)} waiting for it.`,
      evidence: [
        'The sink was removed from earshot.config.ts, or renamed (a renamed sink is a new sink).',
      ],
      nextStep: `Add the sink to earshot.config.ts again, or drop the waiting notifications with \`earshot sinks drop ${sink} --waiting\`.`,
    });
  }
  const limitUs = alert === undefined ? waitingUs : waitingResolveUs;
  const ageUs = (us: number | null) => (us === null ? 0 : situation.nowUs - us);
  const waitsUs = ageUs(oldestLiveQueuedAtUs);
  if (waitsUs > limitUs) {
    return found({
      severity: severityOf(waitsUs),
      cause: `The sink ${sink} has a backlog: a notification has waited for ${lengthText(waitsUs)}.`,
      evidence: [
        `The notification was queued at ${momentText(situation.nowUs - waitsUs)}; ${counted(waiting)} waiting.`,
        ...lastFailure(error),
      ],
      nextStep: `Run \`earshot sinks list\` to see the reason, then fix the target: delivery resumes automatically. To drop the waiting notifications: \`earshot sinks drop ${sink} --waiting\`.`,
    });
  }
  const unreadUs = ageUs(unread?.receivedAtUs ?? null);
  // The cursor of a sink that catches up moves, whatever its backlog.
  if (unread === null || unread.unchangedForUs <= limitUs || unreadUs <= limitUs) return fine;
  return found({
    severity: severityOf(unreadUs),
    cause: `Nothing is delivered to the sink ${sink}: a notification received ${lengthText(unreadUs)} ago has not been read for this sink.`,
    evidence: [
      `The notification was received at ${momentText(unread.receivedAtUs)}; the position of the sink has not changed for ${lengthText(unread.unchangedForUs)}.`,
    ],
    nextStep:
      'Find the reason in the log of the receiver, then restart the receiver. `earshot sinks list` shows the position of each sink.',
  });
}

/** Checks for dead letters. Resolved when there are none. Further ones update the number of the active alert. */
export function checkDeadLetters({ sink, isSetUp, waiting, dead, error }: SinkView): CheckResult {
  const { fine, found } = checkOf('sink-refused', sink);
  if (dead === 0) return fine;
  const letters = dead === 1 ? '1 notification' : `${countText(dead)} notifications`;
  const about = isSetUp === false ? `${sink}, which is no longer configured,` : sink;
  return found({
    severity: 'warning',
    cause: `The sink ${about} has refused ${letters} permanently.`,
    evidence: [
      `Dead letters: ${countText(dead)}. Waiting notifications: ${countText(waiting)}.`,
      ...lastFailure(error),
    ],
    nextStep:
      isSetUp === false
        ? `Add the sink to earshot.config.ts again, or drop the dead letters with \`earshot sinks drop ${sink} --all\`.`
        : `Run \`earshot sinks dead ${sink}\` to see why. To retry the dead letters: \`earshot sinks retry ${sink} --all\`. To drop them: \`earshot sinks drop ${sink} --all\`.`,
  });
}

const severityOf = (waitsUs: number) => (waitsUs > waitingCriticalUs ? 'critical' : 'warning');

const counted = (waiting: number) =>
  waiting === 1 ? '1 notification is' : `${countText(waiting)} notifications are`;

const lastFailure = (error: string | null) =>
  error === null ? [] : [`Last failure: ${quoted(error)}`];

/** Position of each sink's cursor, and the time since which it has not changed. */
export type CursorMemory = Map<string, { position: number; sinceUs: number }>;

const kinds = ['sink', 'sink-refused'] as const;

/**
 * Checks all sinks. Each sink has one alert for a backlog or a fault that prevents its start, and another one for
 * dead letters. The alert without a name applies to all sinks.
 */
export async function checkSinks(
  deps: Pick<WatchDeps, 'sinks' | 'notifications' | 'deliveryState'>,
  situation: Active,
  cursors: CursorMemory,
): Promise<CheckResult> {
  const { names, faults, fault, rejected = null } = deps.deliveryState();
  const counts = await deps.sinks.counts();
  const known = new Set([...(names ?? []), ...counts.map(({ sink }) => sink)]);
  for (const sink of cursors.keys()) if (!known.has(sink)) cursors.delete(sink);
  const gone = situation.active.filter(
    ({ kind, subject }) =>
      kinds.some((one) => one === kind) && subject !== '' && !known.has(subject),
  );
  const results = [...known].map(async (sink) => {
    const isSetUp = names === null ? null : names.includes(sink);
    const counted = counts.find((one) => one.sink === sink) ?? none(sink);
    const unread = isSetUp ? await unreadLog(deps, sink, situation.nowUs, cursors) : null;
    const view: SinkView = { ...counted, isSetUp, unread };
    // A fault of all sinks is reported once.
    if (fault !== null) return checkDeadLetters(view);
    return checkSink(view, faults?.get(sink) ?? null, situation);
  });
  return joinResults([
    ...(await Promise.all(results)),
    ...gone.map(({ kind, subject }) => checkOf(kind, subject).fine),
    fault === null ? checkRejected(rejected) : notStarted('', fault, situation),
  ]);
}

/** Checks whether the current `earshot.config.ts` is in effect. */
export function checkRejected(reason: string | null): CheckResult {
  const { fine, found } = checkOf('sink', '');
  if (reason === null) return fine;
  return found({
    severity: 'warning',
    cause: 'The current earshot.config.ts is rejected.',
    evidence: [
      quoted(reason),
      'A running receiver continues with the last valid version that it has loaded, if there is one.',
    ],
    nextStep:
      'Fix earshot.config.ts; a running receiver reloads it automatically. `earshot doctor` prints each fault.',
  });
}

/** Returns the finding that a sink is not started; without a name, that none is. */
function notStarted(sink: string, fault: string, situation: Active): CheckResult {
  const { alert, found } = checkOf('sink', sink, situation);
  const raisedAtUs = alert?.raisedAtUs ?? situation.nowUs;
  return found({
    severity: severityOf(situation.nowUs - raisedAtUs),
    cause: `Nothing is delivered to ${sink === '' ? 'any sink' : `the sink ${sink}`}.`,
    evidence: [quoted(fault), 'Notifications are stored and wait in the log.'],
    nextStep:
      'Fix the fault; a running receiver reloads earshot.config.ts automatically. `earshot doctor` checks the configuration.',
  });
}

/** Returns the unread part of the log; null when everything was read. Rejects with `unavailable`. */
async function unreadLog(
  { notifications }: Pick<WatchDeps, 'notifications'>,
  sink: string,
  nowUs: number,
  cursors: CursorMemory,
): Promise<UnreadLog | null> {
  const position = (await notifications.cursor(sinkReader(sink))) ?? 0;
  const before = cursors.get(sink);
  const sinceUs = before?.position === position ? Math.min(before.sinceUs, nowUs) : nowUs;
  cursors.set(sink, { position, sinceUs });
  const first = await firstOf(notifications, { afterPosition: position });
  return first && { receivedAtUs: first.receivedAtUs, unchangedForUs: nowUs - sinceUs };
}

function none(sink: string): Omit<SinkCounts, 'failed'> {
  const never = { oldestQueuedAtUs: null, oldestLiveQueuedAtUs: null };
  return { sink, waiting: 0, dead: 0, ...never, error: null };
}
