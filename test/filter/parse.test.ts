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
import { ring } from './geometry/places.ts';

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
    ['A and B', '(A and B)'],
    ['A or B and C', '(A or (B and C))'],
    ['A and B or C', '((A and B) or C)'],
    ['(A or B) and C', '((A or B) and C)'],
    ['not A and B', '(not A and B)'],
    ['not (A and B)', 'not (A and B)'],
    ['not(A or not(B))', 'not (A or not B)'],
    ['((((A))))', 'A'],
    ['(A and B) and C', '(A and B and C)'],
    ['A and ((B and C) and D)', '(A and B and C and D)'],
    ['A or (B or C)', '(A or B or C)'],
    ['A or (B and (C and D))', '(A or (B and C and D))'],
    ['(A)and(B)or(C)', '((A and B) or C)'],
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
    expect(codes("A and B and not contains(Name,'x')")).toEqual([]);
    expect(codes('A AND B')).toEqual(['capitals']);
  });
});

describe('a comparison', () => {
  const literals: [string, Literal][] = [
    ["'a'", { type: 'text', value: 'a' }],
    ["''", { type: 'text', value: '' }],
    ["''''", { type: 'text', value: "'" }],
    ["'it''s (and) not'", { type: 'text', value: "it's (and) not" }],
    ["'%20 ü 😀\n'", { type: 'text', value: '%20 ü 😀\n' }],
    ['0', { type: 'number', value: 0 }],
    ['-0', { type: 'number', value: -0 }],
    ['+20.50', { type: 'number', value: 20.5 }],
    ['-1.5e-3', { type: 'number', value: -0.0015 }],
    ['2E2', { type: 'number', value: 200 }],
    ['.5', { type: 'number', value: 0.5 }],
    ['true', { type: 'boolean', value: true }],
    ['False', { type: 'boolean', value: false }],
  ];
  it.each(literals)('accepts the value %s', (text, literal) => {
    expect(tree(`Name ne ${text}`)).toEqual({
      node: 'comparison',
      field: 'Name',
      operator: 'ne',
      literal,
    });
  });

  it.each([
    ['2024-09-01', '2024-09-01T00:00:00.000000Z'],
    ['2024-09-01Z', '2024-09-01T00:00:00.000000Z'],
    ['2022-05-03T00:10:00', '2022-05-03T00:10:00.000000Z'],
    ['2022-05-03T00:10:00.000', '2022-05-03T00:10:00.000000Z'],
    ['2024-04-15T09:39:42.740728Z', '2024-04-15T09:39:42.740728Z'],
    ['2024-04-15T09:39:42.740728999Z', '2024-04-15T09:39:42.740728Z'],
    ['2022-05-03T02:10:00.5+02:00', '2022-05-03T00:10:00.500000Z'],
    ['2022-05-02T19:10:00-05:00', '2022-05-03T00:10:00.000000Z'],
    ['9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999Z'],
    ['0000-01-01', '0000-01-01T00:00:00.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000000Z'],
  ])('accepts the date %s', (text, date) => {
    const node = tree(`ContentDate/Start gt ${text}`);
    expect(node).toMatchObject({ node: 'comparison', literal: { type: 'date' } });
    const us = node.node === 'comparison' && node.literal.type === 'date' ? node.literal.us : 0;
    expect(formatDateUs(us)).toBe(date);
  });

  it('accepts each operator and every field, known or unknown, in any case', () => {
    for (const operator of ['eq', 'ne', 'lt', 'le', 'gt', 'ge']) {
      expect(tree(`collection/NAME ${operator} 'a'`)).toMatchObject({
        field: 'Collection/Name',
        operator,
      });
    }
    expect(tree("Some/Thing.Else eq 'a'")).toMatchObject({ field: 'Some/Thing.Else' });
  });

  it('accepts a list of values', () => {
    expect(tree("Name in ('a', 2 ,2024-01-01)")).toEqual({
      node: 'in',
      field: 'Name',
      literals: [
        { type: 'text', value: 'a' },
        { type: 'number', value: 2 },
        { type: 'date', us: Date.UTC(2024, 0, 1) * 1000 },
      ],
    });
  });
});

describe('a function on a text', () => {
  it.each(['contains', 'startswith', 'endswith'])('is parsed: %s', (name) => {
    const node = { node: 'text', function: name, field: 'Name', text: "a'b" };
    expect(tree(`${name}(Name,'a''b')`)).toEqual(node);
    expect(tree(`${name} ( name , 'a''b' )`)).toEqual(node);
  });
});

describe('a condition on an attribute', () => {
  const attribute = (changes: object) => ({
    node: 'attribute',
    kind: 'String',
    name: 'productType',
    valueKind: 'String',
    operator: 'eq',
    literal: { type: 'text', value: 'GRD' },
    ...changes,
  });

  it('is parsed in its long and its short form, with any variable', () => {
    const path = 'Attributes/OData.CSC.StringAttribute/any';
    expect(
      tree(
        `${path}(att:att/Name eq 'productType' and att/OData.CSC.StringAttribute/Value eq 'GRD')`,
      ),
    ).toEqual(attribute({}));
    expect(tree(`${path}(i0:i0/Name eq 'productType' and i0/Value eq 'GRD')`)).toEqual(
      attribute({}),
    );
    expect(tree(`${path} ( x : x/name eq 'productType' and\n x/value eq 'GRD' )`)).toEqual(
      attribute({}),
    );
  });

  it('is parsed with a path as the variable, as odata-query writes it', () => {
    const variable = 'attributes/odata.csc.stringattribute';
    const text = `Attributes/OData.CSC.StringAttribute/any(${variable}:${variable}/Name eq 'productType' and ${variable}/Value eq 'GRD')`;
    const { tree: read, findings } = parseFilter(text);
    expect(read).toEqual(attribute({}));
    expect(findings).toMatchObject([{ severity: 'warning', code: 'undocumented-form' }]);
  });

  it('is parsed for each kind, and with a value of another kind', () => {
    for (const kind of ['String', 'Double', 'Integer', 'DateTimeOffset', 'Boolean']) {
      const text = `attributes/OData.CSC.${kind}Attribute/any(a:a/Name eq 'n' and a/OData.CSC.IntegerAttribute/Value le 15)`;
      const literal = { type: 'number', value: 15 };
      expect(tree(text)).toEqual(
        attribute({ kind, name: 'n', valueKind: 'Integer', operator: 'le', literal }),
      );
    }
  });
});

describe('a condition on the place', () => {
  const geometryOf = (wkt: string) =>
    tree(`OData.CSC.Intersects(area=geography'SRID=4326;${wkt}')`);
  const square = ring('4 50, 5 50, 5 51, 4 50');

  it.each([
    ['POINT(-0.53 28.65)', { type: 'Point', coordinates: [-0.53, 28.65] }],
    ['point ( 1e1 .5 )', { type: 'Point', coordinates: [10, 0.5] }],
    ['MULTIPOINT((1 2),(3 4))', { type: 'MultiPoint', coordinates: ring('1 2, 3 4') }],
    ['MultiPoint (1 2, 3 4)', { type: 'MultiPoint', coordinates: ring('1 2, 3 4') }],
    ['POLYGON((4 50,5 50,5 51,4 50))', { type: 'Polygon', coordinates: [square] }],
    [
      'POLYGON ((4 50, 5 50, 5 51, 4 50), (4 50,5 50,5 51,4 50))',
      { type: 'Polygon', coordinates: [square, square] },
    ],
    [
      'MULTIPOLYGON(((4 50,5 50,5 51,4 50)),((4 50,5 50,5 51,4 50)))',
      { type: 'MultiPolygon', coordinates: [[square], [square]] },
    ],
  ])('parses %s', (wkt, geometry) => {
    expect(geometryOf(wkt)).toEqual({ node: 'intersects', argument: 'area', srid: 4326, geometry });
  });

  it('accepts both keywords before the geometry, and any reference system', () => {
    const text = "odata.csc.intersects ( footprint = geography'srid=3857;POINT(1 2)' )";
    expect(tree(text)).toMatchObject({ argument: 'Footprint', srid: 3857 });
  });
});

describe('the places of a parsed filter', () => {
  it('match the text', () => {
    const text =
      " not (Name eq 'a') and OData.CSC.Intersects(area=geography'SRID=4326; POLYGON((4 50, 5 50,5 51,4 50))')";
    const { tree: root, spans, parts } = parseFilter(text);
    const at = (part: object) => {
      const { start, end } = spans.get(part) ?? { start: 0, end: 0 };
      return text.slice(start, end);
    };
    if (root.node !== 'and') throw new Error('expected a group');
    const [not, place] = root.terms;
    expect(at(root)).toBe(text.trim());
    if (not?.node !== 'not' || not.term.node !== 'comparison') throw new Error('expected not');
    expect(at(not)).toBe("not (Name eq 'a')");
    expect(at(not.term)).toBe("Name eq 'a'");
    expect(at(not.term.literal)).toBe("'a'");
    expect(parts.get(not.term)).toMatchObject({
      field: { start: 6, end: 10 },
      operator: { start: 11, end: 13 },
    });
    if (place?.node !== 'intersects' || place.geometry.type !== 'Polygon') {
      throw new Error('expected a polygon');
    }
    expect(at(place.geometry)).toBe('POLYGON((4 50, 5 50,5 51,4 50))');
    const [ring = []] = place.geometry.coordinates;
    expect(at(ring)).toBe('(4 50, 5 50,5 51,4 50)');
    expect(ring.map(at)).toEqual(['4 50', '5 50', '5 51', '4 50']);
  });
});

const nameIs = (value: string): FilterTree => ({
  node: 'comparison',
  field: 'Name',
  operator: 'eq',
  literal: { type: 'text', value },
});

describe('printing', () => {
  it.each(entities)(
    'gives the text of random trees of %s, which parses to the same tree',
    (entity) => {
      fc.assert(
        fc.property(arbitraryFilter(entity), (tree) => {
          const text = printFilter(tree);
          const read = parseFilter(text).tree;
          // Much faster than expect, which then shows the difference.
          if (!isDeepStrictEqual(read, tree)) expect(read, text).toEqual(tree);
        }),
        { numRuns: times(500, 5_000) },
      );
    },
  );

  it('gives a text that checks without error, and prints the same again', () => {
    for (const entity of entities) {
      fc.assert(
        fc.property(arbitraryFilter(entity), (tree) => {
          const text = printFilter(tree);
          const checked = checkFilter(text, entity);
          expect(checked.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
          expect(checked.tree).not.toBeNull();
          if (checked.tree !== null) expect(printFilter(checked.tree)).toBe(text);
        }),
        { numRuns: times(100, 500) },
      );
    }
  });

  it('puts nested groups and negated conditions in parentheses', () => {
    const tree: FilterTree = {
      node: 'or',
      terms: [
        nameIs('a'),
        { node: 'and', terms: [nameIs('b'), { node: 'not', term: nameIs('c') }] },
        { node: 'not', term: { node: 'or', terms: [nameIs('d'), nameIs('e')] } },
      ],
    };
    expect(printFilter(tree)).toBe(
      "Name eq 'a' or (Name eq 'b' and not (Name eq 'c')) or not (Name eq 'd' or Name eq 'e')",
    );
  });

  it.each([
    ["Name eq 'it''s'", "Name eq 'it''s'"],
    ["name EQ 'a'", "Name eq 'a'"],
    ['ContentDate/Start gt 2024-09-01', 'ContentDate/Start gt 2024-09-01T00:00:00.000000Z'],
    [
      'ContentDate/Start gt 2024-09-01T02:00:00+02:00',
      'ContentDate/Start gt 2024-09-01T00:00:00.000000Z',
    ],
    ["ContentDate/Start gt '2024-09-01'", "ContentDate/Start gt '2024-09-01'"],
    ["Id in ( 'a' , 'b' )", "Id in ('a','b')"],
    ["CONTAINS(name , 'x')", "contains(Name,'x')"],
    [
      "attributes/odata.csc.doubleattribute/any(i0:i0/name eq 'cloudCover' and i0/value lt 2e1)",
      "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value lt 20)",
    ],
    [
      "OData.CSC.Intersects(Footprint=geography' srid = 4326 ; multipoint ( 1 2 , 3.50 -4e0 )')",
      "OData.CSC.Intersects(Footprint=geography'SRID=4326;MULTIPOINT((1 2),(3.5 -4))')",
    ],
  ])('writes %s in the canonical form', (text, canonical) => {
    expect(printFilter(parseFilter(text).tree)).toBe(canonical);
  });
});
