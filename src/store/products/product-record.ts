/** Reads the record in the body of a notification, and completes it with what the index knows. */

import { formatDateUs, parseDate } from '../../domain/dates.ts';
import { isTooDeep } from '../../domain/notification.ts';
import type { ProductRecord } from '../../filter/product-record.ts';

const lenientUtf8 = new TextDecoder('utf-8');

/**
 * The JSON of a body; undefined for one that is no JSON, or nested too deep. Versions before the bound on nesting stored
 * such bodies. Their product is shown with what the index knows, so that one record never fails a page.
 */
export function bodyDocument(body: Uint8Array): unknown {
  if (!documents.has(body)) documents.set(body, parsed(body));
  return documents.get(body);
}

/** A body may hold thousands of notifications: as long as its bytes are in use, it is parsed once. */
const documents = new WeakMap<Uint8Array, unknown>();

function parsed(body: Uint8Array): unknown {
  try {
    // The decoder leaves out a byte order mark.
    return isTooDeep(body) ? undefined : JSON.parse(lenientUtf8.decode(body));
  } catch {
    return undefined;
  }
}

interface Identity {
  productId: string;
  name: string | null;
  /** Null while it is alive. */
  deletionUs: number | null;
  deletionCause: string | null;
}

/**
 * The record as the query language sees it and as it is delivered: as received, with Id and Name where
 * it has none, and for a tombstone with the date of deletion.
 */
export function completeRecord(
  record: ProductRecord | null,
  { productId, name, deletionUs, deletionCause }: Identity,
): ProductRecord {
  const known = record ?? {};
  const missing: Record<string, unknown> = {};
  if (known.Id !== productId) missing.Id = productId;
  if (typeof known.Name !== 'string' && name !== null) missing.Name = name;
  if (deletionUs !== null && dateUs(known.DeletionDate) !== deletionUs) {
    missing.DeletionDate = formatDateUs(deletionUs);
    missing.DeletionCause = deletionCause;
  }
  return Object.keys(missing).length === 0 ? known : { ...known, ...missing };
}

/** A date of a record in microseconds; null for what is none. */
export function dateUs(value: unknown): number | null {
  return typeof value === 'string' ? (parseDate(value)?.us ?? null) : null;
}
