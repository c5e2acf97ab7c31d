/** Expected events of subscriptions, from the sandbox's ledger and the registered filters, compared with the log. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { hourUs, parseDate } from '../../src/core/terms/dates.ts';
import type { NotificationSource } from '../../src/core/terms/ports.ts';
import type { SubscriptionEvent } from '../../src/core/terms/subscription.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';

/** Definition of a subscription while it was registered; µs since 1970. */
export interface SubscriptionPeriod {
  subscription: string;
  events: readonly SubscriptionEvent[];
  filter: string;
  fromUs: number;
  toUs: number;
}

interface KnownHistory {
  sandbox: Pick<Sandbox, 'events'>;
  dataDir: string;
  periods: readonly SubscriptionPeriod[];
  /** The ids that a subscription has had at the catalogue. */
  idsOf(subscription: string): ReadonlySet<string>;
  /** Times of completed comparisons, ms since 1970, oldest first. */
  rounds: readonly number[];
}

interface Event {
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** PublicationDate, ModificationDate or DeletionDate of the record. */
  dateUs: number;
}

/** Entry of the notification log. */
interface LoggedEvent extends Event {
  source: NotificationSource;
  /** Time when it was first pushed or pulled; null if it was only fetched. */
  pushedAtUs: number | null;
}

/** Returns the key of an event: a product is created and deleted once, and modified at a date. */
export function eventKey({ subscription, event, productId, dateUs }: Event): string {
  return `${subscription} ${event} ${productId.toLowerCase()} ${event === 'modified' ? dateUs : ''}`;
}

/** Returns the events that the subscriptions should have received, and when query results showed each. */
function expectedEvents({ sandbox, periods, idsOf }: KnownHistory) {
  const all = [...sandbox.events()].filter(({ event }) => event !== 'created');
  const changes = Map.groupBy(all, ({ productId }) => productId);
  return periods.flatMap(({ subscription, events, filter, fromUs, toUs }) =>
    [...sandbox.events({ events, filter })].flatMap((one) => {
      const { event, productId, dateUs, subscriptions, shown, sequence } = one;
      if (dateUs === null || dateUs < fromUs || dateUs >= toUs) return [];
      const hiding = changes.get(productId)?.find((change) => {
        if (event === 'deleted' || change.sequence <= sequence) return false;
        return change.event === 'deleted' || event === 'modified';
      });
      const ids = idsOf(subscription);
      return [
        {
          ...{ subscription, event, productId, dateUs, shown },
          received: subscriptions.some((own) => ids.has(own.subscriptionId) && own.received),
          shownFromMs: Date.parse(one.shownFrom),
          hiddenFromMs: hiding === undefined ? Infinity : Date.parse(hiding.at),
        },
      ];
    }),
  );
}

type ExpectedEvent = ReturnType<typeof expectedEvents>[number];

interface Row extends Omit<LoggedEvent, 'dateUs'> {
  position: number;
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
    return Array.from(rows.iterate(), (row) => {
      const json = JSON.parse(Buffer.from(bodies.storedBody(row.bodyId)).toString());
      const item = Array.isArray(json) ? json[row.bodyIndex] : json;
      const date = parseDate(String((item.value ?? item.Value)[dateFields[row.event]]));
      if (date === null) throw new Error(`Entry ${row.position} has no date.`);
      const pushedAtUs = row.source === 'reconcile' ? row.pushedAtUs : row.receivedAtUs;
      const { subscription, event, productId, source } = row;
      return { subscription, event, productId, source, dateUs: date.us, pushedAtUs };
    });
  } finally {
    database.close();
  }
}

/** Delays after the end of an hour until its first and its second comparison (decision 24). */
const settlingMs = 30 * 60_000;
const secondComparisonMs = 24 * 3_600_000;

/** Compares the log of a simulated history with the expected events. Returns both, and the differences. */
export function resultOf(history: KnownHistory) {
  const expected = expectedEvents(history);
  const logged = readLog(history.dataDir);
  const entries = Map.groupBy(logged, eventKey);
  const known = new Set(expected.map(eventKey));
  const faults = [...entries].flatMap(([key, { length }]) => [
    ...(known.has(key) ? [] : [`not expected: ${key}`]),
    ...(length === 1 ? [] : [`repeated: ${key}`]),
  ]);
  for (const one of expected) {
    const fault = faultOf(one, entries.get(eventKey(one))?.[0], history.rounds);
    if (fault !== null) faults.push(`${fault}: ${eventKey(one)}`);
  }
  return { expected, logged, faults };
}

function faultOf(
  one: ExpectedEvent,
  entry: LoggedEvent | undefined,
  rounds: readonly number[],
): string | null {
  if (entry !== undefined) {
    if (entry.dateUs !== one.dateUs) return `dated ${entry.dateUs} in the log`;
    return one.received === (entry.pushedAtUs !== null) ? null : 'wrong source in the log';
  }
  if (one.received) return 'received but not in the log';
  if (one.shown) return 'shown but not in the log';
  // Query results showed it at one of the two due comparisons of its hour.
  const endMs = (Math.floor(one.dateUs / hourUs) * hourUs + hourUs) / 1_000;
  const isMissed = [endMs + settlingMs, endMs + secondComparisonMs].some((dueMs) => {
    const atMs = rounds.find((round) => round >= dueMs);
    return atMs !== undefined && atMs >= one.shownFromMs && atMs < one.hiddenFromMs;
  });
  return isMissed ? 'shown during a comparison but not in the log' : null;
}
