/** Writes a delivery: its notifications into the log, what is not one into the quarantine. */
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Database } from 'better-sqlite3';
import { AppError, isAppError } from '../domain/app-error.ts';
import { contentOf, readDelivery } from '../domain/delivery-content.ts';
import { identityOf, recoveredIdentityOf } from '../domain/identity.ts';
import type { Fault, Notification } from '../domain/notification.ts';
import type { Delivery, Receipt } from '../domain/ports.ts';
import { bodyReader } from './bodies/body-reader.ts';
import { type BodyWriter, createBodyWriter } from './bodies/body-writer.ts';
import { createBodyState } from './body-state.ts';
import { dedupeKey, subscriptionKey } from './dedupe-key.ts';
import { createDriftCounter } from './drift-counter.ts';
import { prepareFindRecovered } from './find-recovered.ts';
import { prepareClaim } from './late-push-writer.ts';
import { bodyDocument } from './products/product-record.ts';
import { createQuarantineWriter, type QuarantineWriter } from './quarantine-writer.ts';

/** Works inside a transaction of the caller's, between `begin` and `end`. */
export interface DeliveryWriter {
  begin(): void;
  write(delivery: Delivery): Receipt;
  /** Reads a held body again; it leaves the quarantine only when all of it can be stored. */
  retry(quarantineId: number, atUs: number): Receipt;
  end(): void;
  quarantine: QuarantineWriter;
}

export const ackIdReused: Fault = {
  code: 'ack-id-reused',
  index: null,
  message: 'The AckId is known, but with other content.',
};

export function createDeliveryWriter(database: Database): DeliveryWriter {
  const bodies = createBodyWriter(database);
  const drift = createDriftCounter(database);
  const quarantine = createQuarantineWriter(database, bodies);
  const upsert = prepareUpsert(database, bodies);

  function store(delivery: Delivery, items: readonly Notification[], keptBodyId?: number) {
    const rows = items.map((item) => upsert(delivery, item, keptBodyId ?? bodies.nextId()));
    const stored = rows.filter((row) => row === 'stored').length;
    const bodyId = keptBodyId ?? (stored > 0 ? bodies.keep(delivery) : undefined);
    const duplicates = rows.length - stored;
    const receipt: Receipt =
      stored > 0 ? { outcome: 'stored', stored, duplicates } : { outcome: 'duplicate', duplicates };
    return { stored, bodyId, receipt, reused: rows.includes('reused') };
  }

  function write(delivery: Delivery): Receipt {
    const { notifications, faults, drift: shapes } = readDelivery(delivery);
    drift.count(shapes, delivery.receivedAtUs);
    const { stored, bodyId, receipt, reused } = store(delivery, notifications);
    if (faults.length > 0) {
      const quarantineId = quarantine.hold(delivery, faults, bodyId);
      return { outcome: 'rejected', faults, quarantineId, stored };
    }
    if (!reused) return receipt;
    // The contract calls it a duplicate, but its content is new: it is kept where a person looks.
    drift.count(['ack-id-reused'], delivery.receivedAtUs);
    const quarantineId = quarantine.holdOnce(delivery, [ackIdReused], bodyId);
    return quarantineId === undefined ? receipt : { ...receipt, quarantineId };
  }

  function retry(quarantineId: number, atUs: number): Receipt {
    const { delivery, bodyId } = quarantine.held(quarantineId);
    const { notifications, faults } = readDelivery(delivery);
    if (faults.length > 0) return { outcome: 'rejected', faults, quarantineId, stored: 0 };
    const { receipt, reused } = store(delivery, notifications, bodyId);
    // Thrown, so that nothing of this transaction stays.
    if (reused) throw new AppError('conflict', ackIdReused.message);
    quarantine.release(quarantineId, atUs);
    return receipt;
  }

  const begin = () => {
    bodies.begin();
    drift.begin();
  };
  const end = () => {
    bodies.end();
    drift.end();
  };
  return { begin, write, retry, end, quarantine };
}

/** `reused`: the AckId is known, but the notification under it is another one. */
type WrittenRow = 'stored' | 'duplicate' | 'reused';

/** What a delivery is compared with. */
interface KnownRow {
  productId: string;
  event: string;
  subscriptionId: string | null;
  source: string;
  bodyId: number;
  bodyIndex: number;
}

/**
 * One statement decides between new and known: a look first and an insert after would let two
 * deliveries of the same notification both pass (facts, lessons 2.6). It is DO NOTHING with further
 * statements for the rare known one, since DO UPDATE or RETURNING on every row make SQLite keep a
 * statement journal, which measured three times as slow.
 */
function prepareUpsert(database: Database, bodies: BodyWriter) {
  const insert = database.prepare(
    `INSERT INTO notification (dedupe_key, ack_id, product_id, product_name, event, subscription,
       subscription_id, notification_date_us, received_at_us, source, times_seen, last_seen_at_us,
       body_id, body_index, event_us)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
     ON CONFLICT (dedupe_key) DO NOTHING`,
  );
  const findKnown = database.prepare<[Uint8Array], KnownRow>(
    `SELECT product_id AS productId, event, subscription_id AS subscriptionId, source,
       body_id AS bodyId, body_index AS bodyIndex
     FROM notification WHERE dedupe_key = ?`,
  );
  const countAgain = database.prepare(
    `UPDATE notification
     SET times_seen = times_seen + 1, last_seen_at_us = max(last_seen_at_us, ?)
     WHERE dedupe_key = ?`,
  );
  const state = createBodyState();
  const claim = prepareClaim(database, state);
  const findRecovered = prepareFindRecovered(database);
  const hasSameContent = createComparison(database, bodies);
  return (delivery: Delivery, item: Notification, bodyId: number): WrittenRow => {
    const { subscription, receivedAtUs, source } = delivery;
    const bodyDigest = () => hash('sha256', contentOf(delivery), 'hex');
    const recovered = state.recovered(delivery, item);
    const identity =
      recovered === null
        ? identityOf(item, { subscription, bodyDigest })
        : recoveredIdentityOf(recovered);
    const writeAs = (key: Uint8Array): WrittenRow => {
      if (source === 'push' && claim(delivery, item, key)) return 'duplicate';
      const { changes } = insert.run(
        key,
        item.ackId,
        item.productId,
        item.productName,
        item.event,
        subscription,
        item.subscriptionId,
        item.notificationDateUs,
        receivedAtUs,
        source,
        receivedAtUs,
        bodyId,
        item.index,
        recovered?.eventUs ?? null,
      );
      if (changes === 1) return 'stored';
      const known = findKnown.get(key);
      const otherKey = known && keyInSubscription(key, known, item);
      if (otherKey) return writeAs(otherKey);
      countAgain.run(receivedAtUs, key);
      const isKnown = known && isSame(known, item) && hasSameContent(known, delivery, item, bodyId);
      return isKnown ? 'duplicate' : 'reused';
    };
    return writeAs((recovered && findRecovered(recovered)) ?? dedupeKey(identity));
  };
}

/** The key under which a notification is looked for when its AckId is known from another subscription. */
function keyInSubscription(
  key: Uint8Array,
  known: KnownRow,
  { ackId, subscriptionId }: Notification,
): Uint8Array | undefined {
  if (ackId === null || subscriptionId === null || known.subscriptionId === null) return undefined;
  const name = subscriptionId.toLowerCase();
  return name === known.subscriptionId.toLowerCase() ? undefined : subscriptionKey(key, name);
}

/** A recovered event has its product's id as the catalogue lists it, which may be in another case. */
function isSame(known: KnownRow, item: Notification): boolean {
  return (
    known.productId.toLowerCase() === item.productId.toLowerCase() && known.event === item.event
  );
}

/**
 * Compares a push with the one that has its AckId: bytes first, then JSON without regard to the order of keys. What
 * was recovered has a body of our own making, and a body that is gone or damaged cannot be compared: both count as
 * the same.
 */
function createComparison(database: Database, bodies: BodyWriter) {
  const reader = bodyReader(database);
  // Of an array with many notifications: it is compared and parsed once.
  let last: { body: Uint8Array; knownId: number; stored: Uint8Array; isEqual: boolean } | undefined;
  let documents: { of: unknown; known: unknown; mine: unknown } | undefined;
  const keptBody = (id: number): Uint8Array | undefined => {
    try {
      return bodies.kept(id) ?? reader.content(id);
    } catch (error) {
      if (isAppError(error)) return undefined;
      throw error;
    }
  };
  return (known: KnownRow, delivery: Delivery, item: Notification, bodyId: number) => {
    const body = contentOf(delivery);
    if (item.ackId === null || delivery.source !== 'push' || known.source !== 'push') return true;
    const { bodyId: knownId } = known;
    if (last?.body !== body || last.knownId !== knownId) {
      const stored = knownId === bodyId ? body : keptBody(knownId);
      if (stored === undefined) return true;
      last = { body, knownId, stored, isEqual: Buffer.compare(stored, body) === 0 };
    }
    if (last.isEqual && known.bodyIndex === item.index) return true;
    if (documents?.of !== last) {
      documents = { of: last, known: bodyDocument(last.stored), mine: bodyDocument(body) };
    }
    return isDeepStrictEqual(
      itemIn(documents.known, known.bodyIndex),
      itemIn(documents.mine, item.index),
    );
  };
}

function itemIn(document: unknown, index: number): unknown {
  return Array.isArray(document) ? document[index] : document;
}
