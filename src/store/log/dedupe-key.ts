/** The log's unique key. */
import { hash } from 'node:crypto';
import type { CatalogueEvent } from '../../domain/completeness.ts';
import type { Notification } from '../../domain/notification.ts';

const headBytes = 12;

const digestBytes = 12;

/**
 * The key of an identity text: its own beginning, then a part of its SHA-256. The digest tells two
 * texts apart; the beginning keeps them in their order, so that the AckIds and dates seen in
 * practice, which rise with time, are added at the end of the index instead of all over it.
 */
export function dedupeKey(identity: string): Uint8Array {
  const key = Buffer.alloc(headBytes + digestBytes);
  key.write(identity.slice(identity.indexOf('\n') + 1), 0, headBytes, 'latin1');
  hash('sha256', identity, 'buffer').copy(key, headBytes, 0, digestBytes);
  return key;
}

/**
 * The key of a notification whose AckId is known from another subscription: that of the AckId, with a digest of the
 * subscription's id behind it. All rows of one AckId lie between that key and `lastKeyOf` it.
 */
export function subscriptionKey(key: Uint8Array, subscriptionId: string): Uint8Array {
  const digest = hash('sha256', subscriptionId, 'buffer').subarray(0, digestBytes);
  return Buffer.concat([key, digest]);
}

/** The end of the keys that begin with this one. */
export function lastKeyOf(key: Uint8Array): Uint8Array {
  return Buffer.concat([key, Buffer.alloc(digestBytes + 1, 0xff)]);
}

/**
 * The text that two deliveries of one notification share and two different ones do not: the AckId,
 * else subscription, event, product and notification date (facts, catalogue 1.2). Without a date
 * either, the body itself decides, given as its digest: a second change of a product must not be
 * taken for the first one. The part after the first line break begins with what rises with time.
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
 * The text of an event that no push told of: by what happened, since there is no AckId to go by. The case of
 * a product's id does not tell two products apart.
 */
export function recoveredIdentityOf(recovered: CatalogueEvent): string {
  const { subscription, event, productId, eventUs } = recovered;
  const names = JSON.stringify([subscription, event, productId.toLowerCase()]);
  return `reconcile\n${eventUs} ${names}`;
}
