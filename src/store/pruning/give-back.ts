/** Gives pages of the log's file back that hold nothing. */
import type { Database } from 'better-sqlite3';
import type { PruneStep } from '../../domain/pruning.ts';
import { pageBytes } from './page-bytes.ts';
import { repeatForStep } from './step-time.ts';

/** Pages that are moved between two looks at the time. */
const pagesMax = 8;

/**
 * Moves pages from the end of the file into free places, within a transaction of the caller's; the file is cut when
 * its write-ahead log has been taken in. `freeShare` of the file may stay free.
 */
export function giveBack(database: Database, freeShare: number, stepMs: number): PruneStep {
  const beganWith = pageBytes(database).freeBytes;
  let free = beganWith;
  const isMore = repeatForStep(stepMs, () => {
    const { usedBytes, freeBytes } = pageBytes(database);
    if (freeBytes <= freeShare * (usedBytes + freeBytes)) return false;
    database.pragma(`incremental_vacuum(${pagesMax})`);
    free = pageBytes(database).freeBytes;
    // A file without auto_vacuum keeps its pages, for what comes next.
    return free < freeBytes;
  });
  return { removed: beganWith - free, next: isMore ? 0 : null };
}
