/** Shorthand for places, and a check whether they intersect. */
import { expect } from 'vitest';
import type { AnyGeometry, Geometry, Position, Ring } from '../../../src/filter/filter-tree.ts';
import { shapesIntersect, toShape } from '../../../src/filter/geometry/shape.ts';

/** `0 0, 4 4, 4 0, 0 0`: longitude and latitude of each corner. */
export const ring = (text: string): Ring =>
  text.split(', ').map((corner): Position => {
    const [longitude = 0, latitude = 0] = corner.split(' ').map(Number);
    return [longitude, latitude];
  });
export const polygon = (...coordinates: Ring[]): Geometry => ({ type: 'Polygon', coordinates });
export const point = (...coordinates: Position): Geometry => ({ type: 'Point', coordinates });
/** `0 0, 4 4` */
export const line = (text: string): AnyGeometry => ({
  type: 'LineString',
  coordinates: ring(text),
});
/** Returns parts with one ring each. */
export const multi = (...rings: Ring[]): Geometry => ({
  type: 'MultiPolygon',
  coordinates: rings.map((one) => [one]),
});
export const box = (west: number, south: number, east: number, north: number): Ring => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
/** Returns a ring around the globe at a latitude. */
export const parallel = (latitude: number, step = 30): Ring =>
  Array.from({ length: 360 / step + 1 }, (_, i) => [((i * step + 180) % 360) - 180, latitude]);

/** Checks both directions. */
export function meet(a: AnyGeometry, b: AnyGeometry): boolean {
  const [one, other] = [toShape(a), toShape(b)];
  const answer = shapesIntersect(one, other);
  expect(shapesIntersect(other, one)).toBe(answer);
  return answer;
}
