/** Removes bodies that nothing refers to any more. */
import type { Database } from 'better-sqlite3';

export interface OldNotification {
  position: number;
  receivedAtUs: number;
  bodyId: number;
}

/**
 * A row of `body` holds several, and goes when all of them may. Notifications have no index by their body, and need
 * none: their bodies rise with their positions, but for those that came out of the quarantine. Of these the
 * quarantine still has an entry, and a body with an entry there stays. So what lies below the body of the first
 * notification that is left, entries aside, is referred to by none.
 */
export function prepareRemoveBodies(database: Database) {
  const isQuarantined = database.prepare('SELECT 1 FROM quarantine WHERE body_id = ?');
  const firstLeft = database
    .prepare<[], number>(
      `SELECT body_id FROM notification WHERE NOT EXISTS
         (SELECT 1 FROM quarantine WHERE quarantine.body_id = notification.body_id)
       ORDER BY position LIMIT 1`,
    )
    .pluck();
  const remove = database.prepare(
    `DELETE FROM body WHERE id >= coalesce((SELECT max(id) FROM body WHERE id <= @from), 0)
       AND id <= @to AND id + bodies <= @left AND NOT EXISTS
         (SELECT 1 FROM quarantine WHERE body_id >= body.id AND body_id < body.id + bodies)`,
  );
  const removeEncodings = database.prepare(
    `DELETE FROM body_encoding WHERE body_id <= @to AND body_id >= coalesce((SELECT max(id + bodies)
       FROM body WHERE id <= body_encoding.body_id), 0)`,
  );
  const removeWithin = (from: number, to: number) => {
    remove.run({ from, to, left: firstLeft.get() ?? Number.MAX_SAFE_INTEGER });
    removeEncodings.run({ to });
  };
  return {
    /** The bodies of notifications that have just been removed. */
    of: (removed: readonly OldNotification[]): void => {
      const ids = removed
        .map(({ bodyId }) => bodyId)
        .filter((id) => isQuarantined.get(id) === undefined);
      if (ids.length > 0) removeWithin(Math.min(...ids), Math.max(...ids));
    },
    /** The body of a quarantine entry that has just been removed. */
    ofEntry: (bodyId: number): void => removeWithin(bodyId, bodyId),
  };
}
