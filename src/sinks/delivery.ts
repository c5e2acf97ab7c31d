/** Delivers what waits for one sink: a limited number at a time, in order within each product. */
import { errorText, isAppError } from '../domain/app-error.ts';
import { formatDateUs } from '../domain/dates.ts';
import type { NotificationRow } from '../domain/ports.ts';
import { type SinkItem, type Sinks, sinkWaitingMax } from '../domain/sinks.ts';
import { notificationAt } from '../domain/streams.ts';
import { compileWants, documentOf, recordOf, type SinkDocument } from './document.ts';
import {
  type AttemptAnswer,
  createAfterAnswer,
  createSinkHealth,
  type Settlement,
  type SinkHealth,
} from './health.ts';
import type { SinkDefinition } from './registry.ts';
import type { SinkContext, Target, TargetAnswer } from './target.ts';

/** After a failure of the store: the disk may be full. */
const storeRetryMs = 10_000;

interface DeliveryOptions {
  definition: SinkDefinition;
  context: SinkContext;
  target: Target;
  /** Called when there is room again. */
  onRoom: () => void;
  /** Gives up what is on its way: it is delivered again later. */
  signal: AbortSignal;
}

/** The longest wait: other programs add items, too. */
const waitMsMax = 1_000;

/** Between two notices that a sink is down: some items that make it look so must not fill the log. */
const noticePauseUs = 60_000_000;

/**
 * An item keeps its place until its end is on disk. What is on its way when the program is killed is
 * delivered again by the next one, and nothing else.
 */
export function createDelivery(options: DeliveryOptions) {
  const { definition, context, onRoom } = options;
  const { name: sink, concurrency } = definition;
  const { sinks, nowUs } = context;
  const health = createSinkHealth(context);
  const finish = createFinish(options, health);
  /** By product: a dead letter that is tried again may be due while a later one is on its way. */
  const onTheirWay = new Map<string, Promise<void>>();

  const start = (item: SinkItem) => {
    const product = productOf(item);
    if (onTheirWay.has(product)) return;
    const ended = finish(item).then(() => {
      onTheirWay.delete(product);
      onRoom();
    });
    onTheirWay.set(product, ended);
  };
  const due = async (limit: number) => {
    // One whose end is written meanwhile may still be in the answer.
    const started = new Set(onTheirWay.keys());
    const items = await sinks.due({ sink, nowUs: nowUs(), limit });
    return items.filter((item) => !started.has(productOf(item)));
  };
  const waitMs = async () => {
    const nextUs = await sinks.nextDueAtUs(sink);
    const untilUs = Math.max(nextUs ?? Number.POSITIVE_INFINITY, health.untilUs());
    // What is due already and was not started waits for room, and is told of it.
    const ms = Math.ceil((untilUs - nowUs()) / 1000);
    return ms <= 0 ? waitMsMax : Math.min(ms, waitMsMax);
  };
  return {
    /**
     * Starts what is due, as far as there is room. Resolves with how long to wait before there may be more.
     * Rejects with `unavailable`.
     */
    startDue: async (): Promise<number> => {
      if (health.untilUs() > nowUs()) return waitMs();
      if (health.isDown()) {
        const probe = onTheirWay.size === 0 ? probeOf(await due(sinkWaitingMax)) : undefined;
        if (probe !== undefined) start(probe);
        return waitMs();
      }
      if (onTheirWay.size >= concurrency) return waitMsMax;
      // Those on their way, or others of their products, are due as well: one of each product.
      const free = concurrency - onTheirWay.size;
      for (const item of (await due(concurrency)).slice(0, free)) start(item);
      return waitMs();
    },
    /** Resolves when nothing is on its way. */
    idle: async () => {
      await Promise.all(onTheirWay.values());
    },
  };
}

/** The case of a product's id does not tell two products apart. */
const productOf = ({ productId }: SinkItem) => productId.toLowerCase();

/** Makes what hands one item over and writes down what came of it. It never rejects. */
function createFinish(options: DeliveryOptions, health: SinkHealth) {
  const { definition, context, signal } = options;
  const { nowUs, pause, logger } = context;
  const sink = definition.name;
  const afterAnswer = createAfterAnswer(definition, health, context);
  const stillWants = createStillWants(definition, context);
  const settle = createSettling(context.sinks);
  const readBody = createReadBody(context.log);
  const tell = createHealthLog(sink, context, health);

  /** Null for one that was given up. */
  const settlementOf = async (item: SinkItem): Promise<Settlement | null> => {
    if (!(await stillWants(item))) {
      const { id, position } = item;
      logger.info({ sink, item: id, position }, 'a sink does not want an item any more; forgotten');
      return { id, outcome: 'acknowledged' };
    }
    const startedAtUs = nowUs();
    const answer = await attempt(item, definition, { ...context, ...options, readBody });
    if (answer === null) {
      return { id: item.id, outcome: 'dead', error: 'Its notification is not in the log.' };
    }
    if (signal.aborted && answer.kind !== 'taken') return null;
    const settlement = afterAnswer.settlementOf(item, answer, startedAtUs);
    tell(settlement);
    return settlement;
  };
  return async (item: SinkItem): Promise<void> => {
    try {
      const settlement = await settlementOf(item);
      if (settlement === null) return;
      // It must not be delivered again because the disk is full just now.
      while (!(await isWritten(settlement))) {
        await pause(storeRetryMs, signal);
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.error({ sink, err: error }, 'an item of a sink cannot be read; it is tried again');
      await pause(storeRetryMs, signal);
    }
  };

  async function isWritten(settlement: Settlement): Promise<boolean> {
    try {
      await settle(settlement);
      return true;
    } catch (error) {
      logger.error({ sink, err: error }, 'what a sink has taken cannot be noted; tried again');
      return false;
    }
  }
}

/**
 * While a sink is down: one that has not failed yet, as the others may have failed by their own fault; else the
 * one that has been due for the longest time.
 */
function probeOf(items: readonly SinkItem[]): SinkItem | undefined {
  return (
    items.find(({ error }) => error === null) ??
    items.toSorted((one, other) => one.dueAtUs - other.dueAtUs)[0]
  );
}

/** Tells the log when a sink goes down, and when it answers again; and of dead letters. */
function createHealthLog(
  sink: string,
  { logger, nowUs }: Pick<SinkContext, 'logger' | 'nowUs'>,
  health: SinkHealth,
): (settlement: Settlement) => void {
  let isTold = false;
  let sentAtUs = 0;
  return (settlement) => {
    if (settlement.outcome === 'dead') {
      const { id: item, error: reason } = settlement;
      logger.warn({ sink, item, reason }, 'a sink has refused an item for good');
    }
    if (!health.isDown()) {
      if (isTold) logger.info({ sink }, 'a sink takes items again');
      isTold = false;
    } else if (!isTold && Math.abs(nowUs() - sentAtUs) >= noticePauseUs) {
      isTold = true;
      sentAtUs = nowUs();
      const reason = 'error' in settlement ? settlement.error : null;
      const until = formatDateUs(health.untilUs());
      logger.warn({ sink, reason, until }, 'a sink takes nothing; its items wait');
    }
  };
}

/** Resolves when it is on disk; rejects with `unavailable`. What comes while one transaction is being written shares the next one. */
function createSettling({ settle }: Pick<Sinks, 'settle'>) {
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
 * What this program has queued was judged by the same rules, and is not looked at again; nor is what a replay
 * has queued, which somebody has asked for. One that cannot be judged passes: handing it over fails, and says why.
 * Throws
 * `invalid` for a filter that is none; rejects with `unavailable` when the store cannot be read.
 */
function createStillWants(
  definition: SinkDefinition,
  { sinks, log }: Pick<SinkContext, 'sinks' | 'log'>,
) {
  const wants = compileWants(definition, log);
  let lastBefore: number | null = null;

  /** Dead letters may be tried again, and count. Ids only grow. */
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
    lastBefore ??= await newestId();
    if (id > lastBefore) return true;
    const row = await notificationAt(log, position);
    return row === null || wants(row).catch(() => true);
  };
}

/**
 * Reads the notification and delivers it, within the time that the sink allows. Null when the log does not have it.
 * Nothing that a record holds makes it throw: it rejects only with `unavailable`, when the log cannot be read now.
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
    deps.logger.error({ sink: definition.name, item: id, position, err }, 'a delivery failed');
    const why = err instanceof Error ? err.message : String(err);
    return { kind: 'failed', reason: `the delivery failed within earshot: ${why}` };
  }
}

/** What `earshot sinks test` sends: a document like any other, with an id that no delivery has. */
export function testDocument(row: NotificationRow, body: Uint8Array, sink: string, testId: string) {
  const document = documentOf({ row, record: recordOf(body, row), sink, replayId: null });
  const id = `test_${testId}`;
  return { ...document, id, notificationId: id, test: true as const };
}

/** Sends one document, outside of the sink's queue. Never rejects for what the target does. */
export async function attemptOnce(
  document: SinkDocument,
  { timeoutMs }: Pick<SinkDefinition, 'timeoutMs'>,
  deps: Pick<SinkContext, 'pause'> & { target: Target; signal: AbortSignal },
): Promise<TargetAnswer> {
  return withinTime(timeoutMs, deps, (signal) => deps.target.deliver(document, signal));
}

/** Aborts the signal of `work` when the time is up, or when the sink's own signal is aborted. */
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

/** A store that cannot read for a moment must not use up attempts; with 10 s between them, a minute. */
const unavailableReadsMax = 6;

/**
 * Makes the reader of bodies of one sink. It rejects with `unavailable` while the store may recover. When the row can be
 * read and its body again and again cannot, the body is damaged: a fault of one item, not of the log.
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
      const why = isAppError(error) ? errorText(error) : String(error);
      return { kind: 'failed', reason: `its body cannot be read from the log: ${why}` };
    }
  };
}
