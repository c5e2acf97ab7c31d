/** The recorded list of the catalogue is written again, byte for byte, from its own records. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { listAnswer, nextLink, readQueryOptions, recordAnswer } from '../../../src/filter/odata.ts';

const fixtures = new URL('../../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

/** The recorded request, without a page of its own. */
const asked = new URL(
  "https://catalogue.dataspace.copernicus.eu/odata/v1/Products?$filter=Collection/Name eq 'SENTINEL-1' and ContentDate/Start gt 2014-04-05T00:00:00.000Z and ContentDate/Start lt 2014-04-14T00:00:00.000000Z&$top=10&$count=true&$expand=Attributes&$orderby=ContentDate/Start asc",
);

function optionsOf(search: string, entity: 'Products' | 'DeletedProducts' = 'Products') {
  const { options } = readQueryOptions(new URLSearchParams(search), entity);
  if (options === undefined) throw new Error('They were refused.');
  return options;
}

describe('a list', () => {
  it('is the recorded one, given its records', (context) => {
    if (missing) context.skip(missing);
    const file = new URL('lists/products-page-1-count-nextlink.json', fixtures);
    const recorded = JSON.parse(readFileSync(file, 'utf8'));
    const [first] = recorded.value;
    const answer = listAnswer({
      entity: 'Products',
      options: optionsOf(asked.search),
      // What was not asked for must go.
      records: [{ ...first, Assets: [1], Locations: [2], '@odata.context': 'x' }].concat(
        recorded.value.slice(1),
      ),
      count: 47,
      nextLink: nextLink(asked, { skip: 10 }),
    });
    expect(JSON.stringify(answer)).toBe(JSON.stringify(recorded));
  });

  it('has the parts that are asked for as lists, even where a record lacks them', () => {
    const options = optionsOf('$expand=Locations,Attributes');
    const page = { entity: 'Products' as const, options, count: null, nextLink: null };
    expect(listAnswer({ ...page, records: [{ Id: 'a', Attributes: null }] })).toEqual({
      '@odata.context': '$metadata#Products(Attributes(),Locations())',
      value: [{ Id: 'a', Attributes: [], Locations: [] }],
    });
  });

  it('names what was selected in its context', () => {
    const options = optionsOf('$select=name,Id&$expand=Attributes', 'DeletedProducts');
    const record = { Id: 'a', Name: 'b', DeletionDate: 'c', Attributes: [] };
    expect(recordAnswer('DeletedProducts', options, record)).toEqual({
      '@odata.context': '$metadata#DeletedProducts(Name,Id,Attributes())/$entity',
      Id: 'a',
      Name: 'b',
      Attributes: [],
    });
  });
});

describe('a link to the next page', () => {
  it('keeps what was asked, in its order and its writing, and replaces where to go on', () => {
    const second = nextLink(new URL(nextLink(asked, { skip: 10 })), { skip: 20 });
    expect(second).toBe(nextLink(asked, { skip: 20 }));
    const between = new URL(
      'http://h/odata/v1/Products?%24skip=1&%24expand=Assets&%24expand=Attributes',
    );
    expect(nextLink(between, { skip: 2 })).toBe(
      'http://h/odata/v1/Products?%24skip=2&%24expand=Assets&%24expand=Attributes',
    );
  });

  it('takes $skip out when a token stands for it', () => {
    const link = nextLink(new URL('http://h/p?$skip=9500&$top=1000'), { skiptoken: '7_8' });
    expect(link).toBe('http://h/p?%24top=1000&%24skiptoken=7_8');
  });

  it('is read as it was meant, whatever was in it', () => {
    const filter = "contains(Name,'~*!()+ &=%;ß\u{1F30D}')";
    const url = new URL(`http://h/p?${new URLSearchParams({ $filter: filter })}`);
    const link = new URL(nextLink(url, { skip: 1 }));
    expect(link.searchParams.get('$filter')).toBe(filter);
    expect(link.search).toMatch(/^\?[\w%&=.~+-]+$/);
  });
});
