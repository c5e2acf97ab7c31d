/** Delivers the queued items of a sink: a limited number at a time, in order within each product. */

import { formatDateUs } from '../../core/terms/dates.ts';
import { notificationAt } from '../../core/terms/ports.ts';
import { compileMatcher, documentOf, type Match, recordOf } from '../messages/document.ts';
import { type Message, messageWriter } from '../messages/formats.ts';
import { type AttemptAnswer, createOutcomes, type Outcomes, type Settlement } from './outcomes.ts';
import type { SinkDefinition } from './registry.ts';
import type { SinkContext, Target, TargetAnswer } from './target.ts';
import { type SinkItem, sinkWaitingMax } from './terms.ts';

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
 * Delivers the items of a sink, alone or in batches. An item stays in the queue until its outcome is on disk. After a kill,
 * the next process repeats only the deliveries that were in flight.
 */
export function createDelivery(options: DeliveryOptions) {
  const { definition, context } = options;
  const { name: sink, concurrency } = definition;
  const { sinks, nowUs, pause } = context;
  const batch = definition.batch ?? { items: 1, waitMs: 0 };
  const outcomes = createOutcomes(definition, context);
  const deliver = createDeliver(options, outcomes);
  const running = new Set<Promise<void>>();
  /** Products in flight: a retried dead letter may be due while a later item is in flight. */
  const inFlight = new Set<string>();
  let woken = new AbortController();

  const start = (items: readonly SinkItem[]) => {
    const products = items.map(productOf).filter((product) => !inFlight.has(product));
    if (products.length < items.length) return;
    for (const product of products) inFlight.add(product);
    const ended = deliver(items).then(() => {
      for (const product of products) inFlight.delete(product);
      running.delete(ended);
      woken.abort();
    });
    running.add(ended);
  };
  const due = async (limit: number) => {
    // Copied before the query, whose result may include an item that is settled meanwhile.
    const started = new Set(inFlight);
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
        const probe = running.size === 0 ? probeOf(await due(sinkWaitingMax)) : undefined;
        if (probe !== undefined) start([probe]);
        return waitMs();
      }
      if (running.size >= concurrency) return waitMsMax;
      const free = concurrency - running.size;
      // The limit is not that of `free`, because items in flight, or of their products, are due too.
      const items = await due(concurrency * batch.items);
      for (const one of batchesOf(items, batch, context, outcomes).slice(0, free)) start(one);
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
      await Promise.all(running);
    },
  };
}

/** Product ids are case-insensitive. */
const productOf = ({ productId }: SinkItem) => productId.toLowerCase();

function chunksOf<Item>(items: readonly Item[], size: number): Item[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/**
 * Returns the batches that are complete, or have waited long enough. Items that have failed often are delivered alone, so
 * that the others do not fail with them.
 */
function batchesOf(
  items: readonly SinkItem[],
  batch: { items: number; waitMs: number },
  { nowUs }: Pick<SinkContext, 'nowUs'>,
  { isSuspect }: Pick<Outcomes, 'isSuspect'>,
): SinkItem[][] {
  const alone = items.filter(isSuspect).map((item) => [item]);
  const together = items.filter((item) => !isSuspect(item));
  const batches = chunksOf(together, batch.items).filter((one) => {
    const waitedUs = nowUs() - Math.min(...one.map(({ queuedAtUs }) => queuedAtUs));
    // A negative time: the clock was set back.
    return one.length === batch.items || waitedUs < 0 || waitedUs >= batch.waitMs * 1000;
  });
  // In the order of queuing.
  return [...alone, ...batches].toSorted(([one], [other]) => (one?.id ?? 0) - (other?.id ?? 0));
}

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

/** An item with its message, or with its outcome if there is nothing to deliver. */
type Prepared =
  | { item: SinkItem; message: Message }
  | { item: SinkItem; outcome: Settlement | AttemptAnswer };

/** Creates the function that reads the notification of an item and writes its message. */
function createPrepare({ definition, context, signal }: DeliveryOptions) {
  const { log, nowUs, logger, urls } = context;
  const sink = definition.name;
  const matches = compileMatcher(definition, log);
  const write = messageWriter(definition.message, { urls, nowUs });

  return async (item: SinkItem): Promise<Prepared> => {
    const { id, position, replayId } = item;
    const row = await notificationAt(log, position);
    if (row === null) {
      return {
        item,
        outcome: { id, outcome: 'dead', error: 'The notification is not in the log.' },
      };
    }
    let match: Match = 'selected';
    try {
      const record = recordOf(await log.body(position), row);
      // The items of a replay were requested explicitly. The rules may have changed since the item was queued.
      if (replayId === null) match = await matches(row, async () => record);
      if (match === 'selected') {
        return { item, message: await write(documentOf({ row, record, sink, replayId })) };
      }
    } catch (err) {
      if (signal.aborted) throw err;
      logger.error({ sink, item: id, position, err }, 'failed to build a delivery');
      return { item, outcome: failureOf(err) };
    }
    logger.info({ sink, item: id, position }, 'dropped an item that no longer matches the sink');
    return { item, outcome: { id, outcome: match === 'tooOld' ? match : 'dropped' } };
  };
}

function failureOf(err: unknown): AttemptAnswer {
  const cause = err instanceof Error ? err.message : String(err);
  return { kind: 'failed', reason: `earshot cannot build the delivery: ${cause}` };
}

/** Creates the function that delivers items as one and stores their outcomes. It never rejects. */
function createDeliver(options: DeliveryOptions, outcomes: Outcomes) {
  const { definition, context, signal } = options;
  const { sinks, nowUs, pause, logger } = context;
  const sink = definition.name;
  const prepare = createPrepare(options);

  const settle = (items: readonly SinkItem[], answer: AttemptAnswer, startedAtUs: number) => {
    const wasDown = outcomes.isDown();
    const settlements = outcomes.settlementsOf(items, answer, startedAtUs);
    const isDown = outcomes.isDown();
    const reason = 'reason' in answer ? answer.reason : null;
    const until = formatDateUs(outcomes.untilUs());
    if (isDown && !wasDown) logger.warn({ sink, reason, until }, 'sink is down');
    if (wasDown && !isDown) logger.info({ sink }, 'sink is up again');
    for (const { id, outcome } of settlements) {
      if (outcome !== 'dead') continue;
      logger.warn({ sink, item: id, reason }, 'sink refused an item permanently');
    }
    return settlements;
  };
  /** Returns the outcomes, and the halves of a refused batch. */
  const attempt = async (items: readonly SinkItem[]) => {
    const startedAtUs = nowUs();
    const prepared = await Promise.all(items.map(prepare));
    const settlements = prepared.flatMap((one) => {
      if (!('outcome' in one)) return [];
      const { item, outcome } = one;
      return 'kind' in outcome ? settle([item], outcome, startedAtUs) : outcome;
    });
    const sent = prepared.flatMap((one) => ('message' in one ? one : []));
    if (sent.length === 0) return { settlements, halves: [] };
    const messages = sent.map(({ message }) => message);
    const answer = await attemptOnce(messages, definition, { pause, ...options }).catch(failureOf);
    if (signal.aborted && answer.kind !== 'acknowledged') return { settlements, halves: [] };
    const delivered = sent.map(({ item }) => item);
    const isRefused = answer.kind === 'refused' || answer.kind === 'failed';
    if (isRefused && delivered.length > 1) {
      return { settlements, halves: chunksOf(delivered, Math.ceil(delivered.length / 2)) };
    }
    return { settlements: [...settlements, ...settle(delivered, answer, startedAtUs)], halves: [] };
  };
  const deliver = async (items: readonly SinkItem[]): Promise<void> => {
    let ended: Awaited<ReturnType<typeof attempt>> | null = null;
    do {
      try {
        ended ??= await attempt(items);
        await sinks.settle(ended.settlements, nowUs());
        break;
      } catch (err) {
        if (signal.aborted) return;
        logger.error({ sink, err }, 'failed to read or to store an item of a sink');
        await pause(storeRetryMs, signal);
      }
      // Repeats until stored: a full disk must not cause a second delivery.
    } while (ended !== null && !signal.aborted);
    for (const half of ended?.halves ?? []) if (!signal.aborted) await deliver(half);
  };
  return deliver;
}

/** Delivers messages as one, within the sink's timeout. No behaviour of the target makes it reject. */
export async function attemptOnce(
  messages: readonly Message[],
  { timeoutMs, batch }: Pick<SinkDefinition, 'timeoutMs' | 'batch'>,
  { pause, target, signal }: Pick<SinkContext, 'pause'> & { target: Target; signal: AbortSignal },
): Promise<TargetAnswer> {
  const answered = new AbortController();
  const late = new AbortController();
  void pause(timeoutMs, answered.signal).then(() => {
    if (!answered.signal.aborted) late.abort(new DOMException('the time is up', 'TimeoutError'));
  });
  const [first] = messages;
  const limited = AbortSignal.any([signal, late.signal]);
  try {
    if (batch !== null && target.deliverBatch) return await target.deliverBatch(messages, limited);
    if (first === undefined || messages.length > 1) throw new Error('The target takes one item.');
    return await target.deliver(first, limited);
  } finally {
    answered.abort();
  }
}
