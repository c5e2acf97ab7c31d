/** Checks whether notifications are delivered to sinks and acknowledged. */

import { hourUs } from '../../domain/completeness.ts';
import { type SinkCounts, sinkReader } from '../../domain/sinks.ts';
import { quoted } from '../quoted.ts';
import { lastingAlert, type Situation } from '../situation.ts';
import { joined, nothingWrong, unjudged, type Verdict, wrong } from '../verdict.ts';
import type { WatchWorld } from '../watch-world.ts';
import { judgeBehind, judgeRefused, type SinkView, type UnreadLog } from './judge-sink.ts';

type Lasting = Pick<Situation, 'lasting' | 'nowUs'>;

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
