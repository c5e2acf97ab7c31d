/** Tables of the catalogue account: registrations, their history, gaps, delivery marks, and definitions. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { notificationDelayUs, sortedEvents } from '../core/terms/subscription.ts';
import { type Database, databaseFileName, openSqlite, prepared } from '../store/engine/database.ts';
import { isEnvironmentFailure, sqliteCode } from '../store/engine/sqlite-error.ts';
import type {
  AdministrationChange,
  DeliveryMark,
  Gap,
  HistoryEntry,
  NewGap,
  Registration,
} from './account.ts';
import type { QueueState } from './pull-queue.ts';

export const schema = `
  -- \`state\` and \`events\` are JSON.

  CREATE TABLE IF NOT EXISTS registration (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- The latest known state of each queue.
  CREATE TABLE IF NOT EXISTS pull_queue (
    subscription TEXT PRIMARY KEY,
    state TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS history (
    id INTEGER PRIMARY KEY,
    at_us INTEGER NOT NULL,
    subscription TEXT NOT NULL,
    subscription_id TEXT,
    action TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS history_subscription ON history (subscription);
  -- Events that a subscription missed. Ids are never reused.
  CREATE TABLE IF NOT EXISTS gap (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription TEXT NOT NULL,
    events TEXT NOT NULL,
    filter TEXT NOT NULL,
    from_us INTEGER NOT NULL,
    to_us INTEGER,
    reason TEXT NOT NULL
  ) STRICT;
  -- At most one open gap of a subscription.
  CREATE UNIQUE INDEX IF NOT EXISTS gap_lasting ON gap (subscription) WHERE to_us IS NULL;
  -- \`subscription\` is '' for a path without a name, because a key cannot be null.
  CREATE TABLE IF NOT EXISTS delivery_mark (
    subscription TEXT NOT NULL,
    username TEXT NOT NULL,
    last_at_us INTEGER NOT NULL,
    PRIMARY KEY (subscription, username)
  ) STRICT, WITHOUT ROWID;
  -- \`events\` is empty after the subscription was removed.
  CREATE TABLE IF NOT EXISTS subscription_definition (
    id INTEGER PRIMARY KEY,
    subscription TEXT NOT NULL,
    from_us INTEGER NOT NULL,
    events TEXT NOT NULL,
    filter TEXT NOT NULL
  ) STRICT;
`;

/** A stored row: `events` is JSON, written only by this module. */
type Stored<Row> = Omit<Row, 'events'> & { events: string };

export const reads = {
  registrations(database: Database): Registration[] {
    return statesOf<Registration>(database, 'SELECT state FROM registration ORDER BY name');
  },

  /** Returns entries by id, newest first: times are not in order after the clock was set back. */
  history(
    database: Database,
    { subscription, limit }: { subscription?: string; limit: number },
  ): HistoryEntry[] {
    return prepared<[object], HistoryEntry>(
      database,
      `SELECT at_us AS atUs, subscription, subscription_id AS subscriptionId, action, actor, reason
       FROM history ${subscription === undefined ? '' : 'WHERE subscription = @subscription'}
       ORDER BY id DESC LIMIT @limit`,
    ).all({ subscription, limit });
  },

  gaps(database: Database): Gap[] {
    return prepared<[], Stored<Gap>>(
      database,
      `SELECT id, subscription, events, filter, from_us AS fromUs, to_us AS toUs, reason
       FROM gap ORDER BY from_us, id`,
    )
      .all()
      .map(({ events, ...row }) => ({ ...row, events: JSON.parse(events) as Gap['events'] }));
  },

  deliveryMarks(database: Database): DeliveryMark[] {
    return prepared<[], DeliveryMark>(
      database,
      `SELECT nullif(subscription, '') AS subscription, username, last_at_us AS lastAtUs
       FROM delivery_mark ORDER BY delivery_mark.subscription, username`,
    ).all();
  },

  queues(database: Database): QueueState[] {
    return statesOf<QueueState>(database, 'SELECT state FROM pull_queue ORDER BY subscription');
  },
};

/** Returns states, which only this module writes. */
function statesOf<State>(database: Database, sql: string): State[] {
  const states = prepared<[], string>(database, sql).pluck().all();
  return states.map((state) => JSON.parse(state) as State);
}

export const writes = {
  /**
   * Applies the fields of `AdministrationChange` in their order, so that one change can remove a registration and
   * save its successor, or record a closed gap. Also records the changed definition of the subscription.
   */
  commit(database: Database, change: AdministrationChange): void {
    const { removeRegistration: removed, save, history = [], openGap: gap, closeGaps } = change;
    saveDefinitions(database, change);
    if (removed !== undefined) {
      prepared(database, 'DELETE FROM registration WHERE name = ?').run(removed);
    }
    if (save !== undefined) {
      const sql = 'INSERT OR REPLACE INTO registration VALUES (?, ?)';
      prepared(database, sql).run(save.name, JSON.stringify(save));
    }
    for (const entry of history) {
      prepared(
        database,
        `INSERT INTO history (at_us, subscription, subscription_id, action, actor, reason)
         VALUES (@atUs, @subscription, @subscriptionId, @action, @actor, @reason)`,
      ).run(entry);
    }
    if (gap !== undefined) openGap(database, gap);
    if (closeGaps !== undefined) {
      // The clock may have been set back since the gap was opened.
      prepared(
        database,
        'UPDATE gap SET to_us = max(from_us, @toUs) WHERE subscription = @subscription AND to_us IS NULL',
      ).run(closeGaps);
    }
  },

  /** Ignores marks that are older than the stored ones. */
  markDeliveries(database: Database, marks: readonly DeliveryMark[]): void {
    for (const { subscription, username, lastAtUs } of marks) {
      prepared(
        database,
        `INSERT INTO delivery_mark VALUES (?, ?, ?)
         ON CONFLICT (subscription, username) DO UPDATE SET
           last_at_us = max(last_at_us, excluded.last_at_us)`,
      ).run(subscription ?? '', username, lastAtUs);
    }
  },

  /** Replaces the states of all queues. */
  saveQueues(database: Database, states: readonly QueueState[]): void {
    prepared(database, 'DELETE FROM pull_queue').run();
    for (const state of states) {
      prepared(database, 'INSERT INTO pull_queue VALUES (?, ?)').run(
        state.subscription,
        JSON.stringify(state),
      );
    }
  },
};

function openGap(database: Database, gap: NewGap): void {
  prepared(
    database,
    `INSERT INTO gap (subscription, events, filter, from_us, reason)
     VALUES (@subscription, @events, @filter, @fromUs, @reason)
     ON CONFLICT (subscription) WHERE to_us IS NULL DO NOTHING`,
  ).run({ ...gap, events: JSON.stringify(gap.events) });
}

/** Records a changed definition (events and filter) with its time. Called before the change is applied. */
function saveDefinitions(database: Database, change: AdministrationChange): void {
  const { removeRegistration: removed, save, history = [], closeGaps, definedAtUs } = change;
  const times = history.map(({ atUs }) => atUs);
  const historyAtUs = times.length > 0 ? Math.max(...times) : undefined;
  if (removed !== undefined && removed !== save?.name) {
    const before = reads.registrations(database).find(({ name }) => name === removed);
    const atUs = historyAtUs ?? closeGaps?.toUs ?? before?.activityAtUs;
    if (atUs !== undefined) saveDefinition(database, removed, noDefinition, atUs);
  }
  // An unfinished change: the catalogue may still have the old subscription, or none.
  if (save === undefined || save.unfinished) return;
  const definition = { events: JSON.stringify(sortedEvents(save.events)), filter: save.filter };
  saveDefinition(database, save.name, definition, definedAtUs ?? historyAtUs ?? save.activityAtUs);
}

const noDefinition = { events: '[]', filter: '' };

function saveDefinition(
  database: Database,
  name: string,
  { events, filter }: typeof noDefinition,
  atUs: number,
): void {
  const newest = prepared<[string], typeof noDefinition & { fromUs: number }>(
    database,
    `SELECT from_us AS fromUs, events, filter FROM subscription_definition
     WHERE subscription = ? ORDER BY from_us DESC, id DESC LIMIT 1`,
  ).get(name) ?? { fromUs: 0, ...noDefinition };
  if (newest.events === events && newest.filter === filter) return;
  const fromUs = newest.events === noDefinition.events ? atUs - notificationDelayUs : atUs;
  // Never before the previous definition, even when the clock was set back.
  prepared(
    database,
    `INSERT INTO subscription_definition (subscription, from_us, events, filter)
     VALUES (?, ?, ?, ?)`,
  ).run(name, Math.max(fromUs, newest.fromUs), events, filter);
}

/** Returns the registered subscriptions; none without a readable file. Reads on the calling thread, and writes nothing. */
export function registeredSubscriptions(dataDir: string): Registration[] {
  const file = join(dataDir, databaseFileName);
  if (!existsSync(file)) return [];
  let database: Database | undefined;
  try {
    database = openSqlite(file, { readonly: true, timeout: 1_000 });
    return reads.registrations(database);
  } catch (error) {
    if (sqliteCode(error) !== null || isEnvironmentFailure(error)) return [];
    throw error;
  } finally {
    database?.close();
  }
}
