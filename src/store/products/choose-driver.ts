/** Chooses the index that narrows a search most, by reading the first ids that each one would bring. */
import type { Database } from 'better-sqlite3';
import type { Driver, IdWindow } from './drivers.ts';

/** Up to so many candidates are read and sorted at once; with more, the search walks along its order. */
export const fewCandidatesMax = 2_000;
/** For an index that cannot narrow a walk: reading so many ids takes some milliseconds. */
const fewForColumnsMax = 20_000;

export const allIds: IdWindow = { after: 0, before: Number.MAX_SAFE_INTEGER };

export interface Choice {
  driver: Driver;
  /** All ids that it gives, in no order; null for more than were read. */
  ids: readonly number[] | null;
}

/** The driver for a search that wants the first few matches. Null when there is none. */
export function chooseForPage(database: Database, drivers: readonly Driver[]): Choice | null {
  const choice = chooseDriver(database, drivers, fewCandidatesMax);
  if (choice === null || choice.ids !== null) return choice;
  const ofColumns = drivers.filter(({ windowed }) => !windowed);
  const further = chooseDriver(database, ofColumns, fewForColumnsMax);
  if (further !== null && further.ids !== null) return further;
  const windowed = drivers.find((driver) => driver.windowed);
  return windowed === undefined ? choice : { driver: windowed, ids: null };
}

/** The driver for work on all candidates: reads on until one of them has come to its end. */
export function chooseForAll(database: Database, drivers: readonly Driver[]): Driver | null {
  for (let idsMax = fewCandidatesMax; ; idsMax *= 10) {
    const choice = chooseDriver(database, drivers, idsMax);
    if (choice === null || choice.ids !== null) return choice?.driver ?? null;
  }
}

/**
 * The driver with the fewest ids, reading no more than `idsMax` of each. A wrong choice would cost many
 * times what that takes.
 */
function chooseDriver(
  database: Database,
  drivers: readonly Driver[],
  idsMax: number,
): Choice | null {
  let best: Choice | null = null;
  for (const driver of drivers) {
    const enough: number = best?.ids?.length ?? idsMax;
    const { sql, values } = driver.ids(allIds);
    // No more than the type of the column: ids are numbers.
    const ids = database
      .prepare(`SELECT id FROM (${sql}) LIMIT ?`)
      .pluck()
      .all(...values, enough + 1) as number[];
    if (ids.length <= enough) best = { driver, ids };
    else best ??= { driver, ids: null };
    if (best.ids?.length === 0) return best;
  }
  return best;
}
