/** Reads pages of the catalogue, of queues and of query results; large ones on a thread. Records stay bytes. */
import { z } from 'zod';
import { moduleFile } from '../core/host/rpc.ts';
import { Thread } from '../core/host/thread.ts';
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
import { compileFilter } from '../filter/evaluate.ts';
import type { FilterTree, GroupNode, NotNode } from '../filter/filter-tree.ts';
import { parseFilter } from '../filter/parse.ts';
import { type ProductView, productView } from '../filter/product-view.ts';
import type { ProductRecord } from '../filter/values.ts';
import type { ListedEvent } from './listing.ts';
import type { QueueEntry } from './pull-queue.ts';

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

export interface ListingReading {
  /** Field with the date of the event. */
  dateField: 'PublicationDate' | 'ModificationDate' | 'DeletionDate';
  /** Earliest date of a page, in milliseconds. */
  sinceMs: number;
  /** Filter to evaluate; null for none. */
  filter: string | null;
}

/** Far above the maximum `$top` (facts, filters 1). */
const recordsMax = 10_000;

/** A shorter page with unreadable records does not prove that the catalogue is broken. */
const brokenPageMin = 10;

/**
 * Reads a response with status 200. A page is broken if it is not an array, if most of ten or more records lack an id or
 * a date, or if the dates, in milliseconds, decrease or begin before `sinceMs`: the walk would then miss products.
 * `broken` completes "The catalogue's response is unusable: …".
 */
export function readListing(
  bytes: Uint8Array,
  reading: ListingReading,
): ReadPage | { broken: string } {
  const { dateField, sinceMs, filter } = reading;
  const test = filter === null ? () => true : compileMatch(parseFilter(filter).tree);
  const page = membersIn(bytes, wholeOf(bytes), ['value', '@odata.nextLink', '@odata.count']);
  if (page === null) return { broken: notJson };
  const value = page.get('value');
  const items = value && itemsIn(bytes, value, recordsMax);
  if (!items) return { broken: 'it has no list of products (`value`)' };
  const records = items.map((item) => readRecord(bytes, item, reading, test));
  if (records.includes(undefined)) return { broken: notJson };
  const readable = records.filter((record) => record != null);
  const isMostlyUnreadable =
    records.length >= brokenPageMin && readable.length * 2 < records.length;
  if (isMostlyUnreadable) {
    const share = `${records.length - readable.length} of ${records.length}`;
    return { broken: `${share} products have no Id or no ${dateField}` };
  }
  const dates = [sinceMs, ...readable.map(msOf)];
  if (dates.some((ms, i) => ms < (dates[i - 1] ?? ms))) {
    return { broken: `it is not sorted by ${dateField}` };
  }
  const nextLink = linkSchema.parse(smallValue(bytes, page.get('@odata.nextLink')));
  const count = countSchema.parse(smallValue(bytes, page.get('@odata.count')));
  return { records: records.map((record) => record ?? null), nextLink, count };
}

const notJson = 'it is not valid JSON, or is truncated';

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
  test: (record: ProductRecord) => MatchResult,
): ListingPart | null | undefined {
  const members = membersIn(bytes, item, [dateField, 'Id', 'Name', 'PublicationDate']);
  if (members === null) return null;
  const eventUs = readDateUs(smallValue(bytes, members.get(dateField)));
  const productId = text(smallValue(bytes, members.get('Id')));
  const publicationDateUs = readDateUs(smallValue(bytes, members.get('PublicationDate')));
  const isLarge = isTooLarge(item, members.get('Name'));
  const parsed = isLarge ? null : (jsonOf(textIn(bytes, item)) as ProductRecord | undefined);
  const record = isTooDeep(parsed, nestingMax - 1) ? null : parsed;
  if (record === undefined) return undefined;
  if (productId === null || eventUs === null) return null;
  return {
    ...{ productId, eventUs, publicationDateUs },
    productName: record && text(record.Name),
    record: record && item,
    isMatch: record === null || test(record),
  };
}

/** Size of the other fields of a notification that is made from a record. */
const otherFieldsBytesMax = 8_192;

/** Returns true for a record that makes a larger notification than a push may be. */
function isTooLarge({ start, end }: Span, name: Span | undefined): boolean {
  const nameBytes = name === undefined ? 0 : name.end - name.start;
  return end - start + nameBytes + otherFieldsBytesMax > bodyBytesMax;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Null: the record lacks a field that decides. */
type MatchResult = boolean | null;

type Matcher = (record: ProductRecord, view: ProductView) => MatchResult;

/**
 * Evaluates a filter on a record, with the three-valued logic of SQL: an unknown term matters only if the others do not
 * decide. Null values are known to be empty; the former values of missing fields are unknown: deleted records lack whole
 * fields (facts, catalogue 1.1).
 */
function compileMatch(tree: FilterTree): (record: ProductRecord) => MatchResult {
  const matcher = matcherOf(tree);
  return (record) => matcher(record, productView(record));
}

function matcherOf(tree: FilterTree): Matcher {
  if ('terms' in tree) {
    const matchers = tree.terms.map(matcherOf);
    const decisive = tree.node === 'or';
    return (record, view) => {
      const results = matchers.map((matcher) => matcher(record, view));
      if (results.includes(decisive)) return decisive;
      return results.includes(null) ? null : !decisive;
    };
  }
  if ('term' in tree) {
    const matcher = matcherOf(tree.term);
    return (record, view) => {
      const own = matcher(record, view);
      return own === null ? null : !own;
    };
  }
  const test = compileFilter(tree);
  const fields = fieldsOf(tree);
  return (record, view) =>
    // Few records have this field; it is derived from other fields of known forms.
    fields.some((field) =>
      field === 'Collection' ? view.text('Collection/Name') !== null : record[field] !== undefined,
    )
      ? test(view)
      : null;
}

/** Returns the record fields of which a condition needs at least one. */
function fieldsOf(condition: Exclude<FilterTree, GroupNode | NotNode>): string[] {
  if (condition.node === 'attribute') return ['Attributes'];
  if (condition.node === 'intersects') return ['Footprint', 'GeoFootprint'];
  return condition.field.split('/').slice(0, 1);
}

/** Far above `readEntriesMax`: entries of a service that ignores `$top` are accepted. */
const entriesMax = 10_000;

/** As in the parser of notifications, an AckId is opaque and not trimmed. */
const ackIdSchema = z
  .union([z.string().min(1), z.int().transform(String)])
  .nullable()
  .catch(null);

const entryNames = ['AckId', 'SubscriptionEvent', 'ProductId'];

/** An entry within its page. */
export type EntryPart = Span & Omit<QueueEntry, 'bytes'>;

/**
 * Returns the entries of a page; null for an answer that is neither an array of entries nor one entry. What an entry
 * contains is checked when it is stored.
 */
function readEntries(page: Uint8Array, _options: undefined): EntryPart[] | null {
  const whole = wholeOf(page);
  const items = itemsIn(page, whole, entriesMax);
  if (items !== null) return items.map((item) => entryPartOf(page, item));
  // One entry may come without an array; another object is not an entry.
  const isEntry = (membersIn(page, whole, entryNames)?.size ?? 0) > 0;
  return isEntry ? [entryPartOf(page, whole)] : null;
}

function entryPartOf(page: Uint8Array, item: Span): EntryPart {
  const members = membersIn(page, item, ['AckId', 'NotificationDate']);
  const value = (name: string) => smallValue(page, members?.get(name));
  const notificationUs = readDateUs(value('NotificationDate'));
  return { ...item, ackId: ackIdSchema.parse(value('AckId')), notificationUs };
}

export const pageReaders = { readEntries, readListing };

type Readers = typeof pageReaders;

/** Smaller pages are read on this thread, in a few milliseconds. */
const ownThreadBytesMax = 2 ** 18;

const limits = {
  ...{ heapMb: 128, containedBufferBytes: 2 ** 28 },
  ...{ callTimeoutSeconds: 30, idleSeconds: 10, isUnreferenced: true },
};

/**
 * Returns the function that reads the bytes of a page. It takes the bytes, and returns them with the result. Rejects
 * with `unavailable` for a page that needs too much memory or time.
 */
export function createReadPage() {
  const file = moduleFile('./page-thread', import.meta.url);
  const thread = new Thread(file, { owner: 'large pages', data: null, ...limits });
  return async <Name extends keyof Readers>(
    name: Name,
    page: Uint8Array,
    options: Parameters<Readers[Name]>[1],
  ): Promise<{ result: ReturnType<Readers[Name]>; bytes: Uint8Array }> => {
    const read = pageReaders[name] as (page: Uint8Array, options: unknown) => never;
    if (page.byteLength <= ownThreadBytesMax) return { result: read(page, options), bytes: page };
    const { buffer, byteLength } = page;
    const own = byteLength === buffer.byteLength ? page : Uint8Array.from(page);
    const moved = [own.buffer as ArrayBuffer];
    // The thread answers with a value of this type.
    return (await thread.call(name, [own, options], undefined, moved)) as never;
  };
}
