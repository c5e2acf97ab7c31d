/** Delivers the queued items of a sink: a limited number at a time, in order within each product. */
import { formatDateUs } from '../../core/terms/dates.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import { notificationAt } from '../../core/terms/streams.ts';
import { compileMatcher, documentOf, recordOf, type SinkDocument } from './document.ts';
import { type AttemptAnswer, createOutcomes, type Outcomes, type Settlement } from './outcomes.ts';
import type { SinkDefinition } from './registry.ts';
import type { SinkContext, Target, TargetAnswer } from './target.ts';
import { type SinkItem, sinkWaitingMax } from './terms.ts';

/** Delay after a failure of the store, such as a full disk. */
const storeRetryMs = 10_000;

/** Limited, because other processes add items too. */
const waitMsMax = 1_000;

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
    // Items that are already due wait for the end of another delivery.
    const ms = Math.ceil((untilUs - nowUs()) / 1000);
    return ms <= 0 ? waitMsMax : Math.min(ms, waitMsMax);
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
      // The items of a replay were requested explicitly.
      if (replayId === null && !(await matches(row))) return null;
      const record = recordOf(await log.body(position), row);
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
      return { id, outcome: 'acknowledged' };
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
        if (settlement !== null) await sinks.settle([settlement]);
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

/** Builds the document of `earshot sinks test`: an ordinary document with an id that no delivery has. */
export function testDocument(row: NotificationRow, body: Uint8Array, sink: string, testId: string) {
  const document = documentOf({ row, record: recordOf(body, row), sink, replayId: null });
  const id = `test_${testId}`;
  return { ...document, id, notificationId: id, test: true as const };
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
