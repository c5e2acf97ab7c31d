/** Computes where the next page begins, so that no product is skipped when the result set changes meanwhile. */

import { AppError } from '../core/terms/app-error.ts';
import { formatDateUs } from '../core/terms/dates.ts';
import type { SubscriptionEvent } from '../core/terms/subscription.ts';
import { isBlankFilter } from '../filter/check.ts';
import type { Entity } from '../filter/filter-tree.ts';
import { type ListingPart, type ListingReading, msOf, type ReadPage } from './page-readers.ts';

/** Maximum `$skip` of the catalogue (facts, filters 1). */
const skipMax = 10_000;

/** Maximum number of steps back at one date before the listing fails. */
const stepsBackMax = 100;

/** Start of a page: a date, and an offset within that date. */
interface ListPosition {
  sinceMs: number;
  /** Value of `$skip`; the page repeats the last record seen. */
  skip: number;
  /** `@odata.nextLink` to the page; null to query by date. */
  link: string | null;
}

interface WalkStep {
  /** Events not returned before. */
  fresh: readonly ListingPart[];
  isEnd: boolean;
}

/**
 * Starts each page at the date of the last record of the page before, in milliseconds, and drops the records of
 * that date already seen. Unlike `$skip`, this loses nothing when earlier records leave the result set because
 * they are modified or deleted.
 *
 * If a page contains only one date, `$skip` is used, and the page repeats the last record seen. The catalogue
 * sorts records of one date by id, so all records before one already seen were seen too. A page that does not
 * begin with such a record may have lost some, and is repeated from further back. A link with a token of the
 * catalogue avoids this, and is followed.
 *
 * A page shorter than `$top` is the last one, unless the catalogue counted more products at the start than it
 * returned: it may return fewer than requested. Then the walk continues until a page brings nothing new.
 * `dropLink` makes the next page a query, as the pages of a link have a fixed size. `counts` returns the catalogue's count with the first page (null if missing) and the number returned since. A
 * record without id or date may be on two pages, and counts each time. Throws `unavailable` when a date has
 * more records than can be reached.
 */
export function createListingWalk(options: {
  sinceMs: number;
  /** Links to other hosts are not followed. */
  origin: string;
}) {
  let at: ListPosition = { sinceMs: options.sinceMs, skip: 0, link: null };
  /** Ids returned with a date in `at.sinceMs`, in lower case. */
  let seen = new Set<string>();
  let stepsBack = 0;
  /** Count of the first page; null if missing. */
  let counted: number | null | undefined;
  let [returned, unreadable] = [0, 0];

  const wasSeen = (record: ListingPart | null | undefined) =>
    record != null && msOf(record) === at.sinceMs && seen.has(record.productId.toLowerCase());

  function stepBack(top: number): WalkStep {
    stepsBack += 1;
    if (stepsBack > stepsBackMax) throw unreachable(at.sinceMs, 'and the results keep changing');
    at = { ...at, skip: Math.max(0, at.skip - (top - 1)) };
    return { fresh: [], isEnd: false };
  }

  /** Returns the next position within one date. */
  function within({ records, nextLink }: ReadPage): ListPosition {
    const last = records.findLastIndex((record) => record !== null);
    const skip = at.skip + Math.max(0, last);
    const isFarther = skip > at.skip && skip <= skipMax;
    const link = ownLink(nextLink, options.origin);
    if (link !== null && (!link.searchParams.has('$skip') || !isFarther)) {
      return { ...at, skip, link: link.href };
    }
    if (isFarther) return { ...at, skip, link: null };
    throw unreachable(at.sinceMs, 'and the catalogue does not return all of them');
  }

  /** Returns true if more records must exist and another page may reach them. */
  function expectsMore(known: number, fresh: number): boolean {
    if (counted == null || returned >= counted) return false;
    // After a page of a single date, `$skip` may reach more records of it.
    return fresh > 0 || (at.skip === 0 && at.link === null && known > 1);
  }

  /** Processes the page requested at the current position with this `$top`, and advances the position. */
  function take(page: ReadPage, top: number): WalkStep {
    if (counted === undefined) counted = page.count;
    if (at.skip > 0 && at.link === null && !wasSeen(page.records[0])) return stepBack(top);
    const known = page.records.filter((record) => record !== null);
    const fresh = known.filter((record) => !wasSeen(record));
    returned += fresh.length;
    unreadable += page.records.length - known.length;
    // Links may continue endlessly without new records.
    const hasNoNext = page.nextLink === null || (at.link !== null && fresh.length === 0);
    const isLast = page.records.length < top && hasNoNext;
    const isEnd = isLast && !expectsMore(known.length, fresh.length);
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

  return {
    position: () => at,
    dropLink: () => {
      at = { ...at, link: null };
    },
    take,
    counts: () => ({ counted: counted ?? null, shown: returned + unreadable }),
  };
}

export type ListingWalk = ReturnType<typeof createListingWalk>;

function ownLink(text: string | null, origin: string): URL | null {
  const url = text === null ? null : URL.parse(text, origin);
  return url?.origin === origin ? url : null;
}

function unreachable(ms: number, why: string): AppError {
  const message = `Too many products have the date ${formatDateUs(ms * 1000)}, ${why}.`;
  const advice =
    'Run separate comparisons for the time before and the time after this date, or make the filter of the subscription more specific.';
  return new AppError('unavailable', message, { advice });
}

/** Query parts for one kind of event (facts, catalogue 5). */
interface EventList {
  entity: Entity;
  /** Field with the date of the event. */
  dateField: ListingReading['dateField'];
  expand: readonly string[];
}

const productParts = ['Attributes', 'Assets', 'Locations'];

export const eventLists: Readonly<Record<SubscriptionEvent, EventList>> = {
  created: { entity: 'Products', dateField: 'PublicationDate', expand: productParts },
  modified: { entity: 'Products', dateField: 'ModificationDate', expand: productParts },
  deleted: { entity: 'DeletedProducts', dateField: 'DeletionDate', expand: ['Attributes'] },
};

/** Parameters of a page; times in milliseconds, the precision of dates in catalogue filters. */
interface ListingQuestion {
  list: EventList;
  /** Blank for every product. */
  filter: string;
  sinceMs: number;
  /** Excluded. */
  untilMs: number;
  top: number;
  skip: number;
  /** True to request the number of products from `sinceMs` on. */
  count: boolean;
}

/** Builds a URL; `catalogueUrl` is without `/odata/v1` and trailing slash. */
export function listingUrl(catalogueUrl: string, question: ListingQuestion): string {
  const { list, filter, sinceMs, untilMs, top, skip, count } = question;
  const { dateField, entity, expand } = list;
  const date = (ms: number) => new Date(ms).toISOString();
  const window = `${dateField} ge ${date(sinceMs)} and ${dateField} lt ${date(untilMs)}`;
  const whole = isBlankFilter(filter) ? window : `(${filter}) and ${window}`;
  const options = [
    `$filter=${encodeURIComponent(whole.toWellFormed())}`,
    `$orderby=${encodeURIComponent(`${dateField} asc`)}`,
    `$top=${top}`,
    ...(skip === 0 ? [] : [`$skip=${skip}`]),
    ...expand.map((part) => `$expand=${part}`),
    ...(count ? ['$count=true'] : []),
  ];
  return `${catalogueUrl}/odata/v1/${entity}?${options.join('&')}`;
}
