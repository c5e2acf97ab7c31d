/** Footprints in the product index: small, and exact for any number. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  footprintGeometry,
  storedFootprint,
} from '../../../../src/features/products/index-file/product-schema.ts';
import type { AnyGeometry } from '../../../../src/filter/filter-tree.ts';
import { times } from '../../../helpers/thorough.ts';

const microdegrees = fc.integer({ min: -180_000_000, max: 180_000_000 }).map((n) => n / 1e6);
const anyNumber = fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n || 0);
const fine = fc.integer({ min: -18e13, max: 18e13 }).map((n) => n / 1e12);
const coordinate = fc.oneof({ arbitrary: microdegrees, weight: 20 }, fine, anyNumber);
const position = fc.oneof(
  { arbitrary: fc.tuple(coordinate, coordinate), weight: 20 },
  // A record may contain heights.
  fc.tuple(coordinate, coordinate, coordinate) as unknown as fc.Arbitrary<[number, number]>,
);
const listOf = <Item>(item: fc.Arbitrary<Item>) => fc.array(item, { maxLength: 5 });
const ring = listOf(position);
const polygon = listOf(ring);
const coordinatesOf = {
  ...{ Point: position, MultiPoint: ring, LineString: ring },
  ...{ MultiLineString: polygon, Polygon: polygon, MultiPolygon: listOf(polygon) },
};
const simple = fc.oneof(
  ...Object.entries(coordinatesOf).map(([type, coordinates]) =>
    fc.record({ type: fc.constant(type), coordinates: coordinates as fc.Arbitrary<unknown> }),
  ),
) as fc.Arbitrary<AnyGeometry>;
const collection = fc.record({
  type: fc.constant('GeometryCollection' as const),
  geometries: listOf(simple),
});
const geometry: fc.Arbitrary<AnyGeometry> = fc.oneof(
  { arbitrary: simple, weight: 6 },
  { arbitrary: collection, weight: 1 },
);

it('a stored footprint is read as it was', () => {
  fc.assert(
    fc.property(geometry, (one) => {
      expect(footprintGeometry(storedFootprint(one))).toEqual(one);
    }),
    { numRuns: times(400, 2_000) },
  );
});
