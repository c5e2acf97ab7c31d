/** The unique key of the notification log. */
import { hash } from 'node:crypto';

import type { Notification } from '../../core/terms/notification.ts';
import type { CatalogueEvent } from '../../core/terms/subscription.ts';

const headBytes = 12;

const digestBytes = 12;

/**
 * Returns the key of an identity text: its beginning, then part of its SHA-256. The digest makes the key
 * unique. The beginning keeps the order: AckIds and dates rise with time in practice, so new keys are
 * added at the end of the index.
 */
export function dedupeKey(identity: string): Uint8Array {
  const key = Buffer.alloc(headBytes + digestBytes);
  // As base64, the form of the catalogue's AckIds (facts, catalogue 1.1): 12 bytes are its time in steps of 10 ms.
  key.write(identity.slice(identity.indexOf('\n') + 1), 0, headBytes, 'base64');
  key.write(hash('sha256', identity, 'binary'), headBytes, digestBytes, 'latin1');
  return key;
}

/**
 * Returns the key of a notification whose AckId is known from another subscription: the key of the AckId plus a digest
 * of the subscription id. All rows of an AckId are between the key of the AckId and its `lastKeyOf`.
 */
export function subscriptionKey(key: Uint8Array, subscriptionId: string): Uint8Array {
  const digest = hash('sha256', subscriptionId, 'buffer').subarray(0, digestBytes);
  return Buffer.concat([key, digest]);
}

/** Returns the upper bound of the keys that begin with this one. */
export function lastKeyOf(key: Uint8Array): Uint8Array {
  return Buffer.concat([key, Buffer.alloc(digestBytes + 1, 0xff)]);
}

/**
 * Returns the identity text of a notification, the same for each delivery of it: the AckId, else
 * subscription, event, product and notification date (facts, catalogue 1.2). Without a date, the digest
 * of the body replaces it, so that two changes of a product differ. The text after the first line break
 * begins with the part that rises with time.
 */
export function identityOf(
  notification: Notification,
  context: { subscription: string | null; bodyDigest: () => string },
): string {
  if (notification.ackId !== null) return `ack\n${notification.ackId}`;
  const { event, productId, notificationDateUs, subscriptionId, index } = notification;
  const subscription = subscriptionId ?? context.subscription ?? '';
  const moment = notificationDateUs ?? `body ${context.bodyDigest()} ${index}`;
  return `event\n${moment} ${JSON.stringify([subscription, event, productId])}`;
}

/**
 * Returns the identity text of a recovered event, from its data because it has no AckId. Product ids are compared
 * case-insensitively.
 */
export function recoveredIdentityOf(recovered: CatalogueEvent): string {
  const { subscription, event, productId, eventUs } = recovered;
  const names = JSON.stringify([subscription, event, productId.toLowerCase()]);
  return `reconcile\n${eventUs} ${names}`;
}
