/** Reads a page of the catalogue's lists, tolerantly; says why when it is no such page. */
import { z } from 'zod';
import { parseDate } from '../../domain/notification-date.ts';
import type { EventList } from './listing-url.ts';
import type { ListedEvent } from './product-listing.ts';

export interface ReadPage {
  /** As many as came, in their order; null for one that lacks its id or its date. */
  records: readonly (ListedEvent | null)[];
  nextLink: string | null;
  count: number | null;
}

const pageSchema = z.object({
  value: z.array(z.unknown()),
  '@odata.nextLink': z.string().min(1).nullish().catch(null),
  '@odata.count': z.coerce.number().int().nonnegative().nullish().catch(null),
});

/** In a shorter page, the few that there are may be odd, though the catalogue answers as it should. */
const brokenPageMin = 10;

const recordSchema = z.record(z.string(), z.unknown());

/**
 * Reads an answer of 200. `broken` completes "the answer cannot be used, as …". A page is broken when it is
 * no list; when most of ten records or more lack an id or date, though single ones may; and when the dates,
 * in milliseconds, go back or begin before `sinceMs`: then a walk along them would miss something.
 */
export function readListingPage(
  json: unknown,
  { list, sinceMs }: { list: EventList; sinceMs: number },
): ReadPage | { broken: string } {
  if (json === undefined) return { broken: 'it is not JSON, or only a part of it' };
  const page = pageSchema.safeParse(json).data;
  if (page === undefined) return { broken: 'it has no list of products (`value`)' };
  const records = page.value.map((item) => readRecord(item, list));
  const nextLink = page['@odata.nextLink'] ?? null;
  const odd = records.filter((record) => record === null).length;
  if (records.length >= brokenPageMin && odd * 2 > records.length) {
    return { broken: `${odd} of ${records.length} products have no Id or no ${list.dateField}` };
  }
  let beforeMs = sinceMs;
  for (const record of records) {
    if (record === null) continue;
    const ms = msOf(record);
    if (ms < beforeMs) return { broken: `it is not in the order of ${list.dateField}` };
    beforeMs = ms;
  }
  return { records, nextLink, count: page['@odata.count'] ?? null };
}

/** The millisecond that an event happened in. */
export function msOf({ eventUs }: Pick<ListedEvent, 'eventUs'>): number {
  return Math.floor(eventUs / 1000);
}

function readRecord(item: unknown, { dateField }: EventList): ListedEvent | null {
  const record = recordSchema.safeParse(item).data;
  if (record === undefined) return null;
  const eventUs = dateUs(record[dateField]);
  const productId = text(record.Id);
  if (productId === null || eventUs === null) return null;
  return {
    productId,
    productName: text(record.Name),
    eventUs,
    publicationUs: dateUs(record.PublicationDate),
    record,
  };
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function dateUs(value: unknown): number | null {
  return typeof value === 'string' ? (parseDate(value)?.us ?? null) : null;
}
