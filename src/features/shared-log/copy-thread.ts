/** The thread that reads a log: for a checkpoint, or for a copy into a shared log, while the receiver writes it. */
import { hash } from 'node:crypto';
import { AppError } from '../../core/terms/app-error.ts';
import { createBodyReader } from '../../store/bodies/bodies.ts';
import { type Database, openForWriting, prepared } from '../../store/engine/database.ts';
import { serveThread } from '../../store/engine/thread.ts';
import { lastPosition } from '../../store/log/queries.ts';
import { pruneHorizon } from '../../store/pruning/prune-queries.ts';
import { joinCopied, type NodePlace, nodePlace } from './apply-entries.ts';
import { digestOf, encodeEntry, eventName, itemDigest } from './entry.ts';
import type { EncodedContent } from './schema.ts';
import { partsOf, type Row, readStateTables, type TablePart } from './table-parts.ts';

interface Reading {
  database: Database;
  /** Parts of the state tables, while they are read. */
  parts: ReturnType<typeof readStateTables> | undefined;
}

/** An entry of a copy. */
export interface CopiedPart extends EncodedContent {
  keys: ReturnType<typeof keyOf>[];
  /** Position of the last row. */
  lastPosition: number;
}

const operations = {
  place: ({ database }: Reading): NodePlace | null => nodePlace(database),
  /** Identifies the log by its first notification, so that an interrupted copy of it can be repeated. */
  source({ database }: Reading): string {
    const sql =
      'SELECT received_at_us, hex(dedupe_key) FROM notification ORDER BY position LIMIT 1';
    return hash('sha256', JSON.stringify(prepared(database, sql).raw().get() ?? []), 'hex');
  },
  lastPosition: ({ database }: Reading): number => lastPosition(database),
  /** Position up to which notifications were pruned: the shared log may still contain them. */
  prunedTo: ({ database }: Reading): number => pruneHorizon(database)?.position ?? 0,
  /** Returns an entry with the notifications after a position; null when there are none. */
  rows({ database }: Reading, after: number): CopiedPart | null {
    const sql = 'SELECT * FROM notification WHERE position > ? ORDER BY position';
    const rows = prepared<[number], Row>(database, sql).iterate(after);
    const [part] = partsOf(database, 'notification', rows);
    return part === undefined ? null : copiedPart(database, part);
  },
  /** Returns an entry with the next notifications up to a position that may have changed since a time. */
  changed(
    { database }: Reading,
    { after, upTo, sinceUs }: { after: number; upTo: number; sinceUs: number },
  ): CopiedPart | null {
    const rows = prepared<number[], Row>(
      database,
      `SELECT * FROM notification WHERE position > ? AND position <= ? AND last_seen_at_us >= ?
       ORDER BY position LIMIT 1000`,
    ).all(after, upTo, sinceUs);
    const part = { table: 'notification', rows, bodies: [] };
    return rows.length === 0 ? null : copiedPart(database, part);
  },
  /** Returns the entry of a log without notifications. */
  noRows: ({ database }: Reading): CopiedPart =>
    copiedPart(database, { table: 'notification', rows: [], bodies: [] }),
  /** Begins to read all tables as they are now. */
  begin({ database }: Reading): void {
    database.exec('BEGIN');
  },
  /** Stops all writers of the log until `join` or `unlock`. */
  lock({ database }: Reading): void {
    database.exec('BEGIN IMMEDIATE');
  },
  unlock({ database }: Reading): void {
    if (database.inTransaction) database.exec('ROLLBACK');
  },
  /** Returns the next part of the state tables; null after the last one. */
  nextPart(reading: Reading): EncodedContent | null {
    reading.parts ??= readStateTables(reading.database);
    const part = reading.parts.next();
    return part.done ? null : encodeEntry({ kind: 'rows', part: part.value });
  },
  /** Makes the log a node of the shared log. From now on, a receiver without EARSHOT_LOG_URL is refused. */
  join({ database }: Reading, place: NodePlace): void {
    joinCopied(database, place);
    database.exec('COMMIT');
  },
  /** Returns the same as `keysOf` of the shared log. */
  keysOf({ database }: Reading, from: number, to: number): { count: number; digest: string } {
    const rows = prepared<[number, number], string>(
      database,
      `SELECT position || ':' || lower(hex(dedupe_key)) FROM notification
       WHERE position >= ? AND position < ? ORDER BY position`,
    )
      .pluck()
      .all(from, to);
    return { count: rows.length, digest: hash('sha256', rows.join(','), 'hex') };
  },
  /** Makes the node a log of its own. Returns its size, and the last entry that it has applied. */
  leave({ database }: Reading): { notifications: number; entries: number } {
    const place = nodePlace(database);
    if (place === null) {
      throw new AppError('conflict', 'The data directory does not belong to a shared log.');
    }
    if (place.stateFrom > 0) {
      throw new AppError(
        'conflict',
        'This receiver has not yet filled itself from the shared log.',
      );
    }
    const count = prepared(database, 'SELECT count(*) FROM notification').pluck().get();
    database.exec('BEGIN IMMEDIATE; DELETE FROM shared_log; DELETE FROM shared_result; COMMIT');
    return { notifications: Number(count), entries: place.applied };
  },
};

export type CopyOperations = typeof operations;

function copiedPart(database: Database, part: TablePart): CopiedPart {
  const encoded = encodeEntry({ kind: 'rows', part });
  const reader = createBodyReader(database, 'transaction');
  // Selected with all columns of the table.
  const rows = part.rows as unknown as NotificationRow[];
  return {
    ...encoded,
    keys: rows.map((row) => keyOf(row, reader.body(row.body_id))),
    lastPosition: rows.at(-1)?.position ?? 0,
  };
}

interface NotificationRow {
  position: number;
  dedupe_key: Uint8Array;
  ack_id: string | null;
  product_id: string;
  event: string;
  subscription: string | null;
  subscription_id: string | null;
  source: string;
  body_id: number;
  body_index: number;
  event_us: number | null;
  pushed_at_us: number | null;
}

/** Returns what the log decides by about a copied notification. Digests are hexadecimal text. */
function keyOf(row: NotificationRow, body: Uint8Array | undefined) {
  const isCompared = row.ack_id !== null && row.source === 'push' && body !== undefined;
  return {
    position: row.position,
    key: Buffer.from(row.dedupe_key).toString('hex'),
    subscriptionId:
      row.subscription_id === null ? null : digestOf(row.subscription_id.toLowerCase()),
    subscription: row.subscription,
    product: digestOf(row.product_id.toLowerCase()),
    event: eventName(row.event),
    content: isCompared ? itemDigest(body, row.body_index) : null,
    recoveredUs: row.source === 'reconcile' ? row.event_us : null,
    isPushed: row.pushed_at_us !== null,
  };
}

export default serveThread<Reading>((place) => {
  const reading: Reading = { database: openForWriting(place), parts: undefined };
  return { operations, context: () => reading, close: () => reading.database.close() };
});
