/** The smallest, middle and largest of many numbers, in bounded memory. */

/** Null smallest, middle and largest do not exist: there is a range only where there is a number. */
export interface Range {
  /** How many numbers there were. */
  count: number;
  min: number;
  /** Of an even number of values the lower middle one, so that it is a value that occurred. */
  median: number;
  max: number;
  /** Whether the median is that of a sample. */
  isSampled: boolean;
}

export interface ValueSample {
  /** The key, such as a product's id, decides alone whether the value is in the sample. */
  add(key: string, value: number): void;
  range(): Range | null;
}

/** Past this level a sample that is still too large was made to be so, and takes no more. */
const levelMax = 30;

/**
 * Keeps all values until they are more than `keptMax`; from then on those of every second key, then of every
 * fourth, and so on. Which keys these are depends on the keys alone, so that the same values in any order
 * give the same median.
 */
export function createValueSample(keptMax: number): ValueSample {
  let kept: { hash: number; value: number }[] = [];
  let level = 0;
  let count = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  const isChosen = ({ hash }: { hash: number }) => (hash & (2 ** level - 1)) === 0;
  return {
    add: (key, value) => {
      count += 1;
      min = Math.min(min, value);
      max = Math.max(max, value);
      const item = { hash: hashOf(key), value };
      if (!isChosen(item) || (level === levelMax && kept.length >= keptMax)) return;
      kept.push(item);
      while (kept.length > keptMax && level < levelMax) {
        level += 1;
        kept = kept.filter(isChosen);
      }
    },
    range: () => {
      if (count === 0) return null;
      const values = kept.map(({ value }) => value).toSorted((a, b) => a - b);
      // Of very few chosen keys none may be left; then the smallest stands for all.
      const median = values[Math.floor((values.length - 1) / 2)] ?? min;
      return { count, min, median, max, isSampled: level > 0 };
    },
  };
}

/** FNV-1a with a final mix, 32 bits: similar keys come out far apart (Fowler, Noll, Vo; MurmurHash3). */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
