/** What makes two notifications the same one. */
import type { CatalogueEvent } from './coverage.ts';
import type { Notification } from './notification.ts';

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
