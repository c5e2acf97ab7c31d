/** Writes what is remembered of the catalogue account. */
import type { Database } from 'better-sqlite3';
import type {
  AdministrationChange,
  DeliveryMark,
  HistoryEntry,
  NewGap,
  Registration,
} from '../domain/account.ts';
import { prepareDefine } from './definition-writer.ts';

/** Works inside a transaction of the caller's. */
export interface AdministrationWriter {
  /**
   * In the order of the fields of `AdministrationChange`, so that one change may forget a registration
   * and save its successor, or record a gap that is over. What this makes of the definition of a
   * subscription is remembered, too.
   */
  write(change: AdministrationChange): void;
  /** A mark that is older than the one kept changes nothing. */
  mark(marks: readonly DeliveryMark[]): void;
}

export function createAdministrationWriter(database: Database): AdministrationWriter {
  const define = prepareDefine(database);
  const forget = database.prepare('DELETE FROM registration WHERE name = ?');
  const save = prepareSave(database);
  const note = prepareNote(database);
  // The gap may have been opened by a clock that was ahead.
  const closeGaps = database.prepare(
    'UPDATE gap SET to_us = max(from_us, ?) WHERE subscription = ? AND to_us IS NULL',
  );
  const openGap = prepareOpenGap(database);
  const mark = database.prepare(
    `INSERT INTO delivery_mark VALUES (?, ?, ?)
     ON CONFLICT (subscription, username) DO UPDATE SET
       last_at_us = max(last_at_us, excluded.last_at_us)`,
  );
  return {
    write: (change) => {
      define(change);
      if (change.forget !== undefined) forget.run(change.forget);
      if (change.save !== undefined) save(change.save);
      for (const entry of change.history ?? []) note(entry);
      if (change.openGap !== undefined) openGap(change.openGap);
      if (change.closeGaps !== undefined) {
        closeGaps.run(change.closeGaps.toUs, change.closeGaps.subscription);
      }
    },
    mark: (marks) => {
      for (const { subscription, username, lastAtUs } of marks) {
        mark.run(subscription ?? '', username, lastAtUs);
      }
    },
  };
}

function prepareSave(database: Database) {
  const replace = database.prepare(
    `INSERT OR REPLACE INTO registration (name, events, filter, status, subscription_id, unfinished,
       credentials_digest, activity_at_us, notified_at_us,
       running_seen_at_us, paused_seen_at_us, held_by, reported)
     VALUES (@name, @events, @filter, @status, @subscriptionId, @unfinished,
       @credentialsDigest, @activityAtUs, @notifiedAtUs,
       @runningSeenAtUs, @pausedSeenAtUs, @heldBy, @reported)`,
  );
  return (one: Registration) =>
    replace.run({
      ...one,
      events: JSON.stringify(one.events),
      unfinished: Number(one.unfinished),
    });
}

function prepareNote(database: Database) {
  const insert = database.prepare(
    `INSERT INTO history (at_us, subscription, subscription_id, action, actor, reason)
     VALUES (@atUs, @subscription, @subscriptionId, @action, @actor, @reason)`,
  );
  return (entry: HistoryEntry) => insert.run(entry);
}

function prepareOpenGap(database: Database) {
  const insert = database.prepare(
    `INSERT INTO gap (subscription, events, filter, from_us, reason)
     VALUES (@subscription, @events, @filter, @fromUs, @reason)
     ON CONFLICT (subscription) WHERE to_us IS NULL DO NOTHING`,
  );
  return (gap: NewGap) => insert.run({ ...gap, events: JSON.stringify(gap.events) });
}
