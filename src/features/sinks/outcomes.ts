/** The outcomes of deliveries: when a sink counts as down, how it is probed, and when an item is a dead letter. */
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

/** Number of consecutive failures, of more than one item, after which the sink counts as down. */
const failuresMax = 5;

/** First pause of a sink that is down, before jitter; doubles with each failed probe. */
const firstPauseMs = 1_000;

const pauseMsMax = 300_000;

/** Maximum failures of an item while others are acknowledged: further ones are attributed to the item. */
const strikesMax = 20;

/** Strikes after which an item is delivered alone instead of in a batch. */
const suspectStrikes = 3;

/** First retry delay after a refusal, before jitter; grows by a factor of 4. */
const refusalDelayMs = 5_000;

/** First retry delay after any other failure, before jitter; grows by a factor of 2. */
const failureDelayMs = 2_000;

const failureDelayMsMax = 300_000;

export type Outcomes = ReturnType<typeof createOutcomes>;

interface Clock {
  nowUs: () => number;
  random: () => number;
}

/** Creates the state of a sink: it is down after several failures, and then pauses between probes. */
function createHealth({ nowUs, random }: Clock) {
  let isDown = false;
  let pause = { fromUs: 0, untilUs: 0 };
  let probes = 0;
  /** Items of each of the consecutive failures. */
  let consecutive: (readonly number[])[] = [];
  const untilUs = () => (nowUs() < pause.fromUs ? 0 : pause.untilUs);
  return {
    isDown: () => isDown,
    untilUs,
    setUp: () => {
      if (isDown) pause = { fromUs: 0, untilUs: 0 };
      [isDown, probes, consecutive] = [false, 0, []];
    },
    noteFailure: (ids: readonly number[], startedAtUs: number, answer: TargetAnswer) => {
      // A delivery that started before the pause gives no new information.
      if (isDown && startedAtUs < untilUs()) return;
      if (isDown) probes += 1;
      else {
        consecutive.push(ids);
        const isRow = consecutive.length >= failuresMax && new Set(consecutive.flat()).size > 1;
        isDown = answer.kind === 'misconfigured' || isRow;
      }
      const backoffMs = Math.min(pauseMsMax, firstPauseMs * 2 ** Math.min(probes, 20));
      const requestedMs = answer.kind === 'unavailable' ? (answer.retryAfterMs ?? 0) : 0;
      const pauseMs = Math.max(
        isDown ? jittered(backoffMs, random) : 0,
        Math.min(requestedMs, sinkRetryAfterMaxMs),
      );
      const fromUs = nowUs();
      pause = { fromUs, untilUs: Math.max(untilUs(), fromUs + Math.round(pauseMs * 1000)) };
    },
  };
}

/**
 * Creates the rules of a sink. A refusal counts towards the maximum number of attempts, and shows that the sink is up.
 * Any other failure may be the sink's fault: it does not count, and several in a row mean that the sink is down. But if an
 * item has failed `strikesMax` times while others were acknowledged, each further such failure counts as a refusal:
 * otherwise it would block its product forever.
 */
export function createOutcomes({ attemptsMax }: Pick<SinkRules, 'attemptsMax'>, clock: Clock) {
  const { nowUs, random } = clock;
  const { isDown, untilUs, setUp, noteFailure } = createHealth(clock);
  const failures = createFailures();
  const inMs = (ms: number, jitter: number) =>
    nowUs() + Math.round(jittered(ms * 1000, () => jitter));
  const afterRefusal = ({ id, attempts }: SinkItem, error: string, jitter: number): Settlement => {
    if (attempts + 1 >= attemptsMax) {
      failures.drop(id);
      return { id, outcome: 'dead', error };
    }
    const delayMs = Math.min(sinkRetryDelayMaxMs, refusalDelayMs * 4 ** Math.min(attempts, 10));
    return {
      id,
      outcome: 'postponed',
      error,
      nextAttemptAtUs: inMs(delayMs, jitter),
      counts: true,
    };
  };
  const afterFailure = (item: SinkItem, error: string, jitter: number): Settlement => {
    const { count, isOwnFault } = failures.add(item.id);
    if (isOwnFault) return afterRefusal(item, error, jitter);
    const delayMs = Math.min(failureDelayMsMax, failureDelayMs * 2 ** Math.min(count - 1, 10));
    const nextAttemptAtUs = Math.max(untilUs(), inMs(delayMs, jitter));
    return { id: item.id, outcome: 'postponed', error, counts: false, nextAttemptAtUs };
  };
  return {
    /** Returns true until the sink acknowledges or refuses an item: it is probed with one item at a time. */
    isDown,
    /** Returns the end of the pause; in the past without a pause, or if the clock was set back meanwhile. */
    untilUs,
    /** Returns true for an item that was refused, or failed several times while others were acknowledged. */
    isSuspect: ({ id, attempts }: SinkItem) =>
      attempts > 0 || failures.strikes(id) >= suspectStrikes,
    /** Returns the outcomes of items that were delivered as one. */
    settlementsOf: (
      items: readonly SinkItem[],
      answer: AttemptAnswer,
      startedAtUs: number,
    ): Settlement[] => {
      const ids = items.map(({ id }) => id);
      if (answer.kind === 'acknowledged') {
        for (const id of ids) failures.acknowledge(id);
        setUp();
        return ids.map((id) => ({ id, outcome: 'acknowledged' }));
      }
      const { kind, reason } = answer;
      if (kind === 'refused') setUp();
      const isRefusal = kind === 'refused' || kind === 'failed';
      if (!isRefusal) noteFailure(ids, startedAtUs, answer);
      // The same for all: a batch is retried as one.
      const jitter = random();
      return items.map((item) => (isRefusal ? afterRefusal : afterFailure)(item, reason, jitter));
    },
  };
}

/** Counts the failures of each item. A strike is one with acknowledged items since the previous failure. */
function createFailures() {
  let acknowledged = 0;
  const failed = new Map<number, { count: number; strikes: number; acknowledged: number }>();
  return {
    acknowledge: (id: number) => {
      acknowledged += 1;
      failed.delete(id);
    },
    drop: (id: number) => void failed.delete(id),
    strikes: (id: number) => failed.get(id)?.strikes ?? 0,
    add: (id: number) => {
      const before = failed.get(id) ?? { count: 0, strikes: 0, acknowledged };
      const isStrike = acknowledged > before.acknowledged;
      const [count, strikes] = [before.count + 1, before.strikes + Number(isStrike)];
      failed.set(id, { count, strikes, acknowledged });
      return { count, isOwnFault: isStrike && strikes >= strikesMax };
    },
  };
}
