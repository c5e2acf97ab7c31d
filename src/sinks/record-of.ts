/** Finds the record of one notification in the body that it came in. */
import type { NotificationRow } from '../domain/ports.ts';
import { type ProductRecord, recordIn } from '../filter/product-record.ts';

/** Null where it came without one. A body of the log could be read when it was stored. */
export function recordOf(
  body: Uint8Array,
  { bodyIndex }: Pick<NotificationRow, 'bodyIndex'>,
): ProductRecord | null {
  return recordIn(JSON.parse(new TextDecoder().decode(body)), bodyIndex);
}
