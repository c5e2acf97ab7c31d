/** Counts how often names occur, and ranks the most frequent ones. */

interface Count {
  name: string;
  count: number;
}

export interface Ranking {
  /** The most frequent names, by frequency, then alphabetically. */
  top: readonly Count[];
  /** Number of other names, their total count, and the count of the most frequent one. */
  others: { names: number; count: number; most: number };
}

/** Keeps at most `namesMax` names; all later ones count together as one more name. */
export function createTally(namesMax: number) {
  const counts = new Map<string, number>();
  let beyond = 0;
  return {
    add: (name: string) => {
      const count = counts.get(name);
      if (count === undefined && counts.size >= namesMax) beyond += 1;
      else counts.set(name, (count ?? 0) + 1);
    },
    ranking: (topMax: number): Ranking => {
      const all = [...counts]
        .map(([name, count]) => ({ name, count }))
        .toSorted((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
      const rest = all.slice(topMax);
      return {
        top: all.slice(0, topMax),
        others: {
          names: rest.length + (beyond > 0 ? 1 : 0),
          count: rest.reduce((sum, { count }) => sum + count, beyond),
          most: rest[0]?.count ?? beyond,
        },
      };
    },
  };
}

/** Moves names that are no more frequent than an unnamed one to the others. */
export function withoutTies({ top, others }: Ranking): Ranking {
  const named = top.filter(({ count }) => count > others.most);
  const tied = top.length - named.length;
  const { names, count, most } = others;
  return { top: named, others: { names: names + tied, count: count + tied * most, most } };
}

export interface Range {
  /** Number of values, at least 1. */
  count: number;
  min: number;
  /** For an even number of values the lower of the two middle ones, so that it is a real value. */
  median: number;
  max: number;
  /** True if the median is computed from the first values only. */
  isSampled: boolean;
}

/** Keeps the first `keptMax` values for the median; minimum, maximum and count include all values. */
export function createValueSample(keptMax: number) {
  const kept: number[] = [];
  let count = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  return {
    add: (value: number) => {
      count += 1;
      min = Math.min(min, value);
      max = Math.max(max, value);
      if (kept.length < keptMax) kept.push(value);
    },
    range: (): Range | null => {
      const values = kept.toSorted((a, b) => a - b);
      const median = values[Math.floor((values.length - 1) / 2)];
      return median === undefined
        ? null
        : { count, min, median, max, isSampled: count > kept.length };
    },
  };
}
