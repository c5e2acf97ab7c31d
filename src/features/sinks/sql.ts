/** Tables of the sinks: waiting items, dead letters, deliveries, and replays. */
import { AppError } from '../../core/terms/app-error.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import type { DescribeReader, PruneBlocker } from '../../store/pruning/terms.ts';
import { changedMax } from '../../store/tables.ts';
import {
  type Replay,
  type SinkCounts,
  type SinkItem,
  type Sinks,
  sinkReader,
  sinkWaitMaxUs,
} from './terms.ts';

export const schema = `
  -- Ids are never reused, so that a delayed answer cannot match another row.
  -- An item has a row until the sink acknowledges it. Ids give the order. Ids of products are compared
  -- case-insensitively, as elsewhere.
  CREATE TABLE IF NOT EXISTS sink_item (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sink TEXT NOT NULL,
    replay_id INTEGER,
    position INTEGER NOT NULL,
    product_id TEXT NOT NULL COLLATE NOCASE,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at_us INTEGER NOT NULL,
    error TEXT,
    queued_at_us INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS sink_item_queue ON sink_item (sink, id, due_at_us) WHERE state = 'waiting';
  CREATE INDEX IF NOT EXISTS sink_item_product ON sink_item (sink, product_id, id) WHERE state = 'waiting';
  CREATE INDEX IF NOT EXISTS sink_item_dead ON sink_item (sink, id) WHERE state = 'dead';
  -- Pruning asks for the first notification that a sink needs.
  CREATE INDEX IF NOT EXISTS sink_item_waiting_position ON sink_item (sink, position) WHERE state = 'waiting';
  CREATE INDEX IF NOT EXISTS sink_item_dead_position ON sink_item (sink, position) WHERE state = 'dead';
  -- A replay has a row until all of its items are queued.
  CREATE TABLE IF NOT EXISTS sink_replay (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sink TEXT NOT NULL UNIQUE,
    filter TEXT NOT NULL,
    since_us INTEGER,
    until_us INTEGER,
    position INTEGER NOT NULL CHECK (position < last_position),
    last_position INTEGER NOT NULL,
    requested_at_us INTEGER NOT NULL
  ) STRICT;
  -- Number and time of acknowledged deliveries, and the failure since then.
  CREATE TABLE IF NOT EXISTS sink_delivery (
    sink TEXT PRIMARY KEY,
    delivered INTEGER NOT NULL,
    last_at_us INTEGER,
    failing_since_us INTEGER,
    last_error TEXT
  ) STRICT, WITHOUT ROWID;
  -- Number of notifications that were left out because of their age.
  CREATE TABLE IF NOT EXISTS sink_too_old (
    sink TEXT PRIMARY KEY,
    notifications INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

export const needsSpace = ['enqueue', 'addReplay'];

type Options<Name extends keyof Sinks> = Parameters<Sinks[Name]>[0];
type Settled = Options<'settle'>[number];

/** A page of items, newest first. */
export interface ItemsPage extends Omit<Options<'items'>, 'limit'> {
  beforeId: number;
  rowsMax: number;
}

const itemColumns = `id, sink, position, product_id AS productId, replay_id AS replayId,
  state, attempts, due_at_us AS dueAtUs, error, queued_at_us AS queuedAtUs`;

const replayColumns = `id, sink, filter, since_us AS sinceUs, until_us AS untilUs, position,
  last_position AS lastPosition, requested_at_us AS requestedAtUs`;

/** Waiting items of `@sink` without an earlier waiting item of the same product. Costs one lookup per item. */
const nextItems = `sink_item AS item INDEXED BY sink_item_queue
  WHERE item.state = 'waiting' AND item.sink = @sink AND NOT EXISTS (
    SELECT 1 FROM sink_item AS earlier INDEXED BY sink_item_product
    WHERE earlier.state = 'waiting' AND earlier.sink = item.sink
      AND earlier.product_id = item.product_id AND earlier.id < item.id)`;

/** Subquery on the items of the sink in the row `name`; uses the partial indexes. */
const ofSink = (value: string, where: string) =>
  `(SELECT ${value} FROM sink_item AS item WHERE item.sink = name.sink AND ${where})`;

export const reads = {
  due(database: Database, query: Options<'due'>): SinkItem[] {
    return prepared<[object], SinkItem>(
      database,
      `SELECT ${itemColumns} FROM ${nextItems}
         AND (due_at_us <= @nowUs OR due_at_us > @nowUs + ${sinkWaitMaxUs})
       ORDER BY id LIMIT @limit`,
    ).all(query);
  },

  nextDueAtUs(database: Database, sink: string): number | null {
    const sql = `SELECT min(due_at_us) FROM ${nextItems}`;
    return prepared<[object], number | null>(database, sql).pluck().get({ sink }) ?? null;
  },

  /** Fewer than `rowsMax` items mean the end. The state is a literal: a parameter would not match the partial indexes. */
  itemsPage(database: Database, { sink, state, failed, beforeId, rowsMax }: ItemsPage): SinkItem[] {
    return prepared<[object], SinkItem>(
      database,
      `SELECT ${itemColumns} FROM sink_item
       WHERE state = '${state === 'dead' ? 'dead' : 'waiting'}' AND id < @beforeId
         ${sink === undefined ? '' : 'AND sink = @sink'} ${failed ? 'AND error IS NOT NULL' : ''}
       ORDER BY id DESC LIMIT @rowsMax`,
    ).all({ sink, beforeId, rowsMax });
  },

  /** Gets the names of the sinks from cursors and replays: items are queued only through these. */
  counts(database: Database): SinkCounts[] {
    return prepared<[object], Omit<SinkCounts, 'isReplaying'> & { isReplaying: 0 | 1 }>(
      database,
      `WITH name AS (
         SELECT sink FROM sink_replay
         UNION SELECT substr(reader, 1 + length(@prefix)) FROM reader_cursor
           WHERE substr(reader, 1, length(@prefix)) = @prefix)
       SELECT name.sink, cursor.position,
         ${ofSink('count(*)', "state = 'waiting'")} AS waiting,
         ${ofSink('count(*)', "state = 'waiting' AND error IS NOT NULL")} AS failed,
         ${ofSink('count(*)', "state = 'dead'")} AS dead,
         EXISTS (SELECT 1 FROM sink_replay AS replay WHERE replay.sink = name.sink) AS isReplaying,
         coalesce(done.delivered, 0) AS delivered, done.last_at_us AS lastDeliveredAtUs,
         coalesce((SELECT notifications FROM sink_too_old AS old WHERE old.sink = name.sink), 0) AS tooOld,
         ${ofSink('min(queued_at_us)', "state = 'waiting'")} AS oldestWaitingAtUs,
         max(done.failing_since_us,
           ${ofSink('min(queued_at_us)', "state = 'waiting' AND error IS NOT NULL")}) AS failingSinceUs,
         done.last_error AS lastError,
         ${ofSink('error', "state = 'dead' ORDER BY id DESC LIMIT 1")} AS deadError
       FROM name LEFT JOIN reader_cursor AS cursor ON reader = @prefix || name.sink
         LEFT JOIN sink_delivery AS done ON done.sink = name.sink
       ORDER BY name.sink`,
    )
      .all({ prefix: sinkReader('') })
      .map((row) => ({ ...row, isReplaying: row.isReplaying === 1 }));
  },

  replay(database: Database, sink: string): Replay | null {
    const sql = `SELECT ${replayColumns} FROM sink_replay WHERE sink = ?`;
    return prepared<[string], Replay>(database, sql).get(sink) ?? null;
  },
};

export const writes = {
  /** Queues the items and moves the position in one transaction, so that each part of the log is queued once. */
  enqueue(database: Database, options: Options<'enqueue'>): boolean {
    const { sink, replayId, after, upTo, items, tooOld = 0, atUs } = options;
    if (upTo < after || items.some(({ position }) => position <= after || position > upTo)) {
      throw new AppError('invalid', 'Items are outside the range of positions that was read.');
    }
    const sql = replayId === null ? [moveCursor] : [endReplay, moveReplay];
    const moved = { reader: sinkReader(sink), sink, replayId, after, upTo, atUs };
    if (!sql.some((one) => prepared(database, one).run(moved).changes > 0)) return false;
    const insert = prepared(
      database,
      `INSERT INTO sink_item (sink, replay_id, position, product_id, state, attempts, due_at_us,
         queued_at_us)
       VALUES (@sink, @replayId, @position, @productId, 'waiting', 0, @atUs, @atUs)`,
    );
    for (const { position, productId } of items) {
      insert.run({ sink, replayId, position, productId, atUs });
    }
    if (tooOld > 0) prepared(database, addTooOld).run({ sink, tooOld });
    return true;
  },

  /** Updates items by id. Ignores items that were removed or no longer wait. */
  settle(database: Database, results: readonly Settled[], atUs: number): void {
    for (const result of results) {
      if ('error' in result) recordFailure(database, result, atUs);
      else remove(database, result, atUs);
    }
  },

  /**
   * Sets the queue time to now, so that the sink does not look stuck; the order stays. Returns the number of changed
   * items: with `changedMax` there may be more.
   */
  retrySome(database: Database, { sink, nowUs }: Options<'retry'>): number {
    return prepared(
      database,
      `UPDATE sink_item SET state = 'waiting', attempts = 0, due_at_us = @nowUs,
         queued_at_us = @nowUs, error = NULL WHERE ${firstItems('dead')}`,
    ).run({ sink, nowUs }).changes;
  },

  /** Returns the number of removed items: with `changedMax` there may be more. */
  dropSome(database: Database, { sink, state, ids }: Options<'drop'>): number {
    if (state === 'waiting' && ids === undefined) {
      prepared(database, 'DELETE FROM sink_replay WHERE sink = ?').run(sink);
    }
    return prepared(database, `DELETE FROM sink_item WHERE ${firstItems(state, ids)}`).run({
      sink,
      ids: JSON.stringify(ids ?? []),
    }).changes;
  },

  addReplay(database: Database, replay: Options<'addReplay'>): Replay {
    const added = prepared<[object], Replay>(
      database,
      `INSERT INTO sink_replay (sink, filter, since_us, until_us, position, last_position, requested_at_us)
       VALUES (@sink, @filter, @sinceUs, @untilUs, @afterPosition, @lastPosition, @requestedAtUs)
       ON CONFLICT (sink) DO NOTHING RETURNING ${replayColumns}`,
    ).get(replay);
    if (added !== undefined) return added;
    throw new AppError('conflict', `A replay to ${replay.sink} has not finished.`, {
      advice: `To see the progress: \`earshot sinks list\`. To end it: \`earshot sinks drop ${replay.sink} --waiting\`.`,
    });
  },
};

/** The position of a sink without a cursor is 0. */
const moveCursor = `INSERT INTO reader_cursor (reader, position, moved_at_us)
  SELECT @reader, @upTo, @atUs
  WHERE @after = coalesce((SELECT position FROM reader_cursor WHERE reader = @reader), 0)
  ON CONFLICT (reader) DO UPDATE SET
    position = excluded.position, moved_at_us = excluded.moved_at_us`;

const addTooOld = `INSERT INTO sink_too_old (sink, notifications) VALUES (@sink, @tooOld)
  ON CONFLICT (sink) DO UPDATE SET notifications = notifications + excluded.notifications`;

const unmovedReplay = 'id = @replayId AND sink = @sink AND position = @after';

const endReplay = `DELETE FROM sink_replay WHERE ${unmovedReplay} AND @upTo >= last_position`;

const moveReplay = `UPDATE sink_replay SET position = @upTo WHERE ${unmovedReplay}`;

/** Condition for the first `changedMax` items, in queue order. */
function firstItems(state: SinkItem['state'], ids?: readonly number[]): string {
  const among = ids === undefined ? '' : 'AND id IN (SELECT value FROM json_each(@ids))';
  return `id IN (SELECT id FROM sink_item
    WHERE sink = @sink AND state = '${state === 'dead' ? 'dead' : 'waiting'}' ${among}
    ORDER BY id LIMIT ${changedMax})`;
}

/** Also removes a dead letter when the sink acknowledges it after all. */
function remove(database: Database, { id, outcome }: Settled, atUs: number): void {
  const sql = 'DELETE FROM sink_item WHERE id = ? RETURNING sink';
  const sink = prepared<[number], string>(database, sql).pluck().get(id);
  if (sink === undefined || outcome === 'dropped') return;
  if (outcome === 'tooOld') return void prepared(database, addTooOld).run({ sink, tooOld: 1 });
  prepared(
    database,
    `INSERT INTO sink_delivery (sink, delivered, last_at_us) VALUES (@sink, 1, @atUs)
     ON CONFLICT (sink) DO UPDATE SET delivered = delivered + 1, last_at_us = excluded.last_at_us,
       failing_since_us = NULL, last_error = NULL`,
  ).run({ sink, atUs });
}

/** A refusal of an item that waited while others were delivered does not show that the sink accepts nothing. */
function recordFailure(
  database: Database,
  result: Extract<Settled, { error: string }>,
  atUs: number,
): void {
  const { id, error } = result;
  const isDead = result.outcome === 'dead';
  const refusals = Number(isDead || result.counts);
  const item = prepared<[object], { sink: string; queuedAtUs: number }>(
    database,
    `UPDATE sink_item SET state = @state, attempts = attempts + @refusals, error = @error,
       due_at_us = coalesce(@nextAttemptAtUs, due_at_us)
     WHERE id = @id AND state = 'waiting' RETURNING sink, queued_at_us AS queuedAtUs`,
  ).get({
    ...{ id, error, refusals, state: isDead ? 'dead' : 'waiting' },
    nextAttemptAtUs: isDead ? null : result.nextAttemptAtUs,
  });
  if (item === undefined) return;
  prepared(
    database,
    `INSERT INTO sink_delivery (sink, delivered, failing_since_us, last_error)
     VALUES (@sink, 0, @atUs, @error)
     ON CONFLICT (sink) DO UPDATE SET last_error = excluded.last_error,
       failing_since_us = iif(@refusals = 1 AND last_at_us >= @queuedAtUs, failing_since_us,
         coalesce(failing_since_us, @atUs))`,
  ).run({ ...item, refusals, error, atUs });
}

export const describeReader: DescribeReader = (key) => {
  if (!key.startsWith(sinkReader(''))) return null;
  const sink = key.slice(sinkReader('').length);
  return { name: `sink ${sink}`, advance: '`earshot start`, if earshot.config.ts has the sink' };
};

/** Returns the first notification that waiting items, dead letters and replays of each sink need. */
export function blockers(database: Database): PruneBlocker[] {
  const replays = 'SELECT id, sink, position, requested_at_us AS sinceUs FROM sink_replay';
  return [
    ...blockersOf(database, replays, ({ id, sink }) => ({
      name: `replay ${id} of sink ${sink}`,
      advice: `The receiver continues the replay. To drop it: \`earshot sinks drop ${sink} --waiting\`.`,
    })),
    ...blockersOf(database, firstOfEachSink('waiting'), ({ sink }) => ({
      name: `queue of sink ${sink}`,
      advice: `For the reason: \`earshot sinks list\`. To drop the queue: \`earshot sinks drop ${sink} --waiting\`.`,
    })),
    ...blockersOf(database, firstOfEachSink('dead'), ({ sink }) => ({
      name: `dead letters of sink ${sink}`,
      advice: `To list the dead letters: \`earshot sinks dead ${sink}\`. To drop them: \`earshot sinks drop ${sink}\`.`,
    })),
  ];
}

interface BlockerRow extends Pick<PruneBlocker, 'position' | 'sinceUs'> {
  id: number;
  sink: string;
}

function blockersOf(
  database: Database,
  sql: string,
  describe: (row: BlockerRow) => Pick<PruneBlocker, 'name' | 'advice'>,
): PruneBlocker[] {
  return prepared<[], BlockerRow>(database, sql)
    .all()
    .map((row) => ({
      ...{ kind: 'pending', of: 'sinks', key: sinkReader(row.sink) },
      ...{ position: row.position, sinceUs: row.sinceUs, ...describe(row) },
    }));
}

/** Query of the first item of each sink. Its recursive part reads the sink names from the same index. */
function firstOfEachSink(state: SinkItem['state']): string {
  const items = `sink_item INDEXED BY sink_item_${state}_position WHERE state = '${state}'`;
  return `WITH RECURSIVE name (sink) AS (
      SELECT min(sink) FROM ${items}
      UNION ALL SELECT (SELECT min(sink) FROM ${items} AND sink > name.sink)
        FROM name WHERE sink IS NOT NULL)
    SELECT id, sink, position - 1 AS position, queued_at_us AS sinceUs
    FROM sink_item WHERE id IN (
      SELECT (SELECT id FROM ${items} AND sink = name.sink ORDER BY position LIMIT 1)
      FROM name WHERE sink IS NOT NULL)`;
}
