/** What the catalogue is asked for events of each kind, and what is made of its records. */
import { describe, expect, it } from 'vitest';
import {
  listingOf,
  numbersIn,
  productOf,
  publishedAt,
  startCatalogue,
  startUs,
  walked,
} from './listing-world.ts';

const isSecond = "Name eq 'S2A_1.SAFE'";

describe('the question', () => {
  it('names the list, its order, its parts and a count, which is asked for once', async () => {
    const records = publishedAt(0, 1_000, 2_000);
    const lists = {
      created: ['Products', 'PublicationDate', ['Attributes', 'Assets', 'Locations']],
      modified: ['Products', 'ModificationDate', ['Attributes', 'Assets', 'Locations']],
      deleted: ['DeletedProducts', 'DeletionDate', ['Attributes']],
    } as const;
    for (const event of ['created', 'modified', 'deleted'] as const) {
      const [entity, date, parts] = lists[event];
      const dated = records.map((record, n) => ({ ...record, [date]: `2025-06-01T00:00:0${n}Z` }));
      const catalogue = await startCatalogue({ records: () => dated });
      const pages = await walked(listingOf(catalogue.url, { sizes: [2] }), { event });
      expect(numbersIn(pages)).toEqual([0, 1, 2]);
      expect(pages.map(({ total }) => total)).toEqual(pages.map(() => 3));
      const [first, ...others] = catalogue.requests.map(({ url }) => url);
      expect(first?.pathname).toBe(`/odata/v1/${entity}`);
      expect(first?.searchParams.get('$orderby')).toBe(`${date} asc`);
      expect(first?.searchParams.get('$top')).toBe('2');
      expect(first?.searchParams.getAll('$expand')).toEqual(parts);
      expect(first?.searchParams.get('$count')).toBe('true');
      expect(others.length).toBeGreaterThan(0);
      expect(others.some(({ searchParams }) => searchParams.has('$count'))).toBe(false);
    }
  });

  it('has the filter in parentheses, so that an "or" in it stays within the window', async () => {
    const catalogue = await startCatalogue({ records: () => publishedAt(0, 1_000, 2_000) });
    const filter = `Name eq 'S2A_0.SAFE' or ${isSecond}`;
    const fromUs = startUs + 1_000;
    expect(numbersIn(await walked(listingOf(catalogue.url), { filter, fromUs }))).toEqual([1]);
    expect(catalogue.requests[0]?.url.searchParams.get('$filter')).toContain(`(${filter}) and `);
    await walked(listingOf(catalogue.url), { filter: ' \n' });
    expect(catalogue.requests[1]?.url.searchParams.get('$filter')).toMatch(/^PublicationDate ge/);
  });

  it('is widened to milliseconds, and what is beyond the window is cut off here', async () => {
    const records = publishedAt(1_000, 1_499, 1_500, 2_000, 2_500, 2_501, 2_999, 3_000);
    const catalogue = await startCatalogue({ records: () => records });
    const window = { fromUs: startUs + 1_500, toUs: startUs + 2_501 };
    expect(numbersIn(await walked(listingOf(catalogue.url), window))).toEqual([2, 3, 4]);
    const text = catalogue.requests[0]?.url.searchParams.get('$filter');
    expect(text).toContain('ge 2025-06-01T00:00:00.001Z');
    expect(text).toContain('lt 2025-06-01T00:00:00.003Z');
  });

  it('is not asked at all for an empty window', async () => {
    const catalogue = await startCatalogue({ records: () => [] });
    const pages = await walked(listingOf(catalogue.url), { fromUs: startUs, toUs: startUs });
    expect(pages).toEqual([{ events: [], completeUpToUs: startUs, total: 0 }]);
    expect(catalogue.requests).toEqual([]);
  });
});

describe('a filter', () => {
  it.each([400, 422])('that is refused (%i) is asked of the records here', async (status) => {
    const catalogue = await startCatalogue({
      records: () => publishedAt(0, 1_000, 2_000),
      answer: (_, url) =>
        url.searchParams.get('$filter')?.includes('Name') ? { status, body: {} } : undefined,
    });
    const pages = await walked(listingOf(catalogue.url, { sizes: [2] }), { filter: isSecond });
    expect(numbersIn(pages)).toEqual([1]);
    // The catalogue's count is that of all, and is not passed on.
    expect(pages.map(({ total }) => total)).toEqual(pages.map(() => null));
    const asked = catalogue.requests.map(({ url }) => url.searchParams.get('$filter') ?? '');
    expect(asked.map((text) => text.includes('Name'))).toEqual([true, ...pages.map(() => false)]);
  });

  it('of fields that records lack leaves those out, and counts them, for which that matters', async () => {
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
      // Its name decides.
      deleted(3, 'Other'),
      // Not in the window.
      deleted(4, 'Other', -1),
    ];
    const catalogue = await startCatalogue({ records: () => records });
    const { listing } = listingOf(catalogue.url);
    const pages = await walked({ listing }, { event: 'deleted', filter });
    expect(numbersIn(pages)).toEqual([0]);
    expect(catalogue.requests).toHaveLength(2);
    expect(listing.spent()).toMatchObject({ undecided: 2, oddRecords: 0 });
  });

  it('that is too long for an address is asked of the records here from the start', async () => {
    const catalogue = await startCatalogue({ records: () => publishedAt(0, 1_000, 2_000) });
    const filter = [isSecond, ...Array.from({ length: 250 }, (_, n) => `Name eq 'x${n}'`)].join(
      ' or ',
    );
    expect(numbersIn(await walked(listingOf(catalogue.url), { filter }))).toEqual([1]);
    expect(catalogue.requests.map(({ url }) => url.href.length < 1_000)).toEqual([true]);
  });

  it('that nobody can read is an error with the words of the catalogue', async () => {
    const catalogue = await startCatalogue({ records: () => [] });
    const walk = walked(listingOf(catalogue.url), { filter: 'what is this' });
    await expect(walk).rejects.toMatchObject({
      code: 'invalid',
      text: expect.stringContaining('at character'),
    });
    expect(catalogue.requests).toHaveLength(1);
  });
});

describe('a record', () => {
  it('is given with its dates, and whole', async () => {
    const dates = { PublicationDate: startUs + 5, ModificationDate: startUs + 77 };
    const record = {
      ...productOf(7, dates),
      Attributes: [{ Name: 'a', Value: 1 }],
      new: { x: [null] },
    };
    const catalogue = await startCatalogue({ records: () => [record] });
    const [page] = await walked(listingOf(catalogue.url));
    expect(page?.events).toEqual([
      {
        productId: productOf(7, {}).Id,
        productName: 'S2A_7.SAFE',
        eventUs: startUs + 5,
        publicationUs: startUs + 5,
        record: { ...record, Assets: [], Locations: [] },
      },
    ]);
  });

  it('may be large: a page has several megabytes', async () => {
    const large = publishedAt(1, 2, 3).map((record) => ({ ...record, more: 'x'.repeat(2 ** 20) }));
    const catalogue = await startCatalogue({ records: () => large });
    expect(numbersIn(await walked(listingOf(catalogue.url)))).toEqual([0, 1, 2]);
    expect(catalogue.requests).toHaveLength(1);
  });

  it('of a deletion has no date of publication', async () => {
    const record = productOf(7, { DeletionDate: startUs + 5 });
    const catalogue = await startCatalogue({ records: () => [record] });
    const [page] = await walked(listingOf(catalogue.url), { event: 'deleted' });
    expect(page?.events[0]).toMatchObject({
      eventUs: startUs + 5,
      publicationUs: null,
    });
  });

  it('that lacks its id or its date is passed over and counted, when it is one of few', async () => {
    const value = [...publishedAt(0, 1_000, 2_000), { Id: 'no-date' }, null, 'what'];
    const catalogue = await startCatalogue({
      records: () => [],
      answer: () => ({ body: { value } }),
    });
    const walk = listingOf(catalogue.url);
    expect(numbersIn(await walked(walk))).toEqual([0, 1, 2]);
    expect(walk.listing.spent()).toMatchObject({ oddRecords: 3, requests: 1 });
  });
});
