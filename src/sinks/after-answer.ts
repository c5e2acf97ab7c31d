/** How an item goes on after it was handed over, or was not. */
import { jittered } from '../domain/jitter.ts';
import {
  type SinkDefinition,
  type SinkItem,
  type Sinks,
  sinkRetryDelayMaxMs,
} from '../domain/sinks.ts';
import type { AttemptAnswer } from './attempt.ts';
import type { SinkHealth } from './sink-health.ts';

/** What becomes of one item. */
export type Settlement = Parameters<Sinks['settle']>[0][number];

/** Times that an item may fail while others are taken: each one more is the item's own fault. */
const strikesMax = 20;
/** Waits, before jitter. After a refusal it grows fourfold each time, after another failure twofold. */
const refusalWaitMs = 5_000;
const failureWaitMs = 2_000;
const failureWaitMsMax = 300_000;

/** What is remembered of an item that failed, until it was taken or the program ends. */
interface Failures {
  count: number;
  /** Those before which others were taken since the one before. */
  strikes: number;
  /** How many had been taken at the last one. */
  takenBefore: number;
}

export interface AfterAnswer {
  /** Notes the answer for the sink, too. */
  settlementOf(item: SinkItem, answer: AttemptAnswer, startedAtUs: number): Settlement;
}

/**
 * A refusal is an answer: it counts, until the item is a dead letter, and it shows that the sink is up. Any other
 * failure may be the sink's own and does not count; but one item that has failed `strikesMax` times while others
 * were taken counts as refused with each further such time, as it would keep its product for ever.
 */
export function createAfterAnswer(
  { attemptsMax }: Pick<SinkDefinition, 'attemptsMax'>,
  health: SinkHealth,
  { nowUs, random }: { nowUs: () => number; random: () => number },
): AfterAnswer {
  const failed = new Map<number, Failures>();
  let taken = 0;

  /** While nothing is taken, no failure is a strike: it is the sink that is down. */
  const noteFailure = (id: number): Failures & { isOwnFault: boolean } => {
    const before = failed.get(id) ?? { count: 0, strikes: 0, takenBefore: taken };
    const isStrike = taken > before.takenBefore;
    const strikes = before.strikes + Number(isStrike);
    const failures = { count: before.count + 1, strikes, takenBefore: taken };
    failed.set(id, failures);
    return { ...failures, isOwnFault: isStrike && strikes >= strikesMax };
  };
  const inMs = (ms: number) => nowUs() + Math.round(jittered(ms * 1000, random));

  const afterRefusal = ({ id, attempts }: SinkItem, error: string): Settlement => {
    if (attempts + 1 >= attemptsMax) {
      failed.delete(id);
      return { id, outcome: 'dead', error };
    }
    const waitMs = Math.min(sinkRetryDelayMaxMs, refusalWaitMs * 4 ** Math.min(attempts, 10));
    return { id, outcome: 'postponed', error, nextTryAtUs: inMs(waitMs), counts: true };
  };
  return {
    settlementOf: (item, answer, startedAtUs) => {
      const { id } = item;
      if (answer.kind === 'taken') {
        taken += 1;
        failed.delete(id);
        health.noteAnswer();
        return { id, outcome: 'taken', deliveredAtUs: nowUs() };
      }
      const { kind, reason: error } = answer;
      if (kind === 'refused') health.noteAnswer();
      if (kind === 'refused' || kind === 'failed') return afterRefusal(item, error);
      const isMisconfigured = kind === 'misconfigured';
      const retryAfterMs = kind === 'unavailable' ? answer.retryAfterMs : null;
      health.noteFailure({ id, startedAtUs, isMisconfigured, retryAfterMs });
      const { count, isOwnFault } = noteFailure(id);
      if (isOwnFault) return afterRefusal(item, error);
      const waitMs = Math.min(failureWaitMsMax, failureWaitMs * 2 ** Math.min(count - 1, 10));
      const nextTryAtUs = Math.max(health.untilUs(), inMs(waitMs));
      return { id, outcome: 'postponed', error, counts: false, nextTryAtUs };
    },
  };
}
