/** Writes a geometry as well-known text. */
import type { Geometry, Position, Rings } from '../../domain/geometry.ts';
import { showNumber } from './show-literal.ts';

/** `POLYGON((4 50,5 50,5 51,4 50))`: longitude first, no blanks that are not needed. */
export function printWkt(geometry: Geometry): string {
  switch (geometry.type) {
    case 'Point':
      return `POINT(${printPosition(geometry.coordinates)})`;
    case 'MultiPoint':
      return `MULTIPOINT(${geometry.coordinates.map((one) => `(${printPosition(one)})`).join(',')})`;
    case 'Polygon':
      return `POLYGON${printRings(geometry.coordinates)}`;
    case 'MultiPolygon':
      return `MULTIPOLYGON(${geometry.coordinates.map(printRings).join(',')})`;
  }
}

function printRings(rings: Rings): string {
  return `(${rings.map((ring) => `(${ring.map(printPosition).join(',')})`).join(',')})`;
}

function printPosition([longitude, latitude]: Position): string {
  return `${showNumber(longitude)} ${showNumber(latitude)}`;
}
