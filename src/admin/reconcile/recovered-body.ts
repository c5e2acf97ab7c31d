/** The body of an event that no push told of, in the form of a notification. */
import type { ListedEvent } from './product-listing.ts';
import type { ReconcileTask } from './reconcile-task.ts';

const encoder = new TextEncoder();

/** Compact JSON without AckId and NotificationDate: nobody sent one (specification, "Push notification"). */
export function recoveredBody(
  { event, subscriptionId }: Pick<ReconcileTask, 'event' | 'subscriptionId'>,
  { productId, productName, record }: Pick<ListedEvent, 'productId' | 'productName' | 'record'>,
): Uint8Array {
  return encoder.encode(
    JSON.stringify({
      SubscriptionEvent: event,
      ProductId: productId,
      ProductName: productName,
      SubscriptionId: subscriptionId,
      value: record,
    }),
  );
}

/** True when the log can tell the product from others: its Id is read as it is written. */
export function canBeEntered({ productId }: Pick<ListedEvent, 'productId'>): boolean {
  return productId !== '' && productId.trim() === productId && productId.isWellFormed();
}
