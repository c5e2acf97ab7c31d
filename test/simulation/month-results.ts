/** Expected events of subscriptions, from the sandbox's ledger and the registered filters, compared with the log. */

import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { hourUs, parseDate } from '../../src/core/terms/dates.ts';
import type { NotificationSource } from '../../src/core/terms/ports.ts';
import type { SubscriptionEvent } from '../../src/core/terms/subscription.ts';
import type { HourCoverage } from '../../src/features/coverage/completeness.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import type { MonthContext } from './month-context.ts';

/** Definition of a subscription while it was registered; µs since 1970. */
export interface SubscriptionPeriod {
  subscription: string;
  events: readonly SubscriptionEvent[];
  filter: string;
  fromUs: number;
  toUs: number;
}

/** Facts about the month that the sandbox does not record. */
export interface KnownMonth {
  periods: readonly SubscriptionPeriod[];
  /** The ids that a subscription has had at the catalogue. */
  idsOf(subscription: string): ReadonlySet<string>;
}

interface Event {
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** PublicationDate, ModificationDate or DeletionDate of the record. */
  dateUs: number;
}

/** Event that a subscription should receive. */
interface ExpectedEvent extends Event {
  /** True when a push of it was accepted at least once. */
  received: boolean;
  /** True when query results show it at the end. */
  shown: boolean;
  /** Query results show it within [shownFromMs, hiddenFromMs), unless that is empty. */
  shownFromMs: number;
  hiddenFromMs: number;
  /** Change that hid it; null while it is shown. */
  hiddenBy: 'modified' | 'deleted' | null;
}

/** Entry of the notification log. */
interface LoggedEvent extends Event {
  position: number;
  source: NotificationSource;
  /** Time when it was first pushed or pulled; null if it was only fetched. */
  pushedAtUs: number | null;
}

/** Returns the key of an event: a product is created and deleted once, and modified at a date. */
export function eventKey({ subscription, event, productId, dateUs }: Event): string {
  return `${subscription} ${event} ${productId.toLowerCase()} ${event === 'modified' ? dateUs : ''}`;
}

/** Returns the key of the hour of its date, for a subscription and an event type. */
function hourKey({ subscription, event, dateUs }: Omit<Event, 'productId'>): string {
  return `${subscription} ${event} ${Math.floor(dateUs / hourUs) * hourUs}`;
}

function expectedEvents(
  sandbox: Pick<Sandbox, 'events'>,
  { periods, idsOf }: KnownMonth,
): ExpectedEvent[] {
  const all = [...sandbox.events()].filter(({ event }) => event !== 'created');
  const changes = Map.groupBy(all, ({ productId }) => productId);
  return periods.flatMap(({ subscription, events, filter, fromUs, toUs }) => {
    const ids = idsOf(subscription);
    return [...sandbox.events({ events, filter })].flatMap((one): ExpectedEvent[] => {
      const { event, productId, dateUs, subscriptions, shown, shownFrom, sequence } = one;
      if (dateUs === null || dateUs < fromUs || dateUs >= toUs) return [];
      const hiding = changes.get(productId)?.find((change) => {
        if (event === 'deleted' || change.sequence <= sequence) return false;
        return change.event === 'deleted' || event === 'modified';
      });
      return [
        {
          ...{ subscription, event, productId, dateUs, shown },
          received: subscriptions.some((own) => ids.has(own.subscriptionId) && own.received),
          shownFromMs: Date.parse(shownFrom),
          hiddenFromMs: hiding === undefined ? Infinity : Date.parse(hiding.at),
          hiddenBy: hiding === undefined ? null : (hiding.event as 'modified' | 'deleted'),
        },
      ];
    });
  });
}

interface Row extends Omit<LoggedEvent, 'dateUs'> {
  receivedAtUs: number;
  bodyId: number;
  bodyIndex: number;
}

const dateFields = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
} as const;

/** Returns all entries, oldest first. Throws for an entry without a record or a date. */
export function readLog(dataDir: string): LoggedEvent[] {
  const database = new Sqlite(join(dataDir, databaseFileName), { readonly: true });
  try {
    const rows = database.prepare<[], Row>(
      `SELECT position, subscription, event, product_id AS productId, source,
         received_at_us AS receivedAtUs, pushed_at_us AS pushedAtUs, body_index AS bodyIndex,
         body_id AS bodyId
       FROM notification ORDER BY position`,
    );
    const bodies = bodyReader(database);
    // One at a time, since bodies are large.
    return Array.from(rows.iterate(), (row) => toLogged(row, bodies.storedBody(row.bodyId)));
  } finally {
    database.close();
  }
}

function toLogged(
  { bodyIndex, bodyId: _, receivedAtUs, ...row }: Row,
  body: Uint8Array,
): LoggedEvent {
  const json: unknown = JSON.parse(Buffer.from(body).toString());
  // The bodies come from the sandbox or from the receiver.
  const item = (Array.isArray(json) ? json[bodyIndex] : json) as Record<string, unknown>;
  const record = (item.value ?? item.Value) as Record<string, unknown>;
  const date = parseDate(String(record[dateFields[row.event]]));
  if (date === null) throw new Error(`Entry ${row.position} has no date.`);
  const pushedAtUs = row.source === 'reconcile' ? row.pushedAtUs : receivedAtUs;
  return { ...row, dateUs: date.us, pushedAtUs };
}

/** Delays after the end of an hour until its first and its second comparison (decision 24). */
const settlingMs = 30 * 60_000;
const secondComparisonMs = 24 * 3_600_000;

/**
 * Numbers of expected events. Each is counted once: pushed in time; late, half an hour after the event or after its
 * recovery; recovered without a push; or lost, because a modification or deletion came before a comparison.
 */
const noCounts = { expected: 0, pushed: 0, late: 0, recovered: 0, superseded: 0, deleted: 0 };
type MonthCounts = typeof noCounts;

/**
 * Compares the log of a simulated month with the expected events. Returns the counts by subscription and event, such as
 * `acquisitions created`, and the differences. `rounds` are the times of complete comparisons, oldest first.
 */
export function resultOf(
  { sandbox, dataDir, rounds }: Pick<MonthContext, 'sandbox' | 'dataDir' | 'rounds'>,
  month: KnownMonth,
) {
  const expected = expectedEvents(sandbox, month);
  const logged = readLog(dataDir);
  const faults: string[] = [];
  const counts: Record<string, MonthCounts> = {};
  const entries = Map.groupBy(logged, eventKey);
  const known = new Set<string>();
  for (const one of expected) {
    const key = eventKey(one);
    if (known.has(key)) faults.push(`expected twice: ${key}`);
    known.add(key);
    const kind = `${one.subscription} ${one.event}`;
    counts[kind] ??= { ...noCounts };
    counts[kind].expected += 1;
    const [entry, ...others] = entries.get(key) ?? [];
    if (others.length > 0) faults.push(`repeated: ${key}`);
    counts[kind][outcomeOf(one, entry)] += 1;
    const fault = faultOf(one, entry, rounds);
    if (fault !== null) faults.push(`${fault}: ${key}`);
  }
  for (const key of entries.keys()) if (!known.has(key)) faults.push(`not expected: ${key}`);
  return { expected, logged, counts, faults };
}

/** Returns the outcome of an event, by its entry in the log. */
function outcomeOf(one: ExpectedEvent, entry: LoggedEvent | undefined) {
  if (entry === undefined) return one.hiddenBy === 'deleted' ? 'deleted' : 'superseded';
  if (entry.pushedAtUs === null) return 'recovered';
  const hasDelay =
    entry.source === 'reconcile' || entry.pushedAtUs > one.dateUs + settlingMs * 1_000;
  return hasDelay ? 'late' : 'pushed';
}

function faultOf(
  one: ExpectedEvent,
  entry: LoggedEvent | undefined,
  rounds: readonly number[],
): string | null {
  if (entry === undefined) {
    if (one.received) return 'received but not in the log';
    if (one.shown) return 'shown but not in the log';
    const isMissed = wasShownAtComparison(one, rounds);
    return isMissed ? 'shown during a comparison but not in the log' : null;
  }
  if (entry.dateUs !== one.dateUs) return `dated ${entry.dateUs} in the log`;
  return one.received === (entry.pushedAtUs !== null) ? null : 'wrong source in the log';
}

/** Returns true when query results showed it at one of the two due comparisons of its hour. */
function wasShownAtComparison(
  { dateUs, shownFromMs, hiddenFromMs }: ExpectedEvent,
  rounds: readonly number[],
): boolean {
  const endMs = (Math.floor(dateUs / hourUs) * hourUs + hourUs) / 1_000;
  return [endMs + settlingMs, endMs + secondComparisonMs].some((dueMs) => {
    const atMs = rounds.find((one) => one >= dueMs);
    return atMs !== undefined && atMs >= shownFromMs && atMs < hiddenFromMs;
  });
}

/** Sums the counts of all subscriptions and events. */
export function totalOf(counts: Readonly<Record<string, MonthCounts>>): MonthCounts {
  const total = { ...noCounts };
  for (const one of Object.values(counts)) {
    for (const name of Object.keys(total) as (keyof MonthCounts)[]) total[name] += one[name];
  }
  return total;
}

/**
 * Compares the coverage of every hour of a window, read after the last change, with the expected events that
 * query results show. Returns the differences.
 */
export function coverageFaults(
  expected: readonly ExpectedEvent[],
  logged: readonly LoggedEvent[],
  coverage: readonly HourCoverage[],
  { fromUs, toUs }: { fromUs: number; toUs: number },
): string[] {
  const entries = new Map(logged.map((entry) => [eventKey(entry), entry]));
  const hours = new Map<string, { pushed: number; late: number; recovered: number }>();
  for (const one of expected) {
    if (!one.shown || one.dateUs < fromUs || one.dateUs >= toUs) continue;
    const outcome = outcomeOf(one, entries.get(eventKey(one)));
    if (outcome === 'superseded' || outcome === 'deleted') continue;
    const hour = hours.get(hourKey(one)) ?? { pushed: 0, late: 0, recovered: 0 };
    hours.set(hourKey(one), { ...hour, [outcome]: hour[outcome] + 1 });
  }
  const faults: string[] = [];
  for (const { subscription, event, hourUs: at, pushed, late, recovered, missing } of coverage) {
    if (at < fromUs || at + hourUs > toUs) continue;
    const key = hourKey({ subscription, event, dateUs: at });
    const should = JSON.stringify({
      pushed: 0,
      late: 0,
      recovered: 0,
      ...hours.get(key),
      missing: 0,
    });
    const is = JSON.stringify({ pushed, late, recovered, missing });
    hours.delete(key);
    if (is !== should) faults.push(`${key}: ${is} instead of ${should}`);
  }
  return [...faults, ...[...hours.keys()].map((key) => `not compared: ${key}`)];
}
