/** Compacts the log's bodies, a stretch at a time: small rows, and bodies as they came, become full packs. */
import type { Database } from 'better-sqlite3';
import type { WriterConnection } from '../engine/writer-connection.ts';
import type { BodyRow, StoredRow } from './body-codec.ts';
import { idAfter, nextIdOf, readStretch, repack } from './compact-stretch.ts';
import { createPackFull } from './pack-full.ts';

/** What one transaction replaces at the most. */
const bodiesMax = 128;
const bytesMax = 2 ** 19;

/** Measured: 9 takes a tenth of the time and leaves a tenth more; 19 three times as long, for one hundredth. */
const level = 15;

/** What one step did. */
export interface CompactStep {
  /** Bodies that lie in full packs now, and did not before. */
  bodies: number;
  /** Rows that cannot be read: they stay as they are. */
  unreadable: number;
  /** What comes before this body is done. */
  nextId: number;
  /** Of the newest body; 0 where there is none. */
  lastId: number;
  isDone: boolean;
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
    const packs = repack(stretch, packFull);
    const nextId = nextIdOf(stretch, packs);
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
  const nextId = Number(
    database.prepare('SELECT coalesce(max(next_body_id), 0) FROM compaction').pluck().get(),
  );
  const lastId = Number(
    database
      .prepare('SELECT coalesce((SELECT id + bodies - 1 FROM body ORDER BY id DESC LIMIT 1), 0)')
      .pluck()
      .get(),
  );
  const found = database.prepare<[number], StoredRow>(
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

/** False where the rows are no longer what they were. */
function replace(
  database: Database,
  rows: readonly StoredRow[],
  packs: readonly BodyRow[],
): boolean {
  const range = [rows[0]?.id, rows.at(-1)?.id];
  const current = database
    .prepare<unknown[], StoredRow>(
      'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id BETWEEN ? AND ?',
    )
    .all(...range);
  const isSame = rows.every(
    ({ id, bytes }, i) => current[i]?.id === id && current[i].bytes.equals(bytes),
  );
  if (!isSame || current.length !== rows.length) return false;
  database.prepare('DELETE FROM body WHERE id BETWEEN ? AND ?').run(...range);
  const insert = database.prepare(
    'INSERT INTO body (id, encoding, packed, bodies) VALUES (?, ?, ?, ?)',
  );
  let id = rows[0]?.id ?? 0;
  for (const { encoding, bytes, bodies } of packs) {
    insert.run(id, encoding, bytes, bodies);
    id += bodies;
  }
  return true;
}

function moveOn(database: Database, nextId: number): void {
  database.prepare('INSERT OR REPLACE INTO compaction VALUES (1, ?)').run(nextId);
}

/** Cut at the same places: what little another level would gain is not worth the writing. */
function isAlike(rows: readonly BodyRow[], packs: readonly BodyRow[]): boolean {
  const shape = ({ encoding, bodies }: BodyRow) => `${encoding} ${bodies}`;
  return (
    rows.length === packs.length && rows.every((row, i) => shape(row) === shape(packs[i] ?? row))
  );
}
