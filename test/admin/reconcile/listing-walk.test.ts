/** The walk through the catalogue's lists: nothing is lost, whatever changes meanwhile. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ListingPage } from '../../../src/admin/reconcile/product-listing.ts';
import { isAppError } from '../../../src/domain/app-error.ts';
import type { Answer } from '../../http/answering-server.ts';
import {
  type CatalogueRecord,
  type Links,
  listingOf,
  numbersIn,
  productOf,
  publishedAt,
  startCatalogue,
  startUs,
  walked,
  wholeDay,
} from './listing-world.ts';

/** Few moments, so that many products share one, or its millisecond. */
const offsetUs = fc.tuple(fc.nat(3), fc.nat(2)).map(([ms, us]) => ms * 1000 + us);

/** What becomes of some products at once. */
interface Change {
  beforeRequest: number;
  products: number[];
  kind: 'modified' | 'deleted' | 'published';
  offsetUs: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  beforeRequest: fc.nat(15),
  products: fc.array(fc.nat(59), { minLength: 1, maxLength: 6 }),
  kind: fc.constantFrom('modified' as const, 'deleted' as const, 'published' as const),
  offsetUs,
});

const life = fc.record({
  offsetsUs: fc.array(offsetUs, { maxLength: 60 }),
  changes: fc.array(change, { maxLength: 12 }),
  faults: fc.array(fc.constantFrom('none', 'none', 'error', 'cut', 'page'), { maxLength: 20 }),
  links: fc.constantFrom('none', 'skip', 'token'),
  window: fc.tuple(offsetUs, fc.nat(6_000)),
});

const faultyAnswers: Readonly<Record<string, Answer>> = {
  error: { status: 500 },
  cut: 'cut',
  page: { body: '<html>' },
};

/** The records before each request, from 0, as they are changed one after the other. */
function changingRecords(offsetsUs: readonly number[], changes: readonly Change[]) {
  const records = new Map<number, CatalogueRecord>();
  const put = (number: number, ModificationDate: number) =>
    records.set(number, productOf(number, { ModificationDate }));
  for (const [number, offset] of offsetsUs.entries()) put(number, startUs + offset);
  return (request: number) => {
    for (const [index, one] of changes.entries()) {
      if (one.beforeRequest !== request) continue;
      if (one.kind === 'published') put(1000 + index, startUs + one.offsetUs);
      else {
        for (const product of one.products.filter((product) => records.has(product))) {
          records.delete(product);
          if (one.kind === 'modified') put(product, startUs + 3_002 + index);
        }
      }
    }
    return [...records.values()];
  };
}

describe('a walk', () => {
  it('gives what stays unchanged exactly once, whatever is modified, deleted and published meanwhile', async () => {
    let records = changingRecords([], []);
    let faults: string[] = [];
    let answered = 0;
    const start = (links: Links) =>
      startCatalogue({
        links,
        records: () => records(answered++),
        answer: () => faultyAnswers[faults.pop() ?? 'none'],
      });
    const catalogues = {
      none: await start('none'),
      skip: await start('skip'),
      token: await start('token'),
    };
    await fc.assert(
      fc.asyncProperty(life, async ({ offsetsUs, changes, links, window, ...own }) => {
        records = changingRecords(offsetsUs, changes);
        faults = [...own.faults];
        answered = 0;
        const [fromUs, toUs] = [startUs + Math.min(...window), startUs + Math.max(...window)];
        const timing = { triesMax: 30 };
        const walk = listingOf(catalogues[links].url, { sizes: [4, 2], timing });
        const pages: ListingPage[] = [];
        const query = { ...wholeDay, event: 'modified', fromUs, toUs } as const;
        const error = await reached(walk.listing.list(query, new AbortController().signal), pages);
        // What appears behind the walk is counted and was not shown.
        const mayAppear = changes.some(({ kind }) => kind === 'published');
        if (error !== null && !(mayAppear && isAppError(error, 'unavailable'))) throw error;

        const within = (us: number) => us >= fromUs && us < toUs;
        const changed = changes.flatMap(({ kind, products }) =>
          kind === 'published' ? [] : products,
        );
        const lasting = offsetsUs
          .map((offset, number) => ({ number, eventUs: startUs + offset }))
          .filter(({ number, eventUs }) => !changed.includes(number) && within(eventUs));
        const given = numbersIn(pages);
        for (const { number } of lasting) {
          expect(given.filter((other) => other === number)).toHaveLength(1);
        }
        const events = pages.flatMap((page) => page.events);
        expect(events.every(({ eventUs }) => within(eventUs))).toBe(true);
        expectPromisesKept(pages, lasting);
        if (error === null) expect(pages.at(-1)?.completeUpToUs).toBe(toUs);
      }),
      { numRuns: 100 },
    );
  });
});

/** Collects pages, and returns what the walk ended with; null when it came to its end. */
async function reached(walk: AsyncIterable<ListingPage>, pages: ListingPage[]): Promise<unknown> {
  try {
    for await (const page of walk) pages.push(page);
    return null;
  } catch (error) {
    return error;
  }
}

describe('a list that changes', () => {
  it.each([16, 20])(
    'loses none of %i products of one moment when the first ones leave it',
    async (count) => {
      for (const links of ['none', 'skip'] as const) {
        const records = publishedAt(...Array.from({ length: count }, () => 7));
        // By then the first nine have been given.
        const catalogue = await startCatalogue({
          links,
          records: (request) => (request < 2 ? records : records.slice(9)),
        });
        const pages = await walked(listingOf(catalogue.url, { sizes: [5] }));
        expect(numbersIn(pages)).toEqual(records.map((_, number) => number));
      }
    },
  );

  it('gives a product again that has changed since', async () => {
    const [first, second, third] = publishedAt(0, 1_000, 2_000);
    const again = productOf(1, { ModificationDate: startUs + 3_000 });
    const catalogue = await startCatalogue({
      records: (request) =>
        [first, request === 0 ? second : again, third].filter((record) => record !== undefined),
    });
    const walk = listingOf(catalogue.url, { sizes: [2] });
    const pages = await walked(walk, { event: 'modified' });
    expect(numbersIn(pages)).toEqual([0, 1, 2, 1]);
  });

  it('all the time is given up, not read forever', async () => {
    const records = publishedAt(...Array.from({ length: 40 }, () => 7));
    const answer = (request: number, { searchParams }: URL) => {
      const skip = Number(searchParams.get('$skip'));
      return { body: { value: records.slice(skip === 0 ? 0 : 20 + (request % 10)).slice(0, 5) } };
    };
    const catalogue = await startCatalogue({ records: () => [], answer });
    await expect(walked(listingOf(catalogue.url, { sizes: [5] }))).rejects.toMatchObject({
      code: 'unavailable',
      text: expect.stringContaining('changes all the time'),
    });
  });
});

/** What has a date before `completeUpToUs` was given up to that page. */
function expectPromisesKept(
  pages: readonly ListingPage[],
  lasting: readonly { number: number; eventUs: number }[],
) {
  for (const [index, { completeUpToUs }] of pages.entries()) {
    const given = new Set(numbersIn(pages.slice(0, index + 1)));
    const owed = lasting.filter(({ eventUs }) => eventUs < completeUpToUs);
    expect(owed.filter(({ number }) => !given.has(number))).toEqual([]);
  }
}

describe('pages', () => {
  it('begin at the date of the last record, in milliseconds, and never repeat a record', async () => {
    const records = publishedAt(0, 1_000_000, 2_000_123, 2_000_456, 2_000_456, 3_000_000);
    const catalogue = await startCatalogue({ records: () => records });
    const pages = await walked(listingOf(catalogue.url, { sizes: [4] }));
    expect(pages.map((page) => numbersIn([page]))).toEqual([[0, 1, 2, 3], [4, 5], []]);
    expect(pages.map(({ completeUpToUs }) => completeUpToUs - startUs)).toEqual([
      2_000_000, 3_000_000, 86_400_000_000,
    ]);
    const filters = catalogue.requests.map(({ url }) => url.searchParams.get('$filter'));
    expect(filters).toEqual(
      ['00:00:00', '00:00:02', '00:00:03'].map(
        (time) =>
          `PublicationDate ge 2025-06-01T${time}.000Z and PublicationDate lt 2025-06-02T00:00:00.000Z`,
      ),
    );
    expect(catalogue.requests.every(({ url }) => !url.searchParams.has('$skip'))).toBe(true);
  });

  it('of one date alone are told apart by links with a token, or by what is passed over', async () => {
    const records = publishedAt(...Array.from({ length: 25 }, () => 7));
    for (const links of ['none', 'skip', 'token'] as const) {
      const catalogue = await startCatalogue({ records: () => records, links });
      const pages = await walked(listingOf(catalogue.url, { sizes: [10] }));
      expect(numbersIn(pages)).toEqual(records.map((_, number) => number));
      const names = new Set(catalogue.requests.flatMap(({ url }) => [...url.searchParams.keys()]));
      expect(names.has('$skip')).toBe(links !== 'token');
      expect(names.has('$skiptoken')).toBe(links === 'token');
    }
  });

  it('are not asked for at another host, whatever a link says', async () => {
    const stranger = await startCatalogue({ records: () => [] });
    const records = publishedAt(5, 5, 5, 5);
    const catalogue = await startCatalogue({
      records: () => records,
      answer: (request) =>
        request > 0
          ? undefined
          : {
              body: {
                value: records.slice(0, 2),
                '@odata.nextLink': `${stranger.url}/odata/v1/Products?$skiptoken=a`,
              },
            },
    });
    const pages = await walked(listingOf(catalogue.url, { sizes: [2] }));
    expect(numbersIn(pages)).toEqual([0, 1, 2, 3]);
    expect(stranger.requests).toEqual([]);
  });

  it('that end with a link to nothing are the end', async () => {
    for (const count of [0, 1, 3, 4]) {
      const records = publishedAt(...[1, 2_000, 3_000, 3_000].slice(0, count));
      const catalogue = await startCatalogue({ records: () => records, links: 'always' });
      const pages = await walked(listingOf(catalogue.url));
      expect(numbersIn(pages)).toEqual(records.map((_, number) => number));
      expect(pages.at(-1)?.completeUpToUs).toBe(wholeDay.toUs);
    }
  });

  it('of more products of one moment than can be passed over end in an error that names it', async () => {
    const value = publishedAt(...Array.from({ length: 12_000 }, () => 7));
    const answer = (_: number, { searchParams }: URL) => {
      const skip = Number(searchParams.get('$skip'));
      return { body: { value: value.slice(skip, skip + 1000) } };
    };
    const catalogue = await startCatalogue({ records: () => [], answer });
    await expect(walked(listingOf(catalogue.url))).rejects.toMatchObject({
      code: 'unavailable',
      text: expect.stringContaining('2025-06-01T00:00:00.000000Z'),
    });
    expect(Number(catalogue.requests.at(-1)?.url.searchParams.get('$skip'))).toBe(9_990);
  });
});
