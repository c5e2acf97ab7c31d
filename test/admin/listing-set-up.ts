/**
 * A catalogue of a few records on loopback that may change while it is read, and a walk through it.
 */

import {
  type CatalogueListingOptions,
  createCatalogueListing,
  type ListingPage,
  type ListingQuery,
} from '../../src/admin/listing.ts';
import { formatDateUs } from '../../src/core/terms/dates.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import {
  listAnswer,
  nextLink,
  ODataRefusal,
  readQueryOptions,
  refusalBody,
} from '../../src/filter/odata.ts';
import { productView } from '../../src/filter/product-view.ts';
import { type Answer, startServer } from '../core/http/answering-server.ts';

export const startUs = Date.UTC(2025, 5, 1) * 1000;

export type CatalogueRecord = Readonly<Record<string, unknown>>;

/** A product whose id and name contain its number. */
export function productOf(number: number, dates: Record<string, number>): CatalogueRecord {
  const texts = Object.entries(dates).map(([name, us]) => [name, formatDateUs(us)]);
  const digits = String(number).padStart(12, '0');
  const Id = `ABCDEF00-0000-4000-8000-${digits}`;
  return { Id, Name: `S2A_${number}.SAFE`, ...Object.fromEntries(texts) };
}

/**
 * Products with consecutive numbers, published at these offsets from `startUs`, in microseconds.
 */
export function publishedAt(...offsetsUs: number[]): CatalogueRecord[] {
  return offsetsUs.map((offset, number) =>
    productOf(number, { PublicationDate: startUs + offset, ModificationDate: startUs + offset }),
  );
}

/** `always`: by `$skip`, even on the last page. */
export type Links = 'none' | 'skip' | 'token' | 'always';

/**
 * Answers as the catalogue does, with ties in the order of ids. `records` is called for each
 * request, counted from 0. `answer` can return another answer. `links` is the kind of link to the
 * next page.
 */
export async function startCatalogue(options: {
  records: (request: number) => readonly CatalogueRecord[];
  answer?: (request: number, url: URL) => Answer | undefined;
  links?: Links;
}) {
  const requests: { url: URL }[] = [];
  const server = await startServer(({ path }) => {
    const url = new URL(path, server.url);
    const number = requests.push({ url }) - 1;
    const own = options.answer?.(number, url);
    if (own !== undefined) return own;
    try {
      return pageOf(options.records(number), url, options.links ?? 'none');
    } catch (error) {
      if (!(error instanceof ODataRefusal)) throw error;
      return { status: error.status, body: refusalBody(error, 'request-1') };
    }
  });
  return { url: server.url, requests };
}

function pageOf(records: readonly CatalogueRecord[], url: URL, links: Links): Answer {
  const entity = url.pathname.endsWith('/DeletedProducts') ? 'DeletedProducts' : 'Products';
  const options = readQueryOptions(url.searchParams, entity);
  const { filter, orderby, top, skip, skiptoken, count } = options;
  const test = filter === null ? () => true : compileFilter(filter);
  const keyOf = (record: CatalogueRecord) => `${record[orderby?.field ?? 'Id']} ${record.Id}`;
  const found = records
    .filter((record) => test(productView(record)))
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const rest = found
    .filter((record) => skiptoken === null || keyOf(record) > skiptoken)
    .slice(skip);
  const page = rest.slice(0, top);
  const last = page.at(-1);
  const continuation =
    links === 'token' && last !== undefined
      ? { skiptoken: keyOf(last) }
      : { skip: skip + page.length };
  const isMore = rest.length > page.length;
  const link =
    links === 'always' || (links !== 'none' && isMore) ? nextLink(url, continuation) : null;
  const total = count ? found.length : null;
  return { body: listAnswer({ entity, options, records: page, count: total, nextLink: link }) };
}

/** A listing whose clock advances only while it waits. `startsMs` has the time of each request. */
export function listingOf(catalogueUrl: string, own: Partial<CatalogueListingOptions> = {}) {
  let nowMs = 0;
  const startsMs: number[] = [];
  const listing = createCatalogueListing({
    catalogueUrl,
    fetch: (input, init) => {
      startsMs.push(nowMs);
      return fetch(input, init);
    },
    random: () => 0.5,
    requestsPerMinute: 60,
    nowUs: () => nowMs * 1_000,
    pause: async (ms) => {
      nowMs += ms;
    },
    ...own,
  });
  return { listing, startsMs };
}

export const wholeDay: ListingQuery = {
  event: 'created',
  filter: '',
  fromUs: startUs,
  toUs: startUs + 86_400_000_000,
};

/** Pages of a complete walk. */
export async function walked(
  { listing }: Pick<ReturnType<typeof listingOf>, 'listing'>,
  query: Partial<ListingQuery> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<ListingPage[]> {
  const pages: ListingPage[] = [];
  for await (const page of listing.list({ ...wholeDay, ...query }, signal)) pages.push(page);
  return pages;
}

/** Numbers of the products in pages. */
export function numbersIn(pages: readonly ListingPage[]): number[] {
  return pages.flatMap(({ events }) => events.map(({ productId }) => Number(productId.slice(-12))));
}
