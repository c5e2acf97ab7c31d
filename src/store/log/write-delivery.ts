/** Writes deliveries: notifications into the log, other bodies into the quarantine. */
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Database } from 'better-sqlite3';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import {
  type DriftShape,
  type Fault,
  lacksRecord,
  type Notification,
  type Reading,
  readNotifications,
} from '../../core/terms/notification.ts';
import type { Delivery, Receipt } from '../../core/terms/ports.ts';
import { type BodyWriter, bodyReader, createBodyWriter } from '../bodies/bodies.ts';
import { bodyDocument } from '../bodies/body-document.ts';
import { prepared } from '../engine/database.ts';
import { removeEntries } from '../pruning/prune-writer.ts';
import { dedupeKey, identityOf, subscriptionKey } from './dedupe-key.ts';
import { quarantine, quarantinedDelivery } from './quarantine.ts';
import { countDrift, countDuplicate, insertNotification } from './queries.ts';
import { recordPush } from './recovered-events.ts';

export const ackIdReused: Fault = {
  code: 'ack-id-reused',
  index: null,
  message: 'The AckId was already used with different content.',
};

export const notStorable: Fault = {
  code: 'not-storable',
  index: null,
  message: 'The notification could not be stored.',
};

/** State shared by the deliveries of one transaction. */
interface Batch {
  database: Database;
  bodies: BodyWriter;
  drift: DriftShape[];
  atUs: number;
  hasSameContent: ReturnType<typeof createComparison>;
}

/** Writes deliveries within the caller's transaction. */
export function writeDeliveries(database: Database, deliveries: readonly Delivery[]): Receipt[] {
  return inBatch(database, (batch) => deliveries.map((delivery) => write(batch, delivery)));
}

/** Quarantines a body that our own code fails on, until a later version can store it. */
export function quarantineUnstorable(database: Database, delivery: Delivery): Receipt {
  const faults = [notStorable];
  return inBatch(database, ({ bodies }) => {
    const entry = { delivery, faults, bodyId: undefined, isOnce: false };
    const quarantineId = quarantine(database, bodies, entry);
    return { outcome: 'rejected', faults, stored: 0, ...(quarantineId && { quarantineId }) };
  });
}

/**
 * Reads a quarantined body again, and removes its entry only when all of it can be stored. `transact` runs one
 * transaction.
 */
export function retryQuarantined(
  transact: (work: (database: Database) => Receipt) => Receipt,
  quarantineId: number,
): Receipt {
  const rejected = (faults: Fault[]): Receipt => ({
    outcome: 'rejected',
    faults,
    quarantineId,
    stored: 0,
  });
  try {
    return transact((database) => {
      const delivery = quarantinedDelivery(database, quarantineId);
      const { notifications, faults } = readDelivery(delivery);
      if (faults.length > 0) return rejected(faults);
      const { receipt, reused } = inBatch(database, (batch) =>
        store(batch, delivery, notifications),
      );
      // Rolls back this transaction.
      if (reused) throw new AppError('conflict', ackIdReused.message);
      removeEntries(database, [quarantineId]);
      return receipt;
    });
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    return rejected([ackIdReused]);
  }
}

function inBatch<Result>(database: Database, work: (batch: Batch) => Result): Result {
  const bodies = createBodyWriter(database);
  const hasSameContent = createComparison(database, bodies);
  const batch = { database, bodies, drift: [], atUs: 0, hasSameContent };
  const result = work(batch);
  bodies.end();
  countDrift(database, batch.drift, batch.atUs);
  return result;
}

function write(batch: Batch, delivery: Delivery): Receipt {
  const { database, bodies } = batch;
  const { notifications, faults, drift } = readDelivery(delivery);
  batch.drift.push(...drift);
  batch.atUs = delivery.receivedAtUs;
  const { stored, bodyId, receipt, reused } = store(batch, delivery, notifications);
  if (faults.length > 0) {
    const quarantineId = quarantine(database, bodies, { delivery, faults, bodyId });
    return { outcome: 'rejected', faults, stored, ...(quarantineId && { quarantineId }) };
  }
  if (!reused) return receipt;
  // A duplicate by the contract, but with new content: quarantined for a person to check.
  batch.drift.push('ack-id-reused');
  const quarantineId = quarantine(database, bodies, {
    ...{ delivery, bodyId, faults: [ackIdReused], isOnce: true },
  });
  return quarantineId === undefined ? receipt : { ...receipt, quarantineId };
}

function store(batch: Batch, delivery: Delivery, items: readonly Notification[]) {
  const { bodies } = batch;
  const rows = items.map((item) => {
    const target = { key: keyOf(delivery, item), bodyId: bodies.nextId() };
    return upsert(batch, delivery, item, target);
  });
  const stored = rows.filter((row) => row === 'stored').length;
  const bodyId = stored > 0 ? bodies.add(delivery.body) : undefined;
  const duplicates = rows.length - stored;
  const receipt: Receipt =
    stored > 0 ? { outcome: 'stored', stored, duplicates } : { outcome: 'duplicate', duplicates };
  return { stored, bodyId, receipt, reused: rows.includes('reused') };
}

/** `reused`: the AckId is known, but for a different notification. */
type WrittenRow = 'stored' | 'duplicate' | 'reused';

/** Returns the unique key of a notification. */
export function keyOf(delivery: Delivery, item: Notification): Uint8Array {
  const { subscription } = delivery;
  const bodyDigest = () => hash('sha256', delivery.body, 'hex');
  return dedupeKey(identityOf(item, { subscription, bodyDigest }));
}

/** The stored notification that a delivery is compared with. */
interface KnownRow {
  productId: string;
  event: string;
  subscriptionId: string | null;
  source: string;
  bodyId: number;
  bodyIndex: number;
  position: number;
}

/**
 * Inserts a notification, or counts a duplicate. One statement decides: with a lookup before the insert,
 * two deliveries of the same notification could both pass (facts, lessons 2.6). DO NOTHING plus further
 * statements for the rare duplicates: with DO UPDATE or RETURNING, SQLite keeps a statement journal for
 * each row, which was three times as slow.
 */
function upsert(
  batch: Batch,
  delivery: Delivery,
  item: Notification,
  { key, bodyId }: { key: Uint8Array; bodyId: number },
): WrittenRow {
  const { database } = batch;
  const { receivedAtUs, source } = delivery;
  // The record of such a modification is fetched: it may be a later one than the recovered event.
  const isUnclear = item.event === 'modified' && lacksRecord(source, item);
  const isPush = source !== 'reconcile' && !isUnclear;
  if (isPush && recordPush(database, { delivery, item, key })) {
    return 'duplicate';
  }
  const row = { position: null, key, bodyId, eventUs: null };
  if (insertNotification(database, delivery, item, row) !== null) return 'stored';
  const known = prepared<[Uint8Array], KnownRow>(
    database,
    `SELECT product_id AS productId, event, subscription_id AS subscriptionId, source,
       body_id AS bodyId, body_index AS bodyIndex, position
     FROM notification WHERE dedupe_key = ?`,
  ).get(key);
  const otherKey = known && keyInSubscription(key, known, item);
  if (otherKey) return upsert(batch, delivery, item, { key: otherKey, bodyId });
  countDuplicate(database, known?.position ?? 0, receivedAtUs);
  const isKnown =
    known && isSame(known, item) && batch.hasSameContent(known, delivery, item, bodyId);
  return isKnown ? 'duplicate' : 'reused';
}

/** Returns the key to use instead when the AckId is known from another subscription. */
function keyInSubscription(
  key: Uint8Array,
  known: KnownRow,
  { ackId, subscriptionId }: Notification,
): Uint8Array | undefined {
  if (ackId === null || subscriptionId === null || known.subscriptionId === null) return undefined;
  const name = subscriptionId.toLowerCase();
  return name === known.subscriptionId.toLowerCase() ? undefined : subscriptionKey(key, name);
}

/** Compares product ids case-insensitively: the catalogue may list an id in another case. */
function isSame(known: KnownRow, item: Notification): boolean {
  return (
    known.productId.toLowerCase() === item.productId.toLowerCase() && known.event === item.event
  );
}

/**
 * Compares a push with the stored one with the same AckId: bytes first, then JSON regardless of key order. Recovered
 * events (whose body our code created) and missing or damaged bodies cannot be compared and count as the same.
 */
function createComparison(database: Database, bodies: BodyWriter) {
  const reader = bodyReader(database);
  // An array with many notifications is compared only once.
  let last: { body: Uint8Array; knownId: number; stored: Uint8Array; isEqual: boolean } | undefined;
  const storedBody = (id: number): Uint8Array | undefined => {
    try {
      return bodies.pending(id) ?? reader.body(id);
    } catch (error) {
      if (isAppError(error)) return undefined;
      throw error;
    }
  };
  return (known: KnownRow, delivery: Delivery, item: Notification, bodyId: number) => {
    const { body } = delivery;
    if (item.ackId === null || delivery.source !== 'push' || known.source !== 'push') return true;
    const { bodyId: knownId } = known;
    if (last?.body !== body || last.knownId !== knownId) {
      const stored = knownId === bodyId ? body : storedBody(knownId);
      if (stored === undefined) return true;
      last = { body, knownId, stored, isEqual: Buffer.compare(stored, body) === 0 };
    }
    if (last.isEqual && known.bodyIndex === item.index) return true;
    return isDeepStrictEqual(
      itemIn(bodyDocument(last.stored), known.bodyIndex),
      itemIn(bodyDocument(body), item.index),
    );
  };
}

export function itemIn(document: unknown, index: number): unknown {
  return Array.isArray(document) ? document[index] : document;
}

/**
 * Parses a delivery. A push with a Content-Encoding is not decoded: senders do not compress what nobody offers. Other
 * deliveries have the headers of an answer, whose body is already decoded.
 */
export function readDelivery({
  body,
  headers,
  source,
}: Pick<Delivery, 'body' | 'headers' | 'source'>): Reading {
  if (source !== 'push' || !isEncoded(headers)) return readNotifications(body);
  return { notifications: [], faults: [unsupportedEncoding], drift: [] };
}

/** Returns true for a Content-Encoding other than `identity` (RFC 9110, 8.4). */
function isEncoded(headers: readonly string[]): boolean {
  const isValue = (i: number) =>
    i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'content-encoding';
  const names = headers.filter((_, i) => isValue(i)).flatMap((value) => value.split(','));
  return names.some((name) => !['', 'identity'].includes(name.trim().toLowerCase()));
}

const unsupportedEncoding: Fault = {
  code: 'unsupported-encoding',
  index: null,
  message: 'The body has a Content-Encoding. Send it without one.',
};
