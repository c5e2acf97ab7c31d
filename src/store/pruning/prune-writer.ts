/** Pruning steps. Each runs in the caller's transaction. */
import type { Database } from 'better-sqlite3';
import type { PruneHorizon, PruneRequest, PruneStep, Pruning } from '../../domain/pruning.ts';
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

/** Rows that are removed together. */
export type PruneUnit =
  | ({ phase: 'notifications' } & PruneHorizon)
  | { phase: 'quarantine' | 'summary-jobs'; ids: number[] }
  | { phase: 'summary-texts'; keys: Uint8Array[] };

/** A unit (null for no rows in a part of a table), and `after` of the one that follows. */
interface Selected {
  unit: PruneUnit | null;
  next: number;
}

type StepOptions = Parameters<Pruning['pruneStep']>[0];

/** Runs one step of a phase: several units. */
export function pruneStep(database: Database, options: StepOptions, stepMs: number): PruneStep {
  const { request } = options;
  if (options.phase === 'space') return releaseFreePages(database, request.freeShare, stepMs);
  const select = createSelection(database, options, unitRows);
  let removed = 0;
  let { after } = options;
  const isMore = repeatForStep(stepMs, () => {
    const selected = select(after);
    if (selected === null) return false;
    if (selected.unit !== null) removed += removeUnit(database, selected.unit);
    after = selected.next;
    return true;
  });
  return { removed, next: isMore ? after : null };
}

/** Repeats the work until the time is up, or it returns false because nothing is left. Returns its last result. */
function repeatForStep(stepMs: number, work: () => boolean): boolean {
  const endMs = performance.now() + stepMs;
  for (;;) {
    if (!work()) return false;
    if (performance.now() >= endMs) return true;
  }
}

/** Rows of a unit, by phase: those of a shared log are larger, because each is an entry. */
type UnitRows = Record<PruneUnit['phase'], number>;
const unitRows: UnitRows = {
  ...{ notifications: 64, quarantine: 1, 'summary-jobs': 200, 'summary-texts': 200 },
};
const sharedUnitRows: UnitRows = {
  ...{ notifications: 1_000, quarantine: 100, 'summary-jobs': 2_000, 'summary-texts': 2_000 },
};

/** Returns the next rows of a phase to remove in a shared log; null when the phase is complete. */
export function selectPrunable(database: Database, options: StepOptions): Selected | null {
  return createSelection(database, options, sharedUnitRows)(options.after);
}

/** Returns the function that returns the next rows to remove; null when the phase is complete. */
function createSelection(
  database: Database,
  { phase, request }: StepOptions,
  rows: UnitRows,
): (after: number) => Selected | null {
  switch (phase) {
    case 'notifications':
      return selectOldest(database, request, rows[phase]);
    case 'quarantine':
      return selectQuarantined(database, request, rows[phase]);
    case 'summary-jobs':
    case 'summary-texts':
      return (after) => selectOldRows(database, { phase, after, rowsMax: rows[phase] });
    case 'space':
      return () => null;
  }
}

/** Removes the rows of a unit; returns their number. Depends only on the unit and the database. */
export function removeUnit(database: Database, unit: PruneUnit): number {
  switch (unit.phase) {
    case 'notifications':
      return removeNotifications(database, unit);
    case 'quarantine':
      return removeEntries(database, unit.ids);
    case 'summary-jobs':
      return removeOldRows(database, unit.phase, unit.ids);
    case 'summary-texts':
      return removeOldRows(database, unit.phase, unit.keys);
  }
}

/** Selects the oldest notifications up to the first that stays. Reads the limits once: they take longer than a unit. */
function selectOldest(
  database: Database,
  request: PruneRequest,
  rowsMax: number,
): () => Selected | null {
  const upTo = prunableUpTo(database);
  const sinceUs = keptSinceUs(request) ?? Number.NEGATIVE_INFINITY;
  const neededSinceUs = keptForDigestsUs(database) ?? Number.POSITIVE_INFINITY;
  const bytesMax = (request.keep.bytes ?? Number.POSITIVE_INFINITY) + quarantineBytes(database);
  const oldest = prepared<[number, number], { position: number; receivedAtUs: number }>(
    database,
    `SELECT position, received_at_us AS receivedAtUs
     FROM notification WHERE position <= ? ORDER BY position LIMIT ?`,
  );
  return () => {
    const rows = oldest.all(upTo, rowsMax);
    const isTooLarge = pageBytes(database).usedBytes > bytesMax;
    const end = rows.findIndex(
      ({ receivedAtUs }) =>
        receivedAtUs >= neededSinceUs || !(isTooLarge || receivedAtUs < sinceUs),
    );
    const selected = end === -1 ? rows : rows.slice(0, end);
    const last = selected.at(-1);
    if (last === undefined) return null;
    const { nowUs: prunedAtUs } = request;
    const newestUs = Math.max(...selected.map(({ receivedAtUs }) => receivedAtUs));
    // A date in the future, from a clock that ran ahead, must not hide later notifications.
    const receivedBeforeUs = Math.min(newestUs, prunedAtUs) + 1;
    const horizon = { position: last.position, receivedBeforeUs, prunedAtUs };
    return { unit: { phase: 'notifications', ...horizon }, next: 0 };
  };
}

/** Removes notifications and their bodies, and moves the horizon. */
function removeNotifications(database: Database, horizon: PruneHorizon): number {
  prepared<PruneHorizon>(
    database,
    `INSERT INTO prune_horizon VALUES (1, @position, @receivedBeforeUs, @prunedAtUs)
     ON CONFLICT (id) DO UPDATE SET position = max(position, excluded.position),
       received_before_us = max(received_before_us, excluded.received_before_us),
       pruned_at_us = excluded.pruned_at_us`,
  ).run(horizon);
  return removeUpTo(database, horizon.position);
}

function removeUpTo(database: Database, position: number): number {
  const bodyIds = prepared<[number], number>(
    database,
    'DELETE FROM notification WHERE position <= ? RETURNING body_id',
  )
    .pluck()
    .all(position);
  removeBodiesOf(database, bodyIds);
  return bodyIds.length;
}

/** Removes some rows up to the horizon, which another log has set. Returns their number; 0 when none is left. */
export function removePruned(database: Database): number {
  const last = prepared<[number], number | null>(
    database,
    `SELECT max(position) FROM (SELECT position FROM notification
       WHERE position <= (SELECT position FROM prune_horizon) ORDER BY position LIMIT ?)`,
  ).pluck();
  const upTo = last.get(sharedUnitRows.notifications) ?? null;
  return upTo === null ? 0 : removeUpTo(database, upTo);
}

/**
 * Returns the highest position that may be removed. The position of a reader stays, because the product index uses it to
 * recognise its log. The newest position stays, because new positions continue from it.
 */
function prunableUpTo(database: Database): number {
  const positions = pruneBlockers(database).map(({ position }) => position);
  return Math.min(lastPosition(database), ...positions) - 1;
}

/** Removes the bodies of removed notifications. */
function removeBodiesOf(database: Database, bodyIds: readonly number[]): void {
  const isQuarantined = prepared<[number]>(database, 'SELECT 1 FROM quarantine WHERE body_id = ?');
  const ids = bodyIds.filter((id) => isQuarantined.get(id) === undefined);
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
 * Selects quarantine entries as old as the removed notifications, by default only released ones. An entry stays while a
 * notification uses its body; that is found with the index on the time of receipt, which is the same for both.
 */
function selectQuarantined(
  database: Database,
  request: PruneRequest,
  rowsMax: number,
): (after: number) => Selected | null {
  const beforeUs = Math.max(
    keptSinceUs(request) ?? 0,
    pruneHorizon(database)?.receivedBeforeUs ?? 0,
  );
  const withQuarantined = Number(request.withQuarantined);
  const old = prepared<[object], number>(
    database,
    `SELECT id FROM quarantine WHERE id > @after AND received_at_us < @beforeUs
       AND (released_at_us IS NOT NULL OR @withQuarantined)
       AND NOT EXISTS (SELECT 1 FROM notification WHERE
         notification.received_at_us = quarantine.received_at_us
         AND notification.body_id = quarantine.body_id)
     ORDER BY id LIMIT @rowsMax`,
  ).pluck();
  return (after) => {
    const ids = old.all({ after, beforeUs, withQuarantined, rowsMax });
    const next = ids.at(-1);
    return next === undefined ? null : { unit: { phase: 'quarantine', ids }, next };
  };
}

/** Removes unreleased entries of the quarantine; returns their number. */
export function dropQuarantined(database: Database, ids: readonly number[]): number {
  const isUnreleased = prepared<[number]>(
    database,
    'SELECT 1 FROM quarantine WHERE id = ? AND released_at_us IS NULL',
  );
  return removeEntries(
    database,
    ids.filter((id) => isUnreleased.get(id) !== undefined),
  );
}

function removeEntries(database: Database, ids: readonly number[]): number {
  const find = prepared<[number], Entry>(
    database,
    'SELECT id, body_id AS bodyId FROM quarantine WHERE id = ?',
  );
  const entries = ids.flatMap((id) => find.get(id) ?? []);
  for (const entry of entries) removeEntry(database, entry);
  if (entries.length > 0) rewindCompaction(database);
  return entries.length;
}

interface Entry {
  id: number;
  bodyId: number;
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

/** Old rows of the summaries. Digests stay: they are few, and describe removed notifications. */
const oldRows = {
  'summary-jobs': {
    ...{ table: 'summary_job', key: 'id' },
    isOld: `kind = 'product' AND state IN ('done', 'failed', 'dropped')
      AND position <= (SELECT position FROM prune_horizon)`,
  },
  // Texts without a job: the job was removed, or the summary was written again.
  'summary-texts': {
    ...{ table: 'summary_text', key: 'key' },
    isOld: `created_at_us < (SELECT received_before_us FROM prune_horizon)
      AND NOT EXISTS (SELECT 1 FROM summary_job WHERE text_key = summary_text.key)`,
  },
};

/** Scans a part of a table in the order of its rows, because it has no index on age. */
function selectOldRows(
  database: Database,
  { phase, after, rowsMax }: { phase: keyof typeof oldRows; after: number; rowsMax: number },
): Selected | null {
  const { table, key, isOld } = oldRows[phase];
  const last = prepared<[number, number], number | null>(
    database,
    `SELECT max(rowid) FROM
       (SELECT rowid FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ?)`,
  ).pluck();
  const next = last.get(after, rowsMax) ?? null;
  if (next === null) return null;
  const found = prepared<[number, number]>(
    database,
    `SELECT ${key} FROM ${table} WHERE rowid > ? AND rowid <= ? AND ${isOld}`,
  )
    .pluck()
    .all(after, next);
  if (found.length === 0) return { unit: null, next };
  const unit =
    phase === 'summary-jobs'
      ? { phase, ids: found as number[] }
      : { phase, keys: found as Uint8Array[] };
  return { unit, next };
}

function removeOldRows(
  database: Database,
  phase: keyof typeof oldRows,
  keys: readonly (number | Uint8Array)[],
): number {
  const { table, key, isOld } = oldRows[phase];
  const remove = prepared<[number | Uint8Array]>(
    database,
    `DELETE FROM ${table} WHERE ${key} = ? AND ${isOld}`,
  );
  return keys.reduce<number>((removed, one) => removed + remove.run(one).changes, 0);
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
