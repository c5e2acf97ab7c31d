/** Answers to catalogue queries. A test of the sandbox compares a complete one with a recorded one. */
import { describe, expect, it } from 'vitest';
import { listAnswer, nextLink, readQueryOptions } from '../../../src/filter/odata.ts';

/** The recorded request, without its own page options. */
const recordedRequest = new URL(
  "https://catalogue.dataspace.copernicus.eu/odata/v1/Products?$filter=Collection/Name eq 'SENTINEL-1' and ContentDate/Start gt 2014-04-05T00:00:00.000Z and ContentDate/Start lt 2014-04-14T00:00:00.000000Z&$top=10&$count=true&$expand=Attributes&$orderby=ContentDate/Start asc",
);

describe('a query result', () => {
  it('has the requested parts as lists, even when a record lacks them', () => {
    const search = new URLSearchParams({ $expand: 'Locations,Attributes' });
    const options = readQueryOptions(search, 'Products');
    const page = { entity: 'Products' as const, options, count: null, nextLink: null };
    expect(listAnswer({ ...page, records: [{ Id: 'a', Attributes: null }] })).toEqual({
      '@odata.context': '$metadata#Products(Attributes(),Locations())',
      value: [{ Id: 'a', Attributes: [], Locations: [] }],
    });
  });
});

describe('a link to the next page', () => {
  it("keeps the request's options, order and spelling, and replaces the position", () => {
    const second = nextLink(new URL(nextLink(recordedRequest, { skip: 10 })), { skip: 20 });
    expect(second).toBe(nextLink(recordedRequest, { skip: 20 }));
    const between = new URL(
      'http://h/odata/v1/Products?%24skip=1&%24expand=Assets&%24expand=Attributes',
    );
    expect(nextLink(between, { skip: 2 })).toBe(
      'http://h/odata/v1/Products?%24skip=2&%24expand=Assets&%24expand=Attributes',
    );
  });

  it('parses to the same request, whatever its text', () => {
    const filter = "contains(Name,'~*!()+ &=%;ß\u{1F30D}')";
    const url = new URL(`http://h/p?${new URLSearchParams({ $filter: filter })}`);
    const link = new URL(nextLink(url, { skip: 1 }));
    expect(link.searchParams.get('$filter')).toBe(filter);
    expect(link.search).toMatch(/^\?[\w%&=.~+-]+$/);
  });
});
