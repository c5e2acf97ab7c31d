/** What an answer means for its item, and for its sink: a sink that does not answer is probed with one item at a time. */
import { jittered } from '../domain/job.ts';
import type { SinkRules } from '../domain/sinks.ts';
import {
  type SinkItem,
  type Sinks,
  sinkRetryAfterMaxMs,
  sinkRetryDelayMaxMs,
} from '../domain/sinks.ts';
import type { TargetAnswer } from './target.ts';

/** Result of an attempt. `failed`: the delivery could not be built or attempted, which counts against its item alone. */
export type AttemptAnswer = TargetAnswer | { kind: 'failed'; reason: string };

/** What becomes of one item. */
export type Settlement = Parameters<Sinks['settle']>[0][number];

interface Clock {
  nowUs: () => number;
  random: () => number;
}

/** Failures in a row, of more than one item, after which the sink counts as down. */
const failuresMax = 5;

/** Before jitter; it doubles with each probe that fails. */
const firstPauseMs = 1_000;

const pauseMsMax = 300_000;

interface SinkFailure {
  /** The item's. */
  id: number;
  startedAtUs: number;
  /** Nothing can be delivered before somebody fixes something. */
  isMisconfigured: boolean;
  retryAfterMs: number | null;
}

export type SinkHealth = ReturnType<typeof createSinkHealth>;

/** A single item that fails again and again has its own waits: it never keeps the others. */
export function createSinkHealth(io: Clock) {
  let inARow = 0;
  let firstId: number | null = null;
  let isOfSeveral = false;
  let isDown = false;
  let probes = 0;
  let pause = { fromUs: 0, untilUs: 0 };

  const untilUs = () => (io.nowUs() < pause.fromUs ? 0 : pause.untilUs);
  const countUp = ({ id, isMisconfigured }: SinkFailure) => {
    inARow += 1;
    firstId ??= id;
    isOfSeveral ||= id !== firstId;
    isDown = isMisconfigured || (inARow >= failuresMax && isOfSeveral);
  };
  return {
    /** True until the sink answered: took an item, or refused one. */
    isDown: () => isDown,
    /** Until when nothing is delivered; in the past when nothing keeps it, or the clock was set back meanwhile. */
    untilUs,
    noteAnswer: () => {
      if (isDown) pause = { fromUs: 0, untilUs: 0 };
      inARow = 0;
      firstId = null;
      isOfSeveral = false;
      isDown = false;
      probes = 0;
    },
    noteFailure: (failure: SinkFailure) => {
      // What was on its way before the pause says nothing new.
      if (isDown && failure.startedAtUs < untilUs()) return;
      if (isDown) probes += 1;
      else countUp(failure);
      const ownMs = Math.min(pauseMsMax, firstPauseMs * 2 ** Math.min(probes, 20));
      const askedMs = Math.min(failure.retryAfterMs ?? 0, sinkRetryAfterMaxMs);
      const pauseMs = Math.max(isDown ? jittered(ownMs, io.random) : 0, askedMs);
      const fromUs = io.nowUs();
      pause = { fromUs, untilUs: Math.max(untilUs(), fromUs + Math.round(pauseMs * 1000)) };
    },
  };
}

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

/**
 * A refusal is an answer: it counts, until the item is a dead letter, and it shows that the sink is up. Any other
 * failure may be the sink's own and does not count; but one item that has failed `strikesMax` times while others
 * were taken counts as refused with each further such time, as it would keep its product for ever.
 */
export function createAfterAnswer(
  { attemptsMax }: Pick<SinkRules, 'attemptsMax'>,
  health: SinkHealth,
  { nowUs, random }: Clock,
) {
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
    return { id, outcome: 'postponed', error, nextAttemptAtUs: inMs(waitMs), counts: true };
  };
  return {
    /** Notes the answer for the sink, too. */
    settlementOf: (item: SinkItem, answer: AttemptAnswer, startedAtUs: number): Settlement => {
      const { id } = item;
      if (answer.kind === 'taken') {
        taken += 1;
        failed.delete(id);
        health.noteAnswer();
        return { id, outcome: 'acknowledged', deliveredAtUs: nowUs() };
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
      const nextAttemptAtUs = Math.max(health.untilUs(), inMs(waitMs));
      return { id, outcome: 'postponed', error, counts: false, nextAttemptAtUs };
    },
  };
}
