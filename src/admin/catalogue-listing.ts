/** Lists the catalogue's products page by page, in date order. */

import { createOutboundClient, type OutboundClient } from '../core/http/outbound-client.ts';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import { isBlankFilter } from '../filter/check.ts';
import { FilterSyntaxError } from '../filter/finding.ts';
import { parseFilter } from '../filter/parse.ts';
import type { AccessTokens } from './account.ts';
import type { ListedEvent, ListingPage, ListingQuery, ProductListing } from './listing.ts';
import {
  createListingWalk,
  eventLists,
  type ListingWalk,
  listingUrl,
  productUrl,
} from './listing-pages.ts';
import {
  createListingLogin,
  createPacedRequests,
  createPageRequests,
  type ListingRetry,
  type ListingTiming,
  listingTiming,
  type PageQuestion,
  type ReadListingPage,
  type Time,
} from './listing-requests.ts';
import { createPageSize, largeRecordSizes, pageSizes } from './page-size.ts';
import type { ListingPart } from './read-listing.ts';

/** `$count` is slow: after this many failures the request is sent without it. */
const countAttemptsMax = 2;

export interface CatalogueListingOptions extends Time {
  /** Without `/odata/v1` and trailing slash. */
  catalogueUrl: string;
  /** Used only if the catalogue requires a login; null without an account. */
  tokens: AccessTokens | null;
  fetch: typeof fetch;
  random: () => number;
  requestsPerMinute: number;
  readPage: ReadListingPage;
  timing?: Partial<ListingTiming>;
  /** Page sizes (`$top`), largest first: repeated failures select the next one. */
  sizes?: readonly number[];
  /** Called after each failed attempt that will be retried. */
  onRetry?: (trouble: ListingRetry) => void;
}

/** Sends no request before the first page is read. Keeps one page in memory at a time. */
export function createCatalogueListing(options: CatalogueListingOptions): ProductListing {
  const { catalogueUrl, random, requestsPerMinute, readPage, onRetry } = options;
  const timing = { ...listingTiming, ...options.timing };
  const client = clientOf(options, timing);
  const requests = createPacedRequests({ client, requestsPerMinute, time: options });
  const size = createPageSize(options.sizes ?? pageSizes, largeRecordSizes);
  const login = createListingLogin(options.tokens);
  const newPages = () =>
    createPageRequests({ requests, size, login, random, timing, readPage, onRetry });
  let unreadableRecords = 0;
  let undecided = 0;

  async function* list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage> {
    const { fromUs, toUs } = query;
    if (fromUs >= toUs) return yield { events: [], completeUpToUs: toUs, total: 0 };
    const pages = newPages();
    const walk = createListingWalk({
      sinceMs: Math.floor(fromUs / 1000),
      origin: new URL(catalogueUrl).origin,
    });
    const filter = createListingFilter(query.filter);
    let total: number | null = null;
    let isFirst = true;
    let isEnd = false;
    let shortfall: AppError | null = null;
    // A separate function: local variables of the generator would keep a page in memory while the next loads.
    const nextPage = async (): Promise<ListingPage> => {
      const ask = () => {
        const now = { walk, filter, isFirst };
        return pages.ask(questionFor(catalogueUrl, query, now), signal);
      };
      const { page, top, bytes } = await (isFirst ? filter.askWithFallback(ask) : ask());
      unreadableRecords += page.records.filter((record) => record === null).length;
      // With local filtering the catalogue's count is not the number of matches.
      if (isFirst && filter.sent() === query.filter) total = page.count;
      isFirst = false;
      const step = walk.take(page, top);
      const listed = step.fresh.filter(({ eventUs, isMatch }) => {
        if (eventUs < fromUs || eventUs >= toUs) return false;
        if (isMatch === null) undecided += 1;
        return isMatch === true;
      });
      const events = listed.map((part) => eventOf(part, bytes));
      const seenUpToUs = Math.max(fromUs, walk.position().sinceMs * 1000);
      isEnd = step.isEnd || seenUpToUs >= toUs;
      if (step.isEnd) shortfall = await shortfallOf(walk.counts(), countNow);
      return { events, completeUpToUs: isEnd && shortfall === null ? toUs : seenUpToUs, total };
    };
    const countNow = async (): Promise<number | null> => {
      const question = countQuestion(catalogueUrl, query, filter);
      return (await pages.ask(question, signal)).page.count;
    };
    while (!isEnd) yield await nextPage();
    if (shortfall !== null) throw shortfall;
  }

  const product = createProductLookup(catalogueUrl, newPages);
  return { list, product, spent: () => ({ ...requests.spent(), unreadableRecords, undecided }) };
}

function eventOf({ isMatch: _, record, ...event }: ListingPart, page: Uint8Array): ListedEvent {
  return { ...event, record: record && page.subarray(record.start, record.end) };
}

/** Requests of one listing, or of one product. */
type PageRequests = ReturnType<typeof createPageRequests>;

function createProductLookup(
  catalogueUrl: string,
  newPages: () => PageRequests,
): ProductListing['product'] {
  return async ({ event, productId }, signal) => {
    const list = eventLists[event];
    const question: PageQuestion = {
      purpose: `get a ${event} product`,
      url: () => productUrl(catalogueUrl, list, productId),
      reading: { dateField: list.dateField, sinceMs: null, filter: null },
    };
    try {
      const { page, bytes } = await newPages().ask(question, signal);
      const [part] = page.records;
      return part ? eventOf(part, bytes) : null;
    } catch (error) {
      if (isAppError(error, 'invalid') && error.facts.status === 404) return null;
      throw error;
    }
  };
}

function clientOf(
  { fetch, random }: CatalogueListingOptions,
  { attemptTimeoutMs }: ListingTiming,
): OutboundClient {
  return createOutboundClient({
    service: 'the catalogue',
    variable: 'EARSHOT_CATALOGUE_URL',
    fetch,
    random,
    timing: { attemptTimeoutMs, totalTimeoutMs: attemptTimeoutMs },
    retries: 0,
  });
}

/**
 * Returns an error if the catalogue returned fewer products than it counts, both at the start and now. The
 * second count excludes products that left the window meanwhile because they were modified or deleted.
 */
async function shortfallOf(
  { counted, shown }: { counted: number | null; shown: number },
  countNow: () => Promise<number | null>,
): Promise<AppError | null> {
  if (counted === null || shown >= counted) return null;
  const present = (await countNow()) ?? counted;
  if (shown >= present) return null;
  return new AppError(
    'unavailable',
    `The catalogue counts ${present} products but returned only ${shown}; the other products cannot be compared.`,
    { advice: 'Retry later.' },
  );
}

/** Builds the query for the next page. */
function questionFor(
  catalogueUrl: string,
  { event, toUs }: ListingQuery,
  now: {
    walk: Pick<ListingWalk, 'position' | 'dropLink'>;
    filter: ListingFilter;
    isFirst: boolean;
  },
): PageQuestion {
  const { walk, filter, isFirst } = now;
  const list = eventLists[event];
  const { sinceMs } = walk.position();
  const window = { sinceMs, untilMs: Math.ceil(toUs / 1000) };
  return {
    purpose: `list the ${event} products`,
    url: (top, failures) => {
      const { link, skip } = walk.position();
      const count = isFirst && failures < countAttemptsMax;
      const own = { list, filter: filter.sent(), ...window, top, skip, count };
      return link ?? listingUrl(catalogueUrl, own);
    },
    onTooLarge: walk.dropLink,
    reading: { dateField: list.dateField, sinceMs, filter: filter.own() },
  };
}

/** Repeats the first query of a listing, only for its count. */
function countQuestion(
  catalogueUrl: string,
  query: ListingQuery,
  filter: ListingFilter,
): PageQuestion {
  const at = { sinceMs: Math.floor(query.fromUs / 1000), skip: 0, link: null };
  const walk = { position: () => at, dropLink: () => undefined };
  const question = questionFor(catalogueUrl, query, { walk, filter, isFirst: true });
  return {
    ...question,
    purpose: `count the ${query.event} products`,
    url: () => question.url(1, 0),
  };
}

/**
 * Maximum length of the encoded filter in a URL. Servers and proxies accept request lines of 8,000 characters
 * (RFC 9112, 3), some slightly fewer; the rest of the URL needs a few hundred.
 */
const encodedCharactersMax = 5_500;

/**
 * Decides who evaluates the filter. A filter that is too long for a URL is evaluated locally from the start. A
 * rejected filter is evaluated locally from then on: the catalogue may reject fields that deleted products
 * lack, and a firewall may reject long URLs. A filter that cannot be parsed locally is left to the catalogue.
 */
function createListingFilter(filter: string) {
  let isOwn =
    encodeURIComponent(filter.toWellFormed()).length > encodedCharactersMax && isReadable(filter);
  return {
    /** Filter to send; blank to list all products. */
    sent: () => (isOwn ? '' : filter),
    /** Filter to evaluate locally; null if it was sent. */
    own: () => (isOwn ? filter : null),
    /** Sends the first query; repeats it without the filter if the catalogue rejects it. */
    askWithFallback: async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
      try {
        return await ask();
      } catch (error) {
        if (isOwn || isBlankFilter(filter) || !isAppError(error, 'invalid')) throw error;
        isOwn = isReadable(filter);
        if (!isOwn) throw error;
        return ask();
      }
    },
  };
}

type ListingFilter = ReturnType<typeof createListingFilter>;

function isReadable(filter: string): boolean {
  try {
    parseFilter(filter);
    return true;
  } catch (error) {
    if (error instanceof FilterSyntaxError) return false;
    throw error;
  }
}
