/** A stretch of the log's bodies, and the rows that are to take the place of those it lies in. */
import { isAppError } from '../../domain/app-error.ts';
import { type BodyRow, type StoredRow, unpackBodies } from './body-codec.ts';
import type { PackFull } from './pack-full.ts';

/** Rows whose bodies follow each other. */
export interface Stretch {
  rows: StoredRow[];
  bodies: Buffer[];
  /** What comes next: rows for the next step, a place where bodies are missing or cannot be read, or nothing yet. */
  next: 'rows' | 'gap' | 'nothing';
}

/** Unpacked, they take up so much and what is in one row. */
const rawBytesMax = 2 ** 20;

/** `isEnd` where no rows follow those. The stretch is empty where the first of them cannot be read. */
export function readStretch(rows: readonly StoredRow[], isEnd: boolean): Stretch {
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
    rawBytes += bodies.reduce((sum, { length }) => sum + length, 0);
  }
  return stretch;
}

/** Every body of the stretch in packs, each compared with what it is to replace. All but the last one are full. */
export function repack({ bodies }: Stretch, packFull: PackFull): BodyRow[] {
  const packs: BodyRow[] = [];
  for (let start = 0; start < bodies.length; ) {
    const packed = packFull(bodies.slice(start));
    for (const row of packed) {
      requireSame(unpackBodies(row), bodies.slice(start, start + row.bodies));
      start += row.bodies;
    }
    packs.push(...packed);
  }
  return packs;
}

/** The body to go on with: what is not full yet is looked at again, together with what follows it. */
export function nextIdOf({ rows, next }: Stretch, packs: readonly BodyRow[]): number {
  const [last, lastPack] = [rows.at(-1), packs.at(-1)];
  if (last === undefined || lastPack === undefined) throw new Error('The stretch is empty.');
  const isOver = next === 'gap' || (next === 'rows' && packs.length === 1);
  return isOver ? idAfter(last) : idAfter(last) - lastPack.bodies;
}

export function idAfter({ id, bodies }: StoredRow): number {
  return id + bodies;
}

function readable(row: StoredRow): Buffer[] | null {
  try {
    return unpackBodies(row);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function requireSame(unpacked: readonly Buffer[], bodies: readonly Buffer[]): void {
  const isSame =
    unpacked.length === bodies.length && unpacked.every((one, i) => bodies[i]?.equals(one));
  if (!isSame) throw new Error('A pack does not hold what was packed. Nothing was changed.');
}
