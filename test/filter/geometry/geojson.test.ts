/** Geometries from GeoJSON, and to GeoJSON that any map can show. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AnyGeometry, Geometry, Position, Ring } from '../../../src/filter/filter-tree.ts';
import { toGeoJson } from '../../../src/filter/geometry/geojson.ts';
import {
  geometryFaults,
  joinAreas,
  readAreas,
} from '../../../src/filter/geometry/read-geometry.ts';
import { linesOf, polygonsOf, positionsOf } from '../../../src/filter/geometry/ring.ts';
import { shapesIntersect, toShape } from '../../../src/filter/geometry/shape.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitraryAreas, arbitraryLines, turnedBy } from './arbitrary-areas.ts';
import { box, line, multi, parallel, point, polygon, ring } from './places.ts';
import { isReferenceValid } from './reference.ts';

const square = polygon(box(0, 0, 4, 4));
const isIn = (geometry: AnyGeometry, place: AnyGeometry) =>
  shapesIntersect(toShape(geometry), toShape(place));

function doubledArea(ring: Ring): number {
  return ring.reduce((sum, [x, y], i) => {
    const [nextX, nextY] = ring[i + 1] ?? [x, y];
    return sum + x * nextY - nextX * y;
  }, 0);
}

/** RFC 7946, 3.1.6 and 3.1.9. */
function expectForm(geometry: Geometry): void {
  for (const rings of polygonsOf(geometry)) {
    for (const [i, ring] of rings.entries()) {
      expect(ring.length).toBeGreaterThanOrEqual(4);
      expect(ring.at(-1)).toEqual(ring[0]);
      expect(doubledArea(ring) * (i === 0 ? 1 : -1)).toBeGreaterThanOrEqual(0);
      for (const [x, y] of ring) {
        expect(Math.abs(x)).toBeLessThanOrEqual(180);
        expect(Math.abs(y)).toBeLessThanOrEqual(90);
      }
      // No edge crosses 180 degrees of longitude, except along a pole or a parallel that the cut
      // added.
      for (const [j, [x, y]] of ring.entries()) {
        const [nextX, nextY] = ring[j + 1] ?? [x, y];
        if (Math.abs(nextX - x) > 180) expect([90, -90, y]).toContain(nextY);
      }
    }
  }
}

describe('GeoJSON of a geometry', () => {
  it('is well-formed and describes the same place, wherever the geometry lies', () => {
    const places = fc.array(
      fc.tuple(fc.integer({ min: -4, max: 30 }), fc.integer({ min: -4, max: 30 })).map(
        // Not on a line between whole numbers as small as the corners', so that a rounded cut
        // decides nothing.
        ([x, y]): Position => [x / 2 + 0.25, y / 2 + 0.1237],
      ),
      { minLength: 5, maxLength: 10 },
    );
    const shifts = fc.oneof(
      fc.integer({ min: 166, max: 182 }),
      fc.integer({ min: -180, max: 180 }),
    );
    let cut = 0;
    fc.assert(
      fc.property(arbitraryAreas, places, shifts, (area, positions, by) => {
        fc.pre(isReferenceValid(area));
        const geometry = turnedBy(area, by);
        const written = toGeoJson(geometry);
        expectForm(written);
        if (polygonsOf(written).length > polygonsOf(geometry).length) cut += 1;
        for (const position of positions) {
          const place = turnedBy(point(...position), by);
          // Each part separately, in the plane, as a map draws it.
          const parts = polygonsOf(written).map((part) => polygon(...part));
          expect(parts.some((part) => isIn(part, place))).toBe(isIn(geometry, place));
        }
      }),
      { numRuns: times(200, 1_000) },
    );
    expect(cut).toBeGreaterThan(times(15, 100));
  });

  it('has sides along the pole that it encloses, and holes around the pole as bays', () => {
    expectForm(toGeoJson(polygon(box(-180, -90, 180, 90))));
    const cap = toGeoJson(polygon(parallel(70, 120)));
    expectForm(cap);
    expect(JSON.stringify(cap)).toContain('[180,90]');
    const band = toGeoJson(polygon(parallel(70, 120), parallel(80, 120)));
    expectForm(band);
    expect(JSON.stringify(band)).not.toContain('90]');
    expect(isReferenceValid(band)).toBe(true);
  });

  it('has lines of at least two positions, and describes the same place', () => {
    let cut = 0;
    fc.assert(
      fc.property(arbitraryLines, fc.integer({ min: 166, max: 182 }), (some, by) => {
        const geometry = turnedBy(some, by);
        const written = toGeoJson(geometry);
        for (const part of linesOf(written)) {
          expect(part.length).toBeGreaterThan(1);
          for (const [i, [x]] of part.entries()) {
            expect(Math.abs(x)).toBeLessThanOrEqual(180);
            expect(Math.abs((part[i - 1]?.[0] ?? x) - x)).toBeLessThanOrEqual(180);
          }
        }
        if (linesOf(written).length > linesOf(geometry).length) cut += 1;
        for (const position of positionsOf(geometry)) {
          expect(isIn(written, point(...position))).toBe(true);
        }
        expect(positionsOf(written).every((one) => isIn(written, point(...one)))).toBe(true);
      }),
    );
    expect(cut).toBeGreaterThan(10);
  });

  it('converts each member of a collection, and keeps degrees as written', () => {
    const triangle = polygon(
      ring(
        '-75.313362 -54.588795, -70.425232 -55.353416, -71.691978 -53.708649, -75.313362 -54.588795',
      ),
    );
    const geometries = [point(190, 5), line('179 0, -179 1'), triangle];
    expect(toGeoJson({ type: 'GeometryCollection', geometries })).toEqual({
      type: 'GeometryCollection',
      geometries: [
        point(-170, 5),
        {
          type: 'MultiLineString',
          coordinates: [ring('179 0, 180 0.5'), ring('-180 0.5, -179 1')],
        },
        triangle,
      ],
    });
  });
});

describe('reading GeoJSON', () => {
  const feature = (geometry: unknown) => ({ type: 'Feature', properties: { a: 1 }, geometry });
  const crs = (name: string) => ({ type: 'name', properties: { name } });
  const joined = (value: unknown) => joinAreas(readAreas(value));

  const features = (...all: unknown[]) => ({ type: 'FeatureCollection', features: all });
  const both = { type: 'GeometryCollection', geometries: [square, point(0, 0)] };

  it('keeps polygons apart whose boxes touch, also across the antimeridian', () => {
    const across = polygon(ring('170 0, -170 0, -170 5, 170 0'));
    for (const [one, other] of [
      [square, polygon(box(4, 4, 5, 5))],
      [across, polygon(box(-175, 4, -172, 9))],
      [polygon(box(170, 0, 180, 5)), polygon(box(-180, 0, -170, 5))],
    ])
      expect(joined(features(feature(one), feature(other)))).toBeNull();
    expect(joined(features(feature(across), feature(square)))?.type).toBe('MultiPolygon');
  });

  it.each([
    [square, square],
    [feature(square), square],
    [features(feature(square), feature(null)), square],
    [
      features(feature(square), feature(polygon(box(5, 0, 9, 4)))),
      multi(box(0, 0, 4, 4), box(5, 0, 9, 4)),
    ],
    [{ ...both, geometries: [{ type: 'Point', coordinates: [1, 2, 300] }] }, point(1, 2)],
    [{ ...point(1, 2), crs: crs('urn:ogc:def:crs:OGC:1.3:CRS84') }, point(1, 2)],
  ])('accepts geometries, features and collections of one kind: %j', (value, geometry) => {
    expect(joined(value)).toEqual(geometry);
  });

  it.each([
    [{ type: 'LineString', coordinates: ring('0 0, 1 1') }, /"LineString" cannot be used/],
    [{ type: 'Polygon', coordinates: ring('0 0, 1 1') }, /"Polygon" cannot be read: positions/],
    [{ type: 'Point', coordinates: ['1', '2'] }, /"Point" cannot be read/],
    [{ type: 'Point', coordinates: [Number.NaN, 2] }, /cannot be read/],
    [{ type: 'FeatureCollection', features: [] }, /has no geometry/],
    [{ ...square, crs: crs('EPSG:3857') }, /EPSG:3857/],
    [null, /Not GeoJSON/],
    ['POINT (1 2)', /Not GeoJSON/],
    [[], /Not GeoJSON/],
  ])('refuses %j with the reason', (value, message) => {
    expect(() => readAreas(value)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) }),
    );
  });

  it('refuses collections that are nested without end', () => {
    let nested: unknown = square;
    for (let i = 0; i < 1000; i += 1) nested = { type: 'GeometryCollection', geometries: [nested] };
    expect(() => readAreas(nested)).toThrow(/too deeply/);
  });
});

describe('each fault of a geometry has its place and advice', () => {
  const faultsOf = (geometry: Geometry) => geometryFaults(geometry).join('\n');
  it.each<[RegExp, Geometry]>([
    [/^190 50 is out of range/, { type: 'Point', coordinates: [190, 50] }],
    [/^1 91 is out of range/, polygon(ring('0 0, 1 0, 1 91, 0 0'))],
    [/ends at 4 51 is not closed/, polygon(ring('4 50, 5 50, 5 51, 4 51'))],
    [/at 4 50 has too few/, polygon(ring('4 50, 5 50, 4 50'))],
    [/at 4 50 has too few/, polygon(ring('4 50, 5 50, 5 50, 4 50'))],
  ])('%s: %j', (fault, geometry) => {
    expect(faultsOf(geometry)).toMatch(fault);
  });

  it('at most twenty are reported', () => {
    const coordinates = Array.from({ length: 500 }, (_, i): Position => [200 + i, 0]);
    expect(geometryFaults({ type: 'MultiPoint', coordinates })).toHaveLength(20);
  });

  it('with 200,000 positions, they are searched without exhausting the stack', () => {
    const corners = Array.from({ length: 200_000 }, (_, i): Position => [i % 180, i % 90]);
    expect(faultsOf(polygon([...corners, ...corners.slice(0, 1)]))).toBe('');
  });
});
