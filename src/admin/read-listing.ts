/** Reads pages of query results. Records stay bytes: they are stored as the catalogue sent them. */
import { z } from 'zod';
import {
  itemsIn,
  membersIn,
  type Span,
  smallValue,
  textIn,
  wholeOf,
} from '../core/http/json-parts.ts';
import { readDateUs } from '../core/terms/dates.ts';
import { isTooDeep } from '../core/terms/notification.ts';
import { bodyBytesMax, nestingMax } from '../core/terms/ports.ts';
import { jsonOf } from '../core/terms/text.ts';
import { parseFilter } from '../filter/parse.ts';
import type { ListedEvent } from './listing.ts';
import { compileMatch, type MatchResult } from './record-match.ts';

/** A product of query results, within the bytes of its page. */
export interface ListingPart extends Omit<ListedEvent, 'record'> {
  /** Null for a record that would be refused as a push. */
  record: Span | null;
  /** Result of the filter; null if the record lacks a field that decides. */
  isMatch: MatchResult;
}

export interface ReadPage {
  /** Records in their order; null for a record without id or date. */
  records: readonly (ListingPart | null)[];
  nextLink: string | null;
  count: number | null;
}

/** Completes "The catalogue's response is unusable: …". */
interface BrokenPage {
  broken: string;
  isJson: boolean;
}

export interface ListingReading {
  /** Field with the date of the event. */
  dateField: 'PublicationDate' | 'ModificationDate' | 'DeletionDate';
  /** Earliest date of a page, in milliseconds; null to read a response with one product. */
  sinceMs: number | null;
  /** Filter to evaluate; null for none. */
  filter: string | null;
}

/** Far above the maximum `$top` (facts, filters 1). */
const recordsMax = 10_000;

/** A shorter page with unreadable records does not prove that the catalogue is broken. */
const brokenPageMin = 10;

const notJson: BrokenPage = { broken: 'it is not valid JSON, or is truncated', isJson: false };

/**
 * Reads a response with status 200. A page is broken if it is not an array, if most of ten or more records lack an id or
 * a date, or if the dates, in milliseconds, decrease or begin before `sinceMs`: the walk would then miss products.
 */
export function readListing(bytes: Uint8Array, reading: ListingReading): ReadPage | BrokenPage {
  const { dateField, sinceMs, filter } = reading;
  const test = filter === null ? () => true : compileMatch(parseFilter(filter).tree);
  const whole = wholeOf(bytes);
  if (sinceMs === null) {
    const record = readRecord(bytes, whole, reading, test);
    if (record === undefined) return notJson;
    if (record !== null) return { records: [record], nextLink: null, count: null };
    return { broken: `it is not a product with Id and ${dateField}`, isJson: true };
  }
  const page = membersIn(bytes, whole, ['value', '@odata.nextLink', '@odata.count']);
  if (page === null) return notJson;
  const value = page.get('value');
  const items = value === undefined ? null : itemsIn(bytes, value, recordsMax);
  if (items === null) return { broken: 'it has no list of products (`value`)', isJson: true };
  const records: (ListingPart | null)[] = [];
  let unreadable = 0;
  let beforeMs = sinceMs;
  for (const item of items) {
    const record = readRecord(bytes, item, reading, test);
    if (record === undefined) return notJson;
    records.push(record);
    if (record === null) unreadable += 1;
    else if (msOf(record) < beforeMs) {
      return { broken: `it is not sorted by ${dateField}`, isJson: true };
    } else beforeMs = msOf(record);
  }
  if (records.length >= brokenPageMin && unreadable * 2 > records.length) {
    const share = `${unreadable} of ${records.length}`;
    return { broken: `${share} products have no Id or no ${dateField}`, isJson: true };
  }
  const nextLink = linkSchema.parse(smallValue(bytes, page.get('@odata.nextLink')));
  const count = countSchema.parse(smallValue(bytes, page.get('@odata.count')));
  return { records, nextLink, count };
}

const linkSchema = z.string().min(1).nullable().catch(null);
const countSchema = z.coerce.number().int().nonnegative().nullable().catch(null);

/** Returns the millisecond of an event. */
export function msOf({ eventUs }: Pick<ListedEvent, 'eventUs'>): number {
  return Math.floor(eventUs / 1000);
}

/** Returns null for a record without id or date, and undefined for invalid JSON. */
function readRecord(
  bytes: Uint8Array,
  item: Span,
  { dateField }: ListingReading,
  test: (record: Readonly<Record<string, unknown>>) => MatchResult,
): ListingPart | null | undefined {
  const members = membersIn(bytes, item, [dateField, 'Id', 'Name', 'PublicationDate']);
  if (members === null) return null;
  const eventUs = readDateUs(smallValue(bytes, members.get(dateField)));
  const productId = text(smallValue(bytes, members.get('Id')));
  const publicationDateUs = readDateUs(smallValue(bytes, members.get('PublicationDate')));
  const dates = { eventUs: eventUs ?? 0, publicationDateUs };
  if (isRefused(bytes, item, members.get('Name'))) {
    if (productId === null || eventUs === null) return null;
    return { productId, productName: null, ...dates, record: null, isMatch: true };
  }
  const record = jsonOf(textIn(bytes, item)) as Record<string, unknown> | undefined;
  if (record === undefined) return undefined;
  if (productId === null || eventUs === null) return null;
  return {
    productId,
    productName: text(record.Name),
    ...dates,
    record: item,
    isMatch: test(record),
  };
}

/** Size of the other fields of a notification that is made from a record. */
const otherFieldsBytesMax = 8_192;

/** Returns true for a record that makes a larger or deeper notification than a push may be. */
function isRefused(bytes: Uint8Array, { start, end }: Span, name: Span | undefined): boolean {
  const nameBytes = name === undefined ? 0 : name.end - name.start;
  const size = end - start + nameBytes + otherFieldsBytesMax;
  return size > bodyBytesMax || isTooDeep(bytes.subarray(start, end), nestingMax - 1);
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
