/** Queries about pruning: its horizon, its blockers, the size of the log, and what would be and is removed. */
import { statSync } from 'node:fs';
import { type Database, prepared } from '../engine/database.ts';
import { lastPosition } from '../log/queries.ts';
import { tables } from '../tables.ts';
import type {
  LogSize,
  Prunable,
  PruneBlocker,
  PruneHorizon,
  PruneRequest,
  PruneStep,
} from './terms.ts';

export function pruneHorizon(database: Database): PruneHorizon | null {
  const row = prepared<[], PruneHorizon>(
    database,
    `SELECT position, received_before_us AS receivedBeforeUs, pruned_at_us AS prunedAtUs
     FROM prune_horizon`,
  ).get();
  return row ?? null;
}

/** Returns figures that SQLite knows without counting. */
export function logSize(database: Database): LogSize {
  const first = prepared<[], { position: number; receivedAtUs: number }>(
    database,
    `SELECT position, received_at_us AS receivedAtUs FROM notification ORDER BY position LIMIT 1`,
  ).get();
  const last = prepared<[], number | null>(database, 'SELECT max(position) FROM notification');
  const wal = statSync(`${database.name}-wal`, { throwIfNoEntry: false });
  return {
    ...pageBytes(database),
    walBytes: wal?.size ?? 0,
    firstPosition: first?.position ?? 0,
    lastPosition: last.pluck().get() ?? 0,
    firstReceivedAtUs: first?.receivedAtUs ?? null,
  };
}

/** Returns the used and the free bytes of the log's file, including changes of an open transaction. */
export function pageBytes(database: Database): Pick<LogSize, 'usedBytes' | 'freeBytes'> {
  const read = (name: string) => Number(database.pragma(name, { simple: true }));
  const [size, pages, free] = [read('page_size'), read('page_count'), read('freelist_count')];
  return { usedBytes: size * (pages - free), freeBytes: size * free };
}

/** Number of newest entries from which the mean size is estimated. */
const sampleMax = 200;

/**
 * Estimates the size of all quarantined bodies. Pruning by size ignores them: it does not remove them, and must not
 * remove notifications because of them.
 */
function quarantineBytes(database: Database): number {
  const query = (sql: string) => Number(prepared(database, sql).pluck().get() ?? 0);
  const entries = query('SELECT count(*) FROM quarantine');
  if (entries === 0) return 0;
  const mean = query(
    `SELECT avg((SELECT length(packed) / bodies FROM body WHERE id <= body_id ORDER BY id DESC LIMIT 1))
     FROM (SELECT body_id FROM quarantine ORDER BY id DESC LIMIT ${sampleMax})`,
  );
  return Math.round(entries * mean);
}

/** Finds all readers and items that still need the log. Fast enough to run in each pruning step. */
export function pruneBlockers(database: Database): PruneBlocker[] {
  const local = [...tables().values()].flatMap((one) => one.localBlockers?.(database) ?? []);
  return [...sharedBlockers(database), ...local];
}

/** Finds those that all nodes of a shared log have. */
export function sharedBlockers(database: Database): PruneBlocker[] {
  const pending = [...tables().values()].flatMap((one) => one.blockers?.(database) ?? []);
  return [...cursors(database), ...pending];
}

function cursors(database: Database): PruneBlocker[] {
  return prepared<[], Pick<PruneBlocker, 'key' | 'position' | 'sinceUs'>>(
    database,
    'SELECT reader AS key, position, moved_at_us AS sinceUs FROM reader_cursor',
  )
    .all()
    .map((row) => {
      const { name, advance, of, lagMaxUs } = describeReader(row.key);
      const advice = `To advance the reader: ${advance}. To remove the reader: \`earshot prune --remove-reader ${row.key}\`.`;
      return { ...row, kind: 'cursor', name, advice, of, lagMaxUs };
    });
}

function describeReader(key: string) {
  for (const [of, { describeReader: describe }] of tables()) {
    const found = describe?.(key) ?? null;
    if (found !== null) return { ...found, of };
  }
  return {
    name: `reader ${key}`,
    advance: `\`earshot tail --reader ${key}\``,
    of: null,
    lagMaxUs: undefined,
  };
}

/**
 * Returns the phases of pruning that remove rows, in their order: `notifications` with their bodies, `quarantine`, rows of
 * features by their group.
 */
export function prunePhases(_: Database): string[] {
  const added = [...tables()].flatMap(([group, { pruned }]) =>
    pruned === undefined ? [] : [group],
  );
  return ['notifications', 'quarantine', ...added];
}

/** Returns the earliest time of receipt to keep; null without a maximum age. */
function keptSinceUs({ keep, nowUs }: PruneRequest): number | null {
  return keep.ageUs === null ? null : nowUs - keep.ageUs;
}

/**
 * Returns what pruning would remove, and what blocks it. An estimate: positions count as without gaps, and the size of
 * notifications as equal. Reads the index of the notifications to keep, about a second for ten million rows.
 */
export function prunable(database: Database, request: PruneRequest): Prunable {
  const query = (sql: string, ...values: number[]): number | null =>
    prepared<number[], number | null>(database, sql)
      .pluck()
      .get(...values) ?? null;
  const { usedBytes, firstPosition, lastPosition: last } = logSize(database);
  // An empty database has one page for each table and index.
  const pages = query('SELECT count(*) FROM sqlite_schema WHERE rootpage > 0') ?? 0;
  const emptyBytes = pages * Number(database.pragma('page_size', { simple: true }));
  const bytesEach = (usedBytes - emptyBytes) / (last - firstPosition + 1);
  const { bytes: bytesMax } = request.keep;
  const excess = bytesMax === null ? 0 : usedBytes - quarantineBytes(database) - bytesMax;
  const sinceUs = keptSinceUs(request) ?? 0;
  // The first position to keep by age, and by size. `+` makes SQLite scan the index instead of the table.
  const byAge = 'SELECT min(+position) FROM notification WHERE received_at_us >= ?';
  const bySize = excess > 0 ? firstPosition + Math.ceil(excess / bytesEach) : 0;
  const requested = Math.min(last, Math.max(query(byAge, sinceUs) ?? last, bySize));
  const blockers = pruneBlockers(database);
  const end = Math.min(requested, ...blockers.map(({ position }) => position));
  const notifications = Math.max(0, end - firstPosition);
  const receivedAt = (position: number) =>
    notifications === 0
      ? null
      : query(
          'SELECT received_at_us FROM notification WHERE position >= ? ORDER BY position LIMIT 1',
          position,
        );
  const untilUs = receivedAt(end);
  const entries = 'SELECT count(*) FROM quarantine WHERE received_at_us < ?';
  const quarantined = request.withQuarantined
    ? query(entries, Math.max(sinceUs, untilUs ?? 0))
    : null;
  return {
    notifications,
    fromUs: receivedAt(firstPosition),
    untilUs,
    bytes: Math.round(bytesEach * notifications),
    quarantined: quarantined ?? 0,
    heldBy: blockers
      .filter(({ position }) => position < requested)
      .toSorted((a, b) => a.position - b.position),
  };
}

/** Rows that are removed together, in one transaction, or by one entry of a shared log. */
export type PruneUnit =
  | { phase: 'notifications'; horizon: PruneHorizon }
  /** `quarantine`, or the group of a feature. */
  | { phase: 'rows'; group: string; ids: number[] };

/** Maximum rows of a unit. */
const rowsMax = { notifications: 200, quarantine: 50 };

/**
 * Returns the next rows of a phase to remove, and `after` of the ones that follow; null when the phase is complete.
 * `unit` is null for no rows in a part of a table. Never selects the newest notification, one that a blocker has not
 * finished, or the one at its position. `after` is 0, or `next` of the call before.
 */
export function selectPrunable(
  database: Database,
  { phase, request, after }: { phase: string; request: PruneRequest; after: number },
): { unit: PruneUnit | null; next: NonNullable<PruneStep['next']> } | null {
  if (phase === 'notifications') return selectOldest(database, request);
  const found =
    phase === 'quarantine'
      ? selectQuarantined(database, request, after)
      : tables().get(phase)?.pruned?.select(database, after);
  if (found == null) return null;
  const { ids, next } = found;
  return { unit: ids.length === 0 ? null : { phase: 'rows', group: phase, ids }, next };
}

/** Selects the oldest notifications up to the first that stays. */
function selectOldest(database: Database, request: PruneRequest) {
  const sinceUs = keptSinceUs(request) ?? Number.NEGATIVE_INFINITY;
  const { bytes } = request.keep;
  const isTooLarge =
    bytes !== null && pageBytes(database).usedBytes > bytes + quarantineBytes(database);
  const rows = prepared<[number, number], { position: number; receivedAtUs: number }>(
    database,
    `SELECT position, received_at_us AS receivedAtUs
     FROM notification WHERE position <= ? ORDER BY position LIMIT ?`,
  ).all(prunableUpTo(database), rowsMax.notifications);
  const end = rows.findIndex(({ receivedAtUs }) => !(isTooLarge || receivedAtUs < sinceUs));
  const selected = end === -1 ? rows : rows.slice(0, end);
  const last = selected.at(-1);
  if (last === undefined) return null;
  const { nowUs: prunedAtUs } = request;
  const newestUs = Math.max(...selected.map(({ receivedAtUs }) => receivedAtUs));
  // A date in the future, from a clock that ran ahead, must not hide later notifications.
  const receivedBeforeUs = Math.min(newestUs, prunedAtUs) + 1;
  const horizon = { position: last.position, receivedBeforeUs, prunedAtUs };
  return { unit: { phase: 'notifications' as const, horizon }, next: 0 };
}

/**
 * Returns the highest position that may be removed. The position of a reader stays, because the product index uses it to
 * recognise its log. The newest position stays, because new positions continue from it.
 */
function prunableUpTo(database: Database): number {
  const positions = pruneBlockers(database).map(({ position }) => position);
  return Math.min(lastPosition(database), ...positions) - 1;
}

/**
 * Selects quarantine entries as old as the removed notifications, if requested. An entry stays while a notification may
 * use its body: the time of receipt is then the same. Bodies have other ids on each node.
 */
function selectQuarantined(database: Database, request: PruneRequest, after: number) {
  if (!request.withQuarantined) return null;
  const pruned = pruneHorizon(database)?.receivedBeforeUs ?? 0;
  const beforeUs = Math.max(keptSinceUs(request) ?? 0, pruned);
  const ids = prepared<[object], number>(
    database,
    `SELECT id FROM quarantine WHERE id > @after AND received_at_us < @beforeUs
       AND NOT EXISTS (SELECT 1 FROM notification
         WHERE notification.received_at_us = quarantine.received_at_us)
     ORDER BY id LIMIT ${rowsMax.quarantine}`,
  )
    .pluck()
    .all({ after, beforeUs });
  const next = ids.at(-1);
  return next === undefined ? null : { ids, next };
}
