/** Seeded randomness: the same seed publishes the same products and the same faults. */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

export type Random = ReturnType<typeof createRandom>;

/** Creates a generator that always gives the same sequence for the same seed (a 32-bit integer). */
export function createRandom(seed: number) {
  const generator = xoroshiro128plus(seed);
  const next = () => uniformFloat64(generator);
  const integer = (min: number, max: number) => uniformInt(generator, min, max);
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => integer(0, 15).toString(16)).join('');
  return {
    /** Draws a number in [0, 1). */
    next,
    /** Draws a whole number in [min, max], both included. */
    integer,
    /** Draws a number in [min, max). */
    between: (min: number, max: number) => min + next() * (max - min),
    /** Returns true with the given probability, 0 to 1. */
    chance: (rate: number) => next() < rate,
    /** Draws one item of a list that is not empty. */
    pick: <Item>(items: readonly [Item, ...Item[]]): Item =>
      items[integer(0, items.length - 1)] ?? items[0],
    /** Draws lower-case hexadecimal text of the given number of digits. */
    hex,
    /** Draws a version 4 UUID. */
    uuid: () => {
      const variant = integer(8, 11).toString(16);
      return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
    },
  };
}
