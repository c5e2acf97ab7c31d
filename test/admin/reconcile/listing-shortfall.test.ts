/** Walks whose catalogue counts more than it shows: it is ill, or products have left its list meanwhile. */
import { describe, expect, it } from 'vitest';
import type { ListingPage } from '../../../src/admin/reconcile/product-listing.ts';
import {
  listingOf,
  numbersIn,
  productOf,
  publishedAt,
  startCatalogue,
  startUs,
  walked,
  wholeDay,
} from './listing-world.ts';

describe('a list that changes', () => {
  it.each(['modified', 'deleted'])('is complete though products are %s meanwhile', async (kind) => {
    const records = publishedAt(...Array.from({ length: 20 }, (_, i) => i * 1_000_000));
    const changed = new Set([0, 3, 7, 15, 19]);
    const later = records.flatMap((record, number) => {
      if (!changed.has(number)) return [record];
      if (kind === 'deleted') return [];
      return [productOf(number, { ModificationDate: wholeDay.toUs + number })];
    });
    const catalogue = await startCatalogue({
      records: (request) => (request === 0 ? records : later),
    });
    const walk = listingOf(catalogue.url, { sizes: [5] });
    const pages = await walked(walk, { event: 'modified' });
    const left = [7, 15, 19];
    expect(numbersIn(pages)).toEqual(
      records.map((_, number) => number).filter((number) => !left.includes(number)),
    );
    expect(pages.at(-1)?.completeUpToUs).toBe(wholeDay.toUs);
  });
});

describe('pages', () => {
  it('shorter than asked for are not the last, as long as more was counted', async () => {
    // A hundred of their own moments; or forty of one, behind another; or all of one.
    const offsets = [
      Array.from({ length: 100 }, (_, i) => i * 1_000_000),
      [1, ...Array.from({ length: 40 }, () => 7_000)],
      Array.from({ length: 60 }, () => 7),
    ];
    for (const some of offsets) {
      const records = publishedAt(...some);
      for (const links of ['none', 'skip', 'token'] as const) {
        const catalogue = await startCatalogue({ records: () => records, links });
        const walk = listingOf(catalogue.url, {
          fetch: (input, init) => fetch(capped(input), init),
        });
        expect(numbersIn(await walked(walk))).toEqual(records.map((_, number) => number));
        expect(catalogue.requests.length).toBeLessThanOrEqual(8);
      }
    }
  });

  it('are asked for once more, and then are the last, where so many are no longer counted', async () => {
    for (const count of [0, 1, 2, 5]) {
      const value = publishedAt(...Array.from({ length: count }, (_, i) => i * 1_000_000));
      const answer = (request: number, { searchParams }: URL) => {
        const sinceMs = Date.parse(/ge (\S+)/.exec(searchParams.get('$filter') ?? '')?.[1] ?? '');
        const rest = value.filter(
          ({ PublicationDate }) => Date.parse(String(PublicationDate)) >= sinceMs,
        );
        const counted = request === 0 ? 9 : count;
        const asked = searchParams.has('$count') ? { '@odata.count': counted } : {};
        return { body: { value: rest, ...asked } };
      };
      const catalogue = await startCatalogue({ records: () => [], answer });
      const pages = await walked(listingOf(catalogue.url));
      expect(numbersIn(pages)).toEqual(value.map((_, number) => number));
      expect(pages.at(-1)?.completeUpToUs).toBe(wholeDay.toUs);
      const counts = catalogue.requests.map(({ url }) => url.searchParams.has('$count'));
      expect(counts).toEqual(count === 0 ? [true, true] : [true, false, true]);
    }
  });

  it.each([
    ['are empty', 0],
    ['have a part', 10],
  ])('that %s of what is counted, again and again, are no end but an error', async (_, shown) => {
    const some = publishedAt(...Array.from({ length: 20 }, (_, i) => i * 1_000_000));
    const catalogue = await startCatalogue({
      records: () => some.slice(0, shown),
      answer: (_, { searchParams }) =>
        searchParams.has('$count')
          ? { body: { value: some.slice(0, shown), '@odata.count': 20 } }
          : undefined,
    });
    const query = { ...wholeDay, filter: "Name ne 'x'" };
    const pages = listingOf(catalogue.url).listing.list(query, new AbortController().signal);
    const given: ListingPage[] = [];
    const end = await (async () => {
      for await (const page of pages) given.push(page);
    })().catch((error) => error);
    expect(end).toMatchObject({
      code: 'unavailable',
      text: expect.stringContaining(`counts 20 products and shows ${shown} of them`),
    });
    // What was shown is good; of what is behind it nothing is claimed.
    expect(numbersIn(given)).toHaveLength(shown);
    const lastUs = startUs + Math.max(0, shown - 1) * 1_000_000;
    expect(given.at(-1)?.completeUpToUs).toBe(lastUs);
    const [first, last] = [catalogue.requests[0], catalogue.requests.at(-1)];
    expect(last?.url.searchParams.get('$filter')).toBe(first?.url.searchParams.get('$filter'));
    expect(last?.url.searchParams.get('$top')).toBe('1');
  });

  it('may have records without an id, which the catalogue counts, too', async () => {
    const value = [...publishedAt(0, 1_000), { Name: 'x' }];
    const catalogue = await startCatalogue({
      records: () => [],
      answer: (request) => ({ body: { value: value.slice(request), '@odata.count': 3 } }),
    });
    expect(numbersIn(await walked(listingOf(catalogue.url)))).toEqual([0, 1]);
  });
});

/** The address of a page, asked for with 20 products at most. */
function capped(input: string | URL | Request): URL {
  const url = new URL(input instanceof Request ? input.url : input);
  url.searchParams.set('$top', '20');
  return url;
}
