/** What is printed is read again as the same tree. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entities, type FilterTree } from '../../src/domain/filter-tree.ts';
import { checkFilter } from '../../src/filter/check.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { printFilter } from '../../src/filter/print.ts';
import { arbitraryFilter } from './arbitrary-filter.ts';

const name = (value: string): FilterTree => ({
  node: 'comparison',
  field: 'Name',
  operator: 'eq',
  literal: { type: 'text', value },
});

describe('printing', () => {
  it.each(entities)(
    'gives the text of 5,000 random trees of %s, which reads as the same tree',
    (entity) => {
      let treesRead = 0;
      fc.assert(
        fc.property(arbitraryFilter(entity), (tree) => {
          const text = printFilter(tree);
          const read = parseFilter(text).tree;
          // Much faster than expect, which then shows the difference.
          if (!isDeepStrictEqual(read, tree)) expect(read, text).toEqual(tree);
          treesRead += 1;
        }),
        { numRuns: 5000 },
      );
      expect(treesRead).toBe(5000);
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
        { numRuns: 500 },
      );
    }
  });

  it('puts every group within a group in parentheses, and what is negated', () => {
    const tree: FilterTree = {
      node: 'or',
      terms: [
        name('a'),
        { node: 'and', terms: [name('b'), { node: 'not', term: name('c') }] },
        { node: 'not', term: { node: 'or', terms: [name('d'), name('e')] } },
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
