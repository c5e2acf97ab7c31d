/** Listing of products in the catalogue, page by page, by the dates of their events. */
import { createOutboundClient } from '../core/http/outbound-client.ts';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import type { SubscriptionEvent } from '../core/terms/subscription.ts';
import { FilterSyntaxError } from '../filter/finding.ts';
import { parseFilter } from '../filter/parse.ts';
import { createListingWalk, eventLists, type ListingWalk, listingUrl } from './listing-pages.ts';
import {
  createPacedRequests,
  createPageRequests,
  createPageSize,
  type ListingRetry,
  type ListingTiming,
  listingSizes,
  listingTiming,
  type PageQuestion,
  type Time,
} from './listing-requests.ts';
import { createReadPage, type ListingPart } from './page-readers.ts';
import { catalogue } from './subscription-client.ts';

/** Query for events of one kind with a date within [fromUs, toUs), of products that match. */
export interface ListingQuery {
  event: SubscriptionEvent;
  /** A `$filter` expression of a subscription; blank for every product. */
  filter: string;
  fromUs: number;
  toUs: number;
}

export interface ListedEvent {
  productId: string;
  productName: string | null;
  /** PublicationDate, ModificationDate or DeletionDate, depending on the event. */
  eventUs: number;
  /** PublicationDate of the record; null if missing. */
  publicationDateUs: number | null;
  /** JSON as returned by the catalogue, expanded; null for a record that would be refused as a push. */
  record: Uint8Array | null;
}

export interface ListingPage {
  /** A listing returns each product once, unless it changed meanwhile. */
  events: readonly ListedEvent[];
  /** Events of the window with an earlier date were returned; `toUs` with the last page. */
  completeUpToUs: number;
  /** Number of events in the window, counted by the catalogue at the start; null if missing. */
  total: number | null;
}

export interface ProductListing {
  /**
   * Sends one rate-limited request at a time. Rejects with `unavailable` and `too_many` when the catalogue
   * returns no usable response within the budget, `invalid` when it rejects the query, `unauthorized` when it requires a
   * login, and with the signal's reason. Pages returned before remain valid.
   */
  list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage>;
  /**
   * Returns totals: requests including retries, records skipped because they lack an id or a date, and events skipped because their records lack a field that the filter needs.
   */
  spent(): { requests: number; unreadableRecords: number; undecided: number };
}

export interface CatalogueListingOptions extends Time {
  /** Without `/odata/v1` and trailing slash. */
  catalogueUrl: string;
  fetch: typeof fetch;
  random: () => number;
  requestsPerMinute: number;
  timing?: Partial<ListingTiming>;
  /** Page sizes (`$top`), largest first: repeated failures select the next one. */
  sizes?: readonly number[];
  /** Called after each failed attempt that will be retried. */
  onRetry?: (trouble: ListingRetry) => void;
}

/** `$count` is slow: after this many failures the request is sent without it. */
const countAttemptsMax = 2;

/** Sends no request before the first page is read. Keeps one page in memory at a time. */
export function createCatalogueListing(options: CatalogueListingOptions): ProductListing {
  const { catalogueUrl, fetch, random, requestsPerMinute, sizes = listingSizes } = options;
  const timing = { ...listingTiming, ...options.timing };
  const { attemptTimeoutMs } = timing;
  const client = createOutboundClient({
    ...{ ...catalogue, fetch, random, retries: 0 },
    timing: { attemptTimeoutMs, totalTimeoutMs: attemptTimeoutMs },
  });
  const requests = createPacedRequests({ client, requestsPerMinute, time: options });
  const [size, readPage] = [createPageSize(sizes), createReadPage()];
  const ask = createPageRequests({ ...options, requests, size, timing, readPage });
  let unreadableRecords = 0;
  let undecided = 0;

  async function* list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage> {
    const { fromUs, toUs } = query;
    if (fromUs >= toUs) return yield { events: [], completeUpToUs: toUs, total: 0 };
    const { origin } = new URL(catalogueUrl);
    const walk = createListingWalk({ sinceMs: Math.floor(fromUs / 1000), origin });
    const questions = createQuestions(query, walk, { catalogueUrl, ask, signal });
    let total: number | null | undefined;
    let isEnd = false;
    let shortfall: AppError | null = null;
    // A separate function: local variables of the generator would keep a page in memory while the next loads.
    const nextPage = async (): Promise<ListingPage> => {
      const { page, top, bytes } = await questions.next();
      unreadableRecords += page.records.filter((record) => record === null).length;
      // With local filtering the catalogue's count is not the number of matches.
      if (total === undefined) total = questions.isFiltered() ? page.count : null;
      const step = walk.take(page, top);
      const listed = step.fresh.filter(({ eventUs, isMatch }) => {
        if (eventUs < fromUs || eventUs >= toUs) return false;
        if (isMatch === null) undecided += 1;
        return isMatch === true;
      });
      const events = listed.map((part) => eventOf(part, bytes));
      const seenUpToUs = Math.max(fromUs, walk.position().sinceMs * 1000);
      isEnd = step.isEnd || seenUpToUs >= toUs;
      if (step.isEnd) shortfall = await shortfallOf(walk.counts(), questions.count);
      return { events, completeUpToUs: isEnd && shortfall === null ? toUs : seenUpToUs, total };
    };
    while (!isEnd) yield await nextPage();
    if (shortfall !== null) throw shortfall;
  }
  const spent = () => ({ requests: requests.count(), unreadableRecords, undecided });
  return { list, spent };
}

type Ask = ReturnType<typeof createPageRequests>;

/** Creates the requests for the pages and for the count of one listing. */
function createQuestions(
  { event, filter, fromUs, toUs }: ListingQuery,
  walk: Pick<ListingWalk, 'position' | 'dropLink'>,
  { catalogueUrl, ask, signal }: { catalogueUrl: string; ask: Ask; signal: AbortSignal },
) {
  const kind = eventLists[event];
  const window = { sinceMs: Math.floor(fromUs / 1000), untilMs: Math.ceil(toUs / 1000) };
  /** The filter that the catalogue evaluates; blank to list all products. */
  let sent = isTooLong(filter) && isReadable(filter) ? '' : filter;
  let isFirst = true;
  const asked = { totalMs: 0 };
  const request = (what: string, sinceMs: number, url: PageQuestion['url']) => {
    const own = sent === filter ? null : filter;
    const reading = { dateField: kind.dateField, sinceMs, filter: own };
    const purpose = `${what} the ${event} products`;
    return ask({ purpose, url, onTooLarge: walk.dropLink, reading, asked }, signal);
  };
  const page = () =>
    request('list', walk.position().sinceMs, (top, failures) => {
      const { link, skip, sinceMs } = walk.position();
      const count = isFirst && failures < countAttemptsMax;
      const question = { list: kind, filter: sent, ...window, sinceMs, top, skip, count };
      return link ?? listingUrl(catalogueUrl, question);
    });
  const firstPage = () =>
    page().catch((error: unknown) => {
      // The catalogue may reject fields that deleted products lack, and a firewall may reject long URLs.
      if (sent === '' || !isAppError(error, 'invalid') || !isReadable(filter)) throw error;
      sent = '';
      return page();
    });
  return {
    /** False if the filter is evaluated locally. */
    isFiltered: () => sent === filter,
    next: async () => {
      const answer = await (isFirst ? firstPage() : page());
      isFirst = false;
      return answer;
    },
    /** Repeats the first query only for its count, without products that left the window meanwhile. */
    count: async () => {
      const first = { list: kind, filter: sent, ...window, top: 1, skip: 0, count: true };
      const url = () => listingUrl(catalogueUrl, first);
      return (await request('count', window.sinceMs, url)).page.count;
    },
  };
}

function eventOf({ isMatch: _, record, ...event }: ListingPart, page: Uint8Array): ListedEvent {
  return { ...event, record: record && page.subarray(record.start, record.end) };
}

/** Returns an error if the catalogue returned fewer products than it counts, both at the start and now. */
async function shortfallOf(
  { counted, shown }: { counted: number | null; shown: number },
  countNow: () => Promise<number | null>,
): Promise<AppError | null> {
  if (counted === null || shown >= counted) return null;
  const present = (await countNow()) ?? counted;
  if (shown >= present) return null;
  const message = `The catalogue counts ${present} products but returned only ${shown}; the other products cannot be compared.`;
  return new AppError('unavailable', message, { advice: 'Retry later.' });
}

/**
 * Maximum length of the encoded filter in a URL; a longer one is evaluated locally. Servers and proxies accept request
 * lines of 8,000 characters (RFC 9112, 3), some slightly fewer; the rest of the URL needs a few hundred.
 */
const encodedCharactersMax = 5_500;

const isTooLong = (filter: string) =>
  encodeURIComponent(filter.toWellFormed()).length > encodedCharactersMax;

/** False for a filter that cannot be parsed locally: it is left to the catalogue. */
function isReadable(filter: string): boolean {
  try {
    parseFilter(filter);
    return true;
  } catch (error) {
    if (error instanceof FilterSyntaxError) return false;
    throw error;
  }
}
