/** The questions about completeness as SQL, for one reading connection. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import {
  type Definition,
  type HourArrivals,
  type HourCoverage,
  hourUs,
  type RecoveredEvent,
  type Uptime,
} from '../domain/coverage.ts';
import { wholeSinceUs } from '../domain/pruning.ts';
import type { SubscriptionEvent } from '../domain/subscription.ts';
import type { CompletenessQuestion } from './completeness-messages.ts';
import { pruneHorizon } from './pruning/prune-queries.ts';

type Options<Kind extends 'recovered-events' | 'coverage' | 'arrivals'> = Extract<
  CompletenessQuestion,
  { kind: Kind }
>['options'];

const productIdsMax = 1_000;
const arrivalHoursMax = 25;

/** Returns what the port's call of that name resolves with. */
export function askCompleteness(database: Database, question: CompletenessQuestion): unknown {
  switch (question.kind) {
    case 'recovered-events':
      return recoveredEvents(database, question.options);
    case 'definitions':
      return definitions(database);
    case 'uptimes':
      return uptimes(database, question.sinceUs);
    case 'coverage':
      return coverage(database, question.options);
    case 'arrivals':
      return arrivals(database, question.options);
    case 'whole-since':
      return wholeSinceUs(pruneHorizon(database));
  }
}

function recoveredEvents(
  database: Database,
  { subscription, productIds }: Options<'recovered-events'>,
): RecoveredEvent[] {
  if (productIds.length > productIdsMax) {
    throw new AppError('invalid', `At most ${productIdsMax} products can be asked for.`);
  }
  return database
    .prepare<[string, string], RecoveredEvent>(
      `SELECT subscription, event, product_id AS productId, event_us AS eventUs, position,
         pushed_at_us AS pushedAtUs
       FROM notification INDEXED BY notification_recovered
       WHERE source = 'reconcile' AND event_us IS NOT NULL AND subscription = ?
         AND product_id COLLATE NOCASE IN (SELECT value FROM json_each(?))`,
    )
    .all(subscription, JSON.stringify(productIds));
}

function definitions(database: Database): Definition[] {
  return database
    .prepare<[], Omit<Definition, 'events'> & { events: string }>(
      `SELECT subscription, from_us AS fromUs, events, filter
       FROM subscription_definition ORDER BY from_us, id`,
    )
    .all()
    .map((row) => ({
      ...row,
      // Written by our own writer, from the same type.
      events: JSON.parse(row.events) as SubscriptionEvent[],
    }));
}

/** Two programs may have served at the same time: what they share is told once. */
function uptimes(database: Database, sinceUs: number): Uptime[] {
  const rows = database
    .prepare<[number], Uptime>(
      'SELECT from_us AS fromUs, to_us AS toUs FROM uptime WHERE to_us > ? ORDER BY from_us',
    )
    .all(sinceUs);
  const merged: Uptime[] = [];
  for (const row of rows) {
    const last = merged.at(-1);
    if (last === undefined || row.fromUs > last.toUs) merged.push(row);
    else last.toUs = Math.max(last.toUs, row.toUs);
  }
  return merged;
}

function coverage(
  database: Database,
  { sinceUs, untilUs, subscription }: Options<'coverage'>,
): HourCoverage[] {
  const asked = subscription === undefined ? [] : [subscription];
  return database
    .prepare<unknown[], HourCoverage>(
      `SELECT subscription, event, hour_us AS hourUs, expected, pushed, late, recovered, missing,
         compared_at_us AS comparedAtUs
       FROM coverage
       WHERE hour_us >= ? AND hour_us < ? ${asked.length > 0 ? 'AND subscription = ?' : ''}
       ORDER BY subscription, event, hour_us`,
    )
    .all(sinceUs, untilUs, ...asked);
}

/** A push of a recovered event is a sign of life like any other, at its own time. */
function arrivals(database: Database, options: Options<'arrivals'>): HourArrivals[] {
  const { sinceUs, untilUs } = options;
  if (untilUs - sinceUs > arrivalHoursMax * hourUs) {
    throw new AppError('invalid', `Arrivals of at most ${arrivalHoursMax} hours can be asked for.`);
  }
  return database
    .prepare<[Options<'arrivals'>], HourArrivals>(
      `SELECT subscription, at_us - at_us % ${hourUs} AS hourUs, count(*) AS pushes,
         max(at_us) AS lastAtUs
       FROM (
         SELECT subscription, received_at_us AS at_us FROM notification
           INDEXED BY notification_received_at_us
         WHERE received_at_us >= @sinceUs AND received_at_us < @untilUs AND source = 'push'
         UNION ALL
         SELECT subscription, pushed_at_us FROM notification INDEXED BY notification_pushed
         WHERE pushed_at_us >= @sinceUs AND pushed_at_us < @untilUs
       )
       GROUP BY subscription, hourUs ORDER BY hourUs, subscription`,
    )
    .all(options);
}
