/** Filters that the catalogue is known to take, and those that it is known to refuse. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Entity } from '../../src/domain/filter-tree.ts';
import { checkFilter } from '../../src/filter/check.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { printFilter } from '../../src/filter/print.ts';

const fixture = new URL('../../../shared/fixtures/filters-valid.json', import.meta.url);
const missing = existsSync(fixture) ? false : 'the folder ../shared/fixtures is not there';

describe('a filter of the real world', () => {
  it('is read, checks without error, and survives printing', (context) => {
    if (missing) context.skip(missing);
    const samples: { filter: string; entity: Entity }[] = JSON.parse(readFileSync(fixture, 'utf8'));
    expect(samples.length).toBeGreaterThan(50);
    for (const { filter, entity } of samples) {
      const { tree, findings } = checkFilter(filter, entity);
      expect(
        findings.filter(({ severity }) => severity === 'error'),
        filter,
      ).toEqual([]);
      expect(tree, filter).not.toBeNull();
      if (tree !== null) expect(parseFilter(printFilter(tree)).tree, filter).toEqual(tree);
    }
  });

  it('warns about nothing but names searched without a collection and attributes of other collections', (context) => {
    if (missing) context.skip(missing);
    const samples: { filter: string; entity: Entity }[] = JSON.parse(readFileSync(fixture, 'utf8'));
    const codes = samples.flatMap(({ filter, entity }) =>
      checkFilter(filter, entity).findings.map(({ code }) => code),
    );
    expect(new Set(codes)).toEqual(new Set(['name-without-collection', 'unknown-attribute']));
  });
});

/** Facts, filters 3; `at` is the text at the place, '' for the end. */
const invalid: { filter: string; at: string; says: RegExp }[] = [
  { filter: "foo eq 'bar'", at: 'foo', says: /no field `foo`/ },
  {
    filter: "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51))')",
    at: '4 51',
    says: /clos/,
  },
  {
    filter: "OData.CSC.Intersects(area=geography'SRID=3857;POLYGON((4 50,5 50,5 51,4 51,4 50))')",
    at: '3857',
    says: /EPSG:4326/,
  },
  {
    filter: "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON [1,2,3,4]')",
    at: '[1',
    says: /cannot stand here.*expected: `\(`/s,
  },
  {
    filter: 'Collection/Name eq SENTINEL-2',
    at: 'SENTINEL-2',
    says: /single quotes: `'SENTINEL-2'`/,
  },
  {
    filter:
      "Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value le 40",
    at: '',
    says: /parenthesis of any.*never closed/,
  },
  {
    filter: 'DeletionDate gt 2023-04-01T00:00:00.000Z',
    at: 'DeletionDate',
    says: /field of DeletedProducts, not of Products/,
  },
  {
    filter: "substringof('IW_GRDH',Name) and IngestionDate gt datetime'2024-04-29T07:33:00.000'",
    at: 'substringof',
    says: /not a function.*contains\(Name,'…'\)/s,
  },
  { filter: 'BurstId eq 15804', at: 'BurstId', says: /field of Bursts/ },
];

describe('a filter that the catalogue refuses', () => {
  it.each(invalid)('is refused at the place: $filter', ({ filter, at, says }) => {
    const { tree, findings } = checkFilter(filter, 'Products');
    expect(tree).toBeNull();
    const [first, ...others] = findings.filter(({ severity }) => severity === 'error');
    expect(others).toEqual([]);
    const start = at === '' ? filter.length : filter.indexOf(at);
    expect(first).toMatchObject({ start, end: start + at.length });
    const { message, expected, hint } = first ?? { message: '' };
    expect(`${message}\nexpected: ${expected}\nhint: ${hint}`).toMatch(says);
  });
});
