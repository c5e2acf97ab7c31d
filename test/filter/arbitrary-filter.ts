/**
 * Random filters: canonical trees with the fields of an entity, its attributes, and valid places.
 */
import fc from 'fast-check';
import { readDateUs } from '../../src/core/terms/dates.ts';
import { type Field, fieldsOf, publishedAttributes } from '../../src/filter/fields.ts';
import {
  type AttributeNode,
  attributeKinds,
  type ComparisonOperator,
  type Entity,
  type FilterTree,
  type Geometry,
  type IntersectsNode,
  joined,
  type Literal,
  type TextNode,
} from '../../src/filter/filter-tree.ts';
import { geometryFaults } from '../../src/filter/geometry/read-geometry.ts';
import { arbitraryGeometries, mapped } from './geometry/arbitrary-areas.ts';

/** Texts and dates of the caller's records, used in place of random ones. */
export interface FilterWords {
  /** Texts for a field or for an attribute's name; missing ones are random. */
  readonly texts?: Readonly<Record<string, readonly string[]>>;
  /** Numbers for an attribute's name; missing ones are random. */
  readonly numbers?: Readonly<Record<string, readonly number[]>>;
  /** Attributes used in place of the published ones. */
  readonly attributes?: readonly Readonly<{ name: string; kind: AttributeNode['kind'] }>[];
  /** Microseconds since 1970. */
  readonly dates?: readonly number[];
  /** Places used in addition to the random ones. */
  readonly geometries?: readonly Geometry[];
}

/**
 * Returns a filter that checks without error for the entity, with groups nested up to four levels.
 */
export function arbitraryFilter(entity: Entity, words: FilterWords = {}): fc.Arbitrary<FilterTree> {
  const condition: fc.Arbitrary<FilterTree> = fc.oneof(
    { weight: 5, arbitrary: arbitraryComparison(entity, words) },
    { weight: 2, arbitrary: arbitraryTextFunction(entity, words) },
    { weight: 3, arbitrary: arbitraryAttribute(words) },
    { weight: 2, arbitrary: arbitraryIntersects(words) },
  );
  return fc.letrec<{ tree: FilterTree; and: FilterTree; or: FilterTree; not: FilterTree }>(
    (tie) => ({
      tree: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        { weight: 5, arbitrary: condition },
        { weight: 2, arbitrary: tie('and') },
        { weight: 2, arbitrary: tie('or') },
        { weight: 1, arbitrary: tie('not') },
      ),
      and: group('and', tie('tree')),
      or: group('or', tie('tree')),
      not: tie('tree').map((term) => ({ node: 'not', term }) as const),
    }),
  ).tree;
}

function group(node: 'and' | 'or', term: fc.Arbitrary<FilterTree>): fc.Arbitrary<FilterTree> {
  const terms = fc.tuple(term, fc.array(term, { minLength: 1, maxLength: 3 }));
  return terms.map(([first, others]) => joined(node, [first, ...others]));
}

const operator = fc.constantFrom<ComparisonOperator>('eq', 'ne', 'lt', 'le', 'gt', 'ge');

/** A comparison with one literal, or with several. */
function arbitraryComparison(entity: Entity, words: FilterWords): fc.Arbitrary<FilterTree> {
  return fc.constantFrom(...fieldsOf(entity)).chain((field) => {
    const literal = literalOf(field, words);
    const literals = fc.array(literal, { minLength: 1, maxLength: 4 });
    const one = fc.record({ operator, literal }).map((rest) => ({ node: 'comparison', ...rest }));
    const several = literals.map((all) => ({ node: 'in', literals: all }));
    const either = fc.oneof({ weight: 4, arbitrary: one }, { weight: 1, arbitrary: several });
    return either.map((rest) => ({ ...rest, field: field.name }) as FilterTree);
  });
}

function arbitraryTextFunction(entity: Entity, words: FilterWords): fc.Arbitrary<TextNode> {
  const fields = fieldsOf(entity).filter(({ type }) => type === 'text');
  return fc.constantFrom(...fields).chain(({ name }) =>
    fc.record({
      node: fc.constant('text' as const),
      function: fc.constantFrom('contains', 'startswith', 'endswith'),
      field: fc.constant(name),
      text: textFor(name, words).chain(pieceOf),
    }),
  );
}

/** Published attributes; sometimes with another kind, or read as another kind. */
function arbitraryAttribute(words: FilterWords): fc.Arbitrary<AttributeNode> {
  const kind = fc.constantFrom(...attributeKinds);
  const published = fc.constantFrom(...(words.attributes ?? publishedAttributes));
  const stored = fc.oneof(
    { weight: 8, arbitrary: published.map((one) => ({ name: one.name, kind: one.kind })) },
    { weight: 1, arbitrary: fc.record({ name: fc.string({ unit: 'grapheme' }), kind }) },
    { weight: 1, arbitrary: fc.record({ name: published.map((one) => one.name), kind }) },
  );
  const read = fc.oneof(
    { weight: 8, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: kind },
  );
  return fc.tuple(stored, read, read).chain(([one, otherKind, otherType]) => {
    const valueKind = otherKind ?? one.kind;
    const literal: Record<typeof valueKind, fc.Arbitrary<Literal>> = {
      String: textLiteral(textFor(one.name, words)),
      Double: numberLiteral(words.numbers?.[one.name]),
      Integer: numberLiteral(words.numbers?.[one.name]),
      DateTimeOffset: dateLiteral(words),
      Boolean: booleanLiteral,
    };
    return fc.record({
      node: fc.constant('attribute' as const),
      kind: fc.constant(one.kind),
      name: fc.constant(one.name),
      valueKind: fc.constant(valueKind),
      operator,
      literal: literal[otherType ?? valueKind],
    });
  });
}

function arbitraryIntersects({ geometries = [] }: FilterWords): fc.Arbitrary<IntersectsNode> {
  const given = geometries.map((geometry) => fc.constant(geometry));
  return fc.record({
    node: fc.constant('intersects' as const),
    argument: fc.constantFrom('area', 'Footprint'),
    srid: fc.constant(4326),
    geometry:
      given.length === 0 ? arbitraryGeometry : fc.oneof(arbitraryGeometry, fc.oneof(...given)),
  });
}

function literalOf(field: Field, words: FilterWords): fc.Arbitrary<Literal> {
  if (field.type === 'boolean') return booleanLiteral;
  if (field.type === 'date') return dateLiteral(words);
  if (field.type === 'text') return textLiteral(textFor(field.name, words));
  const given = words.texts?.[field.name] ?? [];
  return textLiteral(given.length === 0 ? fc.uuid() : fc.constantFrom(...given));
}

const booleanLiteral = fc.boolean().map((value) => ({ type: 'boolean', value }) as const);

function numberLiteral(given: readonly number[] = []): fc.Arbitrary<Literal> {
  const made = fc.oneof(
    fc.integer({ min: -10, max: 110 }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  );
  const number = given.length === 0 ? made : fc.oneof(fc.constantFrom(...given), made);
  return number.map((value) => ({ type: 'number', value }) as const);
}

function textLiteral(text: fc.Arbitrary<string>): fc.Arbitrary<Literal> {
  return text.map((value) => ({ type: 'text', value }) as const);
}

function textFor(name: string, { texts }: FilterWords): fc.Arbitrary<string> {
  const given = texts?.[name] ?? [];
  const made = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom("it's", "''", 'SENTINEL-2', 'S2MSI2A', '%', '_', '*', ''),
  );
  if (given.length === 0) return made;
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...given) },
    { weight: 1, arbitrary: made },
  );
}

function pieceOf(text: string): fc.Arbitrary<string> {
  const place = fc.nat({ max: text.length });
  return fc
    .tuple(place, place)
    .map(([a, b]) => text.slice(Math.min(a, b), Math.max(a, b)).toWellFormed());
}

/**
 * Dates in the catalogue's lifetime, and any date of the years 0000 to 9999; sometimes in quotes.
 */
function dateLiteral({ dates = [] }: FilterWords): fc.Arbitrary<Literal> {
  const year2014 = Date.UTC(2014, 0, 1) * 1000;
  const year2027 = Date.UTC(2027, 0, 1) * 1000;
  const anyDate = fc.date({
    min: new Date('0000-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  });
  const made = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: year2014, max: year2027 }) },
    { weight: 1, arbitrary: anyDate.map((date) => readDateUs(date.toISOString()) ?? 0) },
  );
  const near = fc
    .tuple(fc.constantFrom(...(dates.length === 0 ? [0] : dates)), fc.integer({ min: -1, max: 1 }))
    .map(([us, off]) => us + off);
  const us = dates.length === 0 ? made : fc.oneof(made, near);
  const plain = us.map((one) => ({ type: 'date', us: one }) as const);
  const quoted = fc
    .date({ min: new Date(year2014 / 1000), max: new Date(year2027 / 1000), noInvalidDate: true })
    .map((date) => ({ type: 'text', value: date.toISOString() }) as const);
  return fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: quoted });
}

/** A place anywhere, with decimals; all rings are valid for the catalogue. */
const arbitraryGeometry: fc.Arbitrary<Geometry> = fc
  .record({
    geometry: arbitraryGeometries,
    west: fc.double({ min: -180, max: 100, noNaN: true }),
    south: fc.double({ min: -90, max: 10, noNaN: true }),
    scale: fc.constantFrom(0.01, 0.3, 1, 5),
  })
  .map(({ geometry, west, south, scale }) =>
    mapped(geometry, ([x, y]) => [west + scale * x, south + scale * y]),
  )
  .filter((geometry) => geometryFaults(geometry).length === 0);
