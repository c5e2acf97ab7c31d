/** The steps of a prune, each within a transaction of the caller's. */
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

/** Duration of one transaction of a prune. */
export const usualStepMs = 25;

/**
 * Duration while disk space is short: one piece of work, as what a transaction changes lies in the write-ahead log in
 * addition, some 300 kB of it.
 */
export const shortStepMs = 0;

/** Removes some of what is old, in the way of the phase. */
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
    // Digests stay: they are few, and describe what is gone.
    case 'summary-jobs':
      return removeOldRows(
        database,
        'summary_job',
        `kind = 'product' AND state IN ('done', 'failed', 'dropped')
         AND position <= (SELECT position FROM prune_horizon)`,
        after,
        stepMs,
      );
    // Texts that no job shows: of the jobs that were removed, and older ones of subjects that were written about again.
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
      return giveBack(database, request.freeShare, stepMs);
  }
}

/** Repeats work until the time is up, or it returns false because nothing is left. Returns what it returned last. */
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

/** Notifications that are removed between two checks of the time and the size. */
const notificationsMax = 64;

/** Removes from the log's beginning, with the bodies, and moves the horizon along: the first one that stays ends it. */
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
    const going = end === -1 ? rows : rows.slice(0, end);
    const last = going.at(-1);
    if (last === undefined) return false;
    prepared(database, 'DELETE FROM notification WHERE position <= ?').run(last.position);
    removeBodiesOf(database, going);
    moveHorizon(database, going, last.position, request.nowUs);
    removed += going.length;
    return going.length === notificationsMax;
  });
  return { removed, next: isMore ? 0 : null };
}

/**
 * The highest position that may be removed. That at which a reader stands stays: by it, the product index recognises the
 * log it has read. So does the newest, from which positions continue.
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
  // One that was dated by a clock that ran ahead says nothing of what came after it.
  move.run({ position, receivedBeforeUs: Math.min(newestUs, nowUs) + 1, nowUs });
}

/** The bodies of notifications that have just been removed. */
function removeBodiesOf(database: Database, removed: readonly OldNotification[]): void {
  const isQuarantined = prepared<[number]>(database, 'SELECT 1 FROM quarantine WHERE body_id = ?');
  const ids = removed
    .map(({ bodyId }) => bodyId)
    .filter((id) => isQuarantined.get(id) === undefined);
  if (ids.length > 0) removeBodies(database, Math.min(...ids), Math.max(...ids));
}

/**
 * Removes bodies that nothing refers to any more. A row of `body` holds several, and is removed when all of them may.
 * Notifications have no index by their body, and need none: their bodies rise with their positions, but for those that
 * came out of the quarantine. Of these the quarantine still has an entry, and a body with an entry there stays. So what
 * lies below the body of the first notification that is left, entries aside, is referred to by none.
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
 * Removes entries as old as the notifications that were removed, by default only released ones. One from whose body there
 * still is a notification stays with it: they have the same time of receipt, by which there is an index.
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

/** Removes held entries of the quarantine; returns how many there were. */
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
  // `removeBodies` leaves a body that comes after one in use. One that is kept alone is removed here.
  prepared<object>(
    database,
    `DELETE FROM body WHERE id = @bodyId AND bodies = 1
       AND NOT EXISTS (SELECT 1 FROM quarantine WHERE body_id = @bodyId)
       AND NOT EXISTS (SELECT 1 FROM notification
         WHERE received_at_us = @receivedAtUs AND body_id = @bodyId)`,
  ).run(parameters);
  removeBodies(database, bodyId, bodyId);
}

/** Where the newest bodies were removed, their ids are given again: `earshot compact` must not skip those. */
function rewindCompaction(database: Database): void {
  prepared(
    database,
    `UPDATE compaction SET next_body_id = min(next_body_id,
       coalesce((SELECT id + bodies FROM body ORDER BY id DESC LIMIT 1), 1))`,
  ).run();
}

/** Rows that are read between two checks of the time. */
const rowsMax = 200;

/** Walks through a table in the order of its rows, which has no index on what is old. */
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

/** Pages that are moved between two checks of the time. */
const pagesMax = 8;

/**
 * Gives back pages of the file that hold nothing: moves pages from its end into free places. The file is cut when its
 * write-ahead log has been moved into it. `freeShare` of the file may stay free.
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

/** False where there is no such reader. */
export function removeReader(database: Database, key: string): boolean {
  return (
    prepared<[string]>(database, 'DELETE FROM reader_cursor WHERE reader = ?').run(key).changes > 0
  );
}
