/** Counts how often names occur, and tells the most frequent ones. */

export interface Count {
  name: string;
  count: number;
}

export interface Ranking {
  /** The most frequent names, the first one first; of equal ones by the alphabet. */
  top: readonly Count[];
  /** How many other names there are, and how often they occurred: together, and the most frequent one. */
  others: { names: number; count: number; most: number };
}

export interface Tally {
  add(name: string): void;
  ranking(topMax: number): Ranking;
}

/** Holds at most `namesMax` names: later ones count as one more name, whatever they are. */
export function createTally(namesMax: number): Tally {
  const counts = new Map<string, number>();
  let beyond = 0;
  return {
    add: (name) => {
      const count = counts.get(name);
      if (count === undefined && counts.size >= namesMax) beyond += 1;
      else counts.set(name, (count ?? 0) + 1);
    },
    ranking: (topMax) => {
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
export function standingOut({ top, others }: Ranking): Ranking {
  const named = top.filter(({ count }) => count > others.most);
  const tied = top.length - named.length;
  const { names, count, most } = others;
  return { top: named, others: { names: names + tied, count: count + tied * most, most } };
}
