/** Seeded randomness: the same seed publishes the same products and the same faults. */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number in [min, max], both included. */
  integer(min: number, max: number): number;
  /** A number in [min, max). */
  between(min: number, max: number): number;
  /** True with the given probability, 0 to 1. */
  chance(rate: number): boolean;
  /** One item of a list that is not empty. */
  pick<T>(items: readonly [T, ...T[]]): T;
  /** Lower-case hexadecimal text of the given number of digits. */
  hex(digits: number): string;
  /** A version 4 UUID. */
  uuid(): string;
}

/** Creates a generator that always gives the same sequence for the same seed (a 32-bit integer). */
export function createRandom(seed: number): Random {
  const generator = xoroshiro128plus(seed);
  const next = () => uniformFloat64(generator);
  const integer = (min: number, max: number) => uniformInt(generator, min, max);
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => integer(0, 15).toString(16)).join('');
  return {
    next,
    integer,
    between: (min, max) => min + next() * (max - min),
    chance: (rate) => next() < rate,
    pick: (items) => items[integer(0, items.length - 1)] ?? items[0],
    hex,
    uuid: () => {
      const variant = integer(8, 11).toString(16);
      return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
    },
  };
}
