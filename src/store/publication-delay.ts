/** How late products are told of, looked up in one body of each commit: under load, few are read again for it. */

import { contentOf } from '../domain/delivery-content.ts';
import type { Delivery, PublicationDelay } from '../domain/ports.ts';
import { recordIn } from '../filter/product-record.ts';
import { bodyDocument, dateUs } from './products/product-record.ts';

/** Reading a body of this size takes well below a millisecond. */
const bodyBytesMax = 64 * 2 ** 10;

/**
 * From the PublicationDate in the body to its receipt. Null when it does not tell of a created product, has no
 * date, was not pushed, or is very large. Dates of other clocks may lie ahead: that is no delay. The body must
 * be one that could be read.
 */
export function publicationDelay(delivery: Delivery): PublicationDelay | null {
  const body = contentOf(delivery);
  const { subscription, receivedAtUs, source } = delivery;
  if (source !== 'push' || body.byteLength > bodyBytesMax) return null;
  const document = bodyDocument(body);
  const publishedUs = isCreated(document) ? dateUs(recordIn(document, 0)?.PublicationDate) : null;
  if (publishedUs === null) return null;
  return { subscription, seconds: Math.max(0, receivedAtUs - publishedUs) / 1_000_000 };
}

function isCreated(document: unknown): boolean {
  const item: unknown = Array.isArray(document) ? document[0] : document;
  if (typeof item !== 'object' || item === null || !('SubscriptionEvent' in item)) return false;
  return String(item.SubscriptionEvent).toLowerCase() === 'created';
}
