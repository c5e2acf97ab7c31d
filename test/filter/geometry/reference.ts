/** The same checks with JTS, the library that Shapely's engine (GEOS) is a port of. */
import GeometryFactory from 'jsts/org/locationtech/jts/geom/GeometryFactory.js';
import GeoJSONReader from 'jsts/org/locationtech/jts/io/GeoJSONReader.js';
import RelateOp from 'jsts/org/locationtech/jts/operation/relate/RelateOp.js';
import IsValidOp from 'jsts/org/locationtech/jts/operation/valid/IsValidOp.js';
import type { AnyGeometry, Geometry } from '../../../src/filter/filter-tree.ts';

const reader = new GeoJSONReader(new GeometryFactory());

export function referenceIntersects(a: AnyGeometry, b: AnyGeometry): boolean {
  // JTS does not relate collections.
  if (a.type === 'GeometryCollection')
    return a.geometries.some((one) => referenceIntersects(one, b));
  if (b.type === 'GeometryCollection') return referenceIntersects(b, a);
  return RelateOp.intersects(reader.read(a), reader.read(b));
}

export function isReferenceValid(geometry: Geometry): boolean {
  return new IsValidOp(reader.read(geometry)).isValid();
}
