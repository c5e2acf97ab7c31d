/** The listing: queries, filters, records, and the walk through results that change. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ListingPage } from '../../src/admin/listing.ts';
import { readListing } from '../../src/admin/page-readers.ts';
import { isAppError } from '../../src/core/terms/app-error.ts';
import type { Answer } from '../core/http/answering-server.ts';
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
} from './listing-set-up.ts';

const isSecond = "Name eq 'S2A_1.SAFE'";

describe('the query', () => {
  it.each([
    ['created', 'Products', 'PublicationDate', ['Attributes', 'Assets', 'Locations']],
    ['modified', 'Products', 'ModificationDate', ['Attributes', 'Assets', 'Locations']],
    ['deleted', 'DeletedProducts', 'DeletionDate', ['Attributes']],
  ] as const)(
    'for %s events names entity, order and parts, and counts once',
    async (event, entity, date, parts) => {
      const records = publishedAt(0, 1_000, 2_000);
      const dated = records.map((record, n) => ({ ...record, [date]: `2025-06-01T00:00:0${n}Z` }));
      const catalogue = await startCatalogue({ records: () => dated });
      const pages = await walked(listingOf(catalogue.url, { sizes: [2] }), { event });
      expect(numbersIn(pages)).toEqual([0, 1, 2]);
      expect(pages.map(({ total }) => total)).toEqual(pages.map(() => 3));
      const [first, ...others] = catalogue.requests.map(({ url }) => url);
      expect(first?.pathname).toBe(`/odata/v1/${entity}`);
      expect(Object.fromEntries(first?.searchParams ?? [])).toMatchObject({
        ...{ $orderby: `${date} asc`, $top: '2', $count: 'true' },
      });
      expect(first?.searchParams.getAll('$expand')).toEqual(parts);
      expect(others.length).toBeGreaterThan(0);
      expect(others.some(({ searchParams }) => searchParams.has('$count'))).toBe(false);
    },
  );

  it('has the filter in parentheses, and a window in milliseconds, which is applied locally to the microsecond', async () => {
    const records = publishedAt(1_000, 1_499, 1_500, 2_000, 2_500, 2_501, 2_999, 3_000);
    const catalogue = await startCatalogue({ records: () => records });
    const window = { fromUs: startUs + 1_500, toUs: startUs + 2_501 };
    const filter = `Name ne 'S2A_2.SAFE' or ${isSecond}`;
    expect(numbersIn(await walked(listingOf(catalogue.url), { filter, ...window }))).toEqual([
      3, 4,
    ]);
    const text = catalogue.requests[0]?.url.searchParams.get('$filter');
    expect(text).toContain(`(${filter}) and `);
    expect(text).toContain('ge 2025-06-01T00:00:00.001Z');
    expect(text).toContain('lt 2025-06-01T00:00:00.003Z');
  });
});

describe('a filter', () => {
  it.each([400, 422])('that is refused (%i) is evaluated locally', async (status) => {
    const catalogue = await startCatalogue({
      records: () => publishedAt(0, 1_000, 2_000),
      answer: (_, url) =>
        url.searchParams.get('$filter')?.includes('Name') ? { status, body: {} } : undefined,
    });
    const pages = await walked(listingOf(catalogue.url, { sizes: [2] }), { filter: isSecond });
    expect(numbersIn(pages)).toEqual([1]);
    // The catalogue's count includes all records, so it is not returned.
    expect(pages.map(({ total }) => total)).toEqual(pages.map(() => null));
    const asked = catalogue.requests.map(({ url }) => url.searchParams.get('$filter') ?? '');
    expect(asked.map((text) => text.includes('Name'))).toEqual([true, ...pages.map(() => false)]);
  });

  it('of fields that records lack skips and counts the records that it cannot decide', async () => {
    const filter =
      "Online eq true and contains(Name,'A_') or DeletionCause eq 'Duplicated product'";
    const deleted = (number: number, DeletionCause: string | null, offsetUs = 0) => ({
      ...productOf(number, { DeletionDate: startUs + offsetUs }),
      ...(number === 3 ? { Name: 'S2B_3.SAFE' } : {}),
      DeletionCause,
    });
    const records = [
      deleted(0, 'Duplicated product'),
      deleted(1, null),
      deleted(2, 'Other'),
      // The name decides.
      deleted(3, 'Other'),
      // Outside the window.
      deleted(4, 'Other', -1),
    ];
    const catalogue = await startCatalogue({ records: () => records });
    const { listing } = listingOf(catalogue.url);
    const pages = await walked({ listing }, { event: 'deleted', filter });
    expect(numbersIn(pages)).toEqual([0]);
    expect(pages[0]?.events[0]).toMatchObject({ eventUs: startUs, publicationDateUs: null });
    expect(catalogue.requests).toHaveLength(2);
    expect(listing.spent()).toMatchObject({ undecided: 2, unreadableRecords: 0 });
  });

  it('that is too long for a URL is evaluated locally from the start', async () => {
    const catalogue = await startCatalogue({ records: () => publishedAt(0, 1_000, 2_000) });
    const filter = `${isSecond}${" or Name eq 'x'".repeat(250)}`;
    expect(numbersIn(await walked(listingOf(catalogue.url), { filter }))).toEqual([1]);
    expect(catalogue.requests.map(({ url }) => url.href.length < 1_000)).toEqual([true]);
  });

  it('that cannot be parsed is an error with the position', async () => {
    const catalogue = await startCatalogue({ records: () => [] });
    const walk = walked(listingOf(catalogue.url), { filter: 'what is this' });
    await expect(walk).rejects.toMatchObject({
      code: 'invalid',
      text: expect.stringContaining('at character'),
    });
    expect(catalogue.requests).toHaveLength(1);
  });
});

it('a record is returned complete, with its dates', async () => {
  const dates = { PublicationDate: startUs + 5, ModificationDate: startUs + 77 };
  const Attributes = [{ Name: 'a', Value: 1 }];
  const record = { ...productOf(7, dates), Attributes, new: { x: [null] } };
  const catalogue = await startCatalogue({ records: () => [record] });
  const [page] = await walked(listingOf(catalogue.url));
  const { record: bytes, ...event } = page?.events[0] ?? {};
  expect(event).toEqual({
    ...{ productId: productOf(7, {}).Id, productName: 'S2A_7.SAFE' },
    ...{ eventUs: startUs + 5, publicationDateUs: startUs + 5 },
  });
  expect(JSON.parse(Buffer.from(bytes ?? []).toString())).toEqual({
    ...{ ...record, Assets: [], Locations: [] },
  });
});

const cloudy =
  "Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/OData.CSC.DoubleAttribute/Value gt 50)";
const somewhere = "OData.CSC.Intersects(area=geography'SRID=4326;POINT(4 50)')";

/** Without Online and PublicationDate; with null as cause; without attributes and footprint. */
const deleted = {
  Name: 'S2A_MSIL2A_1.SAFE',
  ContentDate: { Start: '2026-05-01T00:00:00Z' },
  DeletionCause: null,
  Attributes: [],
  Footprint: null,
};
const bare = { Name: 'S2A_MSIL2A_1.SAFE' };

it.each<[filter: string, ofDeleted: boolean | null, ofBare: boolean | null]>([
  ['not (Online eq true)', null, null],
  ["Online eq true and contains(Name,'S2B')", false, false],
  ["contains(Name,'S2A') or Online eq true", true, true],
  ["DeletionCause ne 'Other'", true, null],
  ["Collection/Name eq 'SENTINEL-2'", true, true],
  [cloudy, false, null],
  [somewhere, false, null],
])('%s is undecided only without the fields that decide', (filter, ofDeleted, ofBare) => {
  expect([matchOf(filter, deleted), matchOf(filter, bare)]).toEqual([ofDeleted, ofBare]);
});

/** Result of a filter for a record of a page. */
function matchOf(filter: string, record: object) {
  const value = [{ Id: 'id-1', ModificationDate: '2026-05-01T12:00:00Z', ...record }];
  const reading = { dateField: 'ModificationDate', sinceMs: 0, filter } as const;
  const page = readListing(Buffer.from(JSON.stringify({ value })), reading);
  return 'broken' in page ? page.broken : page.records[0]?.isMatch;
}

/** A few times, so that many products share a time or its millisecond. */
const offsetUs = fc.tuple(fc.nat(3), fc.nat(2)).map(([ms, us]) => ms * 1000 + us);

/** A change to some products at once. */
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
  links: fc.constantFrom('none', 'skip', 'token', 'always'),
  window: fc.tuple(offsetUs, fc.nat(6_000)),
});

const faultyAnswers: Readonly<Record<string, Answer>> = {
  error: { status: 500 },
  cut: 'cut',
  page: { body: '<html>' },
};

/** The records before each request, from 0, with the changes applied one after the other. */
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

it('a walk returns unchanged products exactly once, whatever is modified, deleted and published meanwhile', async () => {
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
    always: await start('always'),
  };
  await fc.assert(
    fc.asyncProperty(life, async ({ offsetsUs, changes, links, window, ...own }) => {
      records = changingRecords(offsetsUs, changes);
      faults = [...own.faults];
      answered = 0;
      const [fromUs, toUs] = [startUs + Math.min(...window), startUs + Math.max(...window)];
      const timing = { attemptsMax: 30 };
      const walk = listingOf(catalogues[links].url, { sizes: [4, 2], timing });
      const pages: ListingPage[] = [];
      const query = { ...wholeDay, event: 'modified', fromUs, toUs } as const;
      const error = await reached(walk.listing.list(query, new AbortController().signal), pages);
      // A product that appears before the walk's position is counted but not returned.
      const mayAppear = changes.some(({ kind }) => kind === 'published');
      if (error !== null && !(mayAppear && isAppError(error, 'unavailable'))) throw error;

      const within = (us: number) => us >= fromUs && us < toUs;
      const changed = changes.flatMap(({ kind, products }) =>
        kind === 'published' ? [] : products,
      );
      const unchanged = offsetsUs
        .map((offset, number) => ({ number, eventUs: startUs + offset }))
        .filter(({ number, eventUs }) => !changed.includes(number) && within(eventUs));
      const returned = numbersIn(pages);
      for (const { number } of unchanged) {
        expect(returned.filter((other) => other === number)).toHaveLength(1);
      }
      const events = pages.flatMap((page) => page.events);
      expect(events.every(({ eventUs }) => within(eventUs))).toBe(true);
      expectComplete(pages, unchanged);
      if (error === null) expect(pages.at(-1)?.completeUpToUs).toBe(toUs);
    }),
    { numRuns: 100 },
  );
});

/** Collects pages, and returns the error of the walk, or null if it was complete. */
async function reached(walk: AsyncIterable<ListingPage>, pages: ListingPage[]): Promise<unknown> {
  try {
    for await (const page of walk) pages.push(page);
    return null;
  } catch (error) {
    return error;
  }
}

it('results that change contain a product again that was modified meanwhile', async () => {
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

it('results that change all the time are an error, not an endless walk', async () => {
  const records = publishedAt(...Array.from({ length: 40 }, () => 7));
  const answer = (request: number, { searchParams }: URL) => {
    const skip = Number(searchParams.get('$skip'));
    return { body: { value: records.slice(skip === 0 ? 0 : 20 + (request % 10)).slice(0, 5) } };
  };
  const catalogue = await startCatalogue({ records: () => [], answer });
  await expect(walked(listingOf(catalogue.url, { sizes: [5] }))).rejects.toMatchObject({
    code: 'unavailable',
    text: expect.stringContaining('the results keep changing'),
  });
});

/** Expects every event dated before `completeUpToUs` on that page or an earlier one. */
function expectComplete(
  pages: readonly ListingPage[],
  unchanged: readonly { number: number; eventUs: number }[],
) {
  for (const [index, { completeUpToUs }] of pages.entries()) {
    const returned = new Set(numbersIn(pages.slice(0, index + 1)));
    const expected = unchanged.filter(({ eventUs }) => eventUs < completeUpToUs);
    expect(expected.filter(({ number }) => !returned.has(number))).toEqual([]);
  }
}

describe('pages', () => {
  it('are not requested from another host, whatever a link says', async () => {
    const otherHost = await startCatalogue({ records: () => [] });
    const records = publishedAt(5, 5, 5, 5);
    const link = { '@odata.nextLink': `${otherHost.url}/odata/v1/Products?$skiptoken=a` };
    const catalogue = await startCatalogue({
      records: () => records,
      answer: (request) =>
        request > 0 ? undefined : { body: { value: records.slice(0, 2), ...link } },
    });
    const pages = await walked(listingOf(catalogue.url, { sizes: [2] }));
    expect(numbersIn(pages)).toEqual([0, 1, 2, 3]);
    expect(otherHost.requests).toEqual([]);
  });

  it('of too many products of the same time end in an error with that time', async () => {
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

  it('shorter than requested are not the last while the count is larger', async () => {
    // A hundred with their own times; or forty of one time after another; or all of one time.
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

  it('are requested once more, and then are the last, when the count has decreased', async () => {
    for (const count of [0, 1, 5]) {
      const records = publishedAt(...Array.from({ length: count }, (_, i) => i * 1_000_000));
      const answer = (request: number) =>
        request === 0 ? { body: { value: records, '@odata.count': 9 } } : undefined;
      const catalogue = await startCatalogue({ records: () => records, answer });
      const pages = await walked(listingOf(catalogue.url));
      expect(numbersIn(pages)).toEqual(records.map((_, number) => number));
      expect(pages.at(-1)?.completeUpToUs).toBe(wholeDay.toUs);
      const counts = catalogue.requests.map(({ url }) => url.searchParams.has('$count'));
      expect(counts).toEqual(count === 0 ? [true, true] : [true, false, true]);
    }
  });

  it.each([
    ['are empty', 0],
    ['have a part', 10],
  ])('that repeatedly %s of the counted products are an error, not the end', async (_, shown) => {
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
    const returned: ListingPage[] = [];
    expect(await reached(pages, returned)).toMatchObject({
      code: 'unavailable',
      text: expect.stringContaining(`counts 20 products but returned only ${shown};`),
    });
    // The returned events are valid; nothing is claimed about later ones.
    expect(numbersIn(returned)).toHaveLength(shown);
    const lastUs = startUs + Math.max(0, shown - 1) * 1_000_000;
    expect(returned.at(-1)?.completeUpToUs).toBe(lastUs);
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

/** The URL of a page, limited to 20 products. */
function capped(input: string | URL | Request): URL {
  const url = new URL(input instanceof Request ? input.url : input);
  url.searchParams.set('$top', '20');
  return url;
}
