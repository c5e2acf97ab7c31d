/** Writes what people want of items: dead letters tried again, and what is to be forgotten. */
import type { Database } from 'better-sqlite3';
import { changedMax } from './change-all.ts';
import type { DropItemsOptions, RetryItemsOptions } from './sink-messages.ts';

const isNamed = 'id IN (SELECT value FROM json_each(@ids))';

/** At most `changedMax` of them, as queued. */
const some = (state: 'waiting' | 'dead', among: 'all' | 'named') =>
  `id IN (SELECT id FROM sink_item WHERE sink = @sink AND state = '${state}'
     ${among === 'named' ? `AND ${isNamed}` : ''} ORDER BY id LIMIT ${changedMax})`;

/**
 * They count as queued at this moment, so that a sink does not pass for stuck; their place in the order
 * stays. Returns how many they were: with `changedMax` there may be more.
 */
export function prepareRetryItems(database: Database) {
  const prepare = (among: 'all' | 'named') =>
    database.prepare(
      `UPDATE sink_item SET state = 'waiting', attempts = 0, due_at_us = @nowUs,
         queued_at_us = @nowUs, error = NULL, failure = NULL WHERE ${some('dead', among)}`,
    );
  const all = prepare('all');
  const named = prepare('named');
  return ({ sink, ids, nowUs }: RetryItemsOptions): number =>
    ids === 'all'
      ? all.run({ sink, nowUs }).changes
      : named.run({ sink, nowUs, ids: JSON.stringify(ids) }).changes;
}

/** Returns how many items they were: with `changedMax` there may be more. */
export function prepareDropItems(database: Database) {
  const prepare = (state: 'waiting' | 'dead') => ({
    all: database.prepare(`DELETE FROM sink_item WHERE ${some(state, 'all')}`),
    named: database.prepare(`DELETE FROM sink_item WHERE ${some(state, 'named')}`),
  });
  const statements = { waiting: prepare('waiting'), dead: prepare('dead') };
  // A replay may have been asked for by a clock that was ahead.
  const endReplays = database.prepare(
    `UPDATE sink_replay SET ended_at_us = max(requested_at_us, @nowUs)
     WHERE sink = @sink AND ended_at_us IS NULL`,
  );
  return ({ sink, state, ids, nowUs }: DropItemsOptions): number => {
    const { all, named } = statements[state];
    if (ids !== 'all') return named.run({ sink, ids: JSON.stringify(ids) }).changes;
    if (state === 'waiting') endReplays.run({ sink, nowUs });
    return all.run({ sink }).changes;
  };
}
