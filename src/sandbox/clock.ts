/** Sandbox clock (real time plus an adjustable offset) and repeatable random numbers. */
import { setTimeout as delay } from 'node:timers/promises';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

export type SandboxClock = ReturnType<typeof createSandboxClock>;

// Node's timers overflow at 2^31 ms, so a longer wait is split.
const timerMaxMs = 3_600_000;

/** Creates a clock based on the real one (`now`: ms since 1970). */
export function createSandboxClock({ now: realNow }: { now: () => number }) {
  let moved = new AbortController();
  let offsetMs = 0;
  let latestMs = Number.NEGATIVE_INFINITY;

  const now = () => {
    latestMs = Math.max(latestMs, realNow() + offsetMs);
    return latestMs;
  };

  return {
    /** Returns ms since 1970. Never decreases. */
    now,
    /** Moves the time forward and ends due waits. */
    advance: (ms: number) => {
      offsetMs += ms;
      moved.abort();
      moved = new AbortController();
    },
    /** Waits until a time. Returns false if `signal` was aborted first. */
    waitUntil: async (atMs: number, signal: AbortSignal): Promise<boolean> => {
      while (!signal.aborted && now() < atMs) {
        const waitMs = Math.min(Math.ceil(atMs - now()), timerMaxMs);
        const wake = AbortSignal.any([signal, moved.signal]);
        await delay(waitMs, undefined, { signal: wake }).catch(() => undefined);
      }
      return !signal.aborted;
    },
  };
}

export type Random = ReturnType<typeof createRandom>;

/** Creates a generator. The same seed (a 32-bit integer) gives the same sequence. */
export function createRandom(seed: number) {
  const generator = xoroshiro128plus(seed);
  const next = () => uniformFloat64(generator);
  const integer = (min: number, max: number) => uniformInt(generator, min, max);
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => integer(0, 15).toString(16)).join('');
  return {
    /** Draws a number in [0, 1). */
    next,
    /** Draws an integer in [min, max], both included. */
    integer,
    /** Draws a number in [min, max). */
    between: (min: number, max: number) => min + next() * (max - min),
    /** Returns true with the given probability, 0 to 1. */
    chance: (rate: number) => next() < rate,
    /** Draws one item. Throws RangeError for an empty list. */
    pick: <Item>(items: readonly Item[]): Item => {
      const item = items[integer(0, items.length - 1)];
      if (item === undefined) throw new RangeError('There is nothing to pick.');
      return item;
    },
    /** Draws lower-case hexadecimal text of the given number of digits. */
    hex,
    /** Draws a version 4 UUID. */
    uuid: () => {
      const variant = integer(8, 11).toString(16);
      return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${hex(12)}`;
    },
  };
}
