/** All sinks, each on its own: one that fails, is slow or hangs holds up no other and not the intake. */
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { errorText, isAppError } from '../domain/app-error.ts';
import type { NotificationQuery, NotificationRow } from '../domain/ports.ts';
import { type Replay, type Sinks, sinkReader, sinkWaitingMax } from '../domain/sinks.ts';
import { createDelivery } from './delivery.ts';
import { compileWants, type Wants } from './document.ts';
import type { SinkDefinition } from './registry.ts';
import { openTarget } from './registry.ts';
import type { SinkContext } from './target.ts';

export interface RunningSinks {
  /**
   * Starts, stops or replaces the sinks that differ from these definitions; the others are not touched. A sink's open
   * deliveries end before its successor starts, as with `stop`: nothing is lost or delivered out of order. Throws
   * `invalid` for a filter that cannot be used.
   */
  change(definitions: readonly SinkDefinition[]): Promise<void>;
  /**
   * Starts no new delivery. Open ones have two seconds, are then given up, and are repeated by the next program. A
   * program that runs is then asked to end, and killed two seconds later. Resolves when no delivery is open.
   */
  stop(): Promise<void>;
}

/** One program at a time may do this for a store. Throws `invalid` for a filter that cannot be used. */
export function startSinks(
  context: SinkContext,
  definitions: readonly SinkDefinition[],
): RunningSinks {
  const running = new Map<string, { definition: SinkDefinition; sink: RunningSink }>();
  let changing: Promise<void> = Promise.resolve();
  let isStopped = false;
  const startMissing = (wanted: readonly SinkDefinition[]) => {
    for (const definition of wanted) {
      if (running.has(definition.name)) continue;
      running.set(definition.name, { definition, sink: runSink(definition, context) });
    }
  };
  const stopAllBut = async (wanted: readonly SinkDefinition[]) => {
    const gone = [...running].filter(
      ([, { definition }]) => !wanted.some((one) => isDeepStrictEqual(one, definition)),
    );
    await Promise.all(gone.map(([, { sink }]) => sink.stop()));
    for (const [name] of gone) running.delete(name);
  };
  startMissing(definitions);
  return {
    change: (wanted) => {
      const changed = changing.then(async () => {
        if (isStopped) return;
        await stopAllBut(wanted);
        if (!isStopped) startMissing(wanted);
      });
      changing = changed.catch(() => undefined);
      return changed;
    },
    stop: async () => {
      isStopped = true;
      await changing;
      await stopAllBut([]);
    },
  };
}

/** How often the end of the log is looked at, and how often replays are. */
const logPollMs = 200;

const replayPollMs = 1_000;

/** After a full round of a long log: others come between. */
const moreMs = 5;

/** After a failure of the store: the disk may be full. */
const retryMs = 10_000;

/**
 * What is on its way may come to its end for so long when the program ends: an answer that is on its way saves
 * handing over twice, and a sink that hangs must not keep intake from being stopped in order.
 */
const drainMs = 2_000;

type RunningSink = ReturnType<typeof runSink>;

/** What fails is logged, once, and tried again. Throws `invalid` for a filter that is none. */
function runSink(definition: SinkDefinition, context: SinkContext) {
  const stopping = new AbortController();
  const givingUp = new AbortController();
  const { signal } = stopping;
  const { pause } = context;
  const room = createWakeUp(pause);
  const collector = createItemCollector(definition, context, room.wake);
  const target = openTarget(definition, context);
  const delivery = createDelivery({
    definition,
    context,
    target,
    onRoom: room.wake,
    signal: givingUp.signal,
  });
  const deps = { sink: definition.name, context, signal };
  const running = Promise.all([
    repeat(collectRounds(collector, context), pause, deps),
    repeat(delivery.startDue, room.wait, deps),
  ]);
  return {
    /** Takes up nothing new; what is on its way has two seconds, and is given up then. */
    stop: async () => {
      stopping.abort();
      await running;
      const ended = new AbortController();
      const idle = delivery.idle().then(() => ended.abort());
      await pause(drainMs, ended.signal);
      givingUp.abort();
      await idle;
      await target.close();
    },
  };
}

function collectRounds(collector: ItemCollector, { nowUs }: SinkContext) {
  let replaysAtUs = 0;
  return async (): Promise<number> => {
    let isMore = await collector.collectNew();
    // A look that lies far ahead was dated by a clock that was set back since.
    if (Math.abs(replaysAtUs - nowUs()) > replayPollMs * 1000 || nowUs() >= replaysAtUs) {
      if (await collector.collectReplayed()) isMore = true;
      else replaysAtUs = nowUs() + replayPollMs * 1000;
    }
    return isMore ? moreMs : logPollMs;
  };
}

/** A round resolves with how long to wait before the next one. */
async function repeat(
  round: () => Promise<number>,
  wait: SinkContext['pause'],
  { sink, context, signal }: { sink: string; context: SinkContext; signal: AbortSignal },
): Promise<void> {
  let failed: string | null = null;
  while (!signal.aborted) {
    try {
      const waitMs = await round();
      if (failed !== null) context.logger.info({ sink }, 'a sink goes on');
      failed = null;
      await wait(waitMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = isAppError(error) ? errorText(error) : String(error);
      if (reason !== failed)
        context.logger.error({ sink, reason, err: error }, 'a sink cannot go on');
      failed = reason;
      await context.pause(retryMs, signal);
    }
  }
}

/** Rows that are looked at in one round, which is one transaction. */
const rowsMax = 200;

/** Rounds in which a body could not be read, some minutes: from then on the notification passes as wanted. */
const unreadableMax = 30;

type ItemCollector = ReturnType<typeof createItemCollector>;

/**
 * Items and cursor move together, so that nothing is left out or made twice, whenever the program ends. Each call of
 * a method is one round; it resolves with whether more may be there, and rejects with `unavailable`. Throws `invalid`
 * for a filter that cannot be used.
 */
function createItemCollector(
  definition: SinkDefinition,
  context: SinkContext,
  onAdded: () => void,
) {
  const { name: sink, startAt } = definition;
  const { sinks, log, nowUs } = context;
  const wants = compileWants(definition, log);
  const replayWants = createReplayWants(definition, context);
  const room = createRoom(sinks, sink);
  const wanted = createWanted();

  const move = async (
    stream: { replayId: number | null; after: number; upTo: number },
    items: readonly NotificationRow[],
  ) => {
    const rows = items.map(({ position, productId }) => ({ position, productId }));
    if (!(await sinks.enqueue({ sink, ...stream, items: rows, atUs: nowUs() }))) return;
    room.queued(rows.length);
    if (rows.length > 0) onAdded();
  };

  return {
    /** What came since the sink's cursor. */
    collectNew: async (): Promise<boolean> => {
      const cursor = await log.cursor(sinkReader(sink));
      const last = await log.lastPosition();
      if (cursor === null && startAt === 'now') {
        await move({ replayId: null, after: 0, upTo: last }, []);
        return false;
      }
      const after = cursor ?? 0;
      const left = await room.left('new');
      if (last <= after || left === 0) return false;
      const page = await pageOf(log, { afterPosition: after, beforePosition: last + 1 }, left);
      const upTo = page.isFull ? page.last : last;
      await move({ replayId: null, after, upTo }, await wanted(page.rows, wants));
      return page.isFull;
    },
    /** What replays ask for, the one that was asked for first before the others. */
    collectReplayed: async (): Promise<boolean> => {
      const [replay, test] = await replayWants();
      if (replay === null) return false;
      const left = await room.left('replayed');
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
      await move({ replayId: id, after: position, upTo }, await wanted(page.rows, test));
      return true;
    },
  };
}

async function pageOf(log: SinkContext['log'], bounds: NotificationQuery, room: number) {
  const limit = Math.min(rowsMax, room);
  const rows: NotificationRow[] = [];
  for await (const row of log.find({ ...bounds, order: 'oldest', limit })) rows.push(row);
  return { rows, isFull: rows.length === limit, last: rows.at(-1)?.position ?? 0 };
}

/**
 * A notification that cannot be checked is queued, so that it does not hold up those after it: its delivery fails and
 * gives the reason. Only a body that the log cannot read is checked again for some rounds, as the disk may recover.
 */
function createWanted() {
  const failed = new Map<number, number>();
  const isWanted = async (row: NotificationRow, wants: Wants): Promise<boolean> => {
    try {
      return await wants(row);
    } catch (error) {
      if (!isAppError(error, 'unavailable')) return true;
      const rounds = (failed.get(row.position) ?? 0) + 1;
      failed.set(row.position, rounds);
      if (rounds < unreadableMax) throw error;
      return true;
    }
  };
  return async (rows: readonly NotificationRow[], wants: Wants): Promise<NotificationRow[]> => {
    const chosen: NotificationRow[] = [];
    for (const row of rows) {
      if (await isWanted(row, wants)) chosen.push(row);
      // A filter may look at a large footprint: intake comes between.
      await setImmediate();
    }
    failed.clear();
    return chosen;
  };
}

/** Finds the oldest replay that has not ended, with its filter made ready. */
function createReplayWants(definition: SinkDefinition, { sinks, log, logger }: SinkContext) {
  const ready = new Map<number, Wants | null>();
  const readyFor = ({ id, filter }: Replay): Wants | null => {
    const known = ready.get(id);
    if (known !== undefined) return known;
    let wants: Wants | null = null;
    try {
      wants = compileWants(definition, log, filter);
    } catch (error) {
      const sink = definition.name;
      logger.error({ sink, replay: id, err: error }, 'a replay has a filter that cannot be read');
    }
    ready.set(id, wants);
    return wants;
  };
  return async (): Promise<[Replay, Wants] | [null, null]> => {
    const newestFirst = await sinks.replays({ sink: definition.name, all: false });
    const going = new Set(newestFirst.map(({ id }) => id));
    for (const id of ready.keys()) if (!going.has(id)) ready.delete(id);
    for (const replay of newestFirst.toReversed()) {
      const wants = readyFor(replay);
      if (wants !== null) return [replay, wants];
    }
    return [null, null];
  };
}

/** Replays stop short of the bound, so that what comes in now always has room. */
const replayedMax = sinkWaitingMax / 2;

/**
 * All that waits counts, but dead letters that are tried again: these are as many as there are, and must not
 * keep what is new from being read. They are known by this: more wait than were queued. After a restart only those
 * beyond the bound are known, as nothing else goes beyond it.
 */
function createRoom({ counts }: Pick<Sinks, 'counts'>, sink: string) {
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
    /** Notes that this many were queued. */
    queued: (count: number) => {
      expected += count;
    },
  };
}

export function createWakeUp(pause: SinkContext['pause']) {
  let isWoken = false;
  let endWait = (): void => undefined;
  return {
    /** Resolves after a time, when it was woken, or soon after the signal is aborted. For one who waits. */
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
    /** Ends the wait, or the next one when nobody waits just now. */
    wake: () => {
      isWoken = true;
      endWait();
    },
  };
}
