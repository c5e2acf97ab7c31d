/** Evaluation of filters on products, and descriptions of filters. */
import { describe, expect, it } from 'vitest';
import { describeFilter } from '../../src/filter/describe.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import type { FilterTree } from '../../src/filter/filter-tree.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { productView } from '../../src/filter/product-view.ts';
import { rowsOf } from './table.ts';

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
const area = (wkt: string) => `OData.CSC.Intersects(area=geography'SRID=4326;${wkt}')`;
const matches = (filter: string, product: object = record) =>
  compileFilter(parseFilter(filter).tree)(productView({ ...product }));

describe('a filter on a product', () => {
  it.each(
    rowsOf(`
      true ¦ Name eq 'S2A_MSIL2A_\u{1f6f0}' ¦ texts are compared exactly
      false ¦ Name eq 's2a_msil2a_\u{1f6f0}' ¦ case matters
      false ¦ endswith(Name,'S2A_')
      true ¦ Name gt 'S2A_MSIL2A_\uffee' ¦ texts are ordered by code point
      true ¦ Id eq '0ce0aaf7-9708-44E5-a35f-5171947aa748' ¦ ids match in any case
      true ¦ Id in (0ce0aaf7-9708-44e5-a35f-5171947aa748) ¦ ids without quotes
      true ¦ Collection/Name eq 'SENTINEL-2' ¦ the collection is derived
      false ¦ Online ne true
      true ¦ Online eq 'true' ¦ a boolean in quotes
      true ¦ PublicationDate eq 2024-05-01T14:00:00.5+02:00 ¦ dates in another zone
      true ¦ PublicationDate ge '2024-05-01' ¦ dates in quotes
      true ¦ ContentDate/Start gt 2024-05-01T10:00:00.000000Z ¦ microseconds count
      true ¦ ContentDate/End ge 3000-01-01T00:00:00Z ¦ far dates
      true ¦ ${any('cloudCover', 'Double', 'lt 20')}
      false ¦ ${any('cloudCover', 'Double', 'gt 20')} ¦ the first of two with one name counts
      true ¦ ${any('cloudCover', 'Integer', 'lt 20')} ¦ a number matches under any kind
      true ¦ ${any('cloudCover', 'Double', 'eq 12', 'String')} ¦ the value decides, not the kind
      false ¦ ${any('cloudCover', 'Double', "eq '12'")} ¦ a quoted value is no number
      true ¦ ${any('tileId', 'String', "in ('32UUU','33UUU')")}
      true ¦ not ${any('tileId', 'String', "in ('32UUU','34UUU')")}
      true ¦ ${any('orbitNumber', 'String', "in ('x',15)")} ¦ several of mixed types
      false ¦ ${any('orbitNumber', 'String', "eq '15'")} ¦ a number stored as text, compared as text
      false ¦ ${any('level', 'String', 'lt 9', 'Integer')} ¦ a text that is a number
      false ¦ ${any('tileId', 'String', 'ne 5', 'Integer')} ¦ a text that is not a number
      false ¦ ${any('TileId', 'String', "eq '33UUU'")} ¦ case matters in attribute names
      true ¦ ${any('processingDate', 'DateTimeOffset', "lt '2024-05-02'")} ¦ dates in quotes
      true ¦ ${any('sliceProductFlag', 'Boolean', 'eq false')}
      true ¦ ${any('flagText', 'Boolean', 'eq true')} ¦ a boolean stored as text
      false ¦ ${any('missing', 'String', "ne 'x'")} ¦ ne of an absent attribute
      true ¦ not (${any('missing', 'String', "eq 'x'")}) ¦ a negated condition on an absent attribute
      false ¦ ${any('nothing', 'String', "ne 'x'")} ¦ an attribute without a value
      false ¦ DeletionDate lt 2030-01-01 ¦ an absent field in an ordered comparison
      true ¦ DeletionCause ne 'x' ¦ an absent field is not equal
      false ¦ DeletionCause in ('x')
      false ¦ contains(DeletionCause,'') ¦ a function of an absent field
      false ¦ Foo eq 'x' ¦ an unknown field is absent
      true ¦ Online eq true or Online eq true and Online eq false ¦ and binds before or
      true ¦ ${area('POLYGON((20 50,21 50,21 51,20 50))')} ¦ at the border
      false ¦ ${area('POINT(20.1 50)')}
      true ¦ Intersects(Footprint,geography'SRID=4326;POINT(15 45)') ¦ a place after a comma
      true ¦ ${'not ('.repeat(90)}Online eq true${')'.repeat(90)}
    `),
  )('gives %s for %s (%s)', (expected, filter = '') => {
    expect(matches(filter)).toBe(expected === 'true');
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

  it('is described with its types', () => {
    expect(words(any('productType', 'String', "eq 'SLC'"))).toEqual([
      "productType = 'SLC', or one of its types: <mode>_SLC__1S, <mode>_SLC__1A (mode: IW, EW, WV, EN, SM, S1, S2, S3, S4, S5, S6, N1, N2, N3, N4, N5, N6)",
    ]);
    expect(words(any('productType', 'String', "ne 'SLC'"))).toEqual(["productType != 'SLC'"]);
  });
});

const words = (text: string) => describeFilter(parseFilter(text).tree);

describe('the description of a filter', () => {
  it('has one line for each part, indented within its group', () => {
    expect(
      words(
        "Collection/Name eq 'SENTINEL-2' and Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt 20) and not (contains(Name,'T32') or Online eq false)",
      ),
    ).toEqual([
      'all of:',
      "  Collection/Name = 'SENTINEL-2'",
      '  cloudCover < 20',
      '  not:',
      '    any of:',
      "      Name contains 'T32'",
      '      Online = false',
    ]);
  });

  it.each(
    rowsOf(`
      Name ne 'a\u001b' ¦ Name != 'a\\u001b'
      Name in ('a','b') ¦ Name is one of 'a', 'b'
      startswith(Name,'it''s') ¦ Name starts with 'it''s'
      ContentDate/Start ge 2024-05-01 ¦ ContentDate/Start >= 2024-05-01 00:00:00 UTC
      ContentDate/Start lt '2024-05-01T05:00:00+05:30' ¦ ContentDate/Start < '2024-05-01T05:00:00+05:30'
      ContentDate/End lt 2024-05-01T10:00:00.5Z ¦ ContentDate/End < 2024-05-01 10:00:00.5 UTC
      ${any('orbit', 'String', 'ge 15', 'Integer')} ¦ orbit >= 15
      ${area('POINT(-0.53211 28.65)')} ¦ footprint intersects POINT at -0.5321,28.65
      ${area('POLYGON((170 10,-170 10,-170 20,170 10))')} ¦ footprint intersects POLYGON with 4 points in the box 170,10,-170,20
      ${area('POLYGON((170 10,180 10,180 20,170 10))')} ¦ footprint intersects POLYGON with 4 points in the box 170,10,180,20
      ${area('POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))')} ¦ footprint intersects POLYGON with 5 points in the box -180,-90,180,90
    `),
  )('is plain text: %s', (text = '', line) => {
    expect(words(text)).toEqual([line]);
  });
});
