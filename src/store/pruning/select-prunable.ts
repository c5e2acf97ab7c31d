/** Selects what one step of pruning removes. Reads only. */
import { type Database, prepared } from '../engine/database.ts';
import { tables } from '../engine/table-operations.ts';
import { lastPosition } from '../log/queries.ts';
import {
  keptSinceUs,
  pageBytes,
  pruneBlockers,
  pruneHorizon,
  quarantineBytes,
} from './prune-queries.ts';
import type { PruneHorizon, PruneRequest, Pruning } from './terms.ts';

/** Rows that are removed together. */
export type PruneUnit =
  | { phase: 'notifications'; horizon: PruneHorizon }
  /** `quarantine`, or the group of a feature. */
  | { phase: 'rows'; group: string; ids: number[] };

/** A unit (null for no rows in a part of a table), and `after` of the one that follows. */
export interface Selected {
  unit: PruneUnit | null;
  next: number;
}

export type StepOptions = Parameters<Pruning['pruneStep']>[0];

/** Rows of a unit: those of a shared log are larger, because each is an entry. */
export const unitRows = {
  own: { notifications: 64, quarantine: 1 },
  shared: { notifications: 1_000, quarantine: 100 },
};

/** Returns the next rows of a phase to remove in a shared log; null when the phase is complete. */
export function selectPrunable(database: Database, options: StepOptions): Selected | null {
  return createSelection(database, options, 'shared')(options.after);
}

/** Returns the function that returns the next rows to remove; null when the phase is complete. */
export function createSelection(
  database: Database,
  { phase, request }: StepOptions,
  use: keyof typeof unitRows,
): (after: number) => Selected | null {
  const { notifications, quarantine } = unitRows[use];
  if (phase === 'notifications') return selectOldest(database, request, notifications);
  if (phase === 'quarantine') return selectQuarantined(database, request, quarantine);
  const pruned = tables().get(phase)?.pruned;
  if (pruned === undefined) return () => null;
  return (after) => {
    const found = pruned.select(database, { after, rowsMax: pruned.rows[use] });
    if (found === null) return null;
    const { ids, next } = found;
    return { unit: ids.length === 0 ? null : { phase: 'rows', group: phase, ids }, next };
  };
}

/** Selects the oldest notifications up to the first that stays. Reads the limits once: they take longer than a unit. */
function selectOldest(
  database: Database,
  request: PruneRequest,
  rowsMax: number,
): () => Selected | null {
  const upTo = prunableUpTo(database);
  const sinceUs = keptSinceUs(request) ?? Number.NEGATIVE_INFINITY;
  const bytesMax = (request.keep.bytes ?? Number.POSITIVE_INFINITY) + quarantineBytes(database);
  const oldest = prepared<[number, number], { position: number; receivedAtUs: number }>(
    database,
    `SELECT position, received_at_us AS receivedAtUs
     FROM notification WHERE position <= ? ORDER BY position LIMIT ?`,
  );
  return () => {
    const rows = oldest.all(upTo, rowsMax);
    const isTooLarge = pageBytes(database).usedBytes > bytesMax;
    const end = rows.findIndex(({ receivedAtUs }) => !(isTooLarge || receivedAtUs < sinceUs));
    const selected = end === -1 ? rows : rows.slice(0, end);
    const last = selected.at(-1);
    if (last === undefined) return null;
    const { nowUs: prunedAtUs } = request;
    const newestUs = Math.max(...selected.map(({ receivedAtUs }) => receivedAtUs));
    // A date in the future, from a clock that ran ahead, must not hide later notifications.
    const receivedBeforeUs = Math.min(newestUs, prunedAtUs) + 1;
    const horizon = { position: last.position, receivedBeforeUs, prunedAtUs };
    return { unit: { phase: 'notifications', horizon }, next: 0 };
  };
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
 * Selects quarantine entries as old as the removed notifications, by default only released ones. An entry stays while a
 * notification may use its body: the time of receipt is then the same. Bodies have other ids on each node.
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
       AND NOT EXISTS (SELECT 1 FROM notification
         WHERE notification.received_at_us = quarantine.received_at_us)
     ORDER BY id LIMIT @rowsMax`,
  ).pluck();
  return (after) => {
    const ids = old.all({ after, beforeUs, withQuarantined, rowsMax });
    const next = ids.at(-1);
    return next === undefined ? null : { unit: { phase: 'rows', group: 'quarantine', ids }, next };
  };
}
