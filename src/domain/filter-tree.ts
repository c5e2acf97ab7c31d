/** A `$filter` expression as a tree, without any trace of how it was written. */

/** What a filter is about: products as they are, or products that have been deleted. */
export const entities = ['Products', 'DeletedProducts'] as const;

export type Entity = (typeof entities)[number];

export type ComparisonOperator = 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge';

export type TextFunction = 'contains' | 'startswith' | 'endswith';

/** The kinds of attributes; a filter by a Boolean one is not documented. */
export const attributeKinds = ['String', 'Double', 'Integer', 'DateTimeOffset', 'Boolean'] as const;

export type AttributeKind = (typeof attributeKinds)[number];

/** A value. A date in quotes is a text; a date after the year 2255 counts as the last of them. */
export type Literal =
  | { readonly type: 'text'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean }
  /** Microseconds since 1970, UTC. */
  | { readonly type: 'date'; readonly us: number };

/** At least two terms, none of which is a group of the same kind: nesting says nothing there. */
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
  /** A known field in its published spelling, such as `ContentDate/Start`; else as it was written. */
  readonly field: string;
  readonly operator: ComparisonOperator;
  readonly literal: Literal;
}

/** `Name in ('a', 'b')`: at least one value. Nothing says that the catalogue knows it (facts, filters 1). */
export interface InNode {
  readonly node: 'in';
  readonly field: string;
  readonly literals: readonly Literal[];
}

export interface TextNode {
  readonly node: 'text';
  readonly function: TextFunction;
  readonly field: string;
  readonly text: string;
}

/** `Attributes/OData.CSC.<kind>Attribute/any(…)`. The literal decides the comparison, not the kinds. */
export interface AttributeNode {
  readonly node: 'attribute';
  /** The kind named for the attribute. */
  readonly kind: AttributeKind;
  readonly name: string;
  /** The kind named for its value; `kind` in the short form. */
  readonly valueKind: AttributeKind;
  readonly operator: ComparisonOperator;
  readonly literal: Literal;
}

export interface IntersectsNode {
  readonly node: 'intersects';
  /** The word before the geometry: both are documented. */
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

/** A direction of `$orderby`. */
export type Direction = 'asc' | 'desc';

export type Position = readonly [longitude: number, latitude: number];

/** The corners in turn; a closed ring ends with the corner it began with. */
export type Ring = readonly Position[];

/** The first ring is the outline, the others are holes. */
export type Rings = readonly Ring[];

/** The geometries of the filter language (facts, filters 1), in the form of GeoJSON (RFC 7946). */
export type Geometry =
  | { readonly type: 'Point'; readonly coordinates: Position }
  | { readonly type: 'MultiPoint'; readonly coordinates: readonly Position[] }
  | { readonly type: 'Polygon'; readonly coordinates: Rings }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly Rings[] };

/** A box that does not cross the antimeridian: -180 <= west <= east <= 180. */
export interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}
