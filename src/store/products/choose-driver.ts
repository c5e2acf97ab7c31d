/** Chooses the index that narrows a search most, by counting how much each one would bring. */
import type { Database } from 'better-sqlite3';
import type { Driver, IdWindow } from './drivers.ts';

/** Up to so many candidates are sorted at once; with more, the search walks along its order. */
export const fewCandidatesMax = 2_000;

export const allIds: IdWindow = { after: 0, before: Number.MAX_SAFE_INTEGER };

export interface Choice {
  driver: Driver;
  /** How many ids it gives; null for more than were counted. */
  candidates: number | null;
}

/**
 * The driver with the fewest ids, counting no more than `countMax` for each. Null when there is none.
 * Counting so many takes a millisecond or so, which a wrong choice would cost many times over.
 */
export function chooseDriver(
  database: Database,
  drivers: readonly Driver[],
  countMax: number,
): Choice | null {
  let best: Choice | null = null;
  for (const driver of drivers) {
    const enough: number = best?.candidates ?? countMax;
    const { sql, values } = driver.ids(allIds);
    const count: number = Number(
      database
        .prepare(`SELECT count(*) FROM (SELECT 1 FROM (${sql}) LIMIT ?)`)
        .pluck()
        .get(...values, enough + 1),
    );
    if (count <= enough) best = { driver, candidates: count };
    else best ??= { driver, candidates: null };
    if (best.candidates === 0) return best;
  }
  return best;
}

/** As above, counting further until one driver has been counted out: for work on all candidates. */
export function chooseExactly(database: Database, drivers: readonly Driver[]): Choice | null {
  for (let countMax = fewCandidatesMax; ; countMax *= 10) {
    const choice = chooseDriver(database, drivers, countMax);
    if (choice === null || choice.candidates !== null) return choice;
  }
}
