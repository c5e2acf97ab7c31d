/** The questions about sinks as SQL, for one reading connection. */
import type { Database } from 'better-sqlite3';
import {
  type Replay,
  type ReplayWish,
  type SinkCounts,
  type SinkDeliveries,
  type SinkItem,
  sinkReader,
  sinkWaitMaxUs,
} from '../domain/sinks.ts';
import type { DueItemsOptions, ItemsPage, ReplaysOptions, SinkQuestion } from './sink-messages.ts';

/** Answers one question; the answer is what the port's call of that name resolves with. */
export function askSinks(database: Database, question: SinkQuestion): unknown {
  switch (question.kind) {
    case 'due':
      return due(database, question.options);
    case 'next-due':
      return nextDueAtUs(database, question.sink);
    case 'items':
      return items(database, question);
    case 'counts':
      return counts(database);
    case 'deliveries':
      return database
        .prepare<[], SinkDeliveries>(
          'SELECT sink, delivered, last_at_us AS lastAtUs FROM sink_delivery ORDER BY sink',
        )
        .all();
    case 'same-replay':
      return prepareSameReplay(database)(question.wish) ?? null;
    case 'replays':
      return replays(database, question.options);
  }
}

const itemColumns = `id, sink, position, product_id AS productId, nullif(stream, 0) AS replayId,
  state, attempts, due_at_us AS dueAtUs, error, queued_at_us AS queuedAtUs`;

/**
 * Waiting items of `@sink` that no other one must come before, of whatever stream: for each item one look-up in
 * each stream of which something waits. These are few, as replays are read one after the other.
 */
const nextItems = `sink_item AS item INDEXED BY sink_item_queue
  WHERE item.state = 'waiting' AND item.sink = @sink AND NOT EXISTS (
    SELECT 1 FROM sink_item AS earlier INDEXED BY sink_item_product
    WHERE earlier.state = 'waiting' AND earlier.sink = item.sink AND earlier.stream IN (
        SELECT DISTINCT stream FROM sink_item INDEXED BY sink_item_queue
        WHERE state = 'waiting' AND sink = @sink)
      AND earlier.product_id = item.product_id AND earlier.id < item.id)`;

/** True of a replayed item that a live one waits for. */
const holdsUpLive = `EXISTS (
  SELECT 1 FROM sink_item AS live INDEXED BY sink_item_product
  WHERE live.state = 'waiting' AND live.sink = item.sink AND live.stream = 0
    AND live.product_id = item.product_id)`;

/** What is handed over first, and so on: each is in the order of the queue. */
const turns = [`stream > 0 AND ${holdsUpLive}`, 'stream = 0', `stream > 0 AND NOT ${holdsUpLive}`];

function due(database: Database, { sink, nowUs, limit }: DueItemsOptions): SinkItem[] {
  const found: SinkItem[] = [];
  for (const isOfTurn of turns) {
    const rows = database
      .prepare<[object], SinkItem>(
        `SELECT ${itemColumns} FROM ${nextItems} AND ${isOfTurn}
           AND (due_at_us <= @nowUs OR due_at_us > @nowUs + ${sinkWaitMaxUs})
         ORDER BY id LIMIT @left`,
      )
      .all({ sink, nowUs, left: limit - found.length });
    found.push(...rows);
  }
  return found;
}

function nextDueAtUs(database: Database, sink: string): number | null {
  const row = database
    .prepare<[object], { atUs: number | null }>(`SELECT min(due_at_us) AS atUs FROM ${nextItems}`)
    .get({ sink });
  return row?.atUs ?? null;
}

/** Fewer than `rowsMax` means the end. The state stands in the text, where the partial indexes see it. */
function items(database: Database, { sink, state, beforeId, rowsMax }: ItemsPage): SinkItem[] {
  const ofSink = sink === undefined ? '' : 'AND sink = @sink';
  return database
    .prepare<[object], SinkItem>(
      `SELECT ${itemColumns} FROM sink_item
       WHERE state = '${state === 'dead' ? 'dead' : 'waiting'}' AND id < @beforeId ${ofSink}
       ORDER BY id DESC LIMIT @rowsMax`,
    )
    .all({ sink, beforeId, rowsMax });
}

/** What a sink has now, by the partial indexes; `name` is its row. */
const ofSink = (what: string, where: string) =>
  `(SELECT ${what} FROM sink_item AS item WHERE item.sink = name.sink AND ${where})`;

/** Whatever was queued was read with a cursor or a replay: they name the sinks, and are few. */
function counts(database: Database): SinkCounts[] {
  return database
    .prepare<[string], SinkCounts>(
      `WITH name AS (
         SELECT sink FROM sink_replay
         UNION SELECT substr(reader, 1 + length(prefix)) FROM reader_cursor, (SELECT ? AS prefix)
           WHERE substr(reader, 1, length(prefix)) = prefix)
       SELECT sink, ${ofSink('count(*)', "state = 'waiting'")} AS waiting,
         ${ofSink('count(*)', "state = 'dead'")} AS dead,
         ${ofSink('min(queued_at_us)', "state = 'waiting'")} AS oldestQueuedAtUs,
         ${ofSink('min(queued_at_us)', "state = 'waiting' AND stream = 0")} AS oldestLiveQueuedAtUs,
         ${ofSink('error', 'failure IS NOT NULL ORDER BY failure DESC LIMIT 1')} AS error
       FROM name ORDER BY sink`,
    )
    .all(sinkReader(''));
}

export const replayColumns = `id, sink, filter, since_us AS sinceUs, until_us AS untilUs, position,
  last_position AS lastPosition, requested_at_us AS requestedAtUs, ended_at_us AS endedAtUs`;

/** One without an end hands over what there was when it was asked for. */
export function prepareSameReplay(database: Database) {
  const find = database.prepare<[object], Replay>(
    `SELECT ${replayColumns} FROM sink_replay AS replay
     WHERE sink = @sink AND filter = @filter AND last_position >= @lastPosition
       AND (since_us IS NULL OR since_us <= @sinceUs) AND (until_us IS NULL OR until_us >= @untilUs)
       AND (ended_at_us IS NULL OR EXISTS (SELECT 1 FROM sink_item INDEXED BY sink_item_queue
         WHERE state = 'waiting' AND sink = @sink AND stream = replay.id))
     ORDER BY id DESC LIMIT 1`,
  );
  return (wish: ReplayWish): Replay | undefined => find.get(wish);
}

function replays(database: Database, { sink, all }: ReplaysOptions): Replay[] {
  const ofAsked = sink === undefined ? '' : 'AND sink = @sink';
  return database
    .prepare<[object], Replay>(
      `SELECT ${replayColumns} FROM sink_replay
       WHERE (@all OR ended_at_us IS NULL) ${ofAsked} ORDER BY id DESC`,
    )
    .all({ sink, all: Number(all) });
}
