/** The smallest, middle and largest of many numbers, in bounded memory. */

/** Null smallest, middle and largest do not exist: there is a range only where there is a number. */
export interface Range {
  /** How many numbers there were. */
  count: number;
  min: number;
  /** Of an even number of values the lower middle one, so that it is a value that occurred. */
  median: number;
  max: number;
  /** Whether the median is that of the first values alone. */
  isSampled: boolean;
}

export interface ValueSample {
  add(value: number): void;
  range(): Range | null;
}

/** Keeps the first `keptMax` values, of which the median is; all of them count for the ends and the number. */
export function createValueSample(keptMax: number): ValueSample {
  const kept: number[] = [];
  let count = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  return {
    add: (value) => {
      count += 1;
      min = Math.min(min, value);
      max = Math.max(max, value);
      if (kept.length < keptMax) kept.push(value);
    },
    range: () => {
      const values = kept.toSorted((a, b) => a - b);
      const median = values[Math.floor((values.length - 1) / 2)];
      return median === undefined
        ? null
        : { count, min, median, max, isSampled: count > kept.length };
    },
  };
}
