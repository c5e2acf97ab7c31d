/** The sandbox's time, the real one plus an offset that can be moved forward, and its repeatable chance. */
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

export type SandboxClock = ReturnType<typeof createSandboxClock>;

// Node's timers overflow beyond 2^31 ms; a longer wait is cut into pieces.
const timerMaxMs = 3_600_000;

/** Creates a clock over the real one (`now`: ms since 1970). */
export function createSandboxClock({ now: realNow }: { now: () => number }) {
  const waiting = new Set<() => void>();
  let offsetMs = 0;
  let latestMs = Number.NEGATIVE_INFINITY;

  const now = () => {
    latestMs = Math.max(latestMs, realNow() + offsetMs);
    return latestMs;
  };

  return {
    /** Returns ms since 1970, never smaller than before. */
    now,
    /** Returns how far the sandbox is ahead of the real time, in ms. */
    offsetMs: () => offsetMs,
    /** Moves the time forward and ends the waits that are due. Throws RangeError for a negative or broken number. */
    advance: (ms: number) => {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new RangeError(`The clock only moves forward, by 0 ms or more, not by ${ms}.`);
      }
      offsetMs += ms;
      for (const check of [...waiting]) check();
    },
    /** Waits for a moment; false when `signal` was aborted before it came. */
    waitUntil: (atMs: number, signal: AbortSignal): Promise<boolean> => {
      if (signal.aborted) return Promise.resolve(false);
      if (now() >= atMs) return Promise.resolve(true);
      return new Promise((resolve) => {
        let timer: NodeJS.Timeout | undefined;
        const finish = (reached: boolean) => {
          clearTimeout(timer);
          waiting.delete(check);
          signal.removeEventListener('abort', cancel);
          resolve(reached);
        };
        const check = () => {
          clearTimeout(timer);
          const remainingMs = atMs - now();
          if (remainingMs <= 0) finish(true);
          else timer = setTimeout(check, Math.min(Math.ceil(remainingMs), timerMaxMs));
        };
        const cancel = () => finish(false);
        waiting.add(check);
        signal.addEventListener('abort', cancel);
        check();
      });
    },
  };
}

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
