/** Reads the log for one sink, and makes items of what it wants. */
import { setImmediate } from 'node:timers/promises';
import { isAppError } from '../domain/app-error.ts';
import type { NotificationQuery, NotificationRow } from '../domain/ports.ts';
import { type Replay, type SinkDefinition, sinkReader } from '../domain/sinks.ts';
import { createRoom } from './room.ts';
import type { SinkWorld } from './sink-world.ts';
import { compileWants, type Wants } from './wanted.ts';

/** Rows that are looked at in one round, which is one transaction. */
const rowsMax = 200;
/** Rounds in which a body could not be read, some minutes: from then on the notification passes as wanted. */
const unreadableMax = 30;

type Means = Pick<SinkWorld, 'sinks' | 'log' | 'nowUs' | 'logger'>;

/** Each call is one round; resolves with whether more may be there. Rejects with `unavailable`. */
export interface ItemCollector {
  /** What came since the sink's cursor. */
  collectNew(): Promise<boolean>;
  /** What replays ask for, the one that was asked for first before the others. */
  collectReplayed(): Promise<boolean>;
}

/**
 * Items and cursor move together, so that nothing is left out or made twice, whenever the program ends. Throws
 * `invalid` for a filter of the sink's that is none.
 */
export function createItemCollector(
  definition: SinkDefinition,
  world: Means,
  onAdded: () => void,
): ItemCollector {
  const { name: sink, startAt } = definition;
  const { sinks, log, nowUs } = world;
  const wants = compileWants(definition, log);
  const replayWants = createReplayWants(definition, world);
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
    collectNew: async () => {
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
    collectReplayed: async () => {
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

async function pageOf(log: Means['log'], bounds: NotificationQuery, room: number) {
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
function createReplayWants(definition: SinkDefinition, { sinks, log, logger }: Means) {
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
