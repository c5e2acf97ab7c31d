/** Evaluation of filters on products, and descriptions of filters. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { describeFilter } from '../../src/filter/describe.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import type { FilterTree } from '../../src/filter/filter-tree.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { productView } from '../../src/filter/product-view.ts';

const attribute = (name: string, kind: string, value: unknown) => ({
  '@odata.type': `#OData.CSC.${kind}Attribute`,
  Name: name,
  Value: value,
});
const record = {
  Id: '0CE0AAF7-9708-44e5-a35f-5171947aa748',
  Name: 'S2A_MSIL2A_\u{1f6f0}',
  Online: true,
  PublicationDate: '2024-05-01T12:00:00.5',
  ContentDate: { Start: '2024-05-01T10:00:00.000001+00:00', End: '9999-12-31T23:59:59.999999Z' },
  Footprint: "geography'SRID=4326;POLYGON ((10 40, 20 40, 20 50, 10 50, 10 40))'",
  Attributes: [
    attribute('cloudCover', 'Double', 12),
    attribute('cloudCover', 'Double', 99),
    attribute('orbitNumber', 'String', 15),
    attribute('tileId', 'String', '33UUU'),
    attribute('level', 'String', '10'),
    attribute('processingDate', 'DateTimeOffset', '2024-05-01T11:00:00+00:00'),
    attribute('sliceProductFlag', 'Boolean', false),
    attribute('flagText', 'Boolean', 'true'),
    attribute('nothing', 'String', null),
    attribute('thing', 'String', { a: 1 }),
  ],
};
const any = (name: string, kind: string, rest: string, valueKind = kind) =>
  `Attributes/OData.CSC.${kind}Attribute/any(att:att/Name eq '${name}' and att/OData.CSC.${valueKind}Attribute/Value ${rest})`;
const processed = (rest: string) => any('processingDate', 'DateTimeOffset', rest);
const area = (wkt: string) => `OData.CSC.Intersects(area=geography'SRID=4326;${wkt}')`;
const matches = (filter: string, product: object = record) =>
  compileFilter(parseFilter(filter).tree)(productView({ ...product }));

describe('a filter on a product', () => {
  it.each([
    ['texts are compared exactly', "Name eq 'S2A_MSIL2A_\u{1f6f0}'", true],
    ['case matters', "Name eq 's2a_msil2a_\u{1f6f0}'", false],
    ['case matters inside a text', "contains(Name,'msil')", false],
    ['contains', "contains(Name,'MSIL')", true],
    ['startswith', "startswith(Name,'S2A_')", true],
    ['endswith', "endswith(Name,'S2A_')", false],
    ['texts are ordered by code point', "Name gt 'S2A_MSIL2A_\uffee'", true],
    ['a longer text is greater', "Name gt 'S2A_MSIL2A_'", true],
    ['names of fields match in any case', "contains(name,'MSIL')", true],
    ['ids match in any case', "Id eq '0ce0aaf7-9708-44E5-a35f-5171947aa748'", true],
    ['the collection is derived', "Collection/Name eq 'SENTINEL-2'", true],
    ['in', "Name in ('x','S2A_MSIL2A_\u{1f6f0}')", true],
    ['online', 'Online eq true', true],
    ['not online', 'Online ne true', false],
    ['dates without a zone are UTC', 'PublicationDate eq 2024-05-01T12:00:00.500Z', true],
    ['dates in another zone', 'PublicationDate eq 2024-05-01T14:00:00.5+02:00', true],
    ['dates in quotes', "PublicationDate ge '2024-05-01'", true],
    ['microseconds count', 'ContentDate/Start gt 2024-05-01T10:00:00.000000Z', true],
    ['dates beyond the maximum equal the maximum', 'ContentDate/End ge 3000-01-01T00:00:00Z', true],
    ['numbers', any('cloudCover', 'Double', 'lt 20'), true],
    [
      'the first of two attributes with one name counts',
      any('cloudCover', 'Double', 'gt 20'),
      false,
    ],
    ['a number matches under any kind', any('cloudCover', 'Integer', 'lt 20'), true],
    [
      'the value decides, not the kind (equal)',
      any('cloudCover', 'Double', 'eq 12', 'String'),
      true,
    ],
    [
      'the value decides, not the kind (not equal)',
      any('cloudCover', 'String', 'eq 12', 'Integer'),
      true,
    ],
    ['a quoted value is not a number', any('cloudCover', 'Double', "eq '12'"), false],
    ['a quoted value is not a number when negated', any('cloudCover', 'Double', "ne '12'"), false],
    ['a date under another kind', any('processingDate', 'String', 'gt 2024-05-01'), true],
    ['one of several', any('tileId', 'String', "in ('32UUU','33UUU')"), true],
    ['none of several', any('tileId', 'String', "in ('32UUU','34UUU')"), false],
    ['not one of several', `not ${any('tileId', 'String', "in ('32UUU','34UUU')")}`, true],
    ['several of mixed types', any('orbitNumber', 'String', "in ('x',15)"), true],
    ['an id without quotes', 'Id eq 0ce0aaf7-9708-44e5-a35f-5171947aa748', true],
    ['ids without quotes', 'Id in (0ce0aaf7-9708-44e5-a35f-5171947aa748)', true],
    ['a part of an id', "startswith(Id,'0ce0aaf7-')", true],
    ['a boolean in quotes', "Online eq 'true'", true],
    ['a place after a comma', "Intersects(Footprint,geography'SRID=4326;POINT(15 45)')", true],
    [
      'a distant place after a comma',
      "Intersects(Footprint,geography'SRID=4326;POINT(1 1)')",
      false,
    ],
    ['a number stored as text', any('orbitNumber', 'String', 'eq 15', 'Integer'), true],
    ['a number stored as text, compared as text', any('orbitNumber', 'String', "eq '15'"), false],
    ['a text that is a number', any('level', 'String', 'lt 9', 'Integer'), false],
    ['a text compared as text', any('level', 'String', "lt '9'"), true],
    ['a text that is not a number', any('tileId', 'String', 'ne 5', 'Integer'), false],
    ['case matters in attribute names', any('TileId', 'String', "eq '33UUU'"), false],
    [
      'the short form of an attribute condition',
      "Attributes/OData.CSC.StringAttribute/any(i0:i0/Name eq 'tileId' and i0/Value eq '33UUU')",
      true,
    ],
    ['dates of attributes', processed('eq 2024-05-01T11:00:00Z'), true],
    ['dates of attributes in quotes', processed("lt '2024-05-02'"), true],
    ['boolean attributes', any('sliceProductFlag', 'Boolean', 'eq false'), true],
    ['boolean attributes as text', any('flagText', 'Boolean', 'eq true'), true],
    ['ne of another value', any('tileId', 'String', "ne 'x'"), true],
    ['ne of an absent attribute', any('missing', 'String', "ne 'x'"), false],
    [
      'a negated condition on an absent attribute',
      `not (${any('missing', 'String', "eq 'x'")})`,
      true,
    ],
    ['an attribute without a value', any('nothing', 'String', "ne 'x'"), false],
    ['an object as a value', any('thing', 'String', "ne 'x'"), false],
    ['an absent field', "DeletionCause eq 'x'", false],
    ['an absent field in an ordered comparison', 'DeletionDate lt 2030-01-01', false],
    ['an absent field is not equal', "DeletionCause ne 'x'", true],
    ['not negates without special cases', "not (DeletionCause eq 'x')", true],
    ['an absent field in a list', "DeletionCause in ('x')", false],
    ['a function of an absent field', "contains(DeletionCause,'')", false],
    ['an unknown field is absent', "Foo eq 'x'", false],
    ['and binds before or', 'Online eq true or Online eq true and Online eq false', true],
    ['a point inside', area('POINT(15 45)'), true],
    ['a point on the border', area('POLYGON((20 50,21 50,21 51,20 50))'), true],
    ['a distant place', area('POINT(20.1 50)'), false],
  ])('%s: %s', (_rule, filter, expected) => {
    expect(matches(filter)).toBe(expected);
  });

  it('a null footprint intersects nothing', () => {
    const filter = area('POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))');
    expect(matches(filter)).toBe(true);
    expect(matches(filter, { ...record, Footprint: null })).toBe(false);
    expect(matches(`not (${filter})`, { ...record, Footprint: null })).toBe(true);
  });

  it('a literal of another type equals nothing', () => {
    const comparing = (operator: 'eq' | 'ne' | 'lt'): FilterTree => ({
      node: 'comparison',
      field: 'PublicationDate',
      operator,
      literal: { type: 'number', value: 5 },
    });
    const product = productView(record);
    expect(
      (['eq', 'ne', 'lt'] as const).map((operator) => compileFilter(comparing(operator))(product)),
    ).toEqual([false, true, false]);
  });

  it('evaluates trees as deep as a text can be', () => {
    const filter = `${'not ('.repeat(90)}Online eq true${')'.repeat(90)}`;
    expect(matches(filter)).toBe(true);
  });
});

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';
const read = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');

interface Attribute {
  Name: string;
  Value: unknown;
}
interface Product {
  Name: string;
  Online: boolean;
  S3Path?: string;
  PublicationDate: string;
  ContentDate: { Start: string; End: string };
  Attributes?: Attribute[];
  Footprint: string | null;
}

const records = (): Product[] =>
  read('products.jsonl')
    .trim()
    .split('\n')
    .map((line): Product => JSON.parse(line));
const attributeIn = ({ Attributes = [] }: Product, name: string) =>
  Attributes.find((item) => item.Name === name)?.Value;
/** Returns the first number of each pair in a footprint. */
const longitudes = ({ Footprint: text }: Product) =>
  [...(text ?? '').matchAll(/(-?[\d.]+) -?[\d.]+/g)].map(([, x]) => Number(x));

/** Filters, and their meaning as plain code over the records. */
const meanings: readonly (readonly [string, (product: Product) => boolean])[] = [
  ["Collection/Name eq 'SENTINEL-1'", ({ Name }) => Name.startsWith('S1')],
  ["Collection/Name eq 'SENTINEL-2'", ({ Name }) => Name.startsWith('S2')],
  ["contains(Name,'_COG') or contains(Name,'GRDM')", ({ Name }) => /_COG|GRDM/.test(Name)],
  ["startswith(Name,'S2A_MSIL1C')", ({ Name }) => Name.startsWith('S2A_MSIL1C')],
  ["endswith(Name,'.EOF')", ({ Name }) => Name.endsWith('.EOF')],
  ["not (endswith(Name,'.SAFE'))", ({ Name }) => !Name.endsWith('.SAFE')],
  ['Online eq false', ({ Online }) => !Online],
  ['PublicationDate ge 2024-01-01', ({ PublicationDate }) => PublicationDate.slice(0, 4) >= '2024'],
  ['ContentDate/Start lt 2020-01-01T00:00:00.000Z', (one) => one.ContentDate.Start < '2020'],
  [
    any('productType', 'String', "eq 'S2MSI1C'"),
    (one) => attributeIn(one, 'productType') === 'S2MSI1C',
  ],
  [
    any('cloudCover', 'Double', 'lt 20'),
    (one) => Number(attributeIn(one, 'cloudCover') ?? 100) < 20,
  ],
  [
    any('orbitDirection', 'String', "ne 'ASCENDING'"),
    (one) => attributeIn(one, 'orbitDirection') === 'DESCENDING',
  ],
  [
    area('POLYGON((-180 -90,0 -90,0 90,-180 90,-180 -90))'),
    (one) => longitudes(one).some((x) => x <= 0),
  ],
];

describe('a real filter', () => {
  it('is evaluated on every real record', (context) => {
    if (missing) context.skip(missing);
    const filters: { filter: string }[] = JSON.parse(read('filters-valid.json'));
    const views = records().map((record) => productView({ ...record }));
    expect([filters.length > 50, views.length > 100]).toEqual([true, true]);
    for (const { filter } of filters) {
      const test = compileFilter(parseFilter(filter).tree);
      for (const view of views) expect(typeof test(view)).toBe('boolean');
    }
  });

  it.for(meanings)(
    '%s matches the same records as plain code',
    ([filter, matchesInCode], context) => {
      if (missing) context.skip(missing);
      const test = compileFilter(parseFilter(filter).tree);
      const found = records().filter((record) => test(productView({ ...record })));
      const expected = records().filter(matchesInCode);
      expect(found.map(({ Name }) => Name)).toEqual(expected.map(({ Name }) => Name));
      expect(expected.length).toBeLessThan(records().length);
    },
  );
});

const typeNames = [
  ...['IW_GRDH_1S', 'EW_GRDM_1S', 'SM_GRDH_1S', 'S3_GRDF_1A', 'IW_GRDH_1S-COG', 'S3_GRDH_1S-COG'],
  ...['IW_SLC__1S', 'N2_SLC__1A', 'WV_OCN__2S', 'EW_RAW__0S', 'S6_RAW__0N', 'IW_ETA__AX'],
  ...['GRD', 'RAW', 'SLC', 'OCN', 'GRD-COG', 'S2MSI1C', 'OL_1_EFR___', 'CARD-BS', 'L2__NO2___'],
  ...['iw_grdh_1s', 'IW_GRDH_1S_', 'XX_GRDH_1S', 'ASA_GRDH_1S'],
];
const ofType = (type: string) => ({ Attributes: [attribute('productType', 'String', type)] });
const typesOf = (filter: string) => typeNames.filter((type) => matches(filter, ofType(type)));

describe('a group of product types', () => {
  const grd = ['IW_GRDH_1S', 'EW_GRDM_1S', 'SM_GRDH_1S', 'S3_GRDF_1A'];
  const grouped = [
    ['GRD', [...grd, 'GRD']],
    ['GRD-COG', ['IW_GRDH_1S-COG', 'S3_GRDH_1S-COG', 'GRD-COG']],
    ['SLC', ['IW_SLC__1S', 'N2_SLC__1A', 'SLC']],
    ['RAW', ['EW_RAW__0S', 'S6_RAW__0N', 'RAW']],
    ['OCN', ['WV_OCN__2S', 'OCN']],
  ] as const;

  it.each(grouped)('%s matches its types with eq, and with in', (group, types) => {
    expect(typesOf(any('productType', 'String', `eq '${group}'`))).toEqual(types);
    expect(typesOf(any('productType', 'String', `in ('${group}','S2MSI1C')`))).toEqual(
      typeNames.filter((type) => type === 'S2MSI1C' || Object(types).includes(type)),
    );
    expect(typesOf(`not ${any('productType', 'String', `eq '${group}'`)}`)).toEqual(
      typeNames.filter((type) => !Object(types).includes(type)),
    );
  });

  it('is a name for other operators, attributes and values', () => {
    expect(typesOf(any('productType', 'String', "ne 'GRD'"))).toEqual(
      typeNames.filter((type) => type !== 'GRD'),
    );
    const least = any('productType', 'String', "ge 'GRD'");
    expect(typesOf(`${least} and ${any('productType', 'String', "le 'GRD'")}`)).toEqual(['GRD']);
    expect(typesOf(any('productType', 'String', "eq 'grd'"))).toEqual([]);
    expect(typesOf(any('productType', 'String', "eq 'CARD-BS'"))).toEqual(['CARD-BS']);
    const tile = { Attributes: [attribute('tileId', 'String', 'IW_GRDH_1S')] };
    expect(matches(any('tileId', 'String', "eq 'GRD'"), tile)).toBe(false);
  });

  it('matches the reported product', (context) => {
    if (missing) context.skip(missing);
    const { value } = JSON.parse(read('reported/product-type-group.json'));
    const mission = "Collection/Name eq 'SENTINEL-1'";
    expect(matches(`${mission} and ${any('productType', 'String', "eq 'GRD'")}`, value)).toBe(true);
  });

  it('is described with its types', () => {
    expect(words(any('productType', 'String', "eq 'SLC'"))).toEqual([
      'productType is SLC, or of its types: <mode>_SLC__1S, <mode>_SLC__1A (mode: IW, EW, WV, EN, SM, S1, S2, S3, S4, S5, S6, N1, N2, N3, N4, N5, N6)',
    ]);
    expect(words(any('productType', 'String', "ne 'SLC'"))).toEqual(['productType is not SLC']);
  });
});

const words = (text: string) => describeFilter(parseFilter(text).tree);
const place = (wkt: string) => words(area(wkt));

describe('the description of a filter', () => {
  it('has one line for each part, indented within its group', () => {
    expect(
      words(
        "Collection/Name eq 'SENTINEL-2' and Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt 20) and not (contains(Name,'T32') or Online eq false)",
      ),
    ).toEqual([
      'all of:',
      '  collection is SENTINEL-2',
      '  cloudCover is less than 20',
      '  not:',
      '    any of:',
      '      product name contains T32',
      '      product is not online',
    ]);
  });

  it.each([
    ["Name ne 'a'", 'product name is not a'],
    ["Name eq ''", "product name is ''"],
    ["Name eq ' a'", "product name is ' a'"],
    ["Name eq 'a\u001b'", 'product name is a\\u001b'],
    ["Name in ('a','b')", 'product name is one of a, b'],
    ["startswith(Name,'a')", 'product name starts with a'],
    ["endswith(Name,'a')", 'product name ends with a'],
    ['Online ne true', 'product is not online'],
    ['ContentDate/Start ge 2024-05-01', 'sensing start is at or after 2024-05-01 00:00:00 UTC'],
    [
      "ContentDate/Start lt '2024-05-01T05:00:00+05:30'",
      'sensing start is before 2024-04-30 23:30:00 UTC',
    ],
    [
      'ContentDate/End lt 2024-05-01T10:00:00.5Z',
      'sensing end is before 2024-05-01 10:00:00.5 UTC',
    ],
    ["PublicationDate gt '2024-05-01'", 'publication date is after 2024-05-01 00:00:00 UTC'],
    ['ModificationDate le 2024-05-01', 'modification date is at or before 2024-05-01 00:00:00 UTC'],
    ["DeletionCause eq 'Reprocessed product'", 'deletion cause is Reprocessed product'],
    ["constructor eq 'a'", 'constructor is a'],
    [
      "Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'relativeOrbitNumber' and a/OData.CSC.IntegerAttribute/Value ge 15)",
      'relativeOrbitNumber is at least 15',
    ],
    [
      "Attributes/OData.CSC.DateTimeOffsetAttribute/any(a:a/Name eq 'processingDate' and a/Value gt 2023-02-01T00:00:00Z)",
      'processingDate is after 2023-02-01 00:00:00 UTC',
    ],
  ])('is plain text: %s', (text, line) => {
    expect(words(text)).toEqual([line]);
  });

  it.each([
    ['POINT(-0.53195 28.65)', 'footprint intersects POINT 0.532°W 28.65°N'],
    ['POINT(0 -5)', 'footprint intersects POINT 0° 5°S'],
    [
      'POLYGON((4 50,5 50,5 51,4 51,4 50))',
      'footprint intersects POLYGON with 5 points, from 4°E 50°N to 5°E 51°N',
    ],
    [
      'MULTIPOINT((1 2),(3 4))',
      'footprint intersects MULTIPOINT with 2 points, from 1°E 2°N to 3°E 4°N',
    ],
    [
      'POLYGON((170 10,-170 10,-170 20,170 20,170 10))',
      'footprint intersects POLYGON with 5 points, from 170°E 10°N to 170°W 20°N, across the antimeridian',
    ],
    [
      'POLYGON((170 10,180 10,180 20,170 20,170 10))',
      'footprint intersects POLYGON with 5 points, from 170°E 10°N to 180°E 20°N',
    ],
    [
      'POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))',
      'footprint intersects POLYGON with 5 points, from 180°W 90°S to 180°E 90°N',
    ],
  ])('describes the position of a place: %s', (wkt, line) => {
    expect(place(wkt)).toEqual([line]);
  });
});
