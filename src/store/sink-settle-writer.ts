/** Writes what came of items that were handed over. */
import type { Database } from 'better-sqlite3';
import type { SettleItemsOptions } from './sink-messages.ts';

type Taken = Extract<SettleItemsOptions[number], { outcome: 'taken' }>;
type Undone = Exclude<SettleItemsOptions[number], { outcome: 'taken' }>;

/** Each item is found by its id; one that is gone, or no longer waits, stays as it is. */
export function prepareSettleItems(database: Database) {
  // A dead letter, too, is over when it turns out to have been taken.
  const forget = database
    .prepare<[number], string>('DELETE FROM sink_item WHERE id = ? RETURNING sink')
    .pluck();
  const count = database.prepare(
    `INSERT INTO sink_delivery (sink, delivered, last_at_us) VALUES (@sink, 1, @atUs)
     ON CONFLICT (sink) DO UPDATE SET delivered = delivered + 1, last_at_us = excluded.last_at_us`,
  );
  const remove = ({ id, deliveredAtUs: atUs }: Taken) => {
    const sink = forget.get(id);
    if (sink !== undefined && atUs !== undefined) count.run({ sink, atUs });
  };
  const leaveUndone = prepareLeaveUndone(database);
  return (results: SettleItemsOptions): void => {
    for (const result of results) {
      if (result.outcome === 'taken') remove(result);
      else leaveUndone(result);
    }
  };
}

function prepareLeaveUndone(database: Database) {
  const update = database.prepare(
    `UPDATE sink_item AS item SET state = @state, attempts = attempts + @refusals, error = @error,
       due_at_us = coalesce(@nextTryAtUs, due_at_us),
       failure = 1 + coalesce((SELECT max(failure) FROM sink_item AS other
         WHERE other.sink = item.sink AND other.failure IS NOT NULL), 0)
     WHERE id = @id AND state = 'waiting'`,
  );
  return (result: Undone) => {
    const { id, error } = result;
    const isDead = result.outcome === 'dead';
    update.run({
      id,
      error,
      state: isDead ? 'dead' : 'waiting',
      refusals: Number(isDead || result.counts),
      nextTryAtUs: isDead ? null : result.nextTryAtUs,
    });
  };
}
