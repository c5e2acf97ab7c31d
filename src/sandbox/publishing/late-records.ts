/** Records that the lists do not show yet, although their products are published. */
import type { HeldProduct } from './record-archive.ts';

export interface LateRecords {
  /** Puts off a record, or the newer state of one, until a moment (ms since 1970). */
  put(key: string, held: HeldProduct, shownFromMs: number): void;
  /** Forgets a record: its product is deleted. */
  remove(key: string): void;
  /** Takes out what is to be shown by now, in the order of its moments. */
  takeDue(nowMs: number): [key: string, held: HeldProduct][];
}

interface Late {
  readonly held: HeldProduct;
  readonly shownFromMs: number;
}

/** Creates an empty collection. */
export function createLateRecords(): LateRecords {
  const late = new Map<string, Late>();
  // Spares a look at all of them each time.
  let nextMs = Number.POSITIVE_INFINITY;
  return {
    put: (key, held, shownFromMs) => {
      late.set(key, { held, shownFromMs });
      nextMs = Math.min(nextMs, shownFromMs);
    },
    remove: (key) => void late.delete(key),
    takeDue: (nowMs) => {
      if (nowMs < nextMs) return [];
      const due = [...late]
        .filter(([, { shownFromMs }]) => shownFromMs <= nowMs)
        .sort(([, one], [, other]) => one.shownFromMs - other.shownFromMs);
      for (const [key] of due) late.delete(key);
      nextMs = Number.POSITIVE_INFINITY;
      for (const { shownFromMs } of late.values()) nextMs = Math.min(nextMs, shownFromMs);
      return due.map(([key, { held }]) => [key, held]);
    },
  };
}
