/** The grammar of the filter language, form by form (facts, filters 1). */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs } from '../../src/core/terms/dates.ts';
import { checkFilter } from '../../src/filter/check.ts';
import { entities, type FilterTree, type Literal } from '../../src/filter/filter-tree.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { printFilter } from '../../src/filter/print.ts';
import { times } from '../helpers/thorough.ts';
import { arbitraryFilter } from './arbitrary-filter.ts';
import { rowsOf } from './table.ts';

const tree = (text: string) => parseFilter(text).tree;

/** The tree in short form: `(A and not B)` for `Name eq 'A' and not (Name eq 'B')`. */
function brief(node: FilterTree): string {
  switch (node.node) {
    case 'and':
    case 'or':
      return `(${node.terms.map(brief).join(` ${node.node} `)})`;
    case 'not':
      return `not ${brief(node.term)}`;
    case 'comparison':
      return node.literal.type === 'text' ? node.literal.value : '?';
    default:
      return '?';
  }
}

/** `A or B` for `Name eq 'A' or Name eq 'B'`. */
const named = (letters: string) =>
  letters.replaceAll(/\b[A-Z]\b/g, (letter) => `Name eq '${letter}'`);

describe('joined conditions', () => {
  it.each([
    ['A or B and C', '(A or (B and C))'],
    ['A and B or C', '((A and B) or C)'],
    ['(A or B) and C', '((A or B) and C)'],
    ['not A and B', '(not A and B)'],
    ['not(A or not(B))', 'not (A or not B)'],
    ['((((A))))', 'A'],
    ['(A and B) and C', '(A and B and C)'],
    ['A or (B or C)', '(A or B or C)'],
    ['A or (B and (C and D))', '(A or (B and C and D))'],
    ['\t\r\n A \n and\t B  ', '(A and B)'],
    ['A AND NOT (B) OR C', '((A and not B) or C)'],
  ])('are grouped: %s', (text, groups) => {
    expect(brief(tree(named(text)))).toBe(groups);
  });

  it('give a warning where the precedence is not documented', () => {
    const codes = (text: string) => parseFilter(named(text)).findings.map(({ code }) => code);
    expect(codes('A or B and C')).toEqual(['precedence']);
    expect(codes('A and B or C')).toEqual(['precedence']);
    expect(codes('not A')).toEqual(['precedence']);
    expect(codes('A or (B and C) or not (A)')).toEqual([]);
    expect(codes("A and B and not contains(Collection/Name,'x')")).toEqual([]);
    expect(codes('A AND B')).toEqual(['capitals']);
  });
});

describe('a literal', () => {
  const literals: [string, Literal][] = [
    ["''", { type: 'text', value: '' }],
    ["'it''s (and) not'", { type: 'text', value: "it's (and) not" }],
    ["'%20 ü 😀\n'", { type: 'text', value: '%20 ü 😀\n' }],
    ['-0', { type: 'number', value: -0 }],
    ['-1.5e-3', { type: 'number', value: -0.0015 }],
    ['.5', { type: 'number', value: 0.5 }],
    ['False', { type: 'boolean', value: false }],
  ];
  it.each(literals)('is read from %s', (text, literal) => {
    expect(tree(`Name ne ${text}`)).toMatchObject({ node: 'comparison', field: 'Name', literal });
  });

  it.each([
    ['2024-09-01Z', '2024-09-01T00:00:00.000000Z'],
    ['2022-05-03T00:10:00.000', '2022-05-03T00:10:00.000000Z'],
    ['2024-04-15T09:39:42.740728999Z', '2024-04-15T09:39:42.740728Z'],
    ['2022-05-03T02:10:00.5+02:00', '2022-05-03T00:10:00.500000Z'],
    ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999Z'],
    ['0000-01-01', '0000-01-01T00:00:00.000Z'],
  ])('is read from the date %s', (text, date) => {
    const node = tree(`ContentDate/Start gt ${text}`);
    const us = node.node === 'comparison' && node.literal.type === 'date' ? node.literal.us : 0;
    expect(formatDateUs(us)).toBe(date);
  });
});

describe('a condition', () => {
  const kindred = 'attributes/odata.csc.stringattribute';
  const string = 'OData.CSC.StringAttribute';
  const type = `Attributes/${string}/any(att:att/Name eq 'type' and att/${string}/Value eq 'GRD')`;
  const double = 'OData.CSC.DoubleAttribute';
  const cover = `Attributes/${double}/any(att:att/Name eq 'c' and att/${double}/Value lt 20)`;
  const place = (wkt: string, argument = 'area=') =>
    `OData.CSC.Intersects(${argument}geography'${wkt}')`;

  it.each(
    rowsOf(`
      Name eq 'it''s' ¦ Name eq 'it''s'
      name EQ 'a' ¦ Name eq 'a'
      collection/NAME ne 'a' ¦ Collection/Name ne 'a'
      Some/Thing.Else eq 'a' ¦ Some/Thing.Else eq 'a'
      ContentDate/Start gt 2024-09-01 ¦ ContentDate/Start gt 2024-09-01T00:00:00.000000Z
      ContentDate/Start gt '2024-09-01' ¦ ContentDate/Start gt '2024-09-01'
      Name in ( 'a' , 2 ,2024-01-01) ¦ Name in ('a',2,2024-01-01T00:00:00.000000Z)
      CONTAINS(name , 'x') ¦ contains(Name,'x')
      endswith ( name , 'a''b' ) ¦ endswith(Name,'a''b')
      Attributes/${string}/any(i0:i0/Name eq 'type' and i0/Value eq 'GRD') ¦ ${type}
      Attributes/${string}/any ( x : x/name eq 'type' and x/value eq 'GRD' ) ¦ ${type}
      Attributes/${string}/any(${kindred}:${kindred}/Name eq 'type' and ${kindred}/Value eq 'GRD') ¦ ${type}
      attributes/${double.toLowerCase()}/any(i0:i0/name eq 'c' and i0/value lt 2e1) ¦ ${cover}
      ${place('SRID=4326;point ( 1e1 .5 )')} ¦ ${place('SRID=4326;POINT(10 0.5)')}
      ${place('SRID=4326;MultiPoint (1 2, 3 4)')} ¦ ${place('SRID=4326;MULTIPOINT((1 2),(3 4))')}
      ${place('SRID=4326;POLYGON ((4 50, 5 50, 5 51, 4 50))')} ¦ ${place('SRID=4326;POLYGON((4 50,5 50,5 51,4 50))')}
      odata.csc.intersects ( footprint = geography'srid=3857;POINT(1 2)' ) ¦ ${place('SRID=3857;POINT(1 2)', 'Footprint=')}
      ${place(' srid = 4326 ; multipoint ( 1 2 , 3.50 -4e0 )')} ¦ ${place('SRID=4326;MULTIPOINT((1 2),(3.5 -4))')}
    `),
  )('%s is read, and written in its canonical form', (text = '', canonical = '') => {
    expect(printFilter(tree(text))).toBe(canonical);
  });

  it('on an attribute has the kind of the list, and that of the value', () => {
    expect(tree(type.replace(`att/${string}`, `att/${double}`))).toEqual({
      ...{ node: 'attribute', kind: 'String', name: 'type', valueKind: 'Double' },
      ...{ operator: 'eq', literal: { type: 'text', value: 'GRD' } },
    });
    // As odata-query writes it.
    const path = `Attributes/${string}/any(${kindred}:${kindred}/Name eq 'tileId' and ${kindred}/Value eq 'b')`;
    expect(parseFilter(path).findings).toMatchObject([{ code: 'undocumented-form' }]);
  });
});

describe('printing', () => {
  it.each(entities)('gives a text that parses to the same tree of %s without error', (entity) => {
    fc.assert(
      fc.property(arbitraryFilter(entity), (tree) => {
        const text = printFilter(tree);
        const read = checkFilter(text, entity);
        // Much faster than expect, which then shows the difference.
        if (!isDeepStrictEqual(read.tree, tree)) expect(read.tree, text).toEqual(tree);
        expect(read.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
      }),
      { numRuns: times(400, 3_000) },
    );
  });

  it('puts nested groups and negated conditions in parentheses', () => {
    const text = named('A or (B and not (C)) or not (D or E)');
    expect(printFilter(tree(text))).toBe(text);
  });
});
