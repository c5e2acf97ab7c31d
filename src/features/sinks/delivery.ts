/** Delivers the queued items of a sink: a limited number at a time, in order within each product. */
import { errorText, isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs, minuteUs } from '../../core/terms/dates.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import { notificationAt } from '../../core/terms/streams.ts';
import { compileMatcher, documentOf, recordOf, type SinkDocument } from './document.ts';
import {
  type AttemptAnswer,
  createAfterAnswer,
  createSinkHealth,
  type Settlement,
  type SinkHealth,
} from './health.ts';
import type { SinkDefinition } from './registry.ts';
import type { SinkContext, Target, TargetAnswer } from './target.ts';
import { type SinkItem, type Sinks, sinkWaitingMax } from './terms.ts';

/** Delay after a failure of the store, such as a full disk. */
const storeRetryMs = 10_000;

interface DeliveryOptions {
  definition: SinkDefinition;
  context: SinkContext;
  target: Target;
  /** Called when a delivery has ended. */
  onFinished: () => void;
  /** Aborts deliveries in flight; they are repeated later. */
  signal: AbortSignal;
}

/** Limited, because other processes add items too. */
const waitMsMax = 1_000;

/** Minimum interval between two log lines that a sink is down, so that a few failing items do not flood the log. */
const logIntervalUs = minuteUs;

/**
 * Delivers the items of a sink. An item stays in the queue until its outcome is on disk. After a kill, the next process
 * repeats only the deliveries that were in flight.
 */
export function createDelivery(options: DeliveryOptions) {
  const { definition, context, onFinished } = options;
  const { name: sink, concurrency } = definition;
  const { sinks, nowUs } = context;
  const health = createSinkHealth(context);
  const deliver = createDeliver(options, health);
  /** By product: a retried dead letter may be due while a later item is in flight. */
  const inFlight = new Map<string, Promise<void>>();

  const start = (item: SinkItem) => {
    const product = productOf(item);
    if (inFlight.has(product)) return;
    const ended = deliver(item).then(() => {
      inFlight.delete(product);
      onFinished();
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
    const untilUs = Math.max(nextUs ?? Number.POSITIVE_INFINITY, health.untilUs());
    // Items that are already due wait for `onFinished`.
    const ms = Math.ceil((untilUs - nowUs()) / 1000);
    return ms <= 0 ? waitMsMax : Math.min(ms, waitMsMax);
  };
  return {
    /**
     * Starts due items, up to the sink's concurrency. Resolves with the delay until the next call, in milliseconds.
     * Rejects with `unavailable`.
     */
    startDue: async (): Promise<number> => {
      if (health.untilUs() > nowUs()) return waitMs();
      if (health.isDown()) {
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
    /** Resolves when no delivery is in flight. */
    idle: async () => {
      await Promise.all(inFlight.values());
    },
  };
}

/** Product ids are case-insensitive. */
const productOf = ({ productId }: SinkItem) => productId.toLowerCase();

/** Creates the function that delivers an item and stores the outcome. It never rejects. */
function createDeliver(options: DeliveryOptions, health: SinkHealth) {
  const { definition, context, signal } = options;
  const { nowUs, pause, logger } = context;
  const sink = definition.name;
  const afterAnswer = createAfterAnswer(definition, health, context);
  const stillMatches = createStillMatches(definition, context);
  const settle = createSettle(context.sinks);
  const readBody = createReadBody(context.log);
  const logOutcome = createHealthLog(sink, context, health);

  /** Returns null for an aborted delivery. */
  const settlementOf = async (item: SinkItem): Promise<Settlement | null> => {
    if (!(await stillMatches(item))) {
      const { id, position } = item;
      logger.info({ sink, item: id, position }, 'dropped an item that no longer matches the sink');
      return { id, outcome: 'acknowledged' };
    }
    const startedAtUs = nowUs();
    const answer = await attempt(item, definition, { ...context, ...options, readBody });
    if (answer === null) {
      return { id: item.id, outcome: 'dead', error: 'The notification is not in the log.' };
    }
    if (signal.aborted && answer.kind !== 'acknowledged') return null;
    const settlement = afterAnswer.settlementOf(item, answer, startedAtUs);
    logOutcome(settlement);
    return settlement;
  };
  return async (item: SinkItem): Promise<void> => {
    try {
      const settlement = await settlementOf(item);
      if (settlement === null) return;
      // Repeats until stored: a full disk must not cause a second delivery.
      while (!(await trySettle(settlement))) {
        await pause(storeRetryMs, signal);
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.error({ sink, err: error }, 'failed to read an item of a sink');
      await pause(storeRetryMs, signal);
    }
  };

  async function trySettle(settlement: Settlement): Promise<boolean> {
    try {
      await settle(settlement);
      return true;
    } catch (error) {
      logger.error({ sink, err: error }, 'failed to store the outcome of a delivery');
      return false;
    }
  }
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

/** Logs when a sink goes down, when it is up again, and dead letters. */
function createHealthLog(
  sink: string,
  { logger, nowUs }: Pick<SinkContext, 'logger' | 'nowUs'>,
  health: SinkHealth,
): (settlement: Settlement) => void {
  let isLogged = false;
  let loggedAtUs = 0;
  return (settlement) => {
    if (settlement.outcome === 'dead') {
      const { id: item, error: reason } = settlement;
      logger.warn({ sink, item, reason }, 'sink refused an item permanently');
    }
    if (!health.isDown()) {
      if (isLogged) logger.info({ sink }, 'sink is up again');
      isLogged = false;
    } else if (!isLogged && Math.abs(nowUs() - loggedAtUs) >= logIntervalUs) {
      isLogged = true;
      loggedAtUs = nowUs();
      const reason = 'error' in settlement ? settlement.error : null;
      const until = formatDateUs(health.untilUs());
      logger.warn({ sink, reason, until }, 'sink is down');
    }
  };
}

/**
 * Creates a function that stores an outcome. It resolves when the outcome is on disk, and rejects with `unavailable`.
 * Outcomes that arrive during a transaction share the next one.
 */
function createSettle({ settle }: Pick<Sinks, 'settle'>) {
  let next: { settlements: Settlement[]; written: Promise<void> } | null = null;
  let latest: Promise<unknown> = Promise.resolve();
  return (settlement: Settlement): Promise<void> => {
    if (next === null) {
      const settlements: Settlement[] = [];
      const written = latest.then(() => {
        next = null;
        return settle(settlements);
      });
      latest = written.catch(() => undefined);
      next = { settlements, written };
    }
    next.settlements.push(settlement);
    return next.written;
  };
}

/**
 * Creates a function that returns false for an item of an earlier process that no longer matches the sink's rules, which
 * may have changed. Items of this process were checked with the same rules, and items of a replay were requested
 * explicitly. An item that cannot be checked passes: its delivery fails and reports the reason. Throws `invalid` for an
 * invalid filter; rejects with `unavailable` when the store cannot be read.
 */
function createStillMatches(
  definition: SinkDefinition,
  { sinks, log }: Pick<SinkContext, 'sinks' | 'log'>,
) {
  const matches = compileMatcher(definition, log);
  let newestIdAtStart: number | null = null;

  /** Includes dead letters, because they may be retried. Ids only increase. */
  const newestId = async () => {
    let newest = 0;
    for (const state of ['waiting', 'dead'] as const) {
      for await (const { id } of sinks.items({ sink: definition.name, state, limit: 1 })) {
        newest = Math.max(newest, id);
      }
    }
    return newest;
  };
  return async ({ id, position, replayId }: SinkItem): Promise<boolean> => {
    if (replayId !== null) return true;
    newestIdAtStart ??= await newestId();
    if (id > newestIdAtStart) return true;
    const row = await notificationAt(log, position);
    return row === null || matches(row).catch(() => true);
  };
}

/**
 * Reads the notification and delivers it, within the sink's timeout. Returns null if it is not in the log. No content of
 * a record causes an error: rejects only with `unavailable`, when the log cannot be read.
 */
async function attempt(
  item: SinkItem,
  definition: Pick<SinkDefinition, 'name' | 'timeoutMs'>,
  deps: Pick<SinkContext, 'log' | 'pause' | 'logger'> & {
    target: Target;
    signal: AbortSignal;
    readBody: ReadBody;
  },
): Promise<AttemptAnswer | null> {
  const row = await notificationAt(deps.log, item.position);
  if (row === null) return null;
  const body = await deps.readBody(row);
  if (!(body instanceof Uint8Array)) return body;
  try {
    const { name: sink } = definition;
    const { replayId } = item;
    const document = documentOf({ row, record: recordOf(body, row), sink, replayId });
    return await attemptOnce(document, definition, deps);
  } catch (err) {
    const { id, position } = item;
    deps.logger.error(
      { sink: definition.name, item: id, position, err },
      'internal error during a delivery',
    );
    const cause = err instanceof Error ? err.message : String(err);
    return { kind: 'failed', reason: `earshot has an internal error: ${cause}` };
  }
}

/** Builds the document of `earshot sinks test`: an ordinary document with an id that no delivery has. */
export function testDocument(row: NotificationRow, body: Uint8Array, sink: string, testId: string) {
  const document = documentOf({ row, record: recordOf(body, row), sink, replayId: null });
  const id = `test_${testId}`;
  return { ...document, id, notificationId: id, test: true as const };
}

/** Delivers one document outside of the sink's queue. No behaviour of the target makes it reject. */
export async function attemptOnce(
  document: SinkDocument,
  { timeoutMs }: Pick<SinkDefinition, 'timeoutMs'>,
  deps: Pick<SinkContext, 'pause'> & { target: Target; signal: AbortSignal },
): Promise<TargetAnswer> {
  return withinTime(timeoutMs, deps, (signal) => deps.target.deliver(document, signal));
}

/** Aborts the signal of `work` after the timeout, or when the sink's own signal is aborted. */
async function withinTime<Result>(
  timeoutMs: number,
  { pause, signal }: Pick<SinkContext, 'pause'> & { signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const giveUp = () => ending.abort(signal.reason);
  signal.addEventListener('abort', giveUp);
  if (signal.aborted) giveUp();
  const answered = new AbortController();
  const timer = pause(timeoutMs, answered.signal).then(() => {
    if (!answered.signal.aborted) ending.abort(new DOMException('the time is up', 'TimeoutError'));
  });
  try {
    return await work(ending.signal);
  } finally {
    answered.abort();
    await timer;
    signal.removeEventListener('abort', giveUp);
  }
}

type ReadBody = ReturnType<typeof createReadBody>;

/** Failed reads of a body before it counts as damaged: with 10 s between them, a minute for the store to recover. */
const unavailableReadsMax = 6;

/**
 * Creates the function that reads bodies for one sink. It rejects with `unavailable` while the store may recover. If the
 * row is readable but its body repeatedly is not, the body is damaged: that is a failure of the item, not of the log.
 */
function createReadBody(log: SinkContext['log']) {
  const unavailableReads = new Map<number, number>();
  return async ({
    position,
  }: NotificationRow): Promise<Uint8Array | Extract<AttemptAnswer, { kind: 'failed' }>> => {
    try {
      const body = await log.body(position);
      unavailableReads.delete(position);
      return body;
    } catch (error) {
      const reads = (unavailableReads.get(position) ?? 0) + 1;
      unavailableReads.set(position, reads);
      if (isAppError(error, 'unavailable') && reads < unavailableReadsMax) throw error;
      const cause = isAppError(error) ? errorText(error) : String(error);
      return { kind: 'failed', reason: `the body cannot be read from the log: ${cause}` };
    }
  };
}
