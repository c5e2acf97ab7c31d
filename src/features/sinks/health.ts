/** Decides the outcome of each attempt, and the health of the sink. A sink that is down is probed with one item at a time. */
import { jittered } from '../../core/host/job.ts';
import type { TargetAnswer } from './target.ts';
import {
  type SinkItem,
  type SinkRules,
  type Sinks,
  sinkRetryAfterMaxMs,
  sinkRetryDelayMaxMs,
} from './terms.ts';

/** Result of an attempt. `failed`: the delivery could not be built or attempted, which counts only against its item. */
export type AttemptAnswer = TargetAnswer | { kind: 'failed'; reason: string };

/** Outcome for one item. */
export type Settlement = Parameters<Sinks['settle']>[0][number];

interface Clock {
  nowUs: () => number;
  random: () => number;
}

/** Number of consecutive failures, of more than one item, after which the sink counts as down. */
const failuresMax = 5;

/** First pause before jitter; doubles with each failed probe. */
const firstPauseMs = 1_000;

const pauseMsMax = 300_000;

interface SinkFailure {
  /** Id of the item. */
  id: number;
  startedAtUs: number;
  /** True if nothing can be delivered until the user fixes the configuration. */
  isMisconfigured: boolean;
  retryAfterMs: number | null;
}

export type SinkHealth = ReturnType<typeof createSinkHealth>;

/** Tracks whether the sink is down. One item that fails repeatedly is delayed alone, and never blocks the others. */
export function createSinkHealth(io: Clock) {
  let consecutiveFailures = 0;
  let firstId: number | null = null;
  let severalItemsFailed = false;
  let isDown = false;
  let probes = 0;
  let pause = { fromUs: 0, untilUs: 0 };

  const untilUs = () => (io.nowUs() < pause.fromUs ? 0 : pause.untilUs);
  const countFailure = ({ id, isMisconfigured }: SinkFailure) => {
    consecutiveFailures += 1;
    firstId ??= id;
    severalItemsFailed ||= id !== firstId;
    isDown = isMisconfigured || (consecutiveFailures >= failuresMax && severalItemsFailed);
  };
  return {
    /** Returns true until the sink acknowledges or refuses an item. */
    isDown: () => isDown,
    /** Returns the end of the pause; in the past without a pause, or if the clock was set back meanwhile. */
    untilUs,
    recordAnswer: () => {
      if (isDown) pause = { fromUs: 0, untilUs: 0 };
      consecutiveFailures = 0;
      firstId = null;
      severalItemsFailed = false;
      isDown = false;
      probes = 0;
    },
    recordFailure: (failure: SinkFailure) => {
      // A delivery that started before the pause gives no new information.
      if (isDown && failure.startedAtUs < untilUs()) return;
      if (isDown) probes += 1;
      else countFailure(failure);
      const backoffMs = Math.min(pauseMsMax, firstPauseMs * 2 ** Math.min(probes, 20));
      const requestedMs = Math.min(failure.retryAfterMs ?? 0, sinkRetryAfterMaxMs);
      const pauseMs = Math.max(isDown ? jittered(backoffMs, io.random) : 0, requestedMs);
      const fromUs = io.nowUs();
      pause = { fromUs, untilUs: Math.max(untilUs(), fromUs + Math.round(pauseMs * 1000)) };
    },
  };
}

/** Maximum failures of an item while others are acknowledged: further ones are attributed to the item. */
const strikesMax = 20;

/** First retry delay after a refusal, before jitter; grows by a factor of 4. */
const refusalDelayMs = 5_000;

/** First retry delay after any other failure, before jitter; grows by a factor of 2. */
const failureDelayMs = 2_000;

const failureDelayMsMax = 300_000;

/** Failures of an item, kept until it is acknowledged or the process ends. */
interface Failures {
  count: number;
  /** Failures with other items acknowledged since the previous failure. */
  strikes: number;
  /** Number of acknowledged items at the last failure. */
  acknowledgedBefore: number;
}

/**
 * Decides the outcome of attempts. A refusal counts towards the maximum number of attempts, and shows that the sink is
 * up. Any other failure may be the sink's fault and does not count. But if an item has failed `strikesMax` times while
 * others were acknowledged, each further such failure counts as a refusal: otherwise it would block its product forever.
 */
export function createAfterAnswer(
  { attemptsMax }: Pick<SinkRules, 'attemptsMax'>,
  health: SinkHealth,
  { nowUs, random }: Clock,
) {
  const failed = new Map<number, Failures>();
  let acknowledged = 0;

  /** Counts a failure. It is a strike only if items were acknowledged in between; otherwise the sink may be down. */
  const countFailure = (id: number): Failures & { isOwnFault: boolean } => {
    const before = failed.get(id) ?? { count: 0, strikes: 0, acknowledgedBefore: acknowledged };
    const isStrike = acknowledged > before.acknowledgedBefore;
    const strikes = before.strikes + Number(isStrike);
    const failures = { count: before.count + 1, strikes, acknowledgedBefore: acknowledged };
    failed.set(id, failures);
    return { ...failures, isOwnFault: isStrike && strikes >= strikesMax };
  };
  const inMs = (ms: number) => nowUs() + Math.round(jittered(ms * 1000, random));

  const afterRefusal = ({ id, attempts }: SinkItem, error: string): Settlement => {
    if (attempts + 1 >= attemptsMax) {
      failed.delete(id);
      return { id, outcome: 'dead', error };
    }
    const delayMs = Math.min(sinkRetryDelayMaxMs, refusalDelayMs * 4 ** Math.min(attempts, 10));
    return { id, outcome: 'postponed', error, nextAttemptAtUs: inMs(delayMs), counts: true };
  };
  return {
    /** Returns the outcome for the item, and updates the health of the sink. */
    settlementOf: (item: SinkItem, answer: AttemptAnswer, startedAtUs: number): Settlement => {
      const { id } = item;
      if (answer.kind === 'acknowledged') {
        acknowledged += 1;
        failed.delete(id);
        health.recordAnswer();
        return { id, outcome: 'acknowledged', deliveredAtUs: nowUs() };
      }
      const { kind, reason: error } = answer;
      if (kind === 'refused') health.recordAnswer();
      if (kind === 'refused' || kind === 'failed') return afterRefusal(item, error);
      const isMisconfigured = kind === 'misconfigured';
      const retryAfterMs = kind === 'unavailable' ? answer.retryAfterMs : null;
      health.recordFailure({ id, startedAtUs, isMisconfigured, retryAfterMs });
      const { count, isOwnFault } = countFailure(id);
      if (isOwnFault) return afterRefusal(item, error);
      const delayMs = Math.min(failureDelayMsMax, failureDelayMs * 2 ** Math.min(count - 1, 10));
      const nextAttemptAtUs = Math.max(health.untilUs(), inMs(delayMs));
      return { id, outcome: 'postponed', error, counts: false, nextAttemptAtUs };
    },
  };
}
