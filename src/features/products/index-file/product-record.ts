/** Reads the record from the body of a notification, and completes it with values of the index. */

import { formatDateUs, readDateUs } from '../../../core/terms/dates.ts';
import { jsonOf } from '../../../core/terms/text.ts';
import { recordIn } from '../../../filter/product-view.ts';
import type { ProductRecord } from '../../../filter/values.ts';
import { bodyDocument } from '../../../store/bodies/body-document.ts';

const lenientUtf8 = new TextDecoder('utf-8');

/**
 * A record on its way between threads, as JSON: the body of its notification, or the record alone if the body has
 * others; null without one. To parse it takes less time than to copy a parsed record.
 */
export type SentRecord = { body: string } | { record: string } | null;

/** Maximum size of a body that is sent whole. */
const sentBodyBytesMax = 65_536;

const openingBrace = 0x7b;

/** Returns the record at an index of a body, to be sent; null for a body that is not JSON. */
export function sentRecord(body: Uint8Array, index: number): SentRecord {
  if (body[0] === openingBrace && body.length <= sentBodyBytesMax) {
    return { body: lenientUtf8.decode(body) };
  }
  const record = recordIn(bodyDocument(body), index);
  return record === null ? null : { record: JSON.stringify(record) };
}

/** Returns the record that was sent; null for a body that is not JSON. */
export function receivedRecord(sent: SentRecord): ProductRecord | null {
  if (sent === null) return null;
  // Written by `sentRecord`.
  if ('record' in sent) return JSON.parse(sent.record) as ProductRecord;
  return recordIn(jsonOf(sent.body), 0);
}

interface Identity {
  productId: string;
  name: string | null;
  /** Null if it is not deleted. */
  deletionDateUs: number | null;
  deletionCause: string | null;
}

/**
 * Returns the record as filters and outputs use it: as received, with Id and Name added if missing, and with
 * the date of deletion for a tombstone.
 */
export function completeRecord(
  record: ProductRecord | null,
  { productId, name, deletionDateUs, deletionCause }: Identity,
): ProductRecord {
  const known = record ?? {};
  const missing: Record<string, unknown> = {};
  if (known.Id !== productId) missing.Id = productId;
  if (typeof known.Name !== 'string' && name !== null) missing.Name = name;
  if (deletionDateUs !== null && readDateUs(known.DeletionDate) !== deletionDateUs) {
    missing.DeletionDate = formatDateUs(deletionDateUs);
    missing.DeletionCause = deletionCause;
  }
  return Object.keys(missing).length === 0 ? known : { ...known, ...missing };
}
