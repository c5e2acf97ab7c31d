/** The compaction thread: the small packs of intake become full packs, in short steps. Intake has priority. */
import { isAppError } from '../../core/terms/app-error.ts';
import { type Database, prepared } from '../engine/database.ts';
import { type DataPlace, requireFreeSpace } from '../engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../engine/thread.ts';
import { createWriterConnection, type WriterConnection } from '../engine/writer-connection.ts';
import { releaseFreePages } from '../pruning/prune-writer.ts';
import {
  type BodyRow,
  insertBodies,
  packBodies,
  packBodiesMax,
  packRawBytesMax,
  type StoredRow,
  unpackBodies,
} from './bodies.ts';

/** Limits of one step. */
const bodiesMax = 128;
const bytesMax = 2 ** 19;

/** Measured: level 9 takes 10 % of the time for 10 % more bytes; 19 takes three times as long for 1 % less. */
const level = 15;

/** Result of a step. */
export interface CompactStep {
  /** Bodies moved into full packs. */
  bodies: number;
  /** Unreadable rows: they stay unchanged. */
  unreadable: number;
  /** Bytes by which the file becomes smaller. */
  givenBackBytes: number;
  isDone: boolean;
}

const none: CompactStep = { bodies: 0, unreadable: 0, givenBackBytes: 0, isDone: false };

/**
 * Does one step from the saved place, which is on disk on return. Only its writes hold the lock: bodies never change.
 * When rows were removed or replaced since they were read, nothing is written, and the next step repeats the work.
 */
export function compactStep(connection: WriterConnection, packRow: RowPacker): CompactStep {
  const { rows, isEnd, savedId } = connection.read(readRows);
  const [first] = rows;
  if (first === undefined) return { ...none, isDone: true };
  const bodies = rows.map(readable);
  const gap = rows.findIndex(
    (row, i) => bodies[i] === null || (i > 0 && row.id !== idAfter(rows[i - 1])),
  );
  const range = gap === -1 ? rows : rows.slice(0, gap);
  const last = range.at(-1);
  if (last === undefined) {
    connection.transact((database) => saveProgress(database, idAfter(first)));
    return { ...none, unreadable: 1 };
  }
  const packs = repack(
    bodies.slice(0, range.length).flatMap((some) => some ?? []),
    packRow,
  );
  const isDone = isEnd && gap === -1;
  // The last pack is not full: it is read again with the rows after it.
  const isFinal = gap !== -1 || (!isEnd && packs.length === 1);
  const nextId = idAfter(last) - (isFinal ? 0 : (packs.at(-1)?.bodies ?? 0));
  // Another compression level alone is not worth the writes.
  const isNew = shapeOf(range) !== shapeOf(packs);
  if (!isNew && nextId === savedId) return { ...none, isDone };
  const isWritten = connection.transact((database) => {
    if (isNew && !replace(database, range, packs)) return false;
    saveProgress(database, nextId);
    return true;
  });
  if (!isWritten) return none;
  return { ...none, bodies: isNew ? (isDone ? idAfter(last) : nextId) - first.id : 0, isDone };
}

/** Reads rows from the first one that is not done: that of the body `savedId`. */
function readRows(database: Database) {
  const progressSql = 'SELECT coalesce(max(next_body_id), 0) FROM compaction';
  const savedId = Number(prepared(database, progressSql).pluck().get());
  const found = prepared<[number], StoredRow>(
    database,
    'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id >= ? ORDER BY id',
  );
  const rows: StoredRow[] = [];
  let bodies = 0;
  let bytes = 0;
  for (const row of found.iterate(savedId)) {
    if (bodies >= bodiesMax || bytes >= bytesMax) return { rows, isEnd: false, savedId };
    rows.push(row);
    bodies += row.bodies;
    bytes += row.bytes.length;
  }
  return { rows, isEnd: true, savedId };
}

function readable(row: StoredRow): Buffer[] | null {
  try {
    return unpackBodies(row);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/** Packs all bodies and compares each pack with the original bodies. All packs except the last are full. */
function repack(bodies: readonly Buffer[], packRow: RowPacker): BodyRow[] {
  const packs: BodyRow[] = [];
  for (let start = 0; start < bodies.length; ) {
    for (const row of packRow(bodies.slice(start))) {
      const [before, after] = [bodies.slice(start, start + row.bodies), unpackBodies(row)];
      if (before.length !== after.length || !before.every((body, i) => after[i]?.equals(body))) {
        throw new Error('A new pack differs from its bodies. Nothing was changed.');
      }
      start += row.bodies;
      packs.push(row);
    }
  }
  return packs;
}

/** Replaces rows; returns false when they have changed since they were read. */
function replace(
  database: Database,
  rows: readonly StoredRow[],
  packs: readonly BodyRow[],
): boolean {
  const range = [rows[0]?.id ?? 0, rows.at(-1)?.id];
  const current = prepared<unknown[], StoredRow>(
    database,
    'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id BETWEEN ? AND ?',
  ).all(...range);
  const isSame = rows.every(
    ({ id, bytes }, i) => current[i]?.id === id && current[i].bytes.equals(bytes),
  );
  if (!isSame || current.length !== rows.length) return false;
  prepared(database, 'DELETE FROM body WHERE id BETWEEN ? AND ?').run(...range);
  insertBodies(database, rows[0]?.id ?? 0, packs);
  return true;
}

function saveProgress(database: Database, nextId: number): void {
  prepared(database, 'INSERT OR REPLACE INTO compaction VALUES (1, ?)').run(nextId);
}

/** Returns the boundaries of packs. */
const shapeOf = (rows: readonly BodyRow[]) =>
  rows.map(({ encoding, bodies }) => `${encoding} ${bodies}`).join();

const idAfter = (row: StoredRow | undefined): number =>
  row === undefined ? 0 : row.id + row.bodies;

/**
 * Maximum row size. Such a row fills a page of 8 KiB. A slightly larger one uses a second page, which costs more than any
 * compression level saves.
 */
const rowBytesMax = 8_140;
/** Target size: the compressed size of equal packs varies by a few percent, and a pack that is too large is packed again. */
const rowBytesTarget = 0.98 * rowBytesMax;

/** Packs as many of the first bodies as fill a row. */
export type RowPacker = (bodies: readonly Uint8Array[]) => BodyRow[];

/** Creates a packer. Bodies that cannot be compressed become rows with one body each. */
export function createRowPacker(level: number): RowPacker {
  // Ratio of the previous pack: the next one is usually similar.
  let bytesPerRaw = 0;
  return (bodies) => {
    const rawBytesMax = Math.min(packRawBytesMax, rowBytesTarget / bytesPerRaw);
    let count = countWithin(bodies.slice(0, packBodiesMax), rawBytesMax);
    for (;;) {
      const some = bodies.slice(0, count);
      const rows = packBodies(some, level);
      const bytes = rows[0]?.bytes.length ?? 0;
      if (rows.length > 1 || count === 1) return rows;
      bytesPerRaw = bytes / some.reduce((sum, { length }) => sum + length, 0);
      if (bytes <= rowBytesMax) return rows;
      count = Math.max(1, Math.min(count - 1, Math.round((count * rowBytesTarget) / bytes)));
    }
  };
}

/** Returns how many of the first bodies fit; at least 1. */
function countWithin(bodies: readonly Uint8Array[], rawBytesMax: number): number {
  let rawBytes = 0;
  const end = bodies.findIndex(({ length }) => {
    rawBytes += length;
    return rawBytes > rawBytesMax;
  });
  return end === -1 ? bodies.length : Math.max(1, end);
}

interface Context {
  place: DataPlace;
  connection: WriterConnection;
  packRow: RowPacker;
}

const operations = {
  /** Compacts some bodies or, when all are compact, releases free pages. `freeShare` of the file may stay free. */
  step({ place, connection, packRow }: Context, freeShare: number): CompactStep {
    requireFreeSpace(place, 'Compacting');
    const compacted = compactStep(connection, packRow);
    if (!compacted.isDone) return compacted;
    const { removed, next } = connection.transact((database) =>
      releaseFreePages(database, freeShare),
    );
    if (next === null) connection.checkpoint();
    return { ...compacted, givenBackBytes: removed, isDone: next === null };
  },
};
export type CompactOperations = typeof operations;

export default serveThread((place) => {
  lowerPriority();
  const connection = createWriterConnection(place);
  const context = { place, connection, packRow: createRowPacker(level) };
  return { operations, context: () => context, close: () => connection.close() };
});
