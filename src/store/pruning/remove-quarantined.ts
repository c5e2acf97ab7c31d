/** Removes old entries of the quarantine with their bodies. */
import type { Database } from 'better-sqlite3';
import type { PruneStep, PruneWish } from '../../domain/pruning.ts';
import { pruneHorizon } from './prune-queries.ts';
import { prepareRemoveBodies } from './remove-bodies.ts';
import { keptSinceUs } from './remove-oldest.ts';
import { repeatForStep } from './step-time.ts';

/**
 * What goes: entries as old as the notifications that went, released ones unless told otherwise. One from whose body
 * there still is a notification stays with it: they have the same time of receipt, by which there is an index.
 */
export const isOldEntry = `received_at_us < @beforeUs AND (released_at_us IS NOT NULL OR @withHeld)
  AND NOT EXISTS (SELECT 1 FROM notification WHERE
    notification.received_at_us = quarantine.received_at_us
    AND notification.body_id = quarantine.body_id)`;

export function oldEntryValues(database: Database, wish: PruneWish) {
  const beforeUs = Math.max(keptSinceUs(wish) ?? 0, pruneHorizon(database)?.receivedBeforeUs ?? 0);
  return { beforeUs, withHeld: Number(wish.withHeld) };
}

export function prepareRemoveQuarantined(database: Database) {
  const next = database.prepare<[object], { id: number; bodyId: number }>(
    `SELECT id, body_id AS bodyId FROM quarantine WHERE id > @after AND ${isOldEntry}
     ORDER BY id LIMIT 1`,
  );
  const remove = prepareRemoveEntry(database);
  return (wish: PruneWish, after: number, stepMs: number): PruneStep => {
    const values = oldEntryValues(database, wish);
    let removed = 0;
    let last = after;
    const isMore = repeatForStep(stepMs, () => {
      const entry = next.get({ ...values, after: last });
      if (entry === undefined) return false;
      remove.entry(entry);
      removed += 1;
      last = entry.id;
      return true;
    });
    if (removed > 0) remove.end();
    return { removed, next: isMore ? last : null };
  };
}

/** The function removes held entries by their ids. */
export function prepareDropQuarantined(database: Database) {
  const find = database.prepare<[number], { id: number; bodyId: number }>(
    'SELECT id, body_id AS bodyId FROM quarantine WHERE id = ? AND released_at_us IS NULL',
  );
  const remove = prepareRemoveEntry(database);
  return (ids: readonly number[]): number => {
    const entries = ids.flatMap((id) => find.get(id) ?? []);
    for (const entry of entries) remove.entry(entry);
    if (entries.length > 0) remove.end();
    return entries.length;
  };
}

function prepareRemoveEntry(database: Database) {
  const remove = database.prepare('DELETE FROM quarantine WHERE id = ?');
  const removeBodies = prepareRemoveBodies(database);
  // Where the newest bodies went, their ids are given again: `earshot compact` must not pass over those.
  const rewind = database.prepare(
    `UPDATE compaction SET next_body_id = min(next_body_id,
       coalesce((SELECT id + bodies FROM body ORDER BY id DESC LIMIT 1), 1))`,
  );
  return {
    entry: ({ id, bodyId }: { id: number; bodyId: number }): void => {
      remove.run(id);
      removeBodies.ofEntry(bodyId);
    },
    end: () => void rewind.run(),
  };
}
