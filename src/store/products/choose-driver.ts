/** Chooses the index that narrows a search most, by counting how much each one would bring. */
import type { Database } from 'better-sqlite3';
import type { Driver, IdWindow } from './drivers.ts';

/** Up to so many candidates are read and sorted at once; with more, the search walks along its order. */
export const fewCandidatesMax = 2_000;
/** For an index that cannot narrow a walk: reading so many ids takes some milliseconds. */
const fewForColumnsMax = 20_000;

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
function chooseDriver(
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

/** The driver for a search that wants the first few matches. */
export function chooseForPage(database: Database, drivers: readonly Driver[]): Choice | null {
  const choice = chooseDriver(database, drivers, fewCandidatesMax);
  if (choice === null || choice.candidates !== null) return choice;
  const ofColumns = drivers.filter(({ windowed }) => !windowed);
  const further = chooseDriver(database, ofColumns, fewForColumnsMax);
  if (further !== null && further.candidates !== null) return further;
  const windowed = drivers.find((driver) => driver.windowed);
  return windowed === undefined ? choice : { driver: windowed, candidates: null };
}

/** The driver for work on all candidates: counts until one of them has been counted out. */
export function chooseExactly(database: Database, drivers: readonly Driver[]): Choice | null {
  for (let countMax = fewCandidatesMax; ; countMax *= 10) {
    const choice = chooseDriver(database, drivers, countMax);
    if (choice === null || choice.candidates !== null) return choice;
  }
}
