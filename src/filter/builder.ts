/**
 * Builds filters in code, for `earshot.config.ts`: the same trees as parsed filters, with types.
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
 * String(spring); // the $filter expression
 * ```
 */
import { readFileSync } from 'node:fs';
import { AppError, errorCodeOf, errorText } from '../core/terms/app-error.ts';
import { readDateUs } from '../core/terms/dates.ts';
import { clauseOf } from '../core/terms/faults.ts';
import { nearestName } from '../core/terms/text.ts';
import { attributeKindOf, type KindOf, type PublishedName, publishedAttributes } from './fields.ts';
import {
  type AttributeKind,
  type ComparisonOperator,
  type Entity,
  type FilterTree,
  joined,
  type Literal,
  type TextFunction,
} from './filter-tree.ts';
import { geometryFaults, joinAreas, readAreas } from './geometry/read-geometry.ts';
import { printFilter } from './print.ts';
import type { FoundProduct, ProductKey, ProductQuery, ProductRow } from './products.ts';

// Configuration files may be plain JavaScript, so values are also checked at run time.
const literalOfKind: Readonly<Record<AttributeKind, (value: unknown, subject: string) => Literal>> =
  {
    String: (value, subject) => ({ type: 'text', value: textOf(value, subject) }),
    Double: numberLiteral,
    Integer: numberLiteral,
    DateTimeOffset: dateLiteral,
    Boolean: (value, subject) =>
      typeof value === 'boolean'
        ? { type: 'boolean', value }
        : refuse(subject, value, 'true or false'),
  };

/** Matches if every term matches. @example and(collection('SENTINEL-1'), not(name.contains('_COG'))) */
export function and(...terms: readonly Expression[]): Expression {
  return group('and', terms);
}

/** Matches if at least one term matches. @example or(productType.eq('S2MSI1C'), productType.eq('S2MSI2A')) */
export function or(...terms: readonly Expression[]): Expression {
  return group('or', terms);
}

/**
 * Matches if the term does not match, which includes products without the compared value.
 *
 * @example not(cloudCover.gt(80))
 */
export function not(term: Expression): Expression {
  return expression({ node: 'not', term: treeOf(term) });
}

/** Compares the collection name of the catalogue. @example collection('SENTINEL-2') */
export function collection(name: string): Expression {
  return textField('Collection/Name').eq(name);
}

/** Product name. @example name.startsWith('S2B_MSIL2A_') */
export const name: TextField = textField('Name');

/** Product id; case-insensitive. @example id.eq('0ce0aaf7-9708-44e5-a35f-5171947aa748') */
export const id: Pick<Comparisons<string>, 'eq' | 'ne'> = fieldOf('Id', 'String');

/** Sensing time: its start, or use `sensed.start` and `sensed.end`. @example sensed.from('2024-05-01') */
export const sensed: DateField & { readonly start: DateField; readonly end: DateField } = {
  ...dateField('ContentDate/Start'),
  start: dateField('ContentDate/Start'),
  end: dateField('ContentDate/End'),
};

/** Publication date. @example published.from(new Date('2024-05-01T12:00:00Z')) */
export const published: DateField = dateField('PublicationDate');

/** Date of the last modification in the catalogue. */
export const modified: DateField = dateField('ModificationDate');

/** Deletion date; only for the event `deleted`. @example deleted.from('2024-05-01') */
export const deleted: DateField = dateField('DeletionDate');

/** Deletion cause; only for the event `deleted`. */
export const deletionCause: Comparisons<string> = fieldOf('DeletionCause', 'String');

/** Matches products that are available without retrieval from an archive. @example and(online, collection('SENTINEL-2')) */
export const online: Expression = fieldOf('Online', 'Boolean').eq(true);

/** Product type, for example `S2MSI2A` or `IW_GRDH_1S`. @example productType.eq('S2MSI2A') */
export const productType: AttributeOf<'String'> = attributeOf('productType', 'String');

/** Cloud cover in percent; radar products have none. @example cloudCover.lt(20) */
export const cloudCover: AttributeOf<'Double'> = attributeOf('cloudCover', 'Double');

/**
 * An attribute. The type of published attributes is known; for any other, pass the type that it is stored as.
 * Throws AppError `invalid` for an unknown name without a type.
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
  const suggestion = nearest === null ? '' : ` Did you mean ${nearest}?`;
  throw new AppError(
    'invalid',
    `Unknown attribute ${name}.${suggestion} ` +
      `For a new attribute, pass its type: attribute('${name}', 'Double').`,
  );
}

/**
 * Matches products whose footprint intersects a GeoJSON geometry of points or polygons. Also accepts
 * features and collections, so a GeoJSON file can be imported; features whose boxes overlap become separate
 * conditions. Throws AppError `invalid` for a geometry that the catalogue would refuse; crossings are not searched.
 *
 * @example intersects(JSON.parse(readFileSync('area.geojson', 'utf8')))
 */
export function intersects(geojson: unknown): Expression {
  const areas = readAreas(geojson);
  const details = areas.flatMap((area, i) => {
    const prefix = areas.length === 1 ? '' : `Geometry ${i + 1}: `;
    return geometryFaults(area).map((fault) => `${prefix}${fault}`);
  });
  if (details.length > 0) {
    const message = 'The catalogue would refuse this geometry. Fix the geometry first.';
    throw new AppError('invalid', message, { details: details.slice(0, faultsShownMax) });
  }
  const joined = joinAreas(areas);
  const all = joined === null ? areas : [joined];
  const node = { node: 'intersects', argument: 'area', srid: 4326 } as const;
  return or(...all.map((geometry) => expression({ ...node, geometry })));
}

/** Maximum number of faults in an error: a mistake in a file is often repeated in every feature. */
const faultsShownMax = 10;

function group(node: 'and' | 'or', expressions: readonly Expression[]): Expression {
  const tree = joined(node, expressions.map(treeOf));
  if (tree !== null) return expression(tree);
  throw new AppError('invalid', `${node}() needs at least one expression.`);
}

function treeOf(term: Expression): FilterTree {
  const tree: FilterTree | undefined = term?.tree;
  if (tree !== undefined) return tree;
  throw new AppError(
    'invalid',
    `${JSON.stringify(term)} is not an expression. Use expressions such as cloudCover.lt(20).`,
  );
}

/** A filter, or a part of one. Converts to its `$filter` text, also in JSON. */
export interface Expression {
  readonly tree: FilterTree;
  toString(): string;
  toJSON(): string;
}

/** The comparison operators. */
export type Comparisons<Value> = Record<ComparisonOperator, (value: Value) => Expression>;

/** A string property; all comparisons are case-sensitive. */
interface TextField extends Comparisons<string> {
  contains(part: string): Expression;
  startsWith(part: string): Expression;
  endsWith(part: string): Expression;
}

/** A `Date`, or a string such as `2024-05-01` or `2024-05-01T12:00:00Z`; UTC by default. */
type Moment = Date | string;

interface DateField extends Comparisons<Moment> {
  /** At this time or later. */
  from(moment: Moment): Expression;
  /** Before this time. */
  until(moment: Moment): Expression;
}

/** Type of the literals for each attribute type. */
interface ValueOfKind {
  String: string;
  Double: number;
  Integer: number;
  DateTimeOffset: Moment;
  Boolean: boolean;
}

/** Comparisons of an attribute. */
type AttributeOf<Kind extends AttributeKind> = Comparisons<ValueOfKind[Kind]>;

export function expression(tree: FilterTree): Expression {
  const text = () => printFilter(tree);
  return Object.freeze({ tree, toString: text, toJSON: text });
}

export function textField(field: string): TextField {
  const calling = (name: TextFunction) => (part: string) =>
    expression({ node: 'text', function: name, field, text: textOf(part, field) });
  return {
    ...fieldOf(field, 'String'),
    contains: calling('contains'),
    startsWith: calling('startswith'),
    endsWith: calling('endswith'),
  };
}

export function dateField(field: string): DateField {
  const comparing = fieldOf(field, 'DateTimeOffset');
  return { ...comparing, from: comparing.ge, until: comparing.lt };
}

/** Comparisons of a property with values of a kind. */
export function fieldOf<Kind extends AttributeKind>(field: string, kind: Kind): AttributeOf<Kind> {
  return comparisons((operator, value: ValueOfKind[Kind]) => {
    const literal = literalOfKind[kind](value, field);
    return expression({ node: 'comparison', field, operator, literal });
  });
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

function textOf(value: unknown, subject: string): string {
  return typeof value === 'string' ? value : refuse(subject, value, "a string such as 'S2MSI2A'");
}

function numberLiteral(value: unknown, subject: string): Literal {
  if (!Number.isFinite(value)) return refuse(subject, value, 'a number such as 20');
  // Changes -0 to 0: there is no literal for -0.
  return { type: 'number', value: Number(value) + 0 };
}

function dateLiteral(value: unknown, subject: string): Literal {
  const us = value instanceof Date ? usOfDate(value) : readDateUs(value);
  if (us !== null) return { type: 'date', us };
  return refuse(subject, value, "a valid Date, or a string such as '2024-05-01T12:00:00Z'");
}

/** Null for an invalid date, and outside of the years 0000 to 9999. */
function usOfDate(date: Date): number | null {
  return Number.isNaN(date.getTime()) ? null : readDateUs(date.toISOString());
}

function refuse(subject: string, value: unknown, expected: string): never {
  const given = JSON.stringify(String(value).slice(0, 60));
  throw new AppError('invalid', `${subject} cannot be compared with ${given}. Use ${expected}.`);
}

/**
 * Reads a Geometry, a Feature or a FeatureCollection, as an area for `intersects`. A path is relative to the working
 * directory, which is that of `earshot.config.ts`; a file URL, such as `new URL('./area.geojson', import.meta.url)`,
 * is absolute. Throws `invalid`, with the reason.
 */
export function geojsonFile(path: string | URL): object {
  return readGeoJsonFile(path, () => readFileSync(path, 'utf8'));
}

/** Returns the JSON of a GeoJSON file. Throws `invalid`, with the reason. */
export function readGeoJsonFile(path: string | URL, readText: () => string): object {
  try {
    // Some editors start a file with a byte order mark.
    const text = readText().replace(/^\ufeff/, '');
    if (text.trim() === '') throw new AppError('invalid', 'it is empty');
    const value: unknown = JSON.parse(text);
    readAreas(value);
    // Valid GeoJSON is an object.
    return value as object;
  } catch (cause) {
    const details = cause instanceof AppError ? cause.details : [];
    throw new AppError('invalid', `${path} cannot be read as GeoJSON: ${reasonOf(cause)}`, {
      cause,
      details,
    });
  }
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause instanceof SyntaxError) return `it is not JSON (${cause.message})`;
  if (cause instanceof AppError || !('code' in cause)) return errorText(cause).replace(/\.$/, '');
  return clauseOf(errorCodeOf(cause));
}

/** A query for products. By default, it selects all products, newest first. */
export interface ProductsQuestion extends Omit<ProductQuery, 'entity' | 'filter'> {
  /** Default: `Products`. */
  entity?: Entity | undefined;
  /** A `$filter` expression, as text or built with `and`, `collection`, … */
  filter?: string | Expression | undefined;
}

/**
 * Products reported by notifications. Each call updates the index first. Rejects with `invalid` for an invalid
 * filter, and `unavailable` when the index cannot be read or written.
 */
export interface StoredProducts {
  /** Streams the matching products with their records. */
  find(question?: ProductsQuestion): AsyncIterable<FoundProduct>;
  count(question?: Pick<ProductsQuestion, 'entity' | 'filter'>): Promise<number>;
  /** Returns the key of a row from `find`; pass it as `after` to continue after that row. */
  keyOf(row: ProductRow, question?: Pick<ProductsQuestion, 'entity' | 'order'>): ProductKey;
}
