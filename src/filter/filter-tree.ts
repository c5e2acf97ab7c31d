/** A `$filter` expression as a tree, independent of its spelling. */

/** Entities that a filter can select: existing products, or deleted ones. */
export const entities = ['Products', 'DeletedProducts'] as const;

export type Entity = (typeof entities)[number];

export type ComparisonOperator = 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge';

export type TextFunction = 'contains' | 'startswith' | 'endswith';

/** Types of attributes. A filter on a Boolean attribute is not documented. */
export const attributeKinds = ['String', 'Double', 'Integer', 'DateTimeOffset', 'Boolean'] as const;

export type AttributeKind = (typeof attributeKinds)[number];

/** A literal. A date in quotes is a text. */
export type Literal =
  | { readonly type: 'text'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean }
  /** Microseconds since 1970, UTC. */
  | { readonly type: 'date'; readonly us: number };

/** A group of at least two terms. No term is a group of the same kind, as nesting would be redundant. */
export interface GroupNode {
  readonly node: 'and' | 'or';
  readonly terms: readonly FilterTree[];
}

export interface NotNode {
  readonly node: 'not';
  readonly term: FilterTree;
}

export interface ComparisonNode {
  readonly node: 'comparison';
  /** A known field in its published spelling, such as `ContentDate/Start`; otherwise as written. */
  readonly field: string;
  readonly operator: ComparisonOperator;
  readonly literal: Literal;
}

/**
 * `Name in ('a', 'b')`, with at least one value. It is not documented that the catalogue supports it (facts, filters
 * 1).
 */
export interface InNode {
  readonly node: 'in';
  readonly field: string;
  readonly literals: readonly Literal[];
}

export interface TextNode {
  readonly node: 'text';
  /** `like` compares with a pattern of CQL2; the filter language has no such function. */
  readonly function: TextFunction | 'like';
  readonly field: string;
  readonly text: string;
}

/**
 * `Attributes/OData.CSC.<kind>Attribute/any(…)`. The type of the literal decides the comparison, not the two kinds.
 */
export interface AttributeNode {
  readonly node: 'attribute';
  /** Kind of the attribute, as written. */
  readonly kind: AttributeKind;
  readonly name: string;
  /** Kind of its value, as written; equal to `kind` in the short form. */
  readonly valueKind: AttributeKind;
  readonly operator: ComparisonOperator;
  readonly literal: Literal;
}

export interface IntersectsNode {
  readonly node: 'intersects';
  /** Keyword before the geometry; both are documented. */
  readonly argument: 'area' | 'Footprint';
  readonly srid: number;
  readonly geometry: Geometry;
}

export type FilterTree =
  | GroupNode
  | NotNode
  | ComparisonNode
  | InNode
  | TextNode
  | AttributeNode
  | IntersectsNode;

/**
 * Joins conditions, without those that are null or undefined. Flattens nested groups of the same kind; one condition stays
 * as it is. Returns null for none.
 */
export function joined(
  node: GroupNode['node'],
  terms: readonly [FilterTree, ...FilterTree[]],
): FilterTree;
export function joined(
  node: GroupNode['node'],
  terms: readonly (FilterTree | null | undefined)[],
): FilterTree | null;
export function joined(
  node: GroupNode['node'],
  terms: readonly (FilterTree | null | undefined)[],
): FilterTree | null {
  const flat = terms.flatMap((term) => (term?.node === node ? term.terms : (term ?? [])));
  const [only, ...others] = flat;
  if (only === undefined) return null;
  return others.length === 0 ? only : { node, terms: flat };
}

/** Direction of `$orderby`. */
export type Direction = 'asc' | 'desc';

export type Position = readonly [longitude: number, latitude: number];

/** Corners in order; the last one equals the first. */
export type Ring = readonly Position[];

/** First the outline, then the holes. */
export type Rings = readonly Ring[];

/** Geometries of the filter language (facts, filters 1), as in GeoJSON (RFC 7946). */
export type Geometry =
  | { readonly type: 'Point'; readonly coordinates: Position }
  | { readonly type: 'MultiPoint'; readonly coordinates: readonly Position[] }
  | { readonly type: 'Polygon'; readonly coordinates: Rings }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly Rings[] };

/** Any geometry of GeoJSON (RFC 7946): footprints of records may also be lines, and collections. */
export type AnyGeometry =
  | Geometry
  | { readonly type: 'LineString'; readonly coordinates: readonly Position[] }
  | { readonly type: 'MultiLineString'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'GeometryCollection'; readonly geometries: readonly AnyGeometry[] };

/** A bounding box that does not cross the antimeridian: -180 <= west <= east <= 180. */
export interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}
