/** Checks one sink: its backlog and its dead letters. */

import { hourUs } from '../domain/coverage.ts';
import { type SinkCounts, sinkReader } from '../domain/sinks.ts';
import {
  countText,
  joined,
  lastingAlert,
  lengthText,
  momentText,
  nothingWrong,
  quoted,
  type Situation,
  unjudged,
  type Verdict,
  type WatchWorld,
  wrong,
} from './situation.ts';

type Lasting = Pick<Situation, 'lasting' | 'nowUs'>;

/** The part of the log that was not read for a sink. */
interface UnreadLog {
  /** When its first notification was received. */
  receivedAtUs: number;
  /** For how long the sink's place in the log has not moved. */
  standsForUs: number;
}

export interface SinkView extends SinkCounts {
  /** Whether the configuration has it; null where that is not known. */
  isSetUp: boolean | null;
  unread: UnreadLog | null;
}

const minuteUs = 60_000_000;

/** A wait that raises the alert, and the wait below which it is resolved. */
const waitingUs = 15 * minuteUs;

const waitingOverUs = 5 * minuteUs;

const waitingCriticalUs = 6 * 60 * minuteUs;

/** Items of a replay do not count: they wait behind new ones. */
export function judgeBehind(view: SinkView, situation: Lasting): Verdict {
  const { sink, isSetUp, oldestQueuedAtUs, oldestLiveQueuedAtUs } = view;
  if (isSetUp === false) {
    return oldestQueuedAtUs === null ? nothingWrong('sink', sink) : leftBehind(view);
  }
  const isLasting = lastingAlert(situation, 'sink', sink) !== undefined;
  const limitUs = isLasting ? waitingOverUs : waitingUs;
  const waitsUs = oldestLiveQueuedAtUs === null ? 0 : situation.nowUs - oldestLiveQueuedAtUs;
  if (waitsUs > limitUs) return behind(view, situation.nowUs, waitsUs);
  return unreadIsStuck(view, situation.nowUs, limitUs) ?? nothingWrong('sink', sink);
}

function behind({ sink, waiting, error }: SinkView, nowUs: number, waitsUs: number): Verdict {
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: severityOf(waitsUs),
    cause: `The sink ${sink} has a backlog: a notification has waited for ${lengthText(waitsUs)}.`,
    evidence: [
      `It was queued at ${momentText(nowUs - waitsUs)}; ${countText(waiting)} wait.`,
      ...lastFailure(error),
    ],
    nextStep: `Check the target of the sink: delivery resumes automatically. \`earshot sinks list\` shows the reason; \`earshot sinks drop ${sink} --waiting\` drops what waits.`,
  });
}

/** A sink that catches up moves its place in the log, whatever its backlog. */
function unreadIsStuck({ sink, unread }: SinkView, nowUs: number, limitUs: number): Verdict | null {
  if (unread === null || unread.standsForUs <= limitUs) return null;
  const waitsUs = nowUs - unread.receivedAtUs;
  if (waitsUs <= limitUs) return null;
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: severityOf(waitsUs),
    cause: `Nothing is delivered to the sink ${sink}: a notification received ${lengthText(waitsUs)} ago has not been read for it.`,
    evidence: [
      `It was received at ${momentText(unread.receivedAtUs)}; the sink's place in the log has not moved for ${lengthText(unread.standsForUs)}.`,
    ],
    nextStep:
      'Find the reason in the log of the receiver, then restart it. `earshot sinks list` shows the place of each sink.',
  });
}

function leftBehind({ sink, waiting }: SinkView): Verdict {
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: 'warning',
    cause: `The sink ${sink} is no longer configured, and ${counted(waiting)} waiting for it.`,
    evidence: ['It was removed from earshot.config.ts, or renamed: another name is another sink.'],
    nextStep: `Add it to earshot.config.ts again, or drop what waits with \`earshot sinks drop ${sink} --waiting\`.`,
  });
}

/** Resolved when there are no dead letters. More of them update the number of the same alert. */
export function judgeRefused({ sink, isSetUp, waiting, dead, error }: SinkView): Verdict {
  if (dead === 0) return nothingWrong('sink-refused', sink);
  const letters = dead === 1 ? '1 notification' : `${countText(dead)} notifications`;
  const about = isSetUp === false ? `${sink}, which is no longer configured,` : sink;
  return wrong({
    kind: 'sink-refused',
    subject: sink,
    severity: 'warning',
    cause: `The sink ${about} has refused ${letters} permanently.`,
    evidence: [
      `Dead letters: ${countText(dead)}; ${countText(waiting)} wait.`,
      ...lastFailure(error),
    ],
    nextStep:
      isSetUp === false
        ? `Add it to earshot.config.ts again, or drop them with \`earshot sinks drop ${sink} --all\`.`
        : `Run \`earshot sinks dead ${sink}\` to see why, then \`earshot sinks retry ${sink} --all\` or \`earshot sinks drop ${sink} --all\`.`,
  });
}

const severityOf = (waitsUs: number) => (waitsUs > waitingCriticalUs ? 'critical' : 'warning');

const counted = (waiting: number) =>
  waiting === 1 ? '1 notification is' : `${countText(waiting)} notifications are`;

const lastFailure = (error: string | null) =>
  error === null ? [] : [`The last failure: ${quoted(error)}`];

/** Where each sink's cursor stands, and since when. */
export type CursorMemory = Map<string, { position: number; sinceUs: number }>;

const criticalUs = 6 * hourUs;

const kinds = ['sink', 'sink-refused'] as const;

/**
 * Each sink has one alert for a backlog or a fault that prevents its start, and another one for dead letters. The
 * alert without a name is for all sinks.
 */
export async function judgeSinks(
  world: Pick<WatchWorld, 'sinks' | 'notifications' | 'handingOver'>,
  situation: Lasting,
  cursors: CursorMemory,
): Promise<Verdict> {
  const { names, faults, fault, rejected = null } = world.handingOver();
  const counts = await world.sinks.counts();
  const known = new Set([...(names ?? []), ...counts.map(({ sink }) => sink)]);
  for (const sink of cursors.keys()) if (!known.has(sink)) cursors.delete(sink);
  const gone = situation.lasting.filter(
    ({ kind, subject }) =>
      kinds.some((one) => one === kind) && subject !== '' && !known.has(subject),
  );
  const verdicts = [...known].map(async (sink) => {
    const isSetUp = names === null ? null : names.includes(sink);
    const counted = counts.find((one) => one.sink === sink) ?? none(sink);
    const unread = isSetUp ? await unreadLog(world, sink, situation.nowUs, cursors) : null;
    const view: SinkView = { ...counted, isSetUp, unread };
    const own = faults?.get(sink);
    const behind = own === undefined ? judgeBehind(view, situation) : stopped(sink, own, situation);
    // A fault of all sinks is reported once.
    return joined([fault === null ? behind : unjudged, judgeRefused(view)]);
  });
  return joined([
    ...(await Promise.all(verdicts)),
    ...gone.map(({ kind, subject }) => nothingWrong(kind, subject)),
    fault === null ? judgeRejected(rejected) : stopped('', fault, situation),
  ]);
}

/** Checks whether the current `earshot.config.ts` is in effect. */
export function judgeRejected(reason: string | null): Verdict {
  if (reason === null) return nothingWrong('sink', '');
  return wrong({
    kind: 'sink',
    subject: '',
    severity: 'warning',
    cause: 'The current earshot.config.ts is rejected.',
    evidence: [
      quoted(reason),
      'A running receiver continues with the last valid version, if it had one since its start.',
    ],
    nextStep:
      'Fix earshot.config.ts: a running receiver reads it again. `earshot doctor` prints each fault.',
  });
}

/** The finding that a sink is not started; without a name, that none is. */
export function stopped(sink: string, fault: string, situation: Lasting): Verdict {
  const raisedAtUs = lastingAlert(situation, 'sink', sink)?.raisedAtUs ?? situation.nowUs;
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: situation.nowUs - raisedAtUs > criticalUs ? 'critical' : 'warning',
    cause: `Nothing is delivered to ${sink === '' ? 'any sink' : `the sink ${sink}`}.`,
    evidence: [quoted(fault), 'Notifications are stored and wait in the log.'],
    nextStep:
      'Fix it: a running receiver reads earshot.config.ts again. `earshot doctor` checks it.',
  });
}

/** What the sink has not looked at yet; null when it has looked at all. Rejects with `unavailable`. */
async function unreadLog(
  { notifications }: Pick<WatchWorld, 'notifications'>,
  sink: string,
  nowUs: number,
  cursors: CursorMemory,
): Promise<UnreadLog | null> {
  const position = (await notifications.cursor(sinkReader(sink))) ?? 0;
  const before = cursors.get(sink);
  const sinceUs = before?.position === position ? Math.min(before.sinceUs, nowUs) : nowUs;
  cursors.set(sink, { position, sinceUs });
  const rows = notifications.find({ afterPosition: position, order: 'oldest', limit: 1 });
  for await (const { receivedAtUs } of rows) {
    return { receivedAtUs, standsForUs: nowUs - sinceUs };
  }
  return null;
}

function none(sink: string): SinkCounts {
  const never = { oldestQueuedAtUs: null, oldestLiveQueuedAtUs: null };
  return { sink, waiting: 0, dead: 0, ...never, error: null };
}
