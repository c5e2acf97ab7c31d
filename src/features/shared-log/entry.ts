/** Entries of the shared log: their encoding, and their preparation, with all that the log needs to decide. */
import { hash } from 'node:crypto';
import { AppError } from '../../core/terms/app-error.ts';
import { millisecondOf } from '../../core/terms/dates.ts';
import {
  type DriftShape,
  type Fault,
  lacksRecord,
  type Notification,
} from '../../core/terms/notification.ts';
import type { Delivery } from '../../core/terms/ports.ts';
import {
  type MissingEvent,
  subscriptionEvents,
  writtenEventUs,
} from '../../core/terms/subscription.ts';
import { compress, decompress } from '../../store/bodies/bodies.ts';
import { bodyDocument } from '../../store/bodies/body-document.ts';
import type { Database } from '../../store/engine/database.ts';
import { dedupeKey, recoveredIdentityOf, subscriptionKey } from '../../store/log/dedupe-key.ts';
import { quarantinedDelivery } from '../../store/log/quarantine.ts';
import { lastPosition } from '../../store/log/queries.ts';
import {
  missingIn,
  modificationDateUs,
  publicationDelay,
  type RecoverOptions,
  requireOwnBody,
} from '../../store/log/recovered-events.ts';
import { itemIn, keyOf, notStorable, readDelivery } from '../../store/log/write-delivery.ts';
import type { EncodedContent, LogItem, NewEntry } from './schema.ts';
import type { TablePart } from './table-parts.ts';

/** A delivery as it was parsed by the node that received it, so that all versions of earshot write the same. */
export interface EntryDelivery
  extends Pick<Delivery, 'receivedAtUs' | 'subscription' | 'source' | 'headers'> {
  body: Uint8Array;
  notifications: EntryNotification[];
  faults: readonly Fault[];
  drift: readonly DriftShape[];
  /** Entry of the quarantine whose body is read again, and which is removed; null for a new body. */
  retryOf: number | null;
}

export interface EntryNotification extends Notification {
  /** Hexadecimal. */
  key: string;
  subscriptionKey: string | null;
}

/** An operation of the store with its arguments. */
export interface Change {
  op: string;
  args: readonly unknown[];
}

export type EntryContent =
  | { kind: 'deliveries'; deliveries: EntryDelivery[] }
  | { kind: 'recovered'; events: MissingEvent[]; atUs: number }
  | { kind: 'changes'; changes: Change[] }
  /** Rows of a table: notifications of a log that was copied into the shared log, or a part of a checkpoint. */
  | { kind: 'rows'; part: TablePart };

/** Maximum size before compression: a body has at most 1 MiB, and each of its notifications adds some hundred bytes. */
const rawBytesMax = 256 * 2 ** 20;

const lengthBytes = 4;

/** Raised with each change after which other versions would apply an entry differently. */
const format = 1;

/** The fastest useful zstd level. */
const level = 1;

/**
 * Encodes an entry, or a part of a checkpoint: the length of its JSON, the JSON, and all byte arrays of it, compressed.
 * Throws if it is too large.
 */
export function encodeEntry(content: EntryContent): EncodedContent {
  const parts: Uint8Array[] = [];
  const json = Buffer.from(toJson({ format, ...content }, parts));
  const head = Buffer.alloc(lengthBytes);
  head.writeUInt32LE(json.length);
  const raw = Buffer.concat([head, json, ...parts]);
  if (raw.length > rawBytesMax) throw new Error('An entry is too large.');
  return compress(raw, level);
}

/**
 * Decodes what `encodeEntry` has written. Throws `unavailable` for an entry of a newer version: a node must not apply it
 * differently.
 */
export function decodeEntry(encoded: EncodedContent): EntryContent {
  const raw = decompress(encoded, rawBytesMax);
  const end = lengthBytes + raw.readUInt32LE(0);
  const decoded = fromJson(raw.toString('utf8', lengthBytes, end), raw.subarray(end));
  const { format: written, ...content } = decoded as EntryContent & { format: number };
  if (written <= format) return content as EntryContent;
  throw newerEntry();
}

export function newerEntry(): AppError {
  return new AppError(
    'unavailable',
    'The shared log contains an entry of a newer version of earshot.',
    { advice: 'Install the newer version on this receiver, too.' },
  );
}

/** Replaces byte arrays by `{"$bytes": length}`; their bytes follow in the same order. */
export function toJson(value: unknown, parts: Uint8Array[]): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, plain: unknown) {
    // Before `Buffer.toJSON`.
    const original = this[key];
    if (!(original instanceof Uint8Array)) return plain;
    parts.push(original);
    return { $bytes: original.length };
  });
}

export function fromJson(json: string, bytes: Uint8Array): unknown {
  let start = 0;
  return inOrder(JSON.parse(json));

  // Not a reviver, which would visit inner values first.
  function inOrder(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(inOrder);
    if ('$bytes' in value && Object.keys(value).length === 1) {
      const end = start + Number(value.$bytes);
      const part = bytes.subarray(start, end);
      start = end;
      return part;
    }
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inOrder(one)]));
  }
}

export type PreparedDeliveries = ReturnType<typeof entryOf>;
export type PreparedDelivery = PreparedDeliveries['deliveries'][number];

/** Prepares one entry of these deliveries. A body that our own code fails on gets a fault. */
export function prepareDeliveries(deliveries: readonly Delivery[]): PreparedDeliveries {
  return entryOf(
    deliveries.map((delivery) => prepareDelivery(delivery, null)),
    deliveries[0],
  );
}

/**
 * Prepares the entry that stores a quarantined body. Returns the faults when it still cannot be stored. Throws
 * `not_found`.
 */
export function prepareRetry(
  database: Database,
  quarantineId: number,
): PreparedDeliveries | { faults: Fault[] } {
  const delivery = quarantinedDelivery(database, quarantineId);
  const { faults } = readDelivery(delivery);
  if (faults.length > 0) return { faults };
  return entryOf([prepareDelivery(delivery, quarantineId)], undefined);
}

/** Prepares the entry of recovered events, without those that this node knows. Null when nothing is left. */
export function prepareRecovered(
  database: Database,
  { events, knownUpTo, atUs }: RecoverOptions,
): { entry: NewEntry | null; isMissing: boolean[] } {
  const isMissing = events.map(missingIn(database, { events, knownUpTo }));
  const missing = events.filter((_, i) => isMissing[i]);
  for (const event of missing) requireOwnBody(event);
  if (missing.length === 0) return { entry: null, isMissing };
  const written = missing.map((event) => ({ ...event, eventUs: writtenEventUs(event) }));
  const entry = {
    items: written.map(recoveredItem),
    checkedPosition: lastPosition(database),
    ...encodeEntry({ kind: 'recovered', events: written, atUs }),
  };
  return { entry, isMissing };
}

export const prepareChanges = (changes: Change[]): NewEntry => ({
  ...{ items: null, checkedPosition: null },
  ...encodeEntry({ kind: 'changes', changes }),
});

type ItemDelivery = ReturnType<typeof prepareDelivery>;

/** Returns an entry, with the number of items and the faults of each delivery. */
function entryOf(prepared: readonly ItemDelivery[], first: Delivery | undefined) {
  return {
    ...encodeEntry({ kind: 'deliveries', deliveries: prepared.map(({ entry }) => entry) }),
    items: prepared.flatMap(({ items }) => items),
    checkedPosition: null,
    deliveries: prepared.map(({ entry, items }) => ({
      items: items.length,
      faults: entry.faults,
    })),
    publicationDelay: first === undefined ? null : publicationDelay(first),
  };
}

function prepareDelivery(
  delivery: Delivery,
  retryOf: number | null,
): { entry: EntryDelivery; items: LogItem[] } {
  const { body, headers, receivedAtUs, subscription, source } = delivery;
  const entry = { receivedAtUs, subscription, source, body, headers, retryOf };
  try {
    const { notifications, faults, drift } = readDelivery(delivery);
    const items = notifications.map((one) => itemOf(delivery, one));
    const written = notifications.map((one, i) => {
      const { key = '', subscriptionKey: other = null } = items[i] ?? {};
      return { ...one, key, subscriptionKey: other };
    });
    return { entry: { ...entry, notifications: written, faults, drift }, items };
  } catch {
    return { entry: { ...entry, notifications: [], faults: [notStorable], drift: [] }, items: [] };
  }
}

function itemOf(delivery: Delivery, notification: Notification): LogItem {
  const { subscription, source } = delivery;
  const { ackId, productId, event, subscriptionId, notificationDateUs, index } = notification;
  const key = keyOf(delivery, notification);
  const id = subscriptionId?.toLowerCase() ?? null;
  const isCompared = ackId !== null && source === 'push';
  const stateUs =
    event === 'modified' && source !== 'reconcile'
      ? modificationDateUs(delivery.body, index)
      : null;
  return {
    key: hex(key),
    subscriptionKey: ackId === null || id === null ? null : hex(subscriptionKey(key, id)),
    subscriptionId: id === null ? null : digestOf(id),
    subscription,
    product: digestOf(productId.toLowerCase()),
    event: eventName(event),
    content: isCompared ? itemDigest(delivery.body, index) : null,
    isPush: source !== 'reconcile' && !(event === 'modified' && lacksRecord(source, notification)),
    stateMs: stateUs === null ? null : millisecondOf(stateUs),
    notificationMs: notificationDateUs === null ? null : millisecondOf(notificationDateUs),
    recoveredUs: null,
  };
}

function recoveredItem(event: Omit<MissingEvent, 'body'>): LogItem {
  const { subscription, productId, event: name, eventUs } = event;
  return {
    key: hex(dedupeKey(recoveredIdentityOf(event))),
    ...{ subscriptionKey: null, subscriptionId: null, subscription },
    product: digestOf(productId.toLowerCase()),
    event: eventName(name),
    ...{ content: null, isPush: false, stateMs: null, notificationMs: null, recoveredUs: eventUs },
  };
}

/** Names of other events are not trusted: PostgreSQL refuses some characters. */
export function eventName(event: string): string {
  return subscriptionEvents.some((known) => known === event) ? event : `#${digestOf(event)}`;
}

/** Digest of a notification in a body, regardless of the order of its keys. */
export function itemDigest(body: Uint8Array, index: number): string {
  return digestOf(canonicalJson(itemIn(bodyDocument(body), index)));
}

/** JSON with sorted keys. Our parser limits the depth. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}:${canonicalJson(one)}`).join(',')}}`;
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** The first 96 bits: different texts have different ones, and an index stays small. */
export const digestOf = (text: string) => hash('sha256', text, 'hex').slice(0, 24);
