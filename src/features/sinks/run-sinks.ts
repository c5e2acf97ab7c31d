/** Runs all sinks independently: a sink that fails, is slow or hangs blocks neither other sinks nor intake. */
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { errorText, isAppError } from '../../core/terms/app-error.ts';
import type { NotificationQuery, NotificationRow } from '../../core/terms/ports.ts';
import { createDelivery } from './delivery.ts';
import { compileMatcher, type Matcher } from './document.ts';
import { openTarget, type SinkDefinition } from './registry.ts';
import type { SinkContext } from './target.ts';
import { type Replay, type Sinks, sinkReader, sinkWaitingMax } from './terms.ts';

export interface RunningSinks {
  /**
   * Starts, stops or replaces the sinks that differ from these definitions, and keeps the others. The deliveries of a
   * replaced sink end first, as with `stop`, so that nothing is lost or delivered out of order. Throws `invalid` for an
   * invalid filter.
   */
  change(definitions: readonly SinkDefinition[]): Promise<void>;
  /**
   * Starts no new deliveries. Those in flight have two seconds; then they are aborted, and repeated after the next
   * start. The program of a command sink is then terminated, and killed two seconds later. Resolves when no delivery is
   * in flight.
   */
  stop(): Promise<void>;
}

/** Starts the sinks. Only one process at a time may do this for a store. Throws `invalid` for an invalid filter. */
export function startSinks(
  context: SinkContext,
  definitions: readonly SinkDefinition[],
): RunningSinks {
  const running = new Map<string, { definition: SinkDefinition; sink: RunningSink }>();
  let changing: Promise<void> = Promise.resolve();
  let isStopped = false;
  const startMissing = (desired: readonly SinkDefinition[]) => {
    for (const definition of desired) {
      if (running.has(definition.name)) continue;
      running.set(definition.name, { definition, sink: runSink(definition, context) });
    }
  };
  const stopOthers = async (desired: readonly SinkDefinition[]) => {
    const others = [...running].filter(
      ([, { definition }]) => !desired.some((one) => isDeepStrictEqual(one, definition)),
    );
    await Promise.all(others.map(([, { sink }]) => sink.stop()));
    for (const [name] of others) running.delete(name);
  };
  startMissing(definitions);
  return {
    change: (desired) => {
      const changed = changing.then(async () => {
        if (isStopped) return;
        await stopOthers(desired);
        if (!isStopped) startMissing(desired);
      });
      changing = changed.catch(() => undefined);
      return changed;
    },
    stop: async () => {
      isStopped = true;
      await changing;
      await stopOthers([]);
    },
  };
}

const logPollMs = 200;

const replayPollMs = 1_000;

/** Delay between two rounds while more rows are left, so that other work can run. */
const moreMs = 5;

/** Delay after a failure of the store, such as a full disk. */
const retryMs = 10_000;

/**
 * Grace period for deliveries in flight at shutdown. An answer in that time saves a second delivery; a sink that hangs
 * must not block the shutdown.
 */
const drainMs = 2_000;

type RunningSink = ReturnType<typeof runSink>;

/** Runs one sink. Logs a failure once, and retries. Throws `invalid` for an invalid filter. */
function runSink(definition: SinkDefinition, context: SinkContext) {
  const stopping = new AbortController();
  const aborting = new AbortController();
  const { signal } = stopping;
  const { pause } = context;
  const delivering = createWakeUp(pause);
  const collector = createItemCollector(definition, context, delivering.wake);
  const target = openTarget(definition, context);
  const delivery = createDelivery({
    definition,
    context,
    target,
    onFinished: delivering.wake,
    signal: aborting.signal,
  });
  const deps = { sink: definition.name, context, signal };
  const running = Promise.all([
    repeat(collectRounds(collector, context), pause, deps),
    repeat(delivery.startDue, delivering.wait, deps),
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
}

function collectRounds(collector: ItemCollector, { nowUs }: SinkContext) {
  let replaysAtUs = 0;
  return async (): Promise<number> => {
    let isMore = await collector.collectNew();
    // If the next check is far ahead, the clock was set back meanwhile.
    if (Math.abs(replaysAtUs - nowUs()) > replayPollMs * 1000 || nowUs() >= replaysAtUs) {
      if (await collector.collectReplayed()) isMore = true;
      else replaysAtUs = nowUs() + replayPollMs * 1000;
    }
    return isMore ? moreMs : logPollMs;
  };
}

/** Repeats rounds. Each round resolves with the delay before the next one, in milliseconds. */
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

/** Rounds with an unreadable body, some minutes, after which the notification is queued unchecked. */
const unreadableMax = 30;

type ItemCollector = ReturnType<typeof createItemCollector>;

/**
 * Queues items for a sink. Items and cursor change in one transaction, so that a kill neither skips nor duplicates
 * items. Each method call is one round; it resolves with true if there may be more rows, and rejects with `unavailable`.
 * Throws `invalid` for an invalid filter.
 */
function createItemCollector(
  definition: SinkDefinition,
  context: SinkContext,
  onAdded: () => void,
) {
  const { name: sink, startAt } = definition;
  const { sinks, log, nowUs } = context;
  const matches = compileMatcher(definition, log);
  const nextReplay = createNextReplay(definition, context);
  const capacity = createCapacity(sinks, sink);
  const select = createSelect();

  const move = async (
    stream: { replayId: number | null; after: number; upTo: number },
    items: readonly NotificationRow[],
  ) => {
    const rows = items.map(({ position, productId }) => ({ position, productId }));
    if (!(await sinks.enqueue({ sink, ...stream, items: rows, atUs: nowUs() }))) return;
    capacity.queued(rows.length);
    if (rows.length > 0) onAdded();
  };

  return {
    /** Queues notifications after the sink's cursor. */
    collectNew: async (): Promise<boolean> => {
      const cursor = await log.cursor(sinkReader(sink));
      const last = await log.lastPosition();
      if (cursor === null && startAt === 'now') {
        await move({ replayId: null, after: 0, upTo: last }, []);
        return false;
      }
      const after = cursor ?? 0;
      const left = await capacity.left('new');
      if (last <= after || left === 0) return false;
      const page = await pageOf(log, { afterPosition: after, beforePosition: last + 1 }, left);
      const upTo = page.isFull ? page.last : last;
      await move({ replayId: null, after, upTo }, await select(page.rows, matches));
      return page.isFull;
    },
    /** Queues notifications of the oldest replay. */
    collectReplayed: async (): Promise<boolean> => {
      const [replay, replayMatches] = await nextReplay();
      if (replay === null) return false;
      const left = await capacity.left('replayed');
      if (left === 0) return false;
      const { id, position, lastPosition, sinceUs, untilUs } = replay;
      const bounds = {
        afterPosition: position,
        beforePosition: lastPosition + 1,
        sinceUs: sinceUs ?? undefined,
        untilUs: untilUs ?? undefined,
      };
      const page = await pageOf(log, bounds, left);
      const upTo = page.isFull ? page.last : lastPosition;
      await move({ replayId: id, after: position, upTo }, await select(page.rows, replayMatches));
      return true;
    },
  };
}

async function pageOf(log: SinkContext['log'], bounds: NotificationQuery, left: number) {
  const limit = Math.min(rowsMax, left);
  const rows: NotificationRow[] = [];
  for await (const row of log.find({ ...bounds, order: 'oldest', limit })) rows.push(row);
  return { rows, isFull: rows.length === limit, last: rows.at(-1)?.position ?? 0 };
}

/**
 * Creates the function that selects the matching rows. A notification that cannot be checked is queued, so that it does
 * not block the following ones; its delivery fails and reports the reason. Only an unreadable body is checked again for
 * some rounds, because the disk may recover.
 */
function createSelect() {
  const failed = new Map<number, number>();
  const isSelected = async (row: NotificationRow, matches: Matcher): Promise<boolean> => {
    try {
      return await matches(row);
    } catch (error) {
      if (!isAppError(error, 'unavailable')) return true;
      const rounds = (failed.get(row.position) ?? 0) + 1;
      failed.set(row.position, rounds);
      if (rounds < unreadableMax) throw error;
      return true;
    }
  };
  return async (rows: readonly NotificationRow[], matches: Matcher): Promise<NotificationRow[]> => {
    const selected: NotificationRow[] = [];
    for (const row of rows) {
      if (await isSelected(row, matches)) selected.push(row);
      // Lets intake run, because a filter may evaluate a large footprint.
      await setImmediate();
    }
    failed.clear();
    return selected;
  };
}

/** Creates the function that finds the oldest open replay, with its compiled filter. */
function createNextReplay(definition: SinkDefinition, { sinks, log, logger }: SinkContext) {
  const compiled = new Map<number, Matcher | null>();
  const compiledFor = ({ id, filter }: Replay): Matcher | null => {
    const known = compiled.get(id);
    if (known !== undefined) return known;
    let matches: Matcher | null = null;
    try {
      matches = compileMatcher(definition, log, filter);
    } catch (error) {
      const sink = definition.name;
      logger.error({ sink, replay: id, err: error }, 'invalid filter of a replay');
    }
    compiled.set(id, matches);
    return matches;
  };
  return async (): Promise<[Replay, Matcher] | [null, null]> => {
    const newestFirst = await sinks.replays({ sink: definition.name, all: false });
    const open = new Set(newestFirst.map(({ id }) => id));
    for (const id of compiled.keys()) if (!open.has(id)) compiled.delete(id);
    for (const replay of newestFirst.toReversed()) {
      const matches = compiledFor(replay);
      if (matches !== null) return [replay, matches];
    }
    return [null, null];
  };
}

/** Limit for replays, below that of the queue, so that new notifications always find capacity. */
const replayedMax = sinkWaitingMax / 2;

/**
 * Tracks the free capacity of a sink's queue. Retried dead letters do not count, because their number is unlimited and
 * they must not block new items. Their number is the excess of waiting items over queued ones. After a restart only the
 * excess over the limit is known.
 */
function createCapacity({ counts }: Pick<Sinks, 'counts'>, sink: string) {
  let retried = 0;
  let expected = sinkWaitingMax;
  return {
    /** Rejects with `unavailable`. */
    left: async (stream: 'new' | 'replayed') => {
      const waiting = (await counts()).find((one) => one.sink === sink)?.waiting ?? 0;
      retried = Math.min(waiting, retried + Math.max(0, waiting - expected));
      expected = waiting;
      const max = stream === 'new' ? sinkWaitingMax : replayedMax;
      return Math.max(0, max + retried - waiting);
    },
    /** Reports that items were queued. */
    queued: (count: number) => {
      expected += count;
    },
  };
}

export function createWakeUp(pause: SinkContext['pause']) {
  let isWoken = false;
  let endWait = (): void => undefined;
  return {
    /** Resolves after the delay, after `wake`, or soon after the signal is aborted. For a single waiter. */
    wait: async (ms: number, signal: AbortSignal) => {
      if (!isWoken && !signal.aborted) {
        const ending = new AbortController();
        endWait = () => ending.abort();
        signal.addEventListener('abort', endWait);
        await pause(ms, ending.signal);
        signal.removeEventListener('abort', endWait);
      }
      isWoken = false;
    },
    /** Ends the current wait, or the next one if there is none. */
    wake: () => {
      isWoken = true;
      endWait();
    },
  };
}
