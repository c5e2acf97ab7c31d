/** Tells what a prune would remove, and what holds it back. */
import type { Database } from 'better-sqlite3';
import type { LogHolder, Prunable, PruneWish } from '../../domain/pruning.ts';
import { lastPosition } from '../log-queries.ts';
import { keptForDigestsUs, logHolders } from './log-holders.ts';
import { pageBytes } from './page-bytes.ts';
import { quarantineBytes } from './quarantine-bytes.ts';
import { keptSinceUs } from './remove-oldest.ts';

/**
 * Counts by the index on times of receipt, which takes about a second for some ten millions. As notifications mostly
 * lie in the order of that time, what it finds is what goes.
 */
export function prunable(database: Database, dataDir: string, wish: PruneWish): Prunable {
  const one = createFigures(database);
  const total = one('SELECT count(*) FROM notification') ?? 0;
  const { usedBytes } = pageBytes(database);
  const emptyBytes = bytesWhenEmpty(database);
  const holders = logHolders(database, dataDir);
  const last = lastPosition(database);
  const wantedUs = Math.max(keptSinceUs(wish) ?? 0, bySizeUs());
  const stays = Math.min(last, ...holders.map(({ position }) => position));
  const untilUs = Math.min(
    wantedUs,
    one(
      'SELECT received_at_us FROM notification WHERE position >= ? ORDER BY position LIMIT 1',
      stays,
    ) ?? 0,
    keptForDigestsUs(database) ?? Number.POSITIVE_INFINITY,
  );
  const notifications =
    one('SELECT count(*) FROM notification WHERE received_at_us < ?', untilUs) ?? 0;

  /** About so many are the oldest that take up what is too much. */
  function bySizeUs(): number {
    const { bytes } = wish.keep;
    const excess = bytes === null ? 0 : usedBytes - quarantineBytes(database) - bytes;
    if (excess <= 0) return 0;
    const count = Math.ceil((excess / (usedBytes - emptyBytes)) * total);
    const oldest =
      'SELECT received_at_us FROM notification ORDER BY received_at_us LIMIT 1 OFFSET ?';
    return one(oldest, count) ?? Number.POSITIVE_INFINITY;
  }

  /** The first that would stay if nobody held it back. */
  function wantedPosition(): number {
    const first =
      'SELECT position FROM notification WHERE received_at_us >= ? ORDER BY received_at_us LIMIT 1';
    return Math.min(one(first, wantedUs) ?? last, last);
  }

  return {
    notifications,
    fromUs: notifications === 0 ? null : one('SELECT min(received_at_us) FROM notification'),
    untilUs: notifications === 0 ? null : untilUs,
    bytes: total === 0 ? 0 : Math.round(((usedBytes - emptyBytes) * notifications) / total),
    quarantined: countOldEntries(database, wish, untilUs),
    heldBy: heldBack(holders, wantedPosition()),
  };
}

/** A page for each table and index. */
function bytesWhenEmpty(database: Database): number {
  const pages = database.prepare('SELECT count(*) FROM sqlite_schema WHERE rootpage > 0').pluck();
  return Number(pages.get()) * Number(database.pragma('page_size', { simple: true }));
}

function createFigures(database: Database) {
  return (sql: string, ...values: number[]): number | null => {
    // SQLite's integers: a bound beyond all of them is the largest.
    const bounds = values.map((value) => Math.min(value, Number.MAX_SAFE_INTEGER));
    return (
      database
        .prepare<number[], number | null>(sql)
        .pluck()
        .get(...bounds) ?? null
    );
  };
}

function heldBack(holders: readonly LogHolder[], wantedPosition: number): LogHolder[] {
  return holders
    .filter(({ position }) => position < wantedPosition)
    .toSorted((a, b) => a.position - b.position);
}

/** Of an age with the notifications that go. */
function countOldEntries(database: Database, wish: PruneWish, untilUs: number): number {
  const beforeUs = Math.max(keptSinceUs(wish) ?? 0, untilUs);
  return Number(
    database
      .prepare(
        `SELECT count(*) FROM quarantine
         WHERE received_at_us < @beforeUs AND (released_at_us IS NOT NULL OR @withHeld)`,
      )
      .pluck()
      .get({ beforeUs, withHeld: Number(wish.withHeld) }),
  );
}
