/** What a delivery holds, whether its body came encoded or not. */

import { type Reading, readNotifications } from './notification.ts';
import type { Delivery } from './ports.ts';

/** Reads the content of a delivery; of one that cannot be decoded the reason is its fault. */
export function readDelivery({ body, encoded }: Pick<Delivery, 'body' | 'encoded'>): Reading {
  if (encoded === undefined) return readNotifications(body);
  const { content } = encoded;
  if (content instanceof Uint8Array) return readNotifications(content);
  return { notifications: [], faults: [content], drift: [] };
}
