/** Filters of CQL2: parsing, translation, evaluation, compared with another implementation. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { parseCql2Text, readCql2 } from '../../../src/features/stac/cql2.ts';
import { compileFilter, compilePattern } from '../../../src/filter/evaluate.ts';
import { productView } from '../../../src/filter/product-view.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitraryCql2, cql2Text, type Filter } from './arbitrary-cql2.ts';
import { loadReference, type Reference } from './reference-cql2.ts';
import { sampleItems } from './sample-items.ts';

const translated = (text: string) => String(readCql2(parseCql2Text(text)));

function refusalOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid') return error.text;
    throw error;
  }
  throw new Error('The filter was accepted.');
}

describe('a filter of CQL2 becomes', () => {
  it.each([
    [
      'catalogue:cloudCover < 20',
      "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value lt 20)",
    ],
    [
      '20 >= "catalogue:cloudCover"',
      "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value le 20)",
    ],
    ["title = 'It''s'", "Name eq 'It''s'"],
    ["title LIKE 'S2A\\_MSIL2A%'", "startswith(Name,'S2A_MSIL2A')"],
    ["title NOT LIKE '%_COG%'".replace('_', '\\_'), "Name ge '' and not (contains(Name,'_COG'))"],
    ["title LIKE '%'", "endswith(Name,'')"],
    ["title LIKE 'S2A_MSIL2A%'", "contains(Name,'MSIL2A') and like(Name,'S2A_MSIL2A%')"],
    ["title LIKE '%L2A%T32\\_%'", "contains(Name,'T32_') and like(Name,'%L2A%T32\\_%')"],
    ['title IS NULL', "not (Name ge '')"],
    ['id IS NULL', "Id eq ''"],
    [
      'geometry IS NOT NULL',
      "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-180 -90,-90 -90,0 -90,90 -90,180 -90,180 90,90 90,0 90,-90 90,-180 90,-180 -90))')",
    ],
    [
      "datetime >= TIMESTAMP('2026-05-01T10:00:00+02:00')",
      'ContentDate/Start ge 2026-05-01T08:00:00.000000Z',
    ],
    ["created < DATE('2026-05-01')", 'PublicationDate lt 2026-05-01T00:00:00.000000Z'],
    ["collection = 'nothing'", "Id eq ''"],
    ['TRUE', "Id ne ''"],
    ['catalogue:Online = FALSE', 'Online eq false'],
    [
      'S_INTERSECTS(geometry, BBOX(5, 45, 11, 48))',
      "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((5 45,11 45,11 48,5 48,5 45))')",
    ],
    [
      'S_INTERSECTS(POINT(5 45), geometry)',
      "OData.CSC.Intersects(area=geography'SRID=4326;POINT(5 45)')",
    ],
    [
      "T_INTERSECTS(datetime, INTERVAL('2026-05-01', '..'))",
      'ContentDate/End ge 2026-05-01T00:00:00.000000Z',
    ],
  ])('%s', (text, filter) => {
    expect(translated(text)).toBe(filter);
  });

  it('a condition on the exact value for the name of a group of product types', () => {
    const type = (operator: string) =>
      `Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'productType' and att/OData.CSC.StringAttribute/Value ${operator} 'RAW')`;
    const exact = `${type('ge')} and ${type('le')}`;
    expect(translated("collection = 'SENTINEL-1.RAW'")).toBe(
      `Collection/Name eq 'SENTINEL-1' and ${exact}`,
    );
    for (const sign of ['=', '<>']) {
      expect(translated(`sar:product_type ${sign} 'RAW'`)).toContain(exact);
    }
  });

  it('a number for a product, as GDAL writes negative numbers, also in JSON', () => {
    expect(translated('catalogue:offNadir > -1 * 30')).toMatch(/ gt -30\)$/);
    expect(translated('-1 * 30 < catalogue:offNadir')).toMatch(/ gt -30\)$/);
    const product = { op: '*', args: [-1, 30] };
    const between = { op: 'between', args: [{ property: 'catalogue:offNadir' }, product, 5] };
    expect(String(readCql2(between))).toMatch(/ ge -30\).* le 5\)$/);
    expect([true, false].map((value) => String(readCql2(value)))).toEqual([
      ...["Id ne ''", "Id eq ''"],
    ]);
  });
});

describe('a filter is refused by name for', () => {
  it.each([
    ['S_WITHIN(geometry, POINT(1 2))', 'The operator "s_within" of CQL2 is not supported.'],
    ["A_CONTAINS(instruments, ('msi'))", 'The operator "a_contains" of CQL2 is not supported.'],
    ["CASEI(title) = CASEI('s2a')", 'The function or operator "casei" of CQL2 is not supported'],
    [`title LIKE '${'_'.repeat(1_001)}'`, 'A pattern has at most 1000 characters.'],
    ['eo:cloud_cover < 1 / 2', 'Unexpected "/"'],
    ["platform > 'sentinel-2a'", 'platform can only be compared with =, <> and IN.'],
    ["sat:orbit_state > 'ascending'", 'can only be compared with =, <> and IN.'],
    ['eo:cloud_cover * 2 < 10', 'The function or operator "*" of CQL2 is not supported'],
    ['eo:cloud_cover < 2 *', 'Unexpected "the end"'],
    [`eo:cloud_cover < ${'('.repeat(101)}1${')'.repeat(101)}`, 'nested deeper than 100'],
    ["processing:level LIKE 'L%'", 'LIKE is not supported for processing:level.'],
    ['constructor = 1', 'The property "constructor" cannot be queried.'],
    ['__proto__(1)', 'The operator "__proto__" of CQL2 is not supported.'],
    ['S_INTERSECTS(geometry, POINT(1 2, 3 4))', 'Unexpected "POINT" at character 24'],
    [`id IN ${'('.repeat(14_000)}`, 'nested deeper than 100'],
    ["eo:cloud_cover = 'much'", 'eo:cloud_cover can only be compared with a number'],
    ['title = 5', 'title can only be compared with a text in single quotes'],
    ["updated > 'soon'", '"soon" is not a time'],
    ['updated > 5', 'updated can only be compared with a time'],
    ['title = platform', 'A property can only be compared with'],
    ['eo:cloud_cover < ', 'Unexpected "the end" at character 18'],
    ["title = 'open", 'Unexpected "\'" at character 9'],
    ['eo:cloud_cover < 20 20', 'Unexpected "20" at character 21'],
    ['S_INTERSECTS(datetime, POINT(1 2))', 'S_INTERSECTS needs the property geometry'],
    ['S_INTERSECTS(geometry, POINT(1))', 'Unexpected "POINT" at character 24'],
    ['S_INTERSECTS(geometry, POLYGON((0 0, 1 1, 0 1)))', 'The catalogue would refuse'],
    [`${'('.repeat(101)}TRUE${')'.repeat(101)}`, 'nested deeper than 100 levels'],
  ])('%s', (text, reason) => {
    expect(refusalOf(() => translated(text))).toContain(reason);
  });

  it('JSON that is no filter', () => {
    const deep = (depth: number): unknown =>
      depth === 0 ? true : { op: 'not', args: [deep(depth - 1)] };
    expect(refusalOf(() => readCql2({ op: '<' }))).toContain('must be a condition');
    expect(refusalOf(() => readCql2(['a']))).toContain('must be a condition');
    expect(refusalOf(() => readCql2(deep(101)))).toContain('nested deeper');
    const three = { op: '=', args: [{ property: 'title' }, 'a', 'b'] };
    expect(refusalOf(() => readCql2(three))).toContain('= needs 2 arguments, not 3.');
    for (const op of Object.getOwnPropertyNames(Object.prototype)) {
      expect(refusalOf(() => readCql2({ op, args: [] }))).toContain('is not supported');
    }
  });
});

describe('CQL2', () => {
  const items = sampleItems();
  const filters = arbitraryCql2(items.map(({ item }) => item));

  it('compares patterns like a regular expression', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '_', '%', '\\', '\u{1f6f0}') });
    fc.assert(
      fc.property(text, text, (pattern, value) => {
        const parts = pattern.match(/\\.|[^\\]/gsu) ?? [];
        const source = parts.map((part) =>
          part === '%' ? '.*' : part === '_' ? '.' : part.replace(/^\\/, '').replace('\\', '\\\\'),
        );
        expect(compilePattern(pattern)(value)).toBe(
          new RegExp(`^${source.join('')}$`, 'su').test(value),
        );
      }),
      { numRuns: times(300, 10_000) },
    );
  });

  it('compares patterns without backtracking', () => {
    const matches = compilePattern(`${'%a'.repeat(400)}%b`);
    const startMs = performance.now();
    expect(matches('a'.repeat(1_000))).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it('text and JSON have the same meaning, as another parser confirms', async () => {
    const reference = await loadReference();
    fc.assert(
      fc.property(filters, (filter) => {
        const text = cql2Text(filter);
        const parsed = parseCql2Text(text);
        expect(parsed).toEqual(filter);
        expect(flat(reference.parse(text))).toEqual(flat(filter));
        expect(String(readCql2(parsed))).toBe(String(readCql2(filter)));
      }),
      { numRuns: times(100, 2_000) },
    );
  });

  it('finds the same items as another implementation', async () => {
    const reference = await loadReference();
    let matched = 0;
    fc.assert(
      fc.property(filters, (filter) => {
        const test = compileFilter(readCql2(filter).tree);
        for (const { item, record } of items) {
          const found = test(productView(record));
          if (found) matched += 1;
          expect([item.id, found]).toEqual([item.id, truthOf(filter, item, reference) === true]);
        }
      }),
      { numRuns: times(40, 1_000) },
    );
    expect(matched).toBeGreaterThan(times(40, 1_000));
  });
});

/** Joins nested groups of the same operator, as the reference does. */
function flat(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(flat);
  if (typeof value !== 'object' || value === null || !('op' in value)) return value;
  const { op, args } = value as Filter;
  const parts = args.map(flat);
  if (op !== 'and' && op !== 'or') return { op, args: parts };
  return { op, args: parts.flatMap((one) => (Object(one).op === op ? Object(one).args : [one])) };
}

/** Truth by three-valued logic (CQL2, 6.2); the reference evaluates only conditions without it. */
function truthOf(filter: Filter, item: object, reference: Reference): boolean | null {
  const { op, args } = withoutRanges(filter);
  if (op !== 'and' && op !== 'or' && op !== 'not') return reference.matches(filter, item);
  const truths = args.map((one) => truthOf(one as Filter, item, reference));
  if (op === 'not') return truths[0] === null ? null : !truths[0];
  const deciding = op === 'or';
  if (truths.includes(deciding)) return deciding;
  return truths.includes(null) ? null : !deciding;
}

/** By their definitions (CQL2, 6.3.2), because the reference cannot compare lists and ranges of times. */
function withoutRanges(filter: Filter): Filter {
  const [property, first, second] = filter.args;
  const comparing = (op: string, value: unknown) => ({ op, args: [property, value] });
  if (filter.op === 'between') {
    return { op: 'and', args: [comparing('>=', first), comparing('<=', second)] };
  }
  if (filter.op !== 'in' || !Array.isArray(first)) return filter;
  return { op: 'or', args: first.map((value) => comparing('=', value)) };
}
