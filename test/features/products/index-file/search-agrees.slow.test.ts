/** The index finds the same products as evaluating every record, for any filter. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readDateUs } from '../../../../src/core/terms/dates.ts';
import { compileFilter } from '../../../../src/filter/evaluate.ts';
import {
  type ComparisonOperator,
  entities,
  type FilterTree,
  type Geometry,
  type GroupNode,
  type Literal,
} from '../../../../src/filter/filter-tree.ts';
import { productView } from '../../../../src/filter/product-view.ts';
import { times } from '../../../helpers/thorough.ts';
import {
  all,
  created,
  generatedRecords,
  oddRecords,
  openProductContext,
  realRecords,
  type TestRecord,
} from './product-context.ts';

const deletion = (record: TestRecord, i: number): TestRecord => {
  const { Online: _, PublicationDate: __, ModificationDate: ___, ...rest } = record;
  const causes = ['Duplicated product', 'Other', 'Reprocessed product'];
  const DeletionDate = new Date(Date.UTC(2026, 5, 1) + i * 3_600_000).toISOString();
  return { ...rest, DeletionDate, DeletionCause: causes[i % causes.length] };
};

const sources = {
  generated: () => [...generatedRecords(25, 7), ...oddRecords],
  real: () => realRecords(4),
};

const filters = times(1_000, 5_000);

describe('searching the index', () => {
  for (const [name, make] of Object.entries(sources)) {
    it(`agrees with evaluating each of the ${name} records, for ${filters} random filters`, async (context) => {
      const alive = make();
      if (alive.length === 0) context.skip('the folder ../shared/fixtures is not there');
      const gone = alive.filter((_, i) => i % 3 === 0).map(deletion);
      const productContext = await openProductContext();
      await productContext.index(
        ...created(...alive),
        ...gone.map((record) => ({ event: 'deleted', record })),
      );
      const goneIds = new Set(gone.map(({ Id }) => Id));
      const views = {
        Products: alive.filter(({ Id }) => !goneIds.has(Id)).map(productView),
        DeletedProducts: gone.map(productView),
      };
      let matched = 0;
      const property = fc.asyncProperty(
        arbitrarySearch([...alive, ...gone]),
        fc.constantFrom(...entities),
        async (filter, entity) => {
          const expected = views[entity]
            .filter(compileFilter(filter))
            .map((view) => view.text('Id'));
          const found = await all(productContext.products.find({ entity, filter, records: false }));
          expect(found.map(({ row }) => row.productId).toSorted()).toEqual(expected.toSorted());
          expect(await productContext.products.count({ entity, filter })).toBe(expected.length);
          matched += expected.length;
        },
      );
      await fc.assert(property, { numRuns: filters });
      expect(matched).toBeGreaterThan(4 * filters);
    }, 18_000);
  }
});

// Random filters with values of the given records, so that each filter matches some of them.

const operators: ComparisonOperator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];
const operator = fc.constantFrom(...operators);
const textFields = ['Name', 'Collection/Name', 'DeletionCause'];
const dateFields = [
  'ContentDate/Start',
  'ContentDate/End',
  'PublicationDate',
  'ModificationDate',
  'OriginDate',
  'DeletionDate',
];

/** Trees over all fields and all attributes of the records, in canonical form. */
function arbitrarySearch(records: readonly TestRecord[]): fc.Arbitrary<FilterTree> {
  const leaf = arbitraryLeaf(records);
  const { tree } = fc.letrec<{ tree: FilterTree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
      { arbitrary: leaf, weight: 3 },
      {
        arbitrary: fc
          .tuple(
            fc.constantFrom('and' as const, 'or' as const),
            fc.array(tie('tree'), { minLength: 2, maxLength: 4 }),
          )
          .map(([node, terms]) => group(node, terms)),
        weight: 4,
      },
      { arbitrary: tie('tree').map((term) => ({ node: 'not', term }) as const), weight: 1 },
    ),
  }));
  return tree;
}

/** Nested groups of the same kind are merged. */
function group(node: GroupNode['node'], terms: readonly FilterTree[]): FilterTree {
  return { node, terms: terms.flatMap((term) => (term.node === node ? term.terms : [term])) };
}

function arbitraryLeaf(records: readonly TestRecord[]): fc.Arbitrary<FilterTree> {
  const record = fc.constantFrom(...records);
  const view = record.map(productView);
  const text = fc
    .tuple(fc.constantFrom(...textFields), operator, view)
    .map(([field, op, one]) => comparison(field, op, textLiteral(one.text(field) ?? 'none')));
  const id = fc
    .tuple(record, operator, fc.boolean())
    .map(([{ Id }, op, upper]) => comparison('Id', op, textLiteral(upper ? Id.toUpperCase() : Id)));
  const date = fc
    .tuple(fc.constantFrom(...dateFields), operator, view, fc.integer({ min: -2, max: 2 }))
    .map(([field, op, { dateUs }, hours]) =>
      comparison(field, op, dateLiteral((dateUs(field) ?? 0) + hours * 3_600_000_000, hours)),
    );
  const online = fc
    .tuple(operator, fc.boolean())
    .map(([op, value]) => comparison('Online', op, { type: 'boolean', value }));
  const others = [nameParts, attributes, oneOf, places].map((make) => make(records));
  return fc.oneof(text, id, date, online, ...others);
}

const textLiteral = (value: string): Literal => ({ type: 'text', value });

function comparison(field: string, op: ComparisonOperator, literal: Literal): FilterTree {
  return { node: 'comparison', field, operator: op, literal };
}

/** Sometimes as a string, as some clients write it. */
function dateLiteral(us: number, variant: number): Literal {
  if (variant !== 2) return { type: 'date', us };
  return textLiteral(new Date(us / 1000).toISOString());
}

function nameParts(records: readonly TestRecord[]): fc.Arbitrary<FilterTree> {
  const functions = fc.constantFrom(...(['contains', 'startswith', 'endswith'] as const));
  return fc
    .tuple(functions, fc.constantFrom(...records), fc.nat(90), fc.nat(8))
    .map(([name, { Name = 'none' }, start, length]) => {
      const characters = Array.from(Name);
      const from = Math.min(start, characters.length);
      const parts = {
        contains: characters.slice(from, from + length),
        startswith: characters.slice(0, length),
        endswith: characters.slice(Math.max(0, characters.length - length)),
      };
      return { node: 'text', function: name, field: 'Name', text: parts[name].join('') } as const;
    });
}

function attributes(records: readonly TestRecord[]): fc.Arbitrary<FilterTree> {
  const present = records.flatMap(({ Attributes }) =>
    Array.isArray(Attributes) ? (Attributes as { Name: string; Value: unknown }[]) : [],
  );
  const asked = ['cloudCover', 'orbitNumber', 'relativeOrbitNumber', 'productType', 'tileId'];
  const common = present.filter(({ Name }) => asked.includes(Name));
  const kinds = ['String', 'Double', 'Integer', 'DateTimeOffset'] as const;
  return fc
    .tuple(
      fc.oneof(fc.constantFrom(...common), fc.constantFrom(...present)),
      operator,
      fc.constantFrom(...Array<null>(16).fill(null), ...kinds),
      fc.boolean(),
      fc.constantFrom(...Array(4).fill(literalFor), quotedLiteral, numberLiteral),
    )
    .map(([{ Name: name, Value: value }, op, otherKind, sameCast, literalOf]) => {
      const kind = otherKind ?? kindFor(value);
      const valueKind = sameCast ? kind : kindFor(value);
      return { node: 'attribute', kind, name, valueKind, operator: op, literal: literalOf(value) };
    });
}

function kindFor(value: unknown) {
  if (typeof value === 'number') return Number.isInteger(value) ? 'Integer' : 'Double';
  if (typeof value === 'boolean') return 'Boolean';
  return readDateUs(value) !== null ? 'DateTimeOffset' : 'String';
}

function literalFor(value: unknown): Literal {
  if (typeof value === 'number') return { type: 'number', value };
  if (typeof value === 'boolean') return { type: 'boolean', value };
  const us = readDateUs(value);
  return us === null ? textLiteral(String(value)) : { type: 'date', us };
}

/** Literals by clients that do not know the type: always quoted, or a number where possible. */
const quotedLiteral = (value: unknown): Literal => textLiteral(String(value));

function numberLiteral(value: unknown): Literal {
  const number = Number(value);
  return Number.isFinite(number) ? { type: 'number', value: number } : literalFor(value);
}

function oneOf(records: readonly TestRecord[]): fc.Arbitrary<FilterTree> {
  return fc
    .tuple(
      fc.constantFrom(...textFields),
      fc.array(fc.constantFrom(...records), { minLength: 1, maxLength: 4 }),
    )
    .map(([field, some]) => ({
      node: 'in',
      field,
      literals: some.map((one) => textLiteral(productView(one).text(field) ?? '')),
    }));
}

/** Boxes and points at and around footprints, and areas half as large as the globe. */
function places(records: readonly TestRecord[]): fc.Arbitrary<FilterTree> {
  const corners = records.flatMap((one) => {
    const geometry = productView(one).geometry();
    const numbers = JSON.stringify(geometry ?? '').match(/-?[\d.]+/g);
    return numbers === null ? [] : [numbers.slice(0, 2).map(Number)];
  });
  const size = fc.constantFrom(0, 0.1, 3, 40);
  return fc
    .tuple(fc.constantFrom(...corners), size, size)
    .map(([[x = 0, y = 0], width, height]) => {
      const [east, north] = [Math.min(180, x + width), Math.min(90, y + height)];
      const [west, south] = [Math.max(-180, x - width / 2), Math.max(-90, y - height / 2)];
      const ring = [
        [west, south],
        [east, south],
        [east, north],
        [west, north],
        [west, south],
      ] as const;
      const geometry: Geometry =
        width * height === 0
          ? { type: 'Point', coordinates: [x, y] }
          : { type: 'Polygon', coordinates: [ring] };
      return { node: 'intersects', argument: 'area', srid: 4326, geometry };
    });
}
