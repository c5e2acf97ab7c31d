/** Runs all sinks independently: a sink that fails, is slow or hangs blocks neither other sinks nor intake. */
import { setImmediate } from 'node:timers/promises';
import { errorText, isAppError } from '../../core/terms/app-error.ts';
import type { NotificationQuery, NotificationRow } from '../../core/terms/ports.ts';
import { compileMatcher, type Matcher } from '../messages/document.ts';
import { createDelivery } from './delivery.ts';
import { openTarget, type SinkDefinition } from './registry.ts';
import type { SinkContext } from './target.ts';
import { sinkReader, sinkWaitingMax } from './terms.ts';

/**
 * Starts sinks. Only one process at a time may do this for a store. Throws `invalid` for an invalid filter; then no
 * sink runs.
 */
export function startSinks(definitions: readonly SinkDefinition[], context: SinkContext) {
  const prepared = definitions.map((definition) => prepareSink(definition, context));
  const running = prepared.map((start) => start());
  return {
    /**
     * Starts no new deliveries. Those in flight have two seconds; then they are aborted, and repeated after the next
     * start. The program of a command sink is then terminated, and killed two seconds later. Resolves when no delivery
     * is in flight.
     */
    stop: async () => {
      await Promise.all(running.map((sink) => sink.stop()));
    },
  };
}

/** Minimum time between two rounds, and maximum time without a change. */
const roundMs = 200;
const idleMs = 10_000;

/** Delay between two rounds while more rows are left, so that other work can run. */
const moreMs = 5;

/** Delay after a failure of the store, such as a full disk. */
const retryMs = 10_000;

/**
 * Grace period for deliveries in flight at shutdown. An answer in that time saves a second delivery; a sink that hangs
 * must not block the shutdown.
 */
const drainMs = 2_000;

/** Returns the function that starts a sink. Throws `invalid` for an invalid filter. */
function prepareSink(definition: SinkDefinition, context: SinkContext) {
  const stopping = new AbortController();
  const aborting = new AbortController();
  const { signal } = stopping;
  const { pause, activity } = context;
  const collect = createCollector(definition, context);
  const target = openTarget(definition, context);
  const delivery = createDelivery({ definition, context, target, signal: aborting.signal });
  const deps = { sink: definition.name, context, signal };
  let since = 0;
  const collectChanges = async () => {
    since = activity.changes;
    // Other processes add items, too, or make them due.
    return collect().finally(delivery.wake);
  };
  const wait = async (ms: number) => {
    await pause(ms, signal);
    if (ms !== moreMs) await activity.next(idleMs, signal, { since, wait: pause });
  };
  return () => {
    const running = Promise.all([
      repeat(collectChanges, wait, deps),
      repeat(delivery.startDue, delivery.wait, deps),
    ]);
    return {
      /** Starts nothing new; aborts deliveries in flight after the grace period. */
      stop: async () => {
        stopping.abort();
        await running;
        const ended = new AbortController();
        const idle = delivery.idle().then(() => ended.abort());
        await pause(drainMs, ended.signal);
        aborting.abort();
        await idle;
        await target.close();
      },
    };
  };
}

/** Repeats rounds. Each round resolves with the delay before the next one, in milliseconds. Logs a failure once. */
async function repeat(
  round: () => Promise<number>,
  wait: SinkContext['pause'],
  { sink, context, signal }: { sink: string; context: SinkContext; signal: AbortSignal },
): Promise<void> {
  let failed: string | null = null;
  while (!signal.aborted) {
    try {
      const waitMs = await round();
      if (failed !== null) context.logger.info({ sink }, 'sink resumed');
      failed = null;
      await wait(waitMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failed)
        context.logger.error({ sink, reason, err: error }, 'failed to run sink');
      failed = reason;
      await context.pause(retryMs, signal);
    }
  }
}

/** Maximum rows in one round, which is one transaction. */
const rowsMax = 200;

/** Maximum number of waiting items with a replay: a new notification waits behind them. Higher for a high concurrency. */
const replayWaitingMax = 50;

/**
 * Creates the round that queues items of new notifications and of the replay. Items and cursor change in one
 * transaction, so that a kill neither skips nor duplicates items. A round rejects with `unavailable`. Throws `invalid`
 * for an invalid filter of the sink.
 */
function createCollector(definition: SinkDefinition, context: SinkContext) {
  const { name: sink, startAt, concurrency } = definition;
  const { sinks, log, nowUs } = context;
  const matches = compileMatcher(definition, log);
  let compiled: { id: number; matches: Matcher } | null = null;

  /**
   * Queues a page of the log or of a replay, up to `max` waiting items, if at most `resumeAt` wait. Resolves with true if
   * there may be more.
   */
  const queue = async (
    { replayId, after, last }: { replayId: number | null; after: number; last: number },
    bounds: NotificationQuery,
    select: Matcher,
    { max, resumeAt }: { max: number; resumeAt: number },
  ): Promise<boolean> => {
    const waiting = (await sinks.counts()).find((one) => one.sink === sink)?.waiting ?? 0;
    if (last <= after || waiting > resumeAt) return false;
    const page = { afterPosition: after, beforePosition: last + 1, limit: rowsMax };
    const rows = await Array.fromAsync(log.find({ ...bounds, ...page, order: 'oldest' }));
    const { items, tooOld } = await selectRows(rows, select, max - waiting);
    const isCut = items.length === max - waiting;
    const isFull = isCut || rows.length === rowsMax;
    const upTo = (isFull ? (isCut ? items : rows).at(-1)?.position : last) ?? last;
    // A replay would count again what was left out before.
    const counted = replayId === null ? { tooOld } : {};
    await sinks.enqueue({ sink, replayId, after, upTo, items, ...counted, atUs: nowUs() });
    return isFull;
  };
  const collectNew = async (): Promise<boolean> => {
    const cursor = await log.cursor(sinkReader(sink));
    const last = await log.lastPosition();
    if (cursor === null && startAt === 'now') {
      const start = { sink, replayId: null, after: 0, upTo: last, items: [] };
      await sinks.enqueue({ ...start, atUs: nowUs() });
      return false;
    }
    const limits = { max: sinkWaitingMax, resumeAt: sinkWaitingMax - 1 };
    return queue({ replayId: null, after: cursor ?? 0, last }, {}, matches, limits);
  };
  const collectReplayed = async (): Promise<boolean> => {
    const replay = await sinks.replay(sink);
    if (replay === null) return false;
    const { id, position: after, lastPosition: last, sinceUs, untilUs, filter } = replay;
    if (compiled?.id !== id) {
      try {
        compiled = { id, matches: compileMatcher(definition, log, filter) };
      } catch (err) {
        // It was valid when it was requested, possibly by another version.
        context.logger.error({ sink, replay: id, err }, 'ended a replay with an invalid filter');
        const rest = { sink, replayId: id, after, upTo: last, items: [] };
        return sinks.enqueue({ ...rest, atUs: nowUs() });
      }
    }
    const bounds = { sinceUs: sinceUs ?? undefined, untilUs: untilUs ?? undefined };
    const max = Math.max(replayWaitingMax, 2 * concurrency);
    // Each round is a durable transaction, which delays intake: none for a few items.
    const limits = { max, resumeAt: max / 2 };
    return queue({ replayId: id, after, last }, bounds, compiled.matches, limits);
  };
  return async (): Promise<number> => {
    const isMore = await collectNew();
    return (await collectReplayed()) || isMore ? moreMs : roundMs;
  };
}

/**
 * Selects the matching rows, up to `max`. One that cannot be checked is queued: its delivery checks it again, and reports
 * the reason. Counts those that are too old.
 */
async function selectRows(rows: readonly NotificationRow[], matches: Matcher, max: number) {
  const items: { position: number; productId: string }[] = [];
  let tooOld = 0;
  for (const row of rows) {
    const { position, productId } = row;
    const match = await matches(row).catch(() => 'selected');
    if (match === 'selected') items.push({ position, productId });
    if (match === 'tooOld') tooOld += 1;
    if (items.length === max) break;
    // Lets intake run, because a filter may evaluate a large footprint.
    await setImmediate();
  }
  return { items, tooOld };
}
