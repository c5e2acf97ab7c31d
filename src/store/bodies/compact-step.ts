/** Compacts a range of bodies per step: the small packs of intake become full packs. */
import type { Database } from 'better-sqlite3';
import { isAppError } from '../../core/terms/app-error.ts';
import { prepared } from '../engine/database.ts';
import type { WriterConnection } from '../engine/writer-connection.ts';
import {
  type BodyRow,
  insertBodies,
  packBodies,
  packBodiesMax,
  packRawBytesMax,
  type StoredRow,
  unpackBodies,
} from './bodies.ts';

/** Limits of one transaction. */
const bodiesMax = 128;
const bytesMax = 2 ** 19;
/** Limit of the unpacked size; exceeded by at most one row. */
const rawBytesMax = 2 ** 20;

/** Measured: level 9 takes 10 % of the time for 10 % more bytes; 19 takes three times as long for 1 % less. */
const level = 15;

/** Result of a step. */
export interface CompactStep {
  /** Bodies moved into full packs. */
  bodies: number;
  /** Unreadable rows: they stay unchanged. */
  unreadable: number;
  isDone: boolean;
}

/** Rows with consecutive bodies. */
interface Range {
  rows: StoredRow[];
  bodies: Buffer[];
  /** Data after the range: rows for the next step, missing or unreadable bodies (`gap`), or nothing. */
  next: 'rows' | 'gap' | 'nothing';
}

const emptyStep = { bodies: 0, unreadable: 0, isDone: false };

/**
 * Returns a function that does one step, which is on disk on return. Only its writes hold the lock: bodies never change.
 * When rows were removed or replaced since they were read, nothing is written, and the next step repeats the work.
 */
export function createCompactStep(connection: WriterConnection): () => CompactStep {
  const packRow = createRowPacker(level);
  return () => {
    const { rows, isEnd, nextId: savedId } = connection.read(readRows);
    const [first] = rows;
    if (first === undefined) return { ...emptyStep, isDone: true };
    const range = readRange(rows, isEnd);
    const last = range.rows.at(-1);
    if (last === undefined) {
      connection.transact((database) => saveProgress(database, idAfter(first)));
      return { ...emptyStep, unreadable: 1 };
    }
    const packs = repack(range.bodies, packRow);
    const nextId = nextIdOf(range.next, last, packs);
    const isNew = !hasSameShape(range.rows, packs);
    const isDone = range.next === 'nothing';
    if (!isNew && nextId === savedId) return { ...emptyStep, isDone };
    const isStale = connection.transact((database) => {
      if (isNew && !replace(database, range.rows, packs)) return true;
      saveProgress(database, nextId);
      return false;
    });
    if (isStale) return emptyStep;
    const doneId = isDone ? idAfter(last) : nextId;
    return { ...emptyStep, bodies: isNew ? doneId - first.id : 0, isDone };
  };
}

/** Reads rows from the first one that is not done: that of the body `nextId`. */
function readRows(database: Database) {
  const progressSql = 'SELECT coalesce(max(next_body_id), 0) FROM compaction';
  const nextId = Number(prepared(database, progressSql).pluck().get());
  const found = prepared<[number], StoredRow>(
    database,
    'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id >= ? ORDER BY id',
  );
  const rows: StoredRow[] = [];
  let bodies = 0;
  let bytes = 0;
  for (const row of found.iterate(nextId)) {
    if (bodies >= bodiesMax || bytes >= bytesMax) return { rows, isEnd: false, nextId };
    rows.push(row);
    bodies += row.bodies;
    bytes += row.bytes.length;
  }
  return { rows, isEnd: true, nextId };
}

/** Unpacks consecutive rows; `isEnd` when no rows follow. The range is empty when the first row is unreadable. */
function readRange(rows: readonly StoredRow[], isEnd: boolean): Range {
  const range: Range = { rows: [], bodies: [], next: isEnd ? 'nothing' : 'rows' };
  let rawBytes = 0;
  for (const row of rows) {
    if (rawBytes >= rawBytesMax) return { ...range, next: 'rows' };
    const last = range.rows.at(-1);
    const follows = last === undefined || row.id === idAfter(last);
    const bodies = follows ? readable(row) : null;
    if (bodies === null) return { ...range, next: 'gap' };
    range.rows.push(row);
    range.bodies.push(...bodies);
    rawBytes += bytesOf(bodies);
  }
  return range;
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

/** Returns the id of the body to resume with. A pack that is not full is read again with the rows after it. */
function nextIdOf(next: Range['next'], last: StoredRow, packs: readonly BodyRow[]): number {
  const isEnd = next === 'gap' || (next === 'rows' && packs.length === 1);
  return isEnd ? idAfter(last) : idAfter(last) - (packs.at(-1)?.bodies ?? 0);
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

/** Returns true when the packs have the same boundaries: another compression level alone is not worth the writes. */
function hasSameShape(rows: readonly BodyRow[], packs: readonly BodyRow[]): boolean {
  const shape = (all: readonly BodyRow[]) =>
    all.map(({ encoding, bodies }) => `${encoding} ${bodies}`).join();
  return shape(rows) === shape(packs);
}

function idAfter({ id, bodies }: StoredRow): number {
  return id + bodies;
}

/**
 * Maximum row size. Two such rows fill a page of 16 KiB, each with about 20 bytes of SQLite overhead. A slightly larger
 * row uses a whole page, which costs more than any compression level saves.
 */
const rowBytesMax = 8_160;
/** Minimum size of a full row. */
const rowBytesMin = 0.9 * rowBytesMax;
/** Target size: the compressed size of equal packs varies by a few percent. */
const rowBytesTarget = 0.96 * rowBytesMax;
const attemptsMax = 4;

/** Packs as many of the first bodies as fill a row. */
export type RowPacker = (bodies: readonly Uint8Array[]) => BodyRow[];

/** Creates a packer. Bodies that cannot be compressed become rows with one body each. */
export function createRowPacker(level: number): RowPacker {
  // Ratio of the previous pack: the next one is usually similar.
  let bytesPerRaw = 0.1;
  return (bodies) => {
    const countMax = countWithin(bodies.slice(0, packBodiesMax), packRawBytesMax);
    let count = Math.min(countMax, countWithin(bodies, rowBytesTarget / bytesPerRaw));
    let best: BodyRow[] = [];
    // Until a pack fits, each attempt has fewer bodies.
    for (let attempts = 0; attempts < attemptsMax || best.length === 0; attempts += 1) {
      const some = bodies.slice(0, count);
      const rows = packBodies(some, level);
      const bytes = rows[0]?.bytes.length ?? 0;
      if (rows.length > 1 || count === 1) return rows;
      bytesPerRaw = bytes / bytesOf(some);
      const fits = bytes <= rowBytesMax;
      if (fits) best = rows;
      if (fits ? bytes >= rowBytesMin || count === countMax : best.length > 0) break;
      const target = Math.round((count * rowBytesTarget) / bytes);
      count = fits
        ? Math.min(countMax, Math.max(target, count + 1))
        : Math.max(1, Math.min(target, count - 1));
    }
    return best;
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

function bytesOf(bodies: readonly Uint8Array[]): number {
  return bodies.reduce((sum, { length }) => sum + length, 0);
}
