/** Draws from tables: entries by weight, places on an orbit from the arcs that are acquired. */
import type { Random } from '../random.ts';

/** A table with at least one entry. */
export type Table<Entry> = readonly [Entry, ...Entry[]];

/** A stretch of the orbit, degrees from the ascending node. */
export type Arc = readonly [fromDegrees: number, toDegrees: number];

/** One entry, each as likely as its weight says in relation to the others. */
export function pickWeighted<Entry extends { readonly weight: number }>(
  random: Random,
  table: Table<Entry>,
): Entry {
  let left = random.next() * table.reduce((sum, { weight }) => sum + weight, 0);
  for (const entry of table) {
    left -= entry.weight;
    if (left < 0) return entry;
  }
  return table[0];
}

/** An argument of latitude within one of the arcs, degrees from the ascending node. */
export function drawArgumentDegrees(random: Random, arcs: Table<Arc>): number {
  return random.between(...random.pick(arcs));
}
