/** Where the next page of a list begins, so that nothing is passed over though the list changes meanwhile. */
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import { msOf, type ReadPage } from './listing-page.ts';
import type { ListedEvent } from './product-listing.ts';

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

export interface WalkStep {
  /** Those that were not given before. */
  fresh: readonly ListedEvent[];
  isEnd: boolean;
}

export interface ListingWalk {
  position(): ListPosition;
  /** Takes the page that was asked for at the position with this `$top`, and moves on. */
  take(page: ReadPage, top: number): WalkStep;
  /**
   * How many records the catalogue counted with the first page, null when it did not; and how many it has shown
   * since. Of a record without id or date, which may come on two pages, nobody can tell: it counts each time.
   */
  counts(): { counted: number | null; shown: number };
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
 * whether that is all there is, `counts` is for.
 * Throws `unavailable` when a date has more records than can be reached.
 */
export function createListingWalk(options: {
  sinceMs: number;
  /** Links to other hosts are not followed. */
  origin: string;
}): ListingWalk {
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
