/** Writes what sinks are to be handed over: items with the place they were read to, and replays. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import { type Replay, sinkReader, unfinishedReplay } from '../domain/sinks.ts';
import type { AddReplayOptions, EnqueueItemsOptions } from './sink-messages.ts';
import { prepareSameReplay, replayColumns } from './sink-queries.ts';

/** The items and the move share the caller's transaction: a part of the log is queued once. */
export function prepareEnqueueItems(database: Database) {
  // A sink without a cursor stands at 0.
  const moveCursor = database.prepare(
    `INSERT INTO reader_cursor (reader, position, moved_at_us)
     SELECT @reader, @upTo, @atUs
     WHERE @after = coalesce((SELECT position FROM reader_cursor WHERE reader = @reader), 0)
     ON CONFLICT (reader) DO UPDATE SET
       position = excluded.position, moved_at_us = excluded.moved_at_us`,
  );
  const moveReplay = database.prepare(
    `UPDATE sink_replay SET position = @upTo, ended_at_us = iif(@upTo >= last_position, @atUs, NULL)
     WHERE id = @replayId AND sink = @sink AND position = @after AND ended_at_us IS NULL`,
  );
  const insert = database.prepare(
    `INSERT INTO sink_item (sink, stream, position, product_id, state, attempts, due_at_us,
       queued_at_us)
     VALUES (@sink, @stream, @position, @productId, 'waiting', 0, @atUs, @atUs)`,
  );
  return ({ sink, replayId, after, upTo, items, atUs }: EnqueueItemsOptions): boolean => {
    if (upTo < after || items.some(({ position }) => position <= after || position > upTo)) {
      throw new AppError('invalid', 'Items were to be queued from outside the part that was read.');
    }
    const moved =
      replayId === null
        ? moveCursor.run({ reader: sinkReader(sink), after, upTo, atUs })
        : moveReplay.run({ replayId, sink, after, upTo, atUs });
    if (moved.changes === 0) return false;
    const stream = replayId ?? 0;
    for (const { position, productId } of items) {
      insert.run({ sink, stream, position, productId, atUs });
    }
    return true;
  };
}

export function prepareAddReplay(database: Database) {
  const insert = database.prepare<[object], Replay>(
    `INSERT INTO sink_replay (sink, filter, since_us, until_us, position, last_position,
       requested_at_us, ended_at_us)
     VALUES (@sink, @filter, @sinceUs, @untilUs, @afterPosition, @lastPosition, @requestedAtUs,
       iif(@afterPosition >= @lastPosition, @requestedAtUs, NULL))
     RETURNING ${replayColumns}`,
  );
  const findSame = prepareSameReplay(database);
  return (replay: AddReplayOptions): Replay | undefined => {
    const same = findSame(replay);
    if (same !== undefined) throw unfinishedReplay(same);
    return insert.get(replay);
  };
}
