/** Compacts the log's bodies, a stretch at a time: small rows, and bodies as they came, become full packs. */
import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
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

/** Limits of what one transaction replaces. */
const bodiesMax = 128;
const bytesMax = 2 ** 19;
/** Limit of the unpacked size, exceeded by one row at most. */
const rawBytesMax = 2 ** 20;

/** Measured: 9 takes a tenth of the time and leaves a tenth more; 19 three times as long, for one hundredth. */
const level = 15;

/** The result of one step. */
export interface CompactStep {
  /** Bodies that lie in full packs now, and did not before. */
  bodies: number;
  /** Rows that cannot be read: they stay as they are. */
  unreadable: number;
  /** All bodies before this one are done. */
  nextId: number;
  /** Of the newest body; 0 where there is none. */
  lastId: number;
  isDone: boolean;
}

/** Rows whose bodies follow each other. */
interface Stretch {
  rows: StoredRow[];
  bodies: Buffer[];
  /** What comes next: rows for the next step, a place where bodies are missing or cannot be read, or nothing yet. */
  next: 'rows' | 'gap' | 'nothing';
}

const nothing = { bodies: 0, unreadable: 0, isDone: false };

/**
 * The function does one step, on disk when it returns. It holds the lock for little of its time: bodies never change.
 * Where rows were removed or replaced meanwhile, nothing is written, and the next step does it again.
 */
export function createCompactStep(connection: WriterConnection): () => CompactStep {
  const packFull = createPackFull(level);
  return () => {
    const { rows, isEnd, ...ids } = connection.read(readRows);
    const [first] = rows;
    if (first === undefined) return { ...nothing, ...ids, isDone: true };
    const stretch = readStretch(rows, isEnd);
    const last = stretch.rows.at(-1);
    if (last === undefined) {
      const nextId = idAfter(first);
      connection.transact((database) => moveOn(database, nextId));
      return { ...nothing, ...ids, nextId, unreadable: 1 };
    }
    const packs = repack(stretch.bodies, packFull);
    const nextId = nextIdOf(stretch.next, last, packs);
    const isNew = !isAlike(stretch.rows, packs);
    const isDone = stretch.next === 'nothing';
    if (!isNew && nextId === ids.nextId) return { ...nothing, ...ids, isDone };
    const isStale = connection.transact((database) => {
      if (isNew && !replace(database, stretch.rows, packs)) return true;
      moveOn(database, nextId);
      return false;
    });
    if (isStale) return { ...nothing, ...ids };
    const doneId = isDone ? idAfter(last) : nextId;
    return { ...nothing, ...ids, bodies: isNew ? doneId - first.id : 0, nextId, isDone };
  };
}

/** From the first row on that is not done. */
function readRows(database: Database) {
  const one = (sql: string) => Number(prepared(database, sql).pluck().get());
  const nextId = one('SELECT coalesce(max(next_body_id), 0) FROM compaction');
  const lastId = one(
    'SELECT coalesce((SELECT id + bodies - 1 FROM body ORDER BY id DESC LIMIT 1), 0)',
  );
  const found = prepared<[number], StoredRow>(
    database,
    'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id >= ? ORDER BY id',
  );
  const rows: StoredRow[] = [];
  let bodies = 0;
  let bytes = 0;
  for (const row of found.iterate(nextId)) {
    if (bodies >= bodiesMax || bytes >= bytesMax) return { rows, isEnd: false, nextId, lastId };
    rows.push(row);
    bodies += row.bodies;
    bytes += row.bytes.length;
  }
  return { rows, isEnd: true, nextId, lastId };
}

/** `isEnd` where no rows follow those. The stretch is empty where the first of them cannot be read. */
function readStretch(rows: readonly StoredRow[], isEnd: boolean): Stretch {
  const stretch: Stretch = { rows: [], bodies: [], next: isEnd ? 'nothing' : 'rows' };
  let rawBytes = 0;
  for (const row of rows) {
    if (rawBytes >= rawBytesMax) return { ...stretch, next: 'rows' };
    const last = stretch.rows.at(-1);
    const follows = last === undefined || row.id === idAfter(last);
    const bodies = follows ? readable(row) : null;
    if (bodies === null) return { ...stretch, next: 'gap' };
    stretch.rows.push(row);
    stretch.bodies.push(...bodies);
    rawBytes += bytesOf(bodies);
  }
  return stretch;
}

function readable(row: StoredRow): Buffer[] | null {
  try {
    return unpackBodies(row);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/** All bodies in packs, each compared with what it replaces. All but the last one are full. */
function repack(bodies: readonly Buffer[], packFull: PackFull): BodyRow[] {
  const packs: BodyRow[] = [];
  for (let start = 0; start < bodies.length; ) {
    for (const row of packFull(bodies.slice(start))) {
      const [was, is] = [bodies.slice(start, start + row.bodies), unpackBodies(row)];
      if (was.length !== is.length || !was.every((body, i) => is[i]?.equals(body))) {
        throw new Error('A pack does not hold what was packed. Nothing was changed.');
      }
      start += row.bodies;
      packs.push(row);
    }
  }
  return packs;
}

/** The body to resume with: a pack that is not full yet is read again, together with what follows it. */
function nextIdOf(next: Stretch['next'], last: StoredRow, packs: readonly BodyRow[]): number {
  const isOver = next === 'gap' || (next === 'rows' && packs.length === 1);
  return isOver ? idAfter(last) : idAfter(last) - (packs.at(-1)?.bodies ?? 0);
}

/** False where the rows are no longer what they were. */
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

function moveOn(database: Database, nextId: number): void {
  prepared(database, 'INSERT OR REPLACE INTO compaction VALUES (1, ?)').run(nextId);
}

/** Cut at the same places: what little another level would gain is not worth the writing. */
function isAlike(rows: readonly BodyRow[], packs: readonly BodyRow[]): boolean {
  const shape = (all: readonly BodyRow[]) =>
    all.map(({ encoding, bodies }) => `${encoding} ${bodies}`).join();
  return shape(rows) === shape(packs);
}

function idAfter({ id, bodies }: StoredRow): number {
  return id + bodies;
}

/**
 * Two rows of this size fill a page of 16 KiB, each with some 20 bytes of SQLite's own. What is a little larger has
 * a page for itself, which costs more than any level of compression gains.
 */
const rowBytesMax = 8_160;
/** A row that is fuller than this is full enough. */
const rowBytesMin = 0.9 * rowBytesMax;
/** The size aimed at: packs of equal length differ by some hundredths once they are compressed. */
const rowBytesAim = 0.96 * rowBytesMax;
const triesMax = 4;

/** Packs bodies that follow each other, the first of them and as many more as fill a row. */
export type PackFull = (bodies: readonly Uint8Array[]) => BodyRow[];

/** Bodies that cannot be compressed become rows of one body each. */
export function createPackFull(level: number): PackFull {
  // Of the pack before: what comes next is mostly like it.
  let bytesPerRaw = 0.1;
  return (bodies) => {
    const most = countWithin(bodies.slice(0, packBodiesMax), packRawBytesMax);
    let count = Math.min(most, countWithin(bodies, rowBytesAim / bytesPerRaw));
    let best: BodyRow[] = [];
    // While nothing fits yet, it tries with fewer each time.
    for (let tries = 0; tries < triesMax || best.length === 0; tries += 1) {
      const some = bodies.slice(0, count);
      const rows = packBodies(some, level);
      const bytes = rows[0]?.bytes.length ?? 0;
      if (rows.length > 1 || count === 1) return rows;
      bytesPerRaw = bytes / bytesOf(some);
      const fits = bytes <= rowBytesMax;
      if (fits) best = rows;
      if (fits ? bytes >= rowBytesMin || count === most : best.length > 0) break;
      const aim = Math.round((count * rowBytesAim) / bytes);
      count = fits
        ? Math.min(most, Math.max(aim, count + 1))
        : Math.max(1, Math.min(aim, count - 1));
    }
    return best;
  };
}

/** How many of the first fit; one at least. */
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
