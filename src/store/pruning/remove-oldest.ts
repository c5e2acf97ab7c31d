/** Removes the oldest notifications with their bodies, and moves the horizon along. */
import type { Database } from 'better-sqlite3';
import type { PruneStep, PruneWish } from '../../domain/pruning.ts';
import { lastPosition } from '../log-queries.ts';
import { keptForDigestsUs, logHolders } from './log-holders.ts';
import { pageBytes } from './page-bytes.ts';
import { quarantineBytes } from './quarantine-bytes.ts';
import { type OldNotification, prepareRemoveBodies } from './remove-bodies.ts';
import { repeatForStep } from './step-time.ts';

/** Notifications that are removed between two checks of the time and the size. */
const rowsMax = 64;

/**
 * Works inside a transaction of the caller's. What is to go is looked at from the log's beginning: the first one
 * that stays ends it.
 */
export function prepareRemoveOldest(database: Database, dataDir: string) {
  const oldest = database.prepare<[number], OldNotification>(
    `SELECT position, received_at_us AS receivedAtUs, body_id AS bodyId
     FROM notification WHERE position <= ? ORDER BY position LIMIT ${rowsMax}`,
  );
  const remove = database.prepare('DELETE FROM notification WHERE position <= ?');
  const removeBodies = prepareRemoveBodies(database);
  const moveHorizon = prepareMoveHorizon(database);
  return (wish: PruneWish, stepMs: number): PruneStep => {
    const upTo = prunableUpTo(database, dataDir);
    const neededSinceUs = keptForDigestsUs(database) ?? Number.POSITIVE_INFINITY;
    const goes = prepareGoes(database, wish);
    let removed = 0;
    const isMore = repeatForStep(stepMs, () => {
      const rows = oldest.all(upTo);
      const mayGo = goes();
      const end = rows.findIndex((row) => row.receivedAtUs >= neededSinceUs || !mayGo(row));
      const going = end === -1 ? rows : rows.slice(0, end);
      const last = going.at(-1);
      if (last === undefined) return false;
      remove.run(last.position);
      removeBodies.of(going);
      moveHorizon(going, last.position, wish.nowUs);
      removed += going.length;
      return going.length === rowsMax;
    });
    return { removed, next: isMore ? 0 : null };
  };
}

/**
 * The highest position that may go. That at which a reader stands stays: by it, the product index tells which log
 * it has read. So does the newest, from which positions go on.
 */
export function prunableUpTo(database: Database, dataDir: string): number {
  const positions = logHolders(database, dataDir).map(({ position }) => position);
  return Math.min(lastPosition(database), ...positions) - 1;
}

/** When what is kept by age was received at the earliest; null where age is no reason to go. */
export function keptSinceUs({ keep, nowUs }: PruneWish): number | null {
  return keep.ageUs === null ? null : nowUs - keep.ageUs;
}

/** The size is looked at once for each call, the age for each notification. */
function prepareGoes(database: Database, wish: PruneWish) {
  const sinceUs = keptSinceUs(wish) ?? Number.NEGATIVE_INFINITY;
  const bytesMax =
    wish.keep.bytes === null
      ? Number.POSITIVE_INFINITY
      : wish.keep.bytes + quarantineBytes(database);
  return () => {
    const isTooLarge = pageBytes(database).usedBytes > bytesMax;
    return ({ receivedAtUs }: OldNotification) => isTooLarge || receivedAtUs < sinceUs;
  };
}

function prepareMoveHorizon(database: Database) {
  const move = database.prepare(
    `INSERT INTO prune_horizon VALUES (1, @position, @receivedBeforeUs, @nowUs)
     ON CONFLICT (id) DO UPDATE SET position = max(position, excluded.position),
       received_before_us = max(received_before_us, excluded.received_before_us),
       pruned_at_us = excluded.pruned_at_us`,
  );
  return (removed: readonly OldNotification[], position: number, nowUs: number): void => {
    const newestUs = Math.max(...removed.map(({ receivedAtUs }) => receivedAtUs));
    // One that was dated by a clock that ran ahead says nothing of what came after it.
    move.run({ position, receivedBeforeUs: Math.min(newestUs, nowUs) + 1, nowUs });
  };
}
