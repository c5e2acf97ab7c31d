/** Delivers the queued items of a sink: a limited number at a time, in order within each product. */

import { jittered } from '../../core/host/job.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { type NotificationRow, notificationAt } from '../../core/terms/ports.ts';
import { compileMatcher, documentOf, recordOf, type SinkDocument } from './document.ts';
import type { SinkDefinition } from './registry.ts';
import type { SinkContext, Target, TargetAnswer } from './target.ts';
import {
  type SinkItem,
  type SinkRules,
  type Sinks,
  sinkRetryAfterMaxMs,
  sinkRetryDelayMaxMs,
  sinkWaitingMax,
} from './terms.ts';

/** Delay after a failure of the store, such as a full disk. */
const storeRetryMs = 10_000;

const waitMsMax = 10_000;

/** An item is due, but waits for the end of another delivery, or has become due during the query. */
const dueMs = 1_000;

interface DeliveryOptions {
  definition: SinkDefinition;
  context: SinkContext;
  target: Target;
  /** Aborts deliveries in flight; they are repeated later. */
  signal: AbortSignal;
}

/**
 * Delivers the items of a sink. An item stays in the queue until its outcome is on disk. After a kill, the next process
 * repeats only the deliveries that were in flight.
 */
export function createDelivery(options: DeliveryOptions) {
  const { definition, context } = options;
  const { name: sink, concurrency } = definition;
  const { sinks, nowUs, pause } = context;
  const outcomes = createOutcomes(definition, context);
  const deliver = createDeliver(options, outcomes);
  /** By product: a retried dead letter may be due while a later item is in flight. */
  const inFlight = new Map<string, Promise<void>>();
  let woken = new AbortController();

  const start = (item: SinkItem) => {
    const product = productOf(item);
    if (inFlight.has(product)) return;
    const ended = deliver(item).then(() => {
      inFlight.delete(product);
      woken.abort();
    });
    inFlight.set(product, ended);
  };
  const due = async (limit: number) => {
    // Copied before the query, whose result may include an item that is settled meanwhile.
    const started = new Set(inFlight.keys());
    const items = await sinks.due({ sink, nowUs: nowUs(), limit });
    return items.filter((item) => !started.has(productOf(item)));
  };
  const waitMs = async () => {
    const nextUs = await sinks.nextDueAtUs(sink);
    const untilUs = Math.max(nextUs ?? Number.POSITIVE_INFINITY, outcomes.untilUs());
    const ms = Math.ceil((untilUs - nowUs()) / 1000);
    return ms <= 0 ? dueMs : Math.min(ms, waitMsMax);
  };
  return {
    /**
     * Starts due items, up to the sink's concurrency. Resolves with the delay until the next call, in milliseconds.
     * Rejects with `unavailable`.
     */
    startDue: async (): Promise<number> => {
      if (outcomes.untilUs() > nowUs()) return waitMs();
      if (outcomes.isDown()) {
        const probe = inFlight.size === 0 ? probeOf(await due(sinkWaitingMax)) : undefined;
        if (probe !== undefined) start(probe);
        return waitMs();
      }
      if (inFlight.size >= concurrency) return waitMsMax;
      const free = concurrency - inFlight.size;
      // The limit is not `free`, because items in flight, or of their products, are due too.
      for (const item of (await due(concurrency)).slice(0, free)) start(item);
      return waitMs();
    },
    /** Resolves after the delay, after `wake`, when a delivery has ended, or soon after the signal is aborted. */
    wait: async (ms: number, signal: AbortSignal): Promise<void> => {
      await pause(ms, AbortSignal.any([signal, woken.signal]));
      woken = new AbortController();
    },
    /** Ends the current wait, or the next one if there is none. */
    wake: () => woken.abort(),
    /** Resolves when no delivery is in flight. */
    idle: async () => {
      await Promise.all(inFlight.values());
    },
  };
}

/** Product ids are case-insensitive. */
const productOf = ({ productId }: SinkItem) => productId.toLowerCase();

/**
 * Chooses the item to probe a sink that is down: one that has not failed yet, because the others may have caused their
 * failures; otherwise the one that has been due longest.
 */
function probeOf(items: readonly SinkItem[]): SinkItem | undefined {
  return (
    items.find(({ error }) => error === null) ??
    items.toSorted((one, other) => one.dueAtUs - other.dueAtUs)[0]
  );
}

/** Creates the function that delivers an item and stores the outcome. It never rejects. */
function createDeliver(options: DeliveryOptions, outcomes: Outcomes) {
  const { definition, context, signal } = options;
  const { log, sinks, nowUs, pause, logger } = context;
  const sink = definition.name;
  const matches = compileMatcher(definition, log);

  /** Returns null for a notification that no longer matches the rules, which may have changed since it was queued. */
  const attempt = async (item: SinkItem, row: NotificationRow): Promise<AttemptAnswer | null> => {
    const { id, position, replayId } = item;
    try {
      const record = recordOf(await log.body(position), row);
      // The items of a replay were requested explicitly.
      if (replayId === null && !(await matches(row, record))) return null;
      const document = documentOf({ row, record, sink, replayId });
      return await attemptOnce(document, definition, { pause, ...options });
    } catch (err) {
      if (signal.aborted) throw err;
      logger.error({ sink, item: id, position, err }, 'failed to build a delivery');
      const cause = err instanceof Error ? err.message : String(err);
      return { kind: 'failed', reason: `earshot cannot build the delivery: ${cause}` };
    }
  };
  const settlementOf = async (item: SinkItem): Promise<Settlement | null> => {
    const { id, position } = item;
    const row = await notificationAt(log, position);
    if (row === null) {
      return { id, outcome: 'dead', error: 'The notification is not in the log.' };
    }
    const startedAtUs = nowUs();
    const answer = await attempt(item, row);
    if (answer === null) {
      logger.info({ sink, item: id, position }, 'dropped an item that no longer matches the sink');
      return { id, outcome: 'dropped' };
    }
    if (signal.aborted && answer.kind !== 'acknowledged') return null;
    const wasDown = outcomes.isDown();
    const settlement = outcomes.settlementOf(item, answer, startedAtUs);
    const isDown = outcomes.isDown();
    const reason = 'reason' in answer ? answer.reason : null;
    const until = formatDateUs(outcomes.untilUs());
    if (isDown && !wasDown) logger.warn({ sink, reason, until }, 'sink is down');
    if (wasDown && !isDown) logger.info({ sink }, 'sink is up again');
    if (settlement.outcome === 'dead') {
      logger.warn({ sink, item: id, reason }, 'sink refused an item permanently');
    }
    return settlement;
  };
  return async (item: SinkItem): Promise<void> => {
    let settlement: Settlement | null = null;
    do {
      try {
        settlement ??= await settlementOf(item);
        if (settlement !== null) await sinks.settle([settlement], nowUs());
        return;
      } catch (err) {
        if (signal.aborted) return;
        logger.error({ sink, err }, 'failed to read or to store an item of a sink');
        await pause(storeRetryMs, signal);
      }
      // Repeats until stored: a full disk must not cause a second delivery.
    } while (settlement !== null && !signal.aborted);
  };
}

/** Delivers a document within the sink's timeout, outside of the queue. No behaviour of the target makes it reject. */
export async function attemptOnce(
  document: SinkDocument,
  { timeoutMs }: Pick<SinkDefinition, 'timeoutMs'>,
  { pause, target, signal }: Pick<SinkContext, 'pause'> & { target: Target; signal: AbortSignal },
): Promise<TargetAnswer> {
  const answered = new AbortController();
  const late = new AbortController();
  void pause(timeoutMs, answered.signal).then(() => {
    if (!answered.signal.aborted) late.abort(new DOMException('the time is up', 'TimeoutError'));
  });
  try {
    return await target.deliver(document, AbortSignal.any([signal, late.signal]));
  } finally {
    answered.abort();
  }
}

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

/** First retry delay after a refusal, before jitter; grows by a factor of 4. */
const refusalDelayMs = 5_000;

/** First retry delay after any other failure, before jitter; grows by a factor of 2. */
const failureDelayMs = 2_000;

const failureDelayMsMax = 300_000;

export type Outcomes = ReturnType<typeof createOutcomes>;

/**
 * Creates the rules of a sink. A refusal counts towards the maximum number of attempts, and shows that the sink is up.
 * Any other failure may be the sink's fault: it does not count, and several in a row mean that the sink is down. But if an
 * item has failed `strikesMax` times while others were acknowledged, each further such failure counts as a refusal:
 * otherwise it would block its product forever.
 */
export function createOutcomes(
  { attemptsMax }: Pick<SinkRules, 'attemptsMax'>,
  { nowUs, random }: { nowUs: () => number; random: () => number },
) {
  let isDown = false;
  let pause = { fromUs: 0, untilUs: 0 };
  let probes = 0;
  /** Items of the consecutive failures. */
  let consecutive: number[] = [];
  const failures = createFailures();

  const untilUs = () => (nowUs() < pause.fromUs ? 0 : pause.untilUs);
  const setUp = () => {
    if (isDown) pause = { fromUs: 0, untilUs: 0 };
    [isDown, probes, consecutive] = [false, 0, []];
  };
  const noteFailure = (id: number, startedAtUs: number, answer: TargetAnswer) => {
    // A delivery that started before the pause gives no new information.
    if (isDown && startedAtUs < untilUs()) return;
    if (isDown) probes += 1;
    else {
      consecutive.push(id);
      const isRow = consecutive.length >= failuresMax && new Set(consecutive).size > 1;
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
  };
  const inMs = (ms: number) => nowUs() + Math.round(jittered(ms * 1000, random));
  const afterRefusal = ({ id, attempts }: SinkItem, error: string): Settlement => {
    if (attempts + 1 >= attemptsMax) {
      failures.drop(id);
      return { id, outcome: 'dead', error };
    }
    const delayMs = Math.min(sinkRetryDelayMaxMs, refusalDelayMs * 4 ** Math.min(attempts, 10));
    return { id, outcome: 'postponed', error, nextAttemptAtUs: inMs(delayMs), counts: true };
  };
  return {
    /** Returns true until the sink acknowledges or refuses an item: it is probed with one item at a time. */
    isDown: () => isDown,
    /** Returns the end of the pause; in the past without a pause, or if the clock was set back meanwhile. */
    untilUs,
    settlementOf: (item: SinkItem, answer: AttemptAnswer, startedAtUs: number): Settlement => {
      const { id } = item;
      if (answer.kind === 'acknowledged') {
        failures.acknowledge(id);
        setUp();
        return { id, outcome: 'acknowledged' };
      }
      const { kind, reason: error } = answer;
      if (kind === 'refused') setUp();
      if (kind === 'refused' || kind === 'failed') return afterRefusal(item, error);
      noteFailure(id, startedAtUs, answer);
      const { count, isOwnFault } = failures.add(id);
      if (isOwnFault) return afterRefusal(item, error);
      const delayMs = Math.min(failureDelayMsMax, failureDelayMs * 2 ** Math.min(count - 1, 10));
      const nextAttemptAtUs = Math.max(untilUs(), inMs(delayMs));
      return { id, outcome: 'postponed', error, counts: false, nextAttemptAtUs };
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
    add: (id: number) => {
      const before = failed.get(id) ?? { count: 0, strikes: 0, acknowledged };
      const isStrike = acknowledged > before.acknowledged;
      const [count, strikes] = [before.count + 1, before.strikes + Number(isStrike)];
      failed.set(id, { count, strikes, acknowledged });
      return { count, isOwnFault: isStrike && strikes >= strikesMax };
    },
  };
}
