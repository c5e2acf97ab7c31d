/** Which runs of three characters are rare in the names of products: those are worth looking up. */
import type { Database } from 'better-sqlite3';

/** Names are alike in most parts (`S2A_MSIL`, `_202`), so a few hundred show which parts tell. */
const sampleSize = 500;
/** Each further run costs a look-up, and narrows less than the one before. */
const runsMax = 3;

export interface NameSample {
  /** The rarest runs of a text, which has at least three characters. */
  rareRunsOf(text: string): string[];
}

/** Reads names from all over the index, once, when it is first asked. */
export function createNameSample(database: Database): NameSample {
  let names: readonly string[] | undefined;
  return {
    rareRunsOf: (text) => {
      names ??= sampleOf(database);
      const characters = Array.from(text);
      const runs = new Set(characters.slice(2).map((_, i) => characters.slice(i, i + 3).join('')));
      const counted = [...runs].map((run) => ({ run, count: countOf(names ?? [], run) }));
      counted.sort((a, b) => a.count - b.count);
      return counted.slice(0, runsMax).map(({ run }) => run);
    },
  };
}

function countOf(names: readonly string[], run: string): number {
  return names.reduce((count, name) => count + Number(name.includes(run)), 0);
}

function sampleOf(database: Database): string[] {
  const bounds = database
    .prepare<[], { first: number | null; last: number | null }>(
      'SELECT (SELECT min(id) FROM product) AS first, (SELECT max(id) FROM product) AS last',
    )
    .get();
  const { first, last } = bounds ?? { first: null, last: null };
  if (first === null || last === null) return [];
  const from = database
    .prepare<[number], string | null>('SELECT name FROM product WHERE id >= ? LIMIT 1')
    .pluck();
  const step = (last - first) / sampleSize;
  const names = Array.from({ length: sampleSize }, (_, i) =>
    from.get(Math.floor(first + i * step)),
  );
  return names.filter((name) => typeof name === 'string');
}
