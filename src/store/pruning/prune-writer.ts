/** Changes of the store itself: cursors, the quarantine, and steps of pruning. Each runs in the caller's transaction. */
import { type Database, prepared } from '../engine/database.ts';
import { spareBytes } from '../engine/disk-limit.ts';
import type { Writer } from '../engine/writer-connection.ts';
import { logWrites, nodeId } from '../log/queries.ts';
import { tables } from '../tables.ts';
import { type PruneUnit, pageBytes, pruneBlockers, sharedBlockers } from './prune-queries.ts';
import type { PruneHorizon, PruneStep } from './terms.ts';

/** Changes of the store itself by group; those of features are in their tables. */
export const changes = {
  log: logWrites,
  quarantine: { drop: removeEntries },
  pruning: { removeReader, removeSelected },
};

/** Tasks for the file of this log; with a shared log, for that of each node. */
export const fileTasks = {
  checkpoint: ({ connection }: Writer): void => connection.checkpoint(),
  /** Runs a checkpoint while intake needs all free space: changes also take space in the write-ahead log. */
  checkpointIfFull({ connection, place }: Writer): void {
    if (spareBytes(place) < 0) connection.checkpoint();
  },
  releaseFreePages: ({ connection }: Writer, freeShare: number): PruneStep =>
    connection.transact((database) => releaseFreePages(database, freeShare)),
};

/**
 * Removes the rows of a unit, and moves the horizon; returns their number. Takes about 25 ms, so that it hardly delays the
 * intake. May use the disk reserve, because pruning frees space. May be repeated, skipped, or run by two processes at once.
 * Removes no notification that a reader needs since they were selected.
 */
function removeSelected(database: Database, unit: PruneUnit): number {
  if (unit.phase === 'notifications') {
    const upTo = unit.horizon.position;
    // All nodes of a shared log must remove the same.
    const blockers = nodeId(database) === null ? pruneBlockers(database) : sharedBlockers(database);
    const isNeeded = blockers.some(({ position }) => position <= upTo);
    return isNeeded ? 0 : removeNotifications(database, unit.horizon);
  }
  const { group, ids } = unit;
  if (group === 'quarantine') return removeEntries(database, ids);
  return tables().get(group)?.pruned?.remove(database, ids) ?? 0;
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

/** Rows of one transaction of `removePruned`. */
const prunedMax = 1_000;

/** Removes some rows up to the horizon, which another log has set. Returns their number; 0 when none is left. */
export function removePruned(database: Database): number {
  const last = prepared<[number], number | null>(
    database,
    `SELECT max(position) FROM (SELECT position FROM notification
       WHERE position <= (SELECT position FROM prune_horizon) ORDER BY position LIMIT ?)`,
  ).pluck();
  const upTo = last.get(prunedMax) ?? null;
  return upTo === null ? 0 : removeUpTo(database, upTo);
}

/** Removes the bodies of removed notifications. */
function removeBodiesOf(database: Database, bodyIds: readonly number[]): void {
  const isQuarantined = prepared<[number]>(database, 'SELECT 1 FROM quarantine WHERE body_id = ?');
  const ids = bodyIds.filter((id) => isQuarantined.get(id) === undefined);
  if (ids.length > 0) removeBodies(database, Math.min(...ids), Math.max(...ids));
}

/**
 * Removes unreferenced bodies. A row of `body` contains several, and is removed when all of them are unreferenced.
 * Notifications need no index by body, because body ids increase with positions: every body below that of the first
 * remaining notification, and without a quarantine entry, is unreferenced.
 */
function removeBodies(database: Database, from: number, to: number): void {
  const first = 'SELECT body_id FROM notification ORDER BY position LIMIT 1';
  const firstLeft = prepared<[], number>(database, first).pluck();
  prepared<object>(
    database,
    `DELETE FROM body WHERE id >= coalesce((SELECT max(id) FROM body WHERE id <= @from), 0)
       AND id <= @to AND id + bodies <= @left AND NOT EXISTS
         (SELECT 1 FROM quarantine WHERE body_id >= body.id AND body_id < body.id + bodies)`,
  ).run({ from, to, left: firstLeft.get() ?? Number.MAX_SAFE_INTEGER });
}

/** Removes entries of the quarantine; returns their number. */
export function removeEntries(database: Database, ids: readonly number[]): number {
  const remove = prepared<[number], { bodyId: number; receivedAtUs: number }>(
    database,
    'DELETE FROM quarantine WHERE id = ? RETURNING body_id AS bodyId, received_at_us AS receivedAtUs',
  );
  // Removes a body in its own row; `removeBodies` leaves it if an older body is in use.
  const removeBody = prepared<object>(
    database,
    `DELETE FROM body WHERE id = @bodyId AND bodies = 1
       AND NOT EXISTS (SELECT 1 FROM quarantine WHERE body_id = @bodyId)
       AND NOT EXISTS (SELECT 1 FROM notification
         WHERE received_at_us = @receivedAtUs AND body_id = @bodyId)`,
  );
  const entries = ids.flatMap((id) => remove.get(id) ?? []);
  for (const entry of entries) {
    removeBody.run(entry);
    removeBodies(database, entry.bodyId, entry.bodyId);
  }
  if (entries.length > 0) rewindCompaction(database);
  return entries.length;
}

/** Rewinds compaction, which must not skip reused ids: the ids of removed newest bodies are given again. */
function rewindCompaction(database: Database): void {
  prepared(
    database,
    `UPDATE compaction SET next_body_id = min(next_body_id,
       coalesce((SELECT id + bodies FROM body ORDER BY id DESC LIMIT 1), 1))`,
  ).run();
}

/** Pages moved by one step: 1 MiB. */
const pagesMax = 64;

/**
 * Releases free pages: moves pages from the end of the file into free ones. The next checkpoint truncates the file.
 * `freeShare` of the file may stay free.
 */
export function releaseFreePages(database: Database, freeShare: number): PruneStep {
  const { usedBytes, freeBytes } = pageBytes(database);
  if (freeBytes <= freeShare * (usedBytes + freeBytes)) return { removed: 0, next: null };
  database.pragma(`incremental_vacuum(${pagesMax})`);
  const removed = freeBytes - pageBytes(database).freeBytes;
  // A file without auto_vacuum keeps its free pages for reuse.
  return { removed, next: removed > 0 ? 0 : null };
}

/** Returns false if there is no such reader. */
export function removeReader(database: Database, key: string): boolean {
  return (
    prepared<[string]>(database, 'DELETE FROM reader_cursor WHERE reader = ?').run(key).changes > 0
  );
}
