/** What the catalogue owed to subscriptions, told from the sandbox's ledger and what was asked for when. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { type HourCoverage, hourUs } from '../../src/domain/completeness.ts';
import { parseDate } from '../../src/domain/dates.ts';
import type { SubscriptionEvent } from '../../src/domain/subscription.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import type { MonthContext } from './month-context.ts';
import type { WalkedMonth } from './month-walk.ts';

/** What a subscription asked for, until it asked for something else; µs since 1970. */
export interface Asked {
  subscription: string;
  events: readonly SubscriptionEvent[];
  filter: string;
  fromUs: number;
  toUs: number;
}

/** An event that was owed to a subscription. */
interface OwedEvent {
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  dateUs: number;
  /** Whether a push of it was accepted at least once. */
  received: boolean;
  /** Whether the lists show it at the end. */
  shown: boolean;
  /** The lists show it within [shownFromMs, hiddenFromMs), unless that is empty. */
  shownFromMs: number;
  hiddenFromMs: number;
  /** What hid it; null while nothing has. */
  hiddenBy: 'modified' | 'deleted' | null;
}

/** Names an event: a product is created and deleted once, and modified at a date. */
export function eventKey(one: Omit<OwedEvent, keyof Fate>): string {
  const { subscription, event, productId, dateUs } = one;
  return `${subscription} ${event} ${productId.toLowerCase()} ${event === 'modified' ? dateUs : ''}`;
}

type Fate = Pick<OwedEvent, 'received' | 'shown' | 'shownFromMs' | 'hiddenFromMs' | 'hiddenBy'>;

/** Names the hour of its date, for one kind of events of a subscription. */
function hourKey(one: Pick<OwedEvent, 'subscription' | 'event' | 'dateUs'>): string {
  const { subscription, event, dateUs } = one;
  return `${subscription} ${event} ${Math.floor(dateUs / hourUs) * hourUs}`;
}

/** Every event that was owed; `idsOf` gives the ids that a subscription has had at the catalogue. */
function owedEvents(
  sandbox: Pick<Sandbox, 'events'>,
  asked: readonly Asked[],
  idsOf: (subscription: string) => ReadonlySet<string>,
): OwedEvent[] {
  const changes = changesOf(sandbox);
  return asked.flatMap(({ subscription, events, filter, fromUs, toUs }) => {
    const ids = idsOf(subscription);
    return [...sandbox.events({ events, filter })].flatMap((one) => {
      const { event, productId, dateUs, subscriptions, shown, shownFrom, sequence } = one;
      if (dateUs === null || dateUs < fromUs || dateUs >= toUs) return [];
      const hides = (change: Change) =>
        change.sequence > sequence && (change.event === 'deleted' || event === 'modified');
      const hiding = event === 'deleted' ? undefined : changes.get(productId)?.find(hides);
      const fate = {
        received: subscriptions.some((own) => ids.has(own.subscriptionId) && own.received),
        shown,
        shownFromMs: Date.parse(shownFrom),
        hiddenFromMs: hiding?.atMs ?? Number.POSITIVE_INFINITY,
        hiddenBy: hiding?.event ?? null,
      };
      return [{ subscription, event, productId, dateUs, ...fate }];
    });
  });
}

interface Change {
  sequence: number;
  event: 'modified' | 'deleted';
  atMs: number;
}

/** What happened to products after their publication, oldest first. */
function changesOf(sandbox: Pick<Sandbox, 'events'>): Map<string, Change[]> {
  const changes = new Map<string, Change[]>();
  for (const { event, productId, sequence, at } of sandbox.events()) {
    if (event === 'created') continue;
    const known = changes.get(productId) ?? [];
    known.push({ sequence, event, atMs: Date.parse(at) });
    changes.set(productId, known);
  }
  return changes;
}

/** An entry of the log. */
interface LoggedEvent {
  position: number;
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** Of the record's PublicationDate, ModificationDate or DeletionDate. */
  dateUs: number;
  source: 'push' | 'reconcile';
  /** When a push of it came first; null when none did. */
  pushedAtUs: number | null;
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

/** Every entry, oldest first. Throws for one without a record, or without its date. */
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
    // One at a time: bodies are large, and not kept.
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
  // The bodies are the sandbox's own, or the receiver's.
  const item = (Array.isArray(json) ? json[bodyIndex] : json) as Record<string, unknown>;
  const record = (item.value ?? item.Value) as Record<string, unknown>;
  const date = parseDate(String(record[dateFields[row.event]]));
  if (date === null) throw new Error(`Entry ${row.position} has no date.`);
  const pushedAtUs = row.source === 'push' ? receivedAtUs : row.pushedAtUs;
  return { ...row, dateUs: date.us, pushedAtUs };
}

/** How long after its end an hour is compared first, and once more (decision 24). */
const settlingMs = 30 * 60_000;
const secondLookMs = 24 * 3_600_000;

/** Each event that was owed counts once. */
export interface MonthCounts {
  owed: number;
  /** A push of it came in time. */
  pushed: number;
  /** One came more than half an hour after it happened, or after it had been looked up. */
  late: number;
  /** Looked up; no push of it came. */
  recovered: number;
  /** Lost: the catalogue did not show it any more when somebody could look. */
  superseded: number;
  deleted: number;
}

interface MonthVerdict {
  /** By subscription and event, such as `acquisitions created`. */
  counts: Record<string, MonthCounts>;
  /** What must not be, in words; none when the log equals the truth. */
  faults: string[];
}

/** What a walked month left behind: the log against the truth. */
export function resultOf(
  { sandbox, dataDir, rounds }: Pick<MonthContext, 'sandbox' | 'dataDir' | 'rounds'>,
  { asked, idsOf }: Pick<WalkedMonth, 'asked' | 'idsOf'>,
) {
  const owed = owedEvents(sandbox, asked, idsOf);
  const logged = readLog(dataDir);
  return { owed, logged, ...judgeMonth(owed, logged, rounds) };
}

/** `rounds` are the times at which all that was due was compared, oldest first; ms since 1970. */
function judgeMonth(
  owed: readonly OwedEvent[],
  logged: readonly LoggedEvent[],
  rounds: readonly number[],
): MonthVerdict {
  const faults: string[] = [];
  const counts: Record<string, MonthCounts> = {};
  const entries = Map.groupBy(logged, eventKey);
  const known = new Set<string>();
  for (const one of owed) {
    const key = eventKey(one);
    if (known.has(key)) faults.push(`owed twice: ${key}`);
    known.add(key);
    const kind = `${one.subscription} ${one.event}`;
    counts[kind] ??= { owed: 0, pushed: 0, late: 0, recovered: 0, superseded: 0, deleted: 0 };
    counts[kind].owed += 1;
    const found = entries.get(key) ?? [];
    if (found.length > 1) faults.push(`${found.length} entries: ${key}`);
    const fate = fateOf(one, found[0]);
    counts[kind][fate] += 1;
    const fault = faultOf(one, found[0], rounds);
    if (fault !== null) faults.push(`${fault}: ${key}`);
  }
  for (const key of entries.keys()) if (!known.has(key)) faults.push(`not owed: ${key}`);
  return { counts, faults };
}

/** What became of an event, by its entry in the log. */
function fateOf(one: OwedEvent, entry: LoggedEvent | undefined) {
  if (entry === undefined) return one.hiddenBy === 'deleted' ? 'deleted' : 'superseded';
  if (entry.pushedAtUs === null) return 'recovered';
  const isLate = entry.source === 'reconcile' || entry.pushedAtUs > one.dateUs + settlingMs * 1_000;
  return isLate ? 'late' : 'pushed';
}

function faultOf(
  one: OwedEvent,
  entry: LoggedEvent | undefined,
  rounds: readonly number[],
): string | null {
  if (entry === undefined) {
    if (one.received) return 'received, and not in the log';
    if (one.shown) return 'shown, and not in the log';
    return wasLookedAt(one, rounds) ? 'shown when it was looked for, and not in the log' : null;
  }
  if (entry.dateUs !== one.dateUs) return `dated ${entry.dateUs} in the log`;
  if (one.received !== (entry.pushedAtUs !== null)) return 'told otherwise than it came';
  return null;
}

/** Whether the lists showed it at one of the two moments at which its hour must have been compared. */
function wasLookedAt(
  { dateUs, shownFromMs, hiddenFromMs }: OwedEvent,
  rounds: readonly number[],
): boolean {
  const endMs = (Math.floor(dateUs / hourUs) * hourUs + hourUs) / 1_000;
  return [endMs + settlingMs, endMs + secondLookMs].some((dueMs) => {
    const atMs = rounds.find((one) => one >= dueMs);
    return atMs !== undefined && atMs >= shownFromMs && atMs < hiddenFromMs;
  });
}

/** All kinds together. */
export function totalOf(counts: MonthVerdict['counts']): MonthCounts {
  const total = { owed: 0, pushed: 0, late: 0, recovered: 0, superseded: 0, deleted: 0 };
  for (const one of Object.values(counts)) {
    for (const name of Object.keys(total) as (keyof MonthCounts)[]) total[name] += one[name];
  }
  return total;
}

/**
 * Compares the counts of every hour of a window of whole hours, looked at last when nothing changed any more, with what the
 * lists show of what was owed. Returns what differs, in words.
 */
export function coverageFaults(
  owed: readonly OwedEvent[],
  logged: readonly LoggedEvent[],
  coverage: readonly HourCoverage[],
  { fromUs, toUs }: { fromUs: number; toUs: number },
): string[] {
  const entries = new Map(logged.map((entry) => [eventKey(entry), entry]));
  const counts = new Map<string, { pushed: number; late: number; recovered: number }>();
  for (const one of owed) {
    if (!one.shown || one.dateUs < fromUs || one.dateUs >= toUs) continue;
    const fate = fateOf(one, entries.get(eventKey(one)));
    if (fate === 'superseded' || fate === 'deleted') continue;
    const key = hourKey(one);
    const hour = counts.get(key) ?? { pushed: 0, late: 0, recovered: 0 };
    hour[fate] += 1;
    counts.set(key, hour);
  }
  const faults: string[] = [];
  for (const { subscription, event, hourUs: at, pushed, late, recovered, missing } of coverage) {
    if (at < fromUs || at + hourUs > toUs) continue;
    const key = hourKey({ subscription, event, dateUs: at });
    const wanted = { ...(counts.get(key) ?? { pushed: 0, late: 0, recovered: 0 }), missing: 0 };
    counts.delete(key);
    const [is, should] = [{ pushed, late, recovered, missing }, wanted].map((one) =>
      JSON.stringify(one, ['pushed', 'late', 'recovered', 'missing']),
    );
    if (is !== should) faults.push(`${key}: ${is} instead of ${should}`);
  }
  return [...faults, ...[...counts.keys()].map((key) => `not compared: ${key}`)];
}
