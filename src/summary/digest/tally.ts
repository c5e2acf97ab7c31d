/** Counts how often names occur, and ranks the most frequent ones. */

interface Count {
  name: string;
  count: number;
}

export interface Ranking {
  /** The most frequent names, the first one first; of equal ones by the alphabet. */
  top: readonly Count[];
  /** How many other names there are, and how often they occurred: together, and the most frequent one. */
  others: { names: number; count: number; most: number };
}

/** Holds at most `namesMax` names: later ones count as one more name, whatever they are. */
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

/** Without the names that occurred no more often than some that are not named: they are others, too. */
export function withoutTies({ top, others }: Ranking): Ranking {
  const named = top.filter(({ count }) => count > others.most);
  const tied = top.length - named.length;
  const { names, count, most } = others;
  return { top: named, others: { names: names + tied, count: count + tied * most, most } };
}

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

/** Keeps the first `keptMax` values, of which the median is; all of them count for the ends and the number. */
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
