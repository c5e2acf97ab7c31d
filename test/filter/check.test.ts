/** Findings of a check of readable filters: errors and traps, in one pass. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkFilter, isBlankFilter, requireFilter } from '../../src/filter/check.ts';
import type { Entity } from '../../src/filter/filter-tree.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { printFilter } from '../../src/filter/print.ts';
import { expectFinding, rowsOf } from './table.ts';

/** Returns a condition on an attribute; `value` includes the operator. */
const on = (kind: string, name: string, value: string, path = 'a/Value') =>
  `Attributes/OData.CSC.${kind}Attribute/any(a:a/Name eq ${name} and ${path} ${value})`;
const place = (wkt: string) => `OData.CSC.Intersects(area=geography'SRID=4326;${wkt}')`;
const markedPlace = (wkt: string) => place(wkt).replace(/'.*'/, '«$&»');

describe('the check reports an error', () => {
  it.each(
    rowsOf(String.raw`
      «Nmae» eq 'a' ¦ unknown-field ¦ no property \x60Nmae\x60.*Did you mean Name\?
      «contentdate» gt 2024-01-01 ¦ unknown-field ¦ ContentDate/Start or ContentDate/End
      «cloudCover» lt 20 ¦ unknown-field ¦ is an attribute: Attributes/OData.CSC.DoubleAttribute
      «constructor» eq 'a' ¦ unknown-field ¦ no property \x60constructor\x60
      «Footprint» eq 'a' ¦ unknown-field ¦ Intersects\(area
      «attributes» eq 'a' ¦ unknown-field ¦ any\(
      «DeletionDate» gt 2024-01-01 ¦ field-of-other-entity ¦ of DeletedProducts, not of Products
      Name eq «20» ¦ wrong-type ¦ single quotes: \x60'20'\x60
      ContentDate/Start gt «2024» ¦ wrong-type ¦ a date such as
      ContentDate/Start gt «'yesterday'» ¦ wrong-type ¦ a date such as
      ContentDate/Start gt «'2024-05-01T10:00:00+0100'» ¦ wrong-type ¦ a date such as
      Online eq «'yes'» ¦ wrong-type ¦ true or false
      contains(«ContentDate/Start»,'2024') ¦ wrong-type ¦ needs a string property
      ${markedPlace('POLYGON((4 50,5 50,5 51,4 51))')} ¦ invalid-geometry ¦ 4 51 is not closed
      ${markedPlace('POINT(181 5)')} ¦ invalid-geometry ¦ 181 5 is out of range: longitude, the first
      ${markedPlace('POINT(1 2)').replace('4326', '3857')} ¦ invalid-geometry ¦ EPSG:4326
    `),
  )('%s', (marked = '', code = '', words = '') =>
    expectFinding(marked, { severity: 'error', code, words }),
  );

  it('for a field that deleted products do not have', () => {
    const words = /of Products, not of DeletedProducts/;
    const error = { severity: 'error', code: 'field-of-other-entity', words } as const;
    expectFinding('«Online» eq true', error, 'DeletedProducts');
    expect(checkFilter("DeletionCause ne 'a'", 'DeletedProducts').tree).not.toBeNull();
  });
});

describe('the check warns about a trap', () => {
  it.each(
    rowsOf(String.raw`
      Name «ne» 'a' ¦ undocumented-operator ¦ not \(… eq …\)
      Name «in» ('a') ¦ undocumented-operator ¦ joined by \x60or\x60
      Name eq 'a' «AND» Name eq 'b' ¦ capitals ¦ Write \x60and\x60
      Id eq «'x'» ¦ odd-id ¦ GUID
      Collection/Name eq «'S2'» ¦ unknown-collection ¦ Did you mean 'SENTINEL-2'
      ${on('String', "'productType'", "eq «'IW_GRHD_1S'»")} ¦ unknown-product-type ¦ Did you mean 'IW_GRDH_1S'
      ${on('String', "'productType'", "eq «'S2MSI'»")} ¦ unknown-product-type ¦ Did you mean 'S2MSI1C' or 'S2MSI2A'
      ${on('String', "'productType'", "ge «'GRD'»")} ¦ product-type-group ¦ with \x60eq\x60 only; \x60ge\x60 compares the name
      not ${on('String', "'productType'", "eq «'GRD-COG'»")} ¦ product-type-group ¦ may not exclude the types of the group GRD-COG
      «contains(Name,'a')» ¦ name-without-collection ¦ Collection/Name eq
      ${on('Double', "«'cloudcover'»", 'lt 20')} ¦ unknown-attribute ¦ Did you mean 'cloudCover'
      ${on('String', "'orbitNumber'", 'eq 1').replace(/^.*any/, '«$&»')} ¦ attribute-kind ¦ has the type Integer
      ${on('Integer', "'orbitNumber'", 'eq 1', '«a/OData.CSC.DoubleAttribute/Value»')} ¦ attribute-cast ¦ Integer and Double.*type of the literal\. \| undefined \| undefined$
      ${on('Double', "'cloudCover'", "lt «'20'»")} ¦ attribute-value ¦ not fit the type Double.*match nothing.*Remove the quotes
      ${on('String', "'productType'", 'eq «5»')} ¦ attribute-value ¦ not fit the type String.*quotes: \x60'5'\x60
      Online eq «'true'» ¦ undocumented-form ¦ earshot accepts the condition.*may refuse it.*Remove the quotes
      Id eq «79d7807b-66e5-41d2-a586-1628eb82c3e0» ¦ undocumented-form ¦ earshot accepts the condition.*may refuse it.*'79d7807b-66e5-41d2-a586-1628eb82c3e0'
      OData.CSC.Intersects(Footprint«,»geography'SRID=4326;POINT(1 2)') ¦ undocumented-form ¦ earshot accepts the condition.*may refuse it.*Footprint=geography
      «Intersects»(Footprint=geography'SRID=4326;POINT(1 2)') ¦ undocumented-form ¦ earshot accepts the condition.*may refuse it.*OData.CSC.Intersects
      ${on('String', "'productType'", "«in» ('S2MSI1C','S2MSI2A')")} ¦ undocumented-operator ¦ joined by \x60or\x60
      ${on('Boolean', "'sliceProductFlag'", 'eq true').replace(/^.*any/, '«$&»')} ¦ undocumented-attribute-kind ¦ not documented
      ${markedPlace('POLYGON((-100 10,100 10,0 20,-100 10))')} ¦ wide-edge ¦ more than 180 degrees
    `),
  )('%s', (marked = '', code = '', words = '') =>
    expectFinding(marked, { severity: 'warning', code, words }),
  );

  it('when the filter is blank', () => {
    expect(checkFilter(' \n', 'Products').findings).toMatchObject([
      { severity: 'warning', code: 'empty', message: 'An empty filter matches every product.' },
    ]);
  });

  it('but reports nothing for documented forms', () => {
    for (const text of [
      "Collection/Name eq 'SENTINEL-2' and (contains(Name,'a') or not startswith(Name,'b'))",
      "Id eq '79d7807b-66e5-41d2-a586-1628eb82c3e0'",
      "contentdate/start lt '2019-12-31T22:20:15.428571Z'",
      place('POLYGON((-90 10,90 10,0 20,-90 10))'),
      place('POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))'),
      on('Double', "'cloudCover'", 'lt 20'),
      "ContentDate/Start lt 9999-12-31 and ContentDate/End gt '0001-01-01T00:00:00Z'",
      on('DateTimeOffset', "'processingDate'", 'lt 3000-01-01'),
      on('Integer', "'orbitNumber'", 'lt -9007199254740991'),
      on('Double', "'cloudCover'", 'lt 1e300'),
      on('String', "'productType'", "eq 'GRD'"),
      `not (not (${on('String', "'productType'", "eq 'SLC'")}))`,
      on('String', "'productType'", "eq 'L2__NO2___'"),
    ]) {
      expect(checkFilter(text, 'Products').findings, text).toEqual([]);
    }
  });
});

describe('a bare attribute name', () => {
  const double = (value: string) =>
    `Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value ${value})`;
  it.each([
    ['cloudCover lt 20', double('lt 20')],
    ['cloudcover ge 20.50', double('ge 20.50')],
    ["cloudCover lt '20'", double('lt …')],
    ["contains(tileId,'31U')", "Value eq '…'"],
    [`tileId eq '${'x'.repeat(400)}'`, "Value eq '…'"],
  ])('suggests the complete condition for %s', (text, correct) => {
    const { findings } = checkFilter(text, 'Products');
    const error = findings.find(({ severity }) => severity === 'error');
    expect(error?.hint).toContain(correct);
    if (correct.includes('…')) return;
    expect(checkFilter(correct, 'Products').findings).toEqual([]);
  });
});

it.each(['relativeOrbitNumber', 'newOrbit'])(
  'gives no hint to quote a number of the attribute %s, which lost a client all results',
  (name) => {
    for (const kind of ['String', 'Double', 'Integer', 'DateTimeOffset', 'Boolean']) {
      const { findings } = checkFilter(on(kind, `'${name}'`, 'eq 122'), 'Products');
      for (const { hint = '' } of findings) expect(hint).not.toMatch(/single quotes/);
    }
  },
);

describe('a filter with several faults', () => {
  const text = "foo eq 1 and Name eq 2 and Id in ('x') and DeletionCause eq 'a'";

  it('reports all faults, in the order of the text', () => {
    const codes = checkFilter(text, 'Products').findings.map(({ code }) => code);
    expect(codes).toEqual([
      ...['unknown-field', 'wrong-type', 'undocumented-operator', 'odd-id'],
      'field-of-other-entity',
    ]);
  });

  it('is refused with its errors, at most twenty of them, without its warnings', () => {
    const refusal = (details: unknown[]) =>
      expect.objectContaining({ code: 'invalid', details, message: expect.any(String) });
    const any = expect.any(String);
    const second = expect.stringContaining(
      'Name cannot be compared with `2`.\n  foo eq 1 and Name',
    );
    expect(() => requireFilter(text, 'Products')).toThrow(refusal([any, second, any]));
    const many = Array(30).fill('foo eq 1').join(' or ');
    expect(() => requireFilter(many, 'Products')).toThrow(
      refusal([...Array(20).fill(any), '10 more errors are not shown.']),
    );
  });
});

it('an empty filter is required to match every product', () => {
  expect(requireFilter('', 'Products')).toBeNull();
  expect(requireFilter(' \t\n', 'DeletedProducts')).toBeNull();
  expect(requireFilter("Name eq 'a'", 'Products')).toMatchObject({ node: 'comparison' });
});

it('accepts only the blanks of the grammar, up to the maximum length of a filter', () => {
  expect(['', ' ', '\r\n\t'].map(isBlankFilter)).toEqual([true, true, true]);
  expect(['\u00a0', '\f', '\0', ' '.repeat(100_001)].map(isBlankFilter)).not.toContain(true);
});

const fixture = new URL('../../../shared/fixtures/filters-valid.json', import.meta.url);
const missing = existsSync(fixture) ? false : 'the folder ../shared/fixtures is not there';

describe('a real filter', () => {
  const samples = (): { filter: string; entity: Entity }[] =>
    JSON.parse(readFileSync(fixture, 'utf8'));

  it('parses, checks without error, and survives printing', (context) => {
    if (missing) context.skip(missing);
    expect(samples().length).toBeGreaterThan(50);
    for (const { filter, entity } of samples()) {
      const { tree, findings } = checkFilter(filter, entity);
      expect(findings.map(({ severity }) => severity)).not.toContain('error');
      expect(tree, filter).not.toBeNull();
      if (tree !== null) expect(parseFilter(printFilter(tree)).tree, filter).toEqual(tree);
    }
  });

  it('gets warnings only for names searched without a collection, and for attributes and types of other collections', (context) => {
    if (missing) context.skip(missing);
    const findings = samples().flatMap(
      ({ filter, entity }) => checkFilter(filter, entity).findings,
    );
    const codes = new Set(findings.map(({ code }) => code));
    expect(codes).toEqual(
      new Set(['name-without-collection', 'unknown-attribute', 'unknown-product-type']),
    );
  });
});
