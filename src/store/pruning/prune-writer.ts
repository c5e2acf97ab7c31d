/** Pruning steps. Each runs in the caller's transaction. */
import type { Database } from 'better-sqlite3';
import type { PruneRequest, PruneStep, Pruning } from '../../domain/pruning.ts';
import { prepared } from '../engine/database.ts';
import { lastPosition } from '../log/queries.ts';
import {
  keptForDigestsUs,
  keptSinceUs,
  pageBytes,
  pruneBlockers,
  pruneHorizon,
  quarantineBytes,
} from './prune-queries.ts';

/** Duration of one pruning transaction. */
export const usualStepMs = 25;

/**
 * Duration while disk space is short: one unit of work, because a transaction's changes also take space in the
 * write-ahead log, about 300 kB.
 */
export const shortStepMs = 0;

/** Runs one step of a phase. */
export function pruneStep(
  database: Database,
  { phase, request, after }: Parameters<Pruning['pruneStep']>[0],
  stepMs: number,
): PruneStep {
  switch (phase) {
    case 'notifications':
      return removeOldest(database, request, stepMs);
    case 'quarantine':
      return removeQuarantined(database, request, after, stepMs);
    // Digests stay: they are few, and describe removed notifications.
    case 'summary-jobs':
      return removeOldRows(
        database,
        'summary_job',
        `kind = 'product' AND state IN ('done', 'failed', 'dropped')
         AND position <= (SELECT position FROM prune_horizon)`,
        after,
        stepMs,
      );
    // Texts without a job: the job was removed, or the summary was written again.
    case 'summary-texts':
      return removeOldRows(
        database,
        'summary_text',
        `created_at_us < (SELECT received_before_us FROM prune_horizon)
         AND NOT EXISTS (SELECT 1 FROM summary_job WHERE text_key = summary_text.key)`,
        after,
        stepMs,
      );
    case 'space':
      return releaseFreePages(database, request.freeShare, stepMs);
  }
}

/** Repeats the work until the time is up, or it returns false because nothing is left. Returns its last result. */
function repeatForStep(stepMs: number, work: () => boolean): boolean {
  const endMs = performance.now() + stepMs;
  for (;;) {
    if (!work()) return false;
    if (performance.now() >= endMs) return true;
  }
}

interface OldNotification {
  position: number;
  receivedAtUs: number;
  bodyId: number;
}

/** Notifications removed between two checks of time and size. */
const notificationsMax = 64;

/** Removes the oldest notifications and their bodies up to the first that stays, and moves the horizon. */
function removeOldest(database: Database, request: PruneRequest, stepMs: number): PruneStep {
  const upTo = prunableUpTo(database);
  const sinceUs = keptSinceUs(request) ?? Number.NEGATIVE_INFINITY;
  const neededSinceUs = keptForDigestsUs(database) ?? Number.POSITIVE_INFINITY;
  const bytesMax = (request.keep.bytes ?? Number.POSITIVE_INFINITY) + quarantineBytes(database);
  const oldest = prepared<[number], OldNotification>(
    database,
    `SELECT position, received_at_us AS receivedAtUs, body_id AS bodyId
     FROM notification WHERE position <= ? ORDER BY position LIMIT ${notificationsMax}`,
  );
  let removed = 0;
  const isMore = repeatForStep(stepMs, () => {
    const rows = oldest.all(upTo);
    const isTooLarge = pageBytes(database).usedBytes > bytesMax;
    const end = rows.findIndex(
      ({ receivedAtUs }) =>
        receivedAtUs >= neededSinceUs || !(isTooLarge || receivedAtUs < sinceUs),
    );
    const expired = end === -1 ? rows : rows.slice(0, end);
    const last = expired.at(-1);
    if (last === undefined) return false;
    prepared(database, 'DELETE FROM notification WHERE position <= ?').run(last.position);
    removeBodiesOf(database, expired);
    moveHorizon(database, expired, last.position, request.nowUs);
    removed += expired.length;
    return expired.length === notificationsMax;
  });
  return { removed, next: isMore ? 0 : null };
}

/**
 * Returns the highest position that may be removed. The position of a reader stays, because the product index uses it to
 * recognise its log. The newest position stays, because new positions continue from it.
 */
function prunableUpTo(database: Database): number {
  const positions = pruneBlockers(database).map(({ position }) => position);
  return Math.min(lastPosition(database), ...positions) - 1;
}

function moveHorizon(
  database: Database,
  removed: readonly OldNotification[],
  position: number,
  nowUs: number,
): void {
  const newestUs = Math.max(...removed.map(({ receivedAtUs }) => receivedAtUs));
  const move = prepared<object>(
    database,
    `INSERT INTO prune_horizon VALUES (1, @position, @receivedBeforeUs, @nowUs)
     ON CONFLICT (id) DO UPDATE SET position = max(position, excluded.position),
       received_before_us = max(received_before_us, excluded.received_before_us),
       pruned_at_us = excluded.pruned_at_us`,
  );
  // A date in the future, from a clock that ran ahead, must not hide later notifications.
  move.run({ position, receivedBeforeUs: Math.min(newestUs, nowUs) + 1, nowUs });
}

/** Removes the bodies of removed notifications. */
function removeBodiesOf(database: Database, removed: readonly OldNotification[]): void {
  const isQuarantined = prepared<[number]>(database, 'SELECT 1 FROM quarantine WHERE body_id = ?');
  const ids = removed
    .map(({ bodyId }) => bodyId)
    .filter((id) => isQuarantined.get(id) === undefined);
  if (ids.length > 0) removeBodies(database, Math.min(...ids), Math.max(...ids));
}

/**
 * Removes unreferenced bodies. A row of `body` contains several, and is removed when all of them are unreferenced.
 * Notifications need no index by body, because body ids increase with positions. The exception is notifications released
 * from the quarantine; their bodies stay as long as they have a quarantine entry. So every body below that of the first
 * remaining notification, and without a quarantine entry, is unreferenced.
 */
function removeBodies(database: Database, from: number, to: number): void {
  const firstLeft = prepared<[], number>(
    database,
    `SELECT body_id FROM notification WHERE NOT EXISTS
       (SELECT 1 FROM quarantine WHERE quarantine.body_id = notification.body_id)
     ORDER BY position LIMIT 1`,
  ).pluck();
  prepared<object>(
    database,
    `DELETE FROM body WHERE id >= coalesce((SELECT max(id) FROM body WHERE id <= @from), 0)
       AND id <= @to AND id + bodies <= @left AND NOT EXISTS
         (SELECT 1 FROM quarantine WHERE body_id >= body.id AND body_id < body.id + bodies)`,
  ).run({ from, to, left: firstLeft.get() ?? Number.MAX_SAFE_INTEGER });
  prepared<object>(
    database,
    `DELETE FROM body_encoding WHERE body_id <= @to AND body_id >= coalesce((SELECT max(id + bodies)
       FROM body WHERE id <= body_encoding.body_id), 0)`,
  ).run({ to });
}

interface Entry {
  id: number;
  bodyId: number;
}

/**
 * Removes quarantine entries as old as the removed notifications, by default only released ones. An entry stays while a
 * notification uses its body; that is found with the index on the time of receipt, which is the same for both.
 */
function removeQuarantined(
  database: Database,
  request: PruneRequest,
  after: number,
  stepMs: number,
): PruneStep {
  const beforeUs = Math.max(
    keptSinceUs(request) ?? 0,
    pruneHorizon(database)?.receivedBeforeUs ?? 0,
  );
  const next = prepared<[object], Entry>(
    database,
    `SELECT id, body_id AS bodyId FROM quarantine WHERE id > @after AND received_at_us < @beforeUs
       AND (released_at_us IS NOT NULL OR @withQuarantined)
       AND NOT EXISTS (SELECT 1 FROM notification WHERE
         notification.received_at_us = quarantine.received_at_us
         AND notification.body_id = quarantine.body_id)
     ORDER BY id LIMIT 1`,
  );
  const removed: Entry[] = [];
  const isMore = repeatForStep(stepMs, () => {
    const last = removed.at(-1)?.id ?? after;
    const entry = next.get({
      after: last,
      beforeUs,
      withQuarantined: Number(request.withQuarantined),
    });
    if (entry === undefined) return false;
    removeEntry(database, entry);
    removed.push(entry);
    return true;
  });
  if (removed.length > 0) rewindCompaction(database);
  return { removed: removed.length, next: isMore ? (removed.at(-1)?.id ?? after) : null };
}

/** Removes unreleased entries of the quarantine; returns their number. */
export function dropQuarantined(database: Database, ids: readonly number[]): number {
  const find = prepared<[number], Entry>(
    database,
    'SELECT id, body_id AS bodyId FROM quarantine WHERE id = ? AND released_at_us IS NULL',
  );
  const entries = ids.flatMap((id) => find.get(id) ?? []);
  for (const entry of entries) removeEntry(database, entry);
  if (entries.length > 0) rewindCompaction(database);
  return entries.length;
}

function removeEntry(database: Database, { id, bodyId }: Entry): void {
  const receivedAtUs = prepared<[number], number>(
    database,
    'DELETE FROM quarantine WHERE id = ? RETURNING received_at_us',
  ).pluck();
  const parameters = { bodyId, receivedAtUs: receivedAtUs.get(id) };
  // Removes a body in its own row; `removeBodies` leaves it if an older body is in use.
  prepared<object>(
    database,
    `DELETE FROM body WHERE id = @bodyId AND bodies = 1
       AND NOT EXISTS (SELECT 1 FROM quarantine WHERE body_id = @bodyId)
       AND NOT EXISTS (SELECT 1 FROM notification
         WHERE received_at_us = @receivedAtUs AND body_id = @bodyId)`,
  ).run(parameters);
  removeBodies(database, bodyId, bodyId);
}

/** Rewinds `earshot compact`, which must not skip reused ids: the ids of removed newest bodies are given again. */
function rewindCompaction(database: Database): void {
  prepared(
    database,
    `UPDATE compaction SET next_body_id = min(next_body_id,
       coalesce((SELECT id + bodies FROM body ORDER BY id DESC LIMIT 1), 1))`,
  ).run();
}

/** Rows read between two checks of the time. */
const rowsMax = 200;

/** Scans a table in the order of its rows, because it has no index on age. */
function removeOldRows(
  database: Database,
  table: 'summary_job' | 'summary_text',
  isOld: string,
  after: number,
  stepMs: number,
): PruneStep {
  const end = prepared<[number], number | null>(
    database,
    `SELECT max(rowid) FROM
       (SELECT rowid FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${rowsMax})`,
  ).pluck();
  const remove = prepared<[number, number]>(
    database,
    `DELETE FROM ${table} WHERE rowid > ? AND rowid <= ? AND ${isOld}`,
  );
  let removed = 0;
  let last = after;
  const isMore = repeatForStep(stepMs, () => {
    const next = end.get(last) ?? null;
    if (next === null) return false;
    removed += remove.run(last, next).changes;
    last = next;
    return true;
  });
  return { removed, next: isMore ? last : null };
}

/** Pages moved between two checks of the time. */
const pagesMax = 8;

/**
 * Releases free pages: moves pages from the end of the file into free ones. The next checkpoint truncates the file.
 * `freeShare` of the file may stay free.
 */
export function releaseFreePages(database: Database, freeShare: number, stepMs: number): PruneStep {
  const freeAtStart = pageBytes(database).freeBytes;
  let free = freeAtStart;
  const isMore = repeatForStep(stepMs, () => {
    const { usedBytes, freeBytes } = pageBytes(database);
    if (freeBytes <= freeShare * (usedBytes + freeBytes)) return false;
    database.pragma(`incremental_vacuum(${pagesMax})`);
    free = pageBytes(database).freeBytes;
    // A file without auto_vacuum keeps its free pages for reuse.
    return free < freeBytes;
  });
  return { removed: freeAtStart - free, next: isMore ? 0 : null };
}

/** Returns false if there is no such reader. */
export function removeReader(database: Database, key: string): boolean {
  return (
    prepared<[string]>(database, 'DELETE FROM reader_cursor WHERE reader = ?').run(key).changes > 0
  );
}
