/** Walks through the catalogue's lists of products, in the order of their dates, page by page. */
import { AppError } from '../../domain/app-error.ts';
import { createOutboundClient, type OutboundClient } from '../../http/outbound-client.ts';
import type { AccessTokens } from '../session/access-tokens.ts';
import { createListFilter } from './list-filter.ts';
import { createListLogin } from './list-login.ts';
import { readListingPage } from './listing-page.ts';
import { eventLists, listingUrl } from './listing-url.ts';
import { createListingWalk, type ListPosition } from './listing-walk.ts';
import { createPacedRequests, type Time } from './paced-requests.ts';
import {
  createPageRequests,
  type ListingTiming,
  type ListingTrouble,
  listingTiming,
  type PageQuestion,
} from './page-requests.ts';
import { createPageSize, pageSizes } from './page-size.ts';
import type { ListingPage, ListingQuery, ProductListing } from './product-listing.ts';

/** A page of 1,000 products has 3 to 7 MB (facts, catalogue 1.1); long footprints make it more. */
const pageBytesMax = 64 * 2 ** 20;

/** A count of everything takes a catalogue long: after this many failures it is asked for no more. */
const countTriesMax = 2;

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
  onTrouble?: (trouble: ListingTrouble) => void;
}

/** Asks nobody before the first page is asked for. Pages are held one at a time. */
export function createCatalogueListing(options: CatalogueListingOptions): ProductListing {
  const { catalogueUrl, random, requestsPerMinute, onTrouble } = options;
  const timing = { ...listingTiming, ...options.timing };
  const client = clientOf(options, timing);
  const requests = createPacedRequests({ client, requestsPerMinute, time: options });
  const size = createPageSize(options.sizes ?? pageSizes);
  const login = createListLogin(options.tokens);
  let oddRecords = 0;
  let undecided = 0;

  async function* list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage> {
    const { fromUs, toUs } = query;
    if (fromUs >= toUs) return yield { events: [], completeUpToUs: toUs, total: 0 };
    const pages = createPageRequests({ requests, size, login, random, timing, onTrouble });
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
      oddRecords += page.records.filter((record) => record === null).length;
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

  return { list, spent: () => ({ ...requests.spent(), oddRecords, undecided }) };
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

/** The first question of a walk once more, for its count alone. */
function countQuestion(
  catalogueUrl: string,
  { event, fromUs, toUs }: ListingQuery,
  filter: string,
): PageQuestion {
  const list = eventLists[event];
  const sinceMs = Math.floor(fromUs / 1000);
  const window = { sinceMs, untilMs: Math.ceil(toUs / 1000) };
  const only = { top: 1, skip: 0, count: true };
  return {
    purpose: `count the ${event} products`,
    url: () => listingUrl(catalogueUrl, { list, filter, ...window, ...only }),
    read: (json) => readListingPage(json, { list, sinceMs }),
  };
}

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
      const count = isFirst && tries < countTriesMax;
      return link ?? listingUrl(catalogueUrl, { list, filter, ...window, top, skip, count });
    },
    read: (json) => readListingPage(json, { list, sinceMs }),
  };
}
