/** Cuts bodies into packs that leave little room in the pages of the file. */
import { type BodyRow, packBodies, packBodiesMax, packRawBytesMax } from './body-codec.ts';

/**
 * Two rows of this size fill a page of 16 KiB, each with some 20 bytes of SQLite's own. What is a little larger has
 * a page for itself, which costs more than any level of compression gains.
 */
const rowBytesMax = 8_160;
/** What is fuller than this is full enough. */
const rowBytesMin = 0.9 * rowBytesMax;
/** What is tried: packs of equal length differ by some hundredths once they are compressed. */
const rowBytesAim = 0.96 * rowBytesMax;
const triesMax = 4;

/** The function packs bodies that follow each other, the first of them and as many more as fill a row. */
export type PackFull = (bodies: readonly Uint8Array[]) => BodyRow[];

/** What cannot be compressed is handed out as rows of one body each. */
export function createPackFull(level: number): PackFull {
  // Of the pack before: what comes next is mostly like it.
  let bytesPerRaw = 0.1;
  return (bodies) => {
    const most = countWithin(bodies.slice(0, packBodiesMax), packRawBytesMax);
    let count = Math.min(most, countWithin(bodies, rowBytesAim / bytesPerRaw));
    let best: BodyRow[] = [];
    // Nothing that fits yet: then it goes on, with fewer each time.
    for (let tries = 0; tries < triesMax || best.length === 0; tries += 1) {
      const taken = bodies.slice(0, count);
      const rows = packBodies(taken, level);
      const bytes = rows[0]?.bytes.length ?? 0;
      if (rows.length > 1 || count === 1) return rows;
      bytesPerRaw = bytes / rawBytesOf(taken);
      const fits = bytes <= rowBytesMax;
      if (fits) best = rows;
      if (fits ? bytes >= rowBytesMin || count === most : best.length > 0) break;
      const wanted = Math.round((count * rowBytesAim) / bytes);
      count = fits
        ? Math.min(most, Math.max(wanted, count + 1))
        : Math.max(1, Math.min(wanted, count - 1));
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

function rawBytesOf(bodies: readonly Uint8Array[]): number {
  return bodies.reduce((sum, { length }) => sum + length, 0);
}
