/** Places on the globe: longitudes and latitudes in degrees of WGS 84 (EPSG:4326), longitude first. */

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
