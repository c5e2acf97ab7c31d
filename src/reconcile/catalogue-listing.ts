/** Lists the catalogue's products page by page, in date order. */

import type { AccessTokens } from '../domain/account.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import type { FilterTree, GroupNode, NotNode } from '../domain/filter-tree.ts';
import { isBlankFilter } from '../filter/check.ts';
import { compileFilter } from '../filter/evaluate.ts';
import { FilterSyntaxError } from '../filter/finding.ts';
import { parseFilter } from '../filter/parse.ts';
import type { ProductRecord } from '../filter/product-record.ts';
import { type ProductView, productView } from '../filter/product-view.ts';
import { createOutboundClient, type OutboundClient } from '../http/outbound-client.ts';
import {
  createListingWalk,
  eventLists,
  type ListPosition,
  listingUrl,
  productUrl,
  readListingPage,
  readProduct,
} from './listing-pages.ts';
import {
  createListingLogin,
  createPacedRequests,
  createPageRequests,
  createPageSize,
  type ListingRetry,
  type ListingTiming,
  listingTiming,
  type PageQuestion,
  pageSizes,
  type Time,
} from './listing-requests.ts';
import type { ListingPage, ListingQuery, ProductListing } from './tasks.ts';

/** A page of 1,000 products has 3 to 7 MB (facts, catalogue 1.1), or more with long footprints. */
const pageBytesMax = 64 * 2 ** 20;

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
  timing?: Partial<ListingTiming>;
  /** Page sizes (`$top`), largest first: repeated failures select the next one. */
  sizes?: readonly number[];
  /** Called after each failed attempt that will be retried. */
  onRetry?: (trouble: ListingRetry) => void;
}

/** Sends no request before the first page is read. Keeps one page in memory at a time. */
export function createCatalogueListing(options: CatalogueListingOptions): ProductListing {
  const { catalogueUrl, random, requestsPerMinute, onRetry } = options;
  const timing = { ...listingTiming, ...options.timing };
  const client = clientOf(options, timing);
  const requests = createPacedRequests({ client, requestsPerMinute, time: options });
  const size = createPageSize(options.sizes ?? pageSizes);
  const login = createListingLogin(options.tokens);
  const newPages = () => createPageRequests({ requests, size, login, random, timing, onRetry });
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
        const question = questionFor(catalogueUrl, query, {
          at: walk.position(),
          filter: filter.sent(),
          isFirst,
        });
        return pages.ask(question, signal);
      };
      const { page, top } = await (isFirst ? filter.askWithFallback(ask) : ask());
      unreadableRecords += page.records.filter((record) => record === null).length;
      // With local filtering the catalogue's count is not the number of matches.
      if (isFirst && filter.sent() === query.filter) total = page.count;
      isFirst = false;
      const step = walk.take(page, top);
      const events = step.fresh.filter(({ eventUs, record }) => {
        if (eventUs < fromUs || eventUs >= toUs) return false;
        const isMatch = filter.matches(record);
        if (isMatch === null) undecided += 1;
        return isMatch === true;
      });
      const seenUpToUs = Math.max(fromUs, walk.position().sinceMs * 1000);
      isEnd = step.isEnd || seenUpToUs >= toUs;
      if (step.isEnd) shortfall = await shortfallOf(walk.counts(), countNow);
      return { events, completeUpToUs: isEnd && shortfall === null ? toUs : seenUpToUs, total };
    };
    const countNow = async (): Promise<number | null> => {
      const question = countQuestion(catalogueUrl, query, filter.sent());
      return (await pages.ask(question, signal)).page.count;
    };
    while (!isEnd) yield await nextPage();
    if (shortfall !== null) throw shortfall;
  }

  const product = createProductLookup(catalogueUrl, newPages);
  return { list, product, spent: () => ({ ...requests.spent(), unreadableRecords, undecided }) };
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
      read: (json) => readProduct(json, list),
    };
    try {
      const { page } = await newPages().ask(question, signal);
      return page.records[0] ?? null;
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
    answerBytesMax: pageBytesMax,
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

/** Builds the query for the page at a position. */
function questionFor(
  catalogueUrl: string,
  { event, toUs }: ListingQuery,
  now: { at: ListPosition; filter: string; isFirst: boolean },
): PageQuestion {
  const { at, filter, isFirst } = now;
  const list = eventLists[event];
  const { sinceMs, skip, link } = at;
  const window = { sinceMs, untilMs: Math.ceil(toUs / 1000) };
  return {
    purpose: `list the ${event} products`,
    url: (top, failures) => {
      const count = isFirst && failures < countAttemptsMax;
      return link ?? listingUrl(catalogueUrl, { list, filter, ...window, top, skip, count });
    },
    read: (json) => readListingPage(json, { list, sinceMs }),
  };
}

/** Repeats the first query of a listing, only for its count. */
function countQuestion(catalogueUrl: string, query: ListingQuery, filter: string): PageQuestion {
  const at = { sinceMs: Math.floor(query.fromUs / 1000), skip: 0, link: null };
  const { url, read } = questionFor(catalogueUrl, query, { at, filter, isFirst: true });
  return { purpose: `count the ${query.event} products`, url: () => url(1, 0), read };
}

/**
 * Maximum length of the encoded filter in a URL. Servers and proxies accept request lines of 8,000 characters
 * (RFC 9112, 3), some slightly fewer; the rest of the URL needs a few hundred.
 */
const encodedCharactersMax = 5_500;

type Test = (record: ProductRecord) => MatchResult;

/**
 * Decides who evaluates the filter. A filter that is too long for a URL is evaluated locally from the start. A
 * rejected filter is evaluated locally from then on: the catalogue may reject fields that deleted products
 * lack, and a firewall may reject long URLs. A filter that cannot be parsed locally is left to the catalogue.
 */
function createListingFilter(filter: string) {
  const isLong = encodeURIComponent(filter.toWellFormed()).length > encodedCharactersMax;
  let test: Test | null = isLong ? readTest(filter) : null;
  return {
    /** Filter to send; blank to list all products. */
    sent: () => (test === null ? filter : ''),
    /** Evaluates the filter locally where it was not sent; null if the record lacks a field it needs. */
    matches: (record: ProductRecord): MatchResult => test === null || test(record),
    /** Sends the first query; repeats it without the filter if the catalogue rejects it. */
    askWithFallback: async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
      try {
        return await ask();
      } catch (error) {
        if (test !== null || isBlankFilter(filter) || !isAppError(error, 'invalid')) throw error;
        test = readTest(filter);
        if (test === null) throw error;
        return ask();
      }
    },
  };
}

function readTest(filter: string): Test | null {
  try {
    return compileMatch(parseFilter(filter).tree);
  } catch (error) {
    if (error instanceof FilterSyntaxError) return null;
    throw error;
  }
}

/** Null: the record lacks a field that decides. */
type MatchResult = boolean | null;

type Matcher = (record: ProductRecord, view: ProductView) => MatchResult;

/**
 * Distinguishes null values, which the catalogue knows to be empty, from missing fields: deleted records lack
 * whole fields (facts, catalogue 1.1), whose former values are unknown.
 */
export function compileMatch(tree: FilterTree): (record: ProductRecord) => MatchResult {
  const matcher = matcherOf(tree);
  return (record) => matcher(record, productView(record));
}

/** Uses three-valued logic (Kleene), as SQL does: an unknown term matters only if the others do not decide. */
function matcherOf(tree: FilterTree): Matcher {
  if ('terms' in tree) {
    const matchers = tree.terms.map(matcherOf);
    const decisive = tree.node === 'or';
    return (record, view) => {
      let result: MatchResult = !decisive;
      for (const matcher of matchers) {
        const own = matcher(record, view);
        if (own === decisive) return decisive;
        if (own === null) result = null;
      }
      return result;
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
  const hasField = fieldCheckOf(tree);
  return (record, view) => (hasField(record, view) ? test(view) : null);
}

/** Returns a test for whether a record has the field of a condition. */
function fieldCheckOf(
  condition: Exclude<FilterTree, GroupNode | NotNode>,
): (record: ProductRecord, view: ProductView) => boolean {
  // Few records have this field; it is derived from other fields of known forms.
  if ('field' in condition && condition.field === 'Collection/Name') {
    return (_record, view) => view.text('Collection/Name') !== null;
  }
  const parts = partsOf(condition);
  return (record) => parts.some((part) => record[part] !== undefined);
}

/** Returns the record fields of which a condition needs at least one. */
function partsOf(condition: Exclude<FilterTree, GroupNode | NotNode>): string[] {
  if (condition.node === 'attribute') return ['Attributes'];
  if (condition.node === 'intersects') return ['Footprint', 'GeoFootprint'];
  const [part = ''] = condition.field.split('/');
  return [part];
}
