/** Finds the record of one notification in the body that it came in. */
import type { NotificationRow } from '../domain/ports.ts';
import { readNotifications } from '../domain/read-notifications.ts';
import { type ProductRecord, partOf } from '../filter/record-parts.ts';

/**
 * The notification's `value` (or `Value`, as in old ones), as it came; null where it came without one. A body
 * may be an array with several. Never throws.
 */
export function recordOf(
  body: Uint8Array,
  row: Pick<
    NotificationRow,
    'ackId' | 'productId' | 'event' | 'notificationDateUs' | 'subscriptionId'
  >,
): ProductRecord | null {
  const same = readNotifications(body).notifications.filter(
    ({ productId, event }) => productId === row.productId && event === row.event,
  );
  const named = same.filter(({ ackId }) => ackId === row.ackId);
  // Found missing and then pushed after all, it has id and date of the push, and the body of what was fetched.
  const found = named.find((one) => isDatedAs(one, row)) ?? named[0] ?? same[0];
  if (found === undefined) return null;
  const document: unknown = JSON.parse(new TextDecoder().decode(body));
  const item: unknown = Array.isArray(document) ? document[found.index] : document;
  const record = [partOf(item, 'value'), partOf(item, 'Value')].find(isRecord);
  return record ?? null;
}

type Dated = Pick<NotificationRow, 'notificationDateUs' | 'subscriptionId'>;

/** Without an AckId these tell apart what is told of one product in one body (decision 2). */
function isDatedAs(one: Dated, other: Dated): boolean {
  return (
    one.notificationDateUs === other.notificationDateUs &&
    one.subscriptionId === other.subscriptionId
  );
}

function isRecord(value: unknown): value is ProductRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
