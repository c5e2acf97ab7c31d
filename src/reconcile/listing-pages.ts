/** Where the next page of a list begins, so that nothing is passed over though the list changes meanwhile. */

import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import { formatDateUs, parseDate } from '../domain/dates.ts';
import type { Entity } from '../domain/filter-tree.ts';
import type { SubscriptionEvent } from '../domain/subscription.ts';
import { isBlankFilter } from '../filter/check.ts';
import type { ListedEvent } from './tasks.ts';

/** What the catalogue allows (facts, filters 1). */
const skipMax = 10_000;

/** How often a list may change under our hands, at one date, before it is given up. */
const stepsBackMax = 100;

/** Where a page begins: at a date, and among those of that date. */
export interface ListPosition {
  sinceMs: number;
  /** Records passed over; the last of them that was seen is asked for again. */
  skip: number;
  /** The catalogue's own link to the page; null to ask by date. */
  link: string | null;
}

interface WalkStep {
  /** Those that were not given before. */
  fresh: readonly ListedEvent[];
  isEnd: boolean;
}

/**
 * Each page begins at the date of the last record of the one before, in milliseconds, and what was seen of
 * that date is dropped: unlike `$skip`, that loses nothing when earlier records leave the list, as
 * they do when they are modified or deleted.
 *
 * When a page does not get beyond one date, records are passed over after all, all but the last one
 * seen. The catalogue puts records of one date in the order of their ids, so that all before a record that
 * was seen have been seen: a page that does not begin with such a one may have lost some, and is asked for
 * again from further back. A link with a token of the catalogue's needs none of that, and is followed.
 *
 * A page that is shorter than asked for is the last one, unless the catalogue counted more at the beginning than
 * was given: it may give less than it is asked for. Then the walk goes on until a page brings nothing new;
 * `counts` shows whether that is all: what the catalogue counted with the first page (null when it did not), and
 * what it has shown since. A record without id or date, which may come on two pages, counts each time.
 * Throws `unavailable` when a date has more records than can be reached.
 */
export function createListingWalk(options: {
  sinceMs: number;
  /** Links to other hosts are not followed. */
  origin: string;
}) {
  let at: ListPosition = { sinceMs: options.sinceMs, skip: 0, link: null };
  /** Ids that were given with a date in `at.sinceMs`, in lower case. */
  let seen = new Set<string>();
  let stepsBack = 0;
  /** As the catalogue counted with the first page; null when it did not. */
  let counted: number | null = null;
  let isFirst = true;
  let given = 0;
  let odd = 0;

  const wasSeen = (record: ListedEvent | null | undefined) =>
    record != null && msOf(record) === at.sinceMs && seen.has(record.productId.toLowerCase());

  function stepBack(top: number): WalkStep {
    stepsBack += 1;
    if (stepsBack > stepsBackMax)
      throw unreachable(at.sinceMs, 'and the list changes all the time');
    at = { ...at, skip: Math.max(0, at.skip - (top - 1)) };
    return { fresh: [], isEnd: false };
  }

  /** On among the records of one date. */
  function within({ records, nextLink }: ReadPage): ListPosition {
    const last = records.findLastIndex((record) => record !== null);
    const skip = at.skip + Math.max(0, last);
    const isFarther = skip > at.skip && skip <= skipMax;
    const link = ownLink(nextLink, options.origin);
    if (link !== null && (!link.searchParams.has('$skip') || !isFarther)) {
      return { ...at, skip, link: link.href };
    }
    if (isFarther) return { ...at, skip, link: null };
    throw unreachable(at.sinceMs, 'and the catalogue does not show all of them');
  }

  /** True when there must be more, and there is a way to it that was not tried. */
  function isOwed(known: number, fresh: number): boolean {
    if (counted === null || given >= counted) return false;
    // A page of one date alone may have more of it behind what was seen.
    return fresh > 0 || (at.skip === 0 && at.link === null && known > 1);
  }

  /** Takes the page that was asked for at the position with this `$top`, and moves on. */
  function take(page: ReadPage, top: number): WalkStep {
    if (isFirst) counted = page.count;
    isFirst = false;
    if (at.skip > 0 && at.link === null && !wasSeen(page.records[0])) return stepBack(top);
    const known = page.records.filter((record) => record !== null);
    const fresh = known.filter((record) => !wasSeen(record));
    given += fresh.length;
    odd += page.records.length - known.length;
    // Links may lead on and on where there is nothing.
    const isOver = page.nextLink === null || (at.link !== null && fresh.length === 0);
    const isLast = page.records.length < top && isOver;
    const isEnd = isLast && !isOwed(known.length, fresh.length);
    const last = known.at(-1);
    const lastMs = last === undefined ? at.sinceMs : msOf(last);
    if (lastMs > at.sinceMs) {
      seen = new Set();
      stepsBack = 0;
      at = { sinceMs: lastMs, skip: 0, link: null };
    } else if (!isEnd && !(isLast && page.records.length < 2)) {
      at = within(page);
    }
    for (const record of known) {
      if (msOf(record) === lastMs) seen.add(record.productId.toLowerCase());
    }
    return { fresh, isEnd };
  }

  return { position: () => at, take, counts: () => ({ counted, shown: given + odd }) };
}

function ownLink(text: string | null, origin: string): URL | null {
  const url = text === null ? null : URL.parse(text, origin);
  return url?.origin === origin ? url : null;
}

function unreachable(ms: number, why: string): AppError {
  return new AppError(
    'unavailable',
    `Too many products have the date ${formatDateUs(ms * 1000)}, ${why}.`,
    {
      advice: `Compare what is before and after it; narrow the subscription's filter to compare that moment, too.`,
    },
  );
}

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
function msOf({ eventUs }: Pick<ListedEvent, 'eventUs'>): number {
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

/** Where events of a kind are listed (facts, catalogue 5). */
interface EventList {
  entity: Entity;
  /** The field that has the date of the event. */
  dateField: 'PublicationDate' | 'ModificationDate' | 'DeletionDate';
  expand: readonly string[];
}

const productParts = ['Attributes', 'Assets', 'Locations'];

export const eventLists: Readonly<Record<SubscriptionEvent, EventList>> = {
  created: { entity: 'Products', dateField: 'PublicationDate', expand: productParts },
  modified: { entity: 'Products', dateField: 'ModificationDate', expand: productParts },
  deleted: { entity: 'DeletedProducts', dateField: 'DeletionDate', expand: ['Attributes'] },
};

/** What a page is asked with; times in milliseconds, as the catalogue's own filters are written with. */
interface ListingQuestion {
  list: EventList;
  /** Blank for every product. */
  filter: string;
  sinceMs: number;
  /** Excluded. */
  untilMs: number;
  top: number;
  skip: number;
  /** True: the catalogue is to say how many there are from `sinceMs` on. */
  count: boolean;
}

/** `catalogueUrl` as everywhere: without `/odata/v1` and without a last slash. */
export function listingUrl(catalogueUrl: string, question: ListingQuestion): string {
  const { list, filter, top, skip, count } = question;
  const window = windowFilter(question);
  const options: [name: string, value: string][] = [
    ['$filter', isBlankFilter(filter) ? window : `(${filter}) and ${window}`],
    ['$orderby', `${list.dateField} asc`],
    ['$top', String(top)],
    ...(skip === 0 ? [] : [['$skip', String(skip)] satisfies [string, string]]),
    ...list.expand.map((part): [string, string] => ['$expand', part]),
    ...(count ? [['$count', 'true'] satisfies [string, string]] : []),
  ];
  const query = options.map(
    ([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`,
  );
  return `${catalogueUrl}/odata/v1/${list.entity}?${query.join('&')}`;
}

function windowFilter({ list: { dateField }, sinceMs, untilMs }: ListingQuestion): string {
  const date = (ms: number) => new Date(ms).toISOString();
  return `${dateField} ge ${date(sinceMs)} and ${dateField} lt ${date(untilMs)}`;
}
