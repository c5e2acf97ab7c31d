/** Says in plain words where a geometry lies. */
import type { Geometry, Position } from '../../domain/geometry.ts';
import { boxesOf } from '../geometry/boxes.ts';
import { toShape } from '../geometry/shape.ts';

/** `place meets POLYGON of 5 points between 4°E 50°N and 5°E 51°N`. */
export function describePlace(geometry: Geometry): string {
  const type = geometry.type.toUpperCase();
  const positions = positionsOf(geometry);
  const [first] = positions;
  if (first !== undefined && positions.length === 1) {
    return `place meets ${type} ${showPosition(first)}`;
  }
  const [box, other] = boxesOf(toShape(geometry));
  if (box === undefined) return `place meets an empty ${type}`;
  // A box that only touches the antimeridian has one without width on the other side.
  const crosses = other !== undefined && other.east > -180;
  const southWest = showPosition([box.west, box.south]);
  const northEast = showPosition([crosses ? other.east : box.east, box.north]);
  const across = crosses ? ', across the antimeridian' : '';
  const extent = `between ${southWest} and ${northEast}${across}`;
  return `place meets ${type} of ${positions.length} points ${extent}`;
}

function positionsOf(geometry: Geometry): readonly Position[] {
  switch (geometry.type) {
    case 'Point':
      return [geometry.coordinates];
    case 'MultiPoint':
      return geometry.coordinates;
    case 'Polygon':
      return geometry.coordinates.flat();
    case 'MultiPolygon':
      return geometry.coordinates.flat(2);
  }
}

function showPosition([longitude, latitude]: Position): string {
  return `${degrees(longitude, 'E', 'W')} ${degrees(latitude, 'N', 'S')}`;
}

/** Four digits are some ten metres. */
function degrees(value: number, positive: string, negative: string): string {
  const rounded = Number(value.toFixed(4));
  if (rounded === 0) return '0°';
  return `${Math.abs(rounded)}°${rounded > 0 ? positive : negative}`;
}
