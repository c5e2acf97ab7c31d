/**
 * Filters in code, for `earshot.config.ts`: the same trees as the text has, with types.
 *
 * @example
 * ```ts
 * const spring = and(
 *   collection('SENTINEL-2'),
 *   productType.eq('S2MSI2A'),
 *   cloudCover.lt(20),
 *   sensed.from('2024-03-01'),
 *   sensed.until('2024-06-01'),
 *   intersects({ type: 'Point', coordinates: [21.01, 52.23] }),
 * );
 * String(spring); // the text that the catalogue reads
 * ```
 */
import { AppError } from '../domain/app-error.ts';
import type {
  AttributeKind,
  ComparisonOperator,
  FilterTree,
  Geometry,
  Literal,
  TextFunction,
} from '../domain/filter-tree.ts';
import { nearestName } from '../domain/text.ts';
import { attributeKindOf, type KindOf, type PublishedName, publishedAttributes } from './fields.ts';
import { joinAreas, readAreas } from './geometry/geojson.ts';
import { geometryFaults } from './geometry/validity.ts';
import { printFilter } from './print.ts';
import { readFilterDate } from './values.ts';

/** All of the terms hold. @example and(collection('SENTINEL-1'), not(name.contains('_COG'))) */
export function and(...terms: readonly Expression[]): Expression {
  return group('and', terms);
}

/** At least one of the terms holds. @example or(productType.eq('S2MSI1C'), productType.eq('S2MSI2A')) */
export function or(...terms: readonly Expression[]): Expression {
  return group('or', terms);
}

/**
 * The term does not hold; so it is also true where a value that it asks for is absent.
 *
 * @example not(cloudCover.gt(80))
 */
export function not(term: Expression): Expression {
  return expression({ node: 'not', term: treeOf(term) });
}

/** The collection, by the catalogue's name. @example collection('SENTINEL-2') */
export function collection(name: string): Expression {
  return textField('Collection/Name').eq(name);
}

/** The product's name. @example name.startsWith('S2B_MSIL2A_') */
export const name: TextField = textField('Name');

/** The product's id, in any case. @example id.eq('0ce0aaf7-9708-44e5-a35f-5171947aa748') */
export const id: Pick<Comparisons<string>, 'eq' | 'ne'> = fieldComparisons('Id', textLiteral);

/** When sensing began, unless `start` or `end` is named. @example sensed.from('2024-05-01') */
export const sensed: DateField & { readonly start: DateField; readonly end: DateField } = {
  ...dateField('ContentDate/Start'),
  start: dateField('ContentDate/Start'),
  end: dateField('ContentDate/End'),
};

/** When the catalogue published it. @example published.from(new Date('2024-05-01T12:00:00Z')) */
export const published: DateField = dateField('PublicationDate');

/** When the catalogue last changed it. */
export const modified: DateField = dateField('ModificationDate');

/** When the catalogue deleted it; for the event `deleted` only. @example deleted.from('2024-05-01') */
export const deleted: DateField = dateField('DeletionDate');

/** Why it was deleted; for the event `deleted` only. */
export const deletionCause: Comparisons<string> = fieldComparisons('DeletionCause', textLiteral);

/** It can be had without waiting for an archive. @example and(online, collection('SENTINEL-2')) */
export const online: Expression = expression({
  node: 'comparison',
  field: 'Online',
  operator: 'eq',
  literal: { type: 'boolean', value: true },
});

// Values come from configuration files that may be plain JavaScript: types alone do not keep them right.
const literalOfKind: Readonly<Record<AttributeKind, (value: unknown, what: string) => Literal>> = {
  String: textLiteral,
  Double: numberLiteral,
  Integer: numberLiteral,
  DateTimeOffset: dateLiteral,
  Boolean: (value, what) =>
    typeof value === 'boolean' ? { type: 'boolean', value } : refuse(what, value, 'true or false'),
};

/** Such as `S2MSI2A` or `IW_GRDH_1S`. @example productType.eq('S2MSI2A') */
export const productType: AttributeOf<'String'> = attributeOf('productType', 'String');

/** Percent of the scene; radar products have none. @example cloudCover.lt(20) */
export const cloudCover: AttributeOf<'Double'> = attributeOf('cloudCover', 'Double');

/**
 * An attribute. The published ones have their kind; for any other, name the kind that it is stored as.
 * Throws AppError `invalid` for an unknown name without a kind.
 *
 * @example attribute('tileId').eq('34UDC')
 * @example attribute('newCover', 'Double').le(5)
 */
export function attribute<Name extends PublishedName>(name: Name): AttributeOf<KindOf<Name>>;

export function attribute<Kind extends AttributeKind>(name: string, kind: Kind): AttributeOf<Kind>;

export function attribute(name: string, kind = attributeKindOf(name)): AttributeOf<AttributeKind> {
  if (kind !== undefined) return attributeOf(name, kind);
  const names = publishedAttributes.map((one) => one.name);
  const nearest = nearestName(name, names);
  const suggestion = nearest === null ? '' : ` Is it ${nearest}?`;
  throw new AppError(
    'invalid',
    `The attribute ${name} is not published.${suggestion} ` +
      `If it is new, name its kind: attribute('${name}', 'Double').`,
  );
}

/**
 * The footprint has a place in common with a GeoJSON geometry: a point or points, or polygons. A
 * feature or a collection of them does as well, so a GeoJSON file can be imported; features that lie on
 * each other are asked for one by one. Throws AppError `invalid` for what the catalogue would refuse.
 *
 * @example intersects(JSON.parse(readFileSync('area.geojson', 'utf8')))
 */
export function intersects(geojson: unknown): Expression {
  const areas = readAreas(geojson);
  const joined = joinAreas(areas);
  const all = joined !== null && geometryFaults(joined).length === 0 ? [joined] : areas;
  const details = all.flatMap(faultTexts);
  if (details.length > 0) {
    throw new AppError('invalid', 'The catalogue would refuse this geometry. Correct it first.', {
      details: details.slice(0, faultsShownMax),
    });
  }
  const node = { node: 'intersects', argument: 'area', srid: 4326 } as const;
  return group(
    'or',
    all.map((geometry) => expression({ ...node, geometry })),
  );
}

/** A mistake in a file is often made in each of its features. */
const faultsShownMax = 10;

/** What is wrong with a geometry, with its place among several. */
function faultTexts(geometry: Geometry, i: number, all: readonly Geometry[]): string[] {
  const which = all.length === 1 ? '' : `Geometry ${i + 1}: `;
  return geometryFaults(geometry).map(({ code, message }) => {
    const hint = code === 'outside-globe' ? ' Longitude comes first, then latitude.' : '';
    return `${which}${message}${hint}`;
  });
}

/** Groups of the same kind become one, as in the tree of a text. */
function group(node: 'and' | 'or', expressions: readonly Expression[]): Expression {
  const terms = expressions
    .map(treeOf)
    .flatMap((tree) => (tree.node === node ? tree.terms : [tree]));
  const [first] = terms;
  if (first === undefined) {
    throw new AppError('invalid', `${node}() has no terms. Give it at least one expression.`);
  }
  return expression(terms.length === 1 ? first : { node, terms });
}

function treeOf(term: Expression): FilterTree {
  const tree: FilterTree | undefined = term?.tree;
  if (tree !== undefined) return tree;
  throw new AppError(
    'invalid',
    `A filter is built of expressions such as cloudCover.lt(20); ${JSON.stringify(term)} is none.`,
  );
}

/** A filter, or a part of one. As a text, also in JSON, it is what the catalogue reads. */
export interface Expression {
  readonly tree: FilterTree;
  toString(): string;
  toJSON(): string;
}

/** The comparisons that the language has. */
type Comparisons<Value> = Record<ComparisonOperator, (value: Value) => Expression>;

/** Case matters everywhere. */
interface TextField extends Comparisons<string> {
  contains(part: string): Expression;
  startsWith(part: string): Expression;
  endsWith(part: string): Expression;
}

/** A moment: a `Date`, or a text such as `2024-05-01` or `2024-05-01T12:00:00Z`; UTC without a zone. */
type Moment = Date | string;

interface DateField extends Comparisons<Moment> {
  /** At this moment or later. */
  from(moment: Moment): Expression;
  /** Before this moment. */
  until(moment: Moment): Expression;
}

/** What attributes of a kind are compared with. */
interface ValueOfKind {
  String: string;
  Double: number;
  Integer: number;
  DateTimeOffset: Moment;
  Boolean: boolean;
}

/** The comparisons of an attribute of a kind. */
type AttributeOf<Kind extends AttributeKind> = Comparisons<ValueOfKind[Kind]>;

export function expression(tree: FilterTree): Expression {
  const text = () => printFilter(tree);
  return Object.freeze({ tree, toString: text, toJSON: text });
}

export function textField(field: string): TextField {
  const calling = (name: TextFunction) => (part: string) =>
    expression({ node: 'text', function: name, field, text: textOf(part, field) });
  return {
    ...fieldComparisons(field, textLiteral),
    contains: calling('contains'),
    startsWith: calling('startswith'),
    endsWith: calling('endswith'),
  };
}

function dateField(field: string): DateField {
  const comparing = fieldComparisons(field, dateLiteral);
  return { ...comparing, from: comparing.ge, until: comparing.lt };
}

/** Comparisons of a field whose values become literals by `literalOf`. */
function fieldComparisons<Value>(
  field: string,
  literalOf: (value: Value, what: string) => Literal,
): Comparisons<Value> {
  return comparisons((operator, value: Value) =>
    expression({ node: 'comparison', field, operator, literal: literalOf(value, field) }),
  );
}

export function attributeOf<Kind extends AttributeKind>(
  name: string,
  kind: Kind,
): AttributeOf<Kind> {
  return comparisons((operator, value: ValueOfKind[Kind]) => {
    const literal = literalOfKind[kind](value, name);
    return expression({ node: 'attribute', kind, name, valueKind: kind, operator, literal });
  });
}

function comparisons<Value>(
  compare: (operator: ComparisonOperator, value: Value) => Expression,
): Comparisons<Value> {
  return {
    eq: (value) => compare('eq', value),
    ne: (value) => compare('ne', value),
    lt: (value) => compare('lt', value),
    le: (value) => compare('le', value),
    gt: (value) => compare('gt', value),
    ge: (value) => compare('ge', value),
  };
}

function textOf(value: unknown, what: string): string {
  return typeof value === 'string' ? value : refuse(what, value, "a text, such as 'S2MSI2A'");
}

function textLiteral(value: unknown, what: string): Literal {
  return { type: 'text', value: textOf(value, what) };
}

function numberLiteral(value: unknown, what: string): Literal {
  if (!Number.isFinite(value)) return refuse(what, value, 'a number, such as 20');
  // Minus zero is zero, and has no way to be written.
  return { type: 'number', value: Number(value) + 0 };
}

function dateLiteral(value: unknown, what: string): Literal {
  const us = typeof value === 'string' ? readFilterDate(value) : usOfDate(value);
  if (us !== null) return { type: 'date', us };
  return refuse(what, value, "a valid Date, or a text such as '2024-05-01T12:00:00Z'");
}

/** Dates that microseconds cannot hold are the last or the first that they can. */
function usOfDate(value: unknown): number | null {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) return null;
  const us = value.getTime() * 1000;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, us));
}

function refuse(what: string, value: unknown, wanted: string): never {
  const isShort = typeof value === 'number' || typeof value === 'string';
  const given = isShort ? JSON.stringify(String(value).slice(0, 60)) : kindOfValue(value);
  throw new AppError('invalid', `${what} cannot be compared with ${given}. Give it ${wanted}.`);
}

function kindOfValue(value: unknown): string {
  if (value instanceof Date) return 'an invalid Date';
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  return `a value of type ${typeof value}`;
}
