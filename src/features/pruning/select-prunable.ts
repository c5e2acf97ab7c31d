/** Selects what one step of pruning removes. Reads only. */
import { type Database, prepared } from '../../store/engine/database.ts';
import { lastPosition } from '../../store/log/queries.ts';
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
  | ({ phase: 'notifications' } & PruneHorizon)
  | { phase: 'quarantine' | 'summaries'; ids: number[] };

/** A unit (null for no rows in a part of a table), and `after` of the one that follows. */
export interface Selected {
  unit: PruneUnit | null;
  next: number;
}

export type StepOptions = Parameters<Pruning['pruneStep']>[0];

/** Rows of a unit, by phase: those of a shared log are larger, because each is an entry. */
type UnitRows = Record<PruneUnit['phase'], number>;
export const unitRows: UnitRows = {
  ...{ notifications: 64, quarantine: 1, summaries: 200 },
};
export const sharedUnitRows: UnitRows = {
  ...{ notifications: 1_000, quarantine: 100, summaries: 2_000 },
};

/** Returns the next rows of a phase to remove in a shared log; null when the phase is complete. */
export function selectPrunable(database: Database, options: StepOptions): Selected | null {
  return createSelection(database, options, sharedUnitRows)(options.after);
}

/** Returns the function that returns the next rows to remove; null when the phase is complete. */
export function createSelection(
  database: Database,
  { phase, request }: StepOptions,
  rows: UnitRows,
): (after: number) => Selected | null {
  switch (phase) {
    case 'notifications':
      return selectOldest(database, request, rows[phase]);
    case 'quarantine':
      return selectQuarantined(database, request, rows[phase]);
    case 'summaries':
      return (after) => selectOldSummaries(database, after, rows[phase]);
    case 'space':
      return () => null;
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
    return { unit: { phase: 'notifications', ...horizon }, next: 0 };
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
    return next === undefined ? null : { unit: { phase: 'quarantine', ids }, next };
  };
}

/**
 * Selects the summaries of removed notifications, in a part of the table, because it has no index on the position.
 * Digests stay: they are few, and describe removed notifications.
 */
function selectOldSummaries(database: Database, after: number, rowsMax: number): Selected | null {
  const last = prepared<[number, number], number | null>(
    database,
    'SELECT max(id) FROM (SELECT id FROM summary WHERE id > ? ORDER BY id LIMIT ?)',
  ).pluck();
  const next = last.get(after, rowsMax) ?? null;
  if (next === null) return null;
  const ids = prepared<[number, number], number>(
    database,
    `SELECT id FROM summary WHERE id > ? AND id <= ? AND kind = 'product'
       AND position <= (SELECT position FROM prune_horizon)`,
  )
    .pluck()
    .all(after, next);
  return { unit: ids.length === 0 ? null : { phase: 'summaries', ids }, next };
}
