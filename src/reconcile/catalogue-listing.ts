/** Walks through the catalogue's lists of products, in the order of their dates, page by page. */

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
  readListingPage,
} from './listing-pages.ts';
import {
  createListLogin,
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

/** A page of 1,000 products has 3 to 7 MB (facts, catalogue 1.1); long footprints make it more. */
const pageBytesMax = 64 * 2 ** 20;

/** A count of everything takes a catalogue long: after this many failures it is asked for no more. */
const countAttemptsMax = 2;

export interface CatalogueListingOptions extends Time {
  /** Without `/odata/v1` and without a last slash. */
  catalogueUrl: string;
  /** The lists are public; null when there is no account, should that change. */
  tokens: AccessTokens | null;
  fetch: typeof fetch;
  random: () => number;
  requestsPerMinute: number;
  timing?: Partial<ListingTiming>;
  /** How many records to ask for, and how many when that fails again and again. */
  sizes?: readonly number[];
  /** Called after each try that failed and is followed by another. */
  onRetry?: (trouble: ListingRetry) => void;
}

/** Asks nobody before the first page is asked for. Pages are held one at a time. */
export function createCatalogueListing(options: CatalogueListingOptions): ProductListing {
  const { catalogueUrl, random, requestsPerMinute, onRetry } = options;
  const timing = { ...listingTiming, ...options.timing };
  const client = clientOf(options, timing);
  const requests = createPacedRequests({ client, requestsPerMinute, time: options });
  const size = createPageSize(options.sizes ?? pageSizes);
  const login = createListLogin(options.tokens);
  let unreadableRecords = 0;
  let undecided = 0;

  async function* list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage> {
    const { fromUs, toUs } = query;
    if (fromUs >= toUs) return yield { events: [], completeUpToUs: toUs, total: 0 };
    const pages = createPageRequests({ requests, size, login, random, timing, onRetry });
    const walk = createListingWalk({
      sinceMs: Math.floor(fromUs / 1000),
      origin: new URL(catalogueUrl).origin,
    });
    const filter = createListFilter(query.filter);
    let total: number | null = null;
    let isFirst = true;
    let isEnd = false;
    let shortfall: AppError | null = null;
    // A function of its own: a generator holds what its body names, a whole page, until the next one is there.
    const nextPage = async (): Promise<ListingPage> => {
      const ask = () => {
        const question = questionFor(catalogueUrl, query, {
          at: walk.position(),
          filter: filter.sent(),
          isFirst,
        });
        return pages.ask(question, signal);
      };
      const { page, top } = await (isFirst ? filter.settle(ask) : ask());
      unreadableRecords += page.records.filter((record) => record === null).length;
      // What the catalogue counted is not what is picked out here.
      if (isFirst && filter.sent() === query.filter) total = page.count;
      isFirst = false;
      const step = walk.take(page, top);
      const events = step.fresh.filter(({ eventUs, record }) => {
        if (eventUs < fromUs || eventUs >= toUs) return false;
        const isWanted = filter.matches(record);
        if (isWanted === null) undecided += 1;
        return isWanted === true;
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

  return { list, spent: () => ({ ...requests.spent(), unreadableRecords, undecided }) };
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
 * An error when the catalogue counts more than it has shown, at the beginning and still. Products that were
 * modified or deleted meanwhile have left its lists, and are no longer counted.
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
    `The catalogue counts ${present} products and shows ${shown} of them: what its list leaves out cannot be compared.`,
    { advice: 'Try again later.' },
  );
}

/** The question for the page at a position. */
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
    url: (top, tries) => {
      const count = isFirst && tries < countAttemptsMax;
      return link ?? listingUrl(catalogueUrl, { list, filter, ...window, top, skip, count });
    },
    read: (json) => readListingPage(json, { list, sinceMs }),
  };
}

/** The first question of a walk once more, for its count alone. */
function countQuestion(catalogueUrl: string, query: ListingQuery, filter: string): PageQuestion {
  const at = { sinceMs: Math.floor(query.fromUs / 1000), skip: 0, link: null };
  const { url, read } = questionFor(catalogueUrl, query, { at, filter, isFirst: true });
  return { purpose: `count the ${query.event} products`, url: () => url(1, 0), read };
}

/**
 * What of an address the filter may take. Servers and proxies take 8,000 characters of a request's first
 * line (RFC 9112, 3), some a little less; the rest of the address has some hundred.
 */
const encodedCharactersMax = 5_500;

type Test = (record: ProductRecord) => MatchResult;

/**
 * A filter that is too long for an address is evaluated here from the start. So is one that is refused, once
 * it is: by the catalogue, as it may of deleted products when it names a field that they lack, or by a
 * firewall before it that does not let long addresses through. One that cannot be read here either is left to the catalogue.
 */
function createListFilter(filter: string) {
  const isLong = encodeURIComponent(filter.toWellFormed()).length > encodedCharactersMax;
  let test: Test | null = isLong ? readTest(filter) : null;
  return {
    /** The filter of the query; blank for everything. */
    sent: () => (test === null ? filter : ''),
    /** True for a record of an answer to that query that is wanted; null where the record does not show it. */
    matches: (record: ProductRecord): MatchResult => test === null || test(record),
    /** Sends the first query, and once more without the filter when the catalogue refuses it. */
    settle: async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
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

/** Null: it hangs on something that the record does not tell. */
type MatchResult = boolean | null;

type Matcher = (record: ProductRecord, view: ProductView) => MatchResult;

/**
 * Null is something else than an absent value, which the catalogue knows to be so: deleted records
 * lack whole fields (facts, catalogue 1.1), and what these said before is unknown.
 */
export function compileMatch(tree: FilterTree): (record: ProductRecord) => MatchResult {
  const matcher = matcherOf(tree);
  return (record) => matcher(record, productView(record));
}

/** What is unknown does not matter where all else decides (Kleene's logic, as SQL has it). */
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

/** Whether a record tells what a condition asks for. */
function fieldCheckOf(
  condition: Exclude<FilterTree, GroupNode | NotNode>,
): (record: ProductRecord, view: ProductView) => boolean {
  // Records seldom name it: it is read off other parts, where these are of a kind that is known.
  if ('field' in condition && condition.field === 'Collection/Name') {
    return (_record, view) => view.text('Collection/Name') !== null;
  }
  const parts = partsOf(condition);
  return (record) => parts.some((part) => record[part] !== undefined);
}

/** The parts of a record of which a condition needs one. */
function partsOf(condition: Exclude<FilterTree, GroupNode | NotNode>): string[] {
  if (condition.node === 'attribute') return ['Attributes'];
  if (condition.node === 'intersects') return ['Footprint', 'GeoFootprint'];
  const [part = ''] = condition.field.split('/');
  return [part];
}
