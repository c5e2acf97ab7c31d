/** Tables of coverage: compared hours, definitions and uptimes. */
import { hourUs } from '../../core/terms/dates.ts';
import type { SubscriptionEvent } from '../../core/terms/subscription.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import { pruneHorizon } from '../../store/pruning/prune-queries.ts';
import { unprunedSinceUs } from '../../store/pruning/terms.ts';
import type {
  Completeness,
  Definition,
  HourCoverage,
  HourStored,
  RecoveredEvent,
  Uptime,
} from './completeness.ts';

export const schema = `
  -- A row ends with the last heartbeat.
  CREATE TABLE IF NOT EXISTS uptime (
    from_us INTEGER PRIMARY KEY,
    to_us INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- One row per compared hour: an hour without a row is unknown.
  CREATE TABLE IF NOT EXISTS coverage (
    subscription TEXT NOT NULL,
    event TEXT NOT NULL,
    hour_us INTEGER NOT NULL,
    expected INTEGER NOT NULL,
    pushed INTEGER NOT NULL,
    late INTEGER NOT NULL,
    recovered INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    compared_at_us INTEGER NOT NULL,
    PRIMARY KEY (subscription, event, hour_us)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS coverage_hour ON coverage (hour_us);
`;

export const needsSpace = ['recordUptime'];

type Options<Name extends keyof Completeness> = Parameters<Completeness[Name]>[0];

export const reads = {
  recoveredEvents(
    database: Database,
    { subscription, productIds }: Options<'recoveredEvents'>,
  ): RecoveredEvent[] {
    return prepared<[string, string], RecoveredEvent>(
      database,
      `SELECT subscription, event, product_id AS productId, event_us AS eventUs, position,
         pushed_at_us AS pushedAtUs
       FROM notification INDEXED BY notification_recovered
       WHERE source = 'reconcile' AND event_us IS NOT NULL AND subscription = ?
         AND product_id COLLATE NOCASE IN (SELECT value FROM json_each(?))`,
    ).all(subscription, JSON.stringify(productIds));
  },

  definitions(database: Database): Definition[] {
    return (
      prepared<[], Omit<Definition, 'events'> & { events: string }>(
        database,
        `SELECT subscription, from_us AS fromUs, events, filter
         FROM subscription_definition ORDER BY from_us, id`,
      )
        .all()
        // Written by `account.ts` from this type.
        .map((row) => ({ ...row, events: JSON.parse(row.events) as SubscriptionEvent[] }))
    );
  },

  /** Merges overlapping times: two receivers may have run at the same time. */
  uptimes(database: Database, sinceUs: number): Uptime[] {
    const rows = prepared<[number], Uptime>(
      database,
      'SELECT from_us AS fromUs, to_us AS toUs FROM uptime WHERE to_us > ? ORDER BY from_us',
    ).all(sinceUs);
    const merged: Uptime[] = [];
    for (const row of rows) {
      const last = merged.at(-1);
      if (last === undefined || row.fromUs > last.toUs) merged.push(row);
      else last.toUs = Math.max(last.toUs, row.toUs);
    }
    return merged;
  },

  coverage(database: Database, options: Options<'coverage'>): HourCoverage[] {
    const bySubscription =
      options.subscription === undefined ? '' : 'AND subscription = @subscription';
    return prepared<[object], HourCoverage>(
      database,
      `SELECT subscription, event, hour_us AS hourUs, expected, pushed, late, recovered, missing,
         compared_at_us AS comparedAtUs
       FROM coverage WHERE hour_us >= @sinceUs AND hour_us < @untilUs ${bySubscription}
       ORDER BY subscription, event, hour_us`,
    ).all(options);
  },

  /** Counts the rows of the log: recovered ones at the time of their recovery. */
  stored(database: Database, options: Options<'stored'>): HourStored[] {
    return prepared<[object], HourStored>(
      database,
      `SELECT subscription, received_at_us - received_at_us % ${hourUs} AS hourUs,
         count(*) AS notifications
       FROM notification INDEXED BY notification_received_at_us
       WHERE received_at_us >= @sinceUs AND received_at_us < @untilUs
       GROUP BY subscription, hourUs ORDER BY hourUs, subscription`,
    ).all(options);
  },

  withoutRecord(database: Database, sinceUs: number): number {
    return Number(
      prepared(
        database,
        `SELECT count(*) FROM notification n INDEXED BY notification_received_at_us
         WHERE received_at_us >= ? AND source = 'pull' AND product_name IS NULL AND NOT EXISTS (
           SELECT 1 FROM notification INDEXED BY notification_recovered
           WHERE source = 'reconcile' AND product_id COLLATE NOCASE = n.product_id
             AND event = n.event AND subscription = n.subscription)`,
      )
        .pluck()
        .get(sinceUs),
    );
  },

  unprunedSinceUs: (database: Database): number => unprunedSinceUs(pruneHorizon(database)),
};

export const writes = {
  saveCoverage(database: Database, hours: Options<'saveCoverage'>): void {
    const save = prepared(
      database,
      `INSERT INTO coverage (subscription, event, hour_us, expected, pushed, late, recovered, missing,
         compared_at_us)
       VALUES (@subscription, @event, @hourUs, @expected, @pushed, @late, @recovered, @missing,
         @comparedAtUs)
       ON CONFLICT (subscription, event, hour_us) DO UPDATE SET
         expected = excluded.expected, pushed = excluded.pushed, late = excluded.late,
         recovered = excluded.recovered, missing = excluded.missing,
         compared_at_us = excluded.compared_at_us`,
    );
    for (const hour of hours) save.run(hour);
  },

  /** Never shortens an uptime, even when the clock was set back. */
  recordUptime(database: Database, uptime: Uptime): void {
    prepared(
      database,
      `INSERT INTO uptime VALUES (@fromUs, max(@fromUs, @toUs))
       ON CONFLICT (from_us) DO UPDATE SET to_us = max(to_us, excluded.to_us)`,
    ).run(uptime);
  },
};
