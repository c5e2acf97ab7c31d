/** Geometries from GeoJSON, and to GeoJSON that any map can show. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Geometry, Position, Ring } from '../../../src/domain/geometry.ts';
import { joinAreas, readAreas, toGeoJson } from '../../../src/filter/geometry/geojson.ts';
import { shapesIntersect } from '../../../src/filter/geometry/intersects.ts';
import { toShape } from '../../../src/filter/geometry/shape.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { arbitraryAreas, turnedBy } from './arbitrary.ts';

const square: Ring = [
  [0, 0],
  [4, 0],
  [4, 4],
  [0, 4],
  [0, 0],
];
const polygon: Geometry = { type: 'Polygon', coordinates: [square] };

function ringsOf(geometry: Geometry): readonly (readonly Ring[])[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

function doubledArea(ring: Ring): number {
  return ring.reduce((sum, [x, y], i) => {
    const [nextX, nextY] = ring[i + 1] ?? [x, y];
    return sum + x * nextY - nextX * y;
  }, 0);
}

/** RFC 7946, 3.1.6 and 3.1.9. */
function expectForm(geometry: Geometry): void {
  for (const rings of ringsOf(geometry)) {
    for (const [i, ring] of rings.entries()) {
      expect(ring.length).toBeGreaterThanOrEqual(4);
      expect(ring.at(-1)).toEqual(ring[0]);
      expect(doubledArea(ring) * (i === 0 ? 1 : -1)).toBeGreaterThanOrEqual(0);
      for (const [x, y] of ring) {
        expect(Math.abs(x)).toBeLessThanOrEqual(180);
        expect(Math.abs(y)).toBeLessThanOrEqual(90);
      }
      // No edge goes round the globe but along a pole or a parallel that the cut laid there.
      for (const [j, [x, y]] of ring.entries()) {
        const [nextX, nextY] = ring[j + 1] ?? [x, y];
        if (Math.abs(nextX - x) > 180) expect([90, -90, y]).toContain(nextY);
      }
    }
  }
}

describe('GeoJSON of a geometry', () => {
  it('is in form and the same place, wherever it lies', () => {
    const places = fc.array(
      fc.tuple(fc.integer({ min: -4, max: 30 }), fc.integer({ min: -4, max: 30 })).map(
        // On no line between whole numbers as small as the corners', so that a rounded cut decides nothing.
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
        fc.pre(geometryFaults(area).length === 0);
        const geometry = turnedBy(area, by);
        const written = toGeoJson(geometry);
        expectForm(written);
        if (ringsOf(written).length > ringsOf(geometry).length) cut += 1;
        for (const position of positions) {
          const point = toShape(turnedBy({ type: 'Point', coordinates: position }, by));
          const expected = shapesIntersect(toShape(geometry), point);
          // Each part for itself, in the plane, as a map would draw it.
          const parts = ringsOf(written).map(
            (coordinates) => ({ type: 'Polygon', coordinates }) as const,
          );
          expect(parts.some((part) => shapesIntersect(toShape(part), point))).toBe(expected);
        }
      }),
      { numRuns: 1000 },
    );
    expect(cut).toBeGreaterThan(100);
  });

  it('keeps degrees as they are written', () => {
    const ring: Ring = [
      [-75.313362, -54.588795],
      [-70.425232, -55.353416],
      [-71.691978, -53.708649],
      [-75.313362, -54.588795],
    ];
    expect(toGeoJson({ type: 'Polygon', coordinates: [ring] })).toEqual({
      type: 'Polygon',
      coordinates: [ring],
    });
  });

  it('keeps a hole that touches an outline whose edge is cut between whole numbers', () => {
    const outline: Ring = [
      [178, 0],
      [180, 0],
      [-173, 12],
      [178, 6],
      [178, 0],
    ];
    const hole: Ring = [
      [-179, 3],
      [-178, 4],
      [-179, 8],
      [-179, 3],
    ];
    const written = toGeoJson({ type: 'Polygon', coordinates: [outline, hole] });
    expect(ringsOf(written).map(({ length }) => length)).toEqual([1, 2]);
    const inHole = toShape({ type: 'Point', coordinates: [-178.75, 4] });
    expect(shapesIntersect(toShape(written), inHole)).toBe(false);
  });

  it('is cut at the antimeridian, and each hole stays with the part that it lies in', () => {
    const holeAt = (west: number): Ring => [
      [west, 4],
      [west, 6],
      [west + 1, 6],
      [west + 1, 4],
      [west, 4],
    ];
    const outline: Ring = [
      [175, 0],
      [-175, 0],
      [-175, 10],
      [175, 10],
      [175, 0],
    ];
    const coordinates = [outline, holeAt(177), holeAt(-178)];
    const parts = ringsOf(toGeoJson({ type: 'Polygon', coordinates }));
    expect(parts.map((rings) => rings.length)).toEqual([2, 2]);
    for (const [part = [], hole = []] of parts) {
      const sides = [...part, ...hole].map(([longitude]) => Math.sign(longitude));
      expect(new Set(sides).size).toBe(1);
    }
  });

  it('is cut at the antimeridian, with each part on its side', () => {
    const crossing: Ring = [
      [175, 0],
      [-175, 0],
      [-175, 10],
      [175, 10],
      [175, 0],
    ];
    const written = toGeoJson({ type: 'Polygon', coordinates: [crossing] });
    expect(written.type).toBe('MultiPolygon');
    expect(
      ringsOf(written).map(([ring = []]) => ring.map(([x]) => x).toSorted((a, b) => a - b)),
    ).toEqual(
      expect.arrayContaining([
        [175, 175, 175, 180, 180]
          .toSorted((a, b) => a - b)
          .map(() => expect.toSatisfy((x: number) => x >= 175)),
        [1, 2, 3, 4, 5].map(() => expect.toSatisfy((x: number) => x <= -175)),
      ]),
    );
    expectForm(written);
  });

  it('has sides along the pole that it goes round, and holes round it as bays', () => {
    const ring = (latitude: number): Ring => [
      [0, latitude],
      [120, latitude],
      [-120, latitude],
      [0, latitude],
    ];
    const cap = toGeoJson({ type: 'Polygon', coordinates: [ring(70)] });
    expectForm(cap);
    expect(JSON.stringify(cap)).toContain('[180,90]');
    const band = toGeoJson({ type: 'Polygon', coordinates: [ring(70), ring(80)] });
    expectForm(band);
    expect(JSON.stringify(band)).not.toContain('90]');
    expect(geometryFaults(band)).toEqual([]);
  });

  it('of the whole world is the whole world', () => {
    const world: Ring = [
      [-180, -90],
      [180, -90],
      [180, 90],
      [-180, 90],
      [-180, -90],
    ];
    const written = toGeoJson({ type: 'Polygon', coordinates: [world] });
    expectForm(written);
    const all = toShape(written);
    for (const coordinates of [
      [0, 0],
      [180, 4],
      [-180, -90],
      [3, 90],
    ] as const) {
      expect(shapesIntersect(all, toShape({ type: 'Point', coordinates }))).toBe(true);
    }
    expect(ringsOf(written).length).toBe(1);
  });

  it('brings points home', () => {
    expect(toGeoJson({ type: 'Point', coordinates: [190, 5] })).toEqual({
      type: 'Point',
      coordinates: [-170, 5],
    });
    expect(toGeoJson({ type: 'MultiPoint', coordinates: [[180, 5]] })).toEqual({
      type: 'MultiPoint',
      coordinates: [[180, 5]],
    });
  });
});

describe('reading GeoJSON', () => {
  const feature = (geometry: unknown) => ({ type: 'Feature', properties: { a: 1 }, geometry });
  const joined = (value: unknown) => joinAreas(readAreas(value));

  it('keeps points and polygons apart, as no geometry of a filter holds both', () => {
    const point = { type: 'Point', coordinates: [0, 0] };
    const both = { type: 'GeometryCollection', geometries: [polygon, point] };
    expect(readAreas(both)).toEqual([polygon, point]);
    expect(joined(both)).toBeNull();
  });

  it('takes geometries, features and collections of one kind', () => {
    expect(joined(polygon)).toEqual(polygon);
    expect(joined(feature(polygon))).toEqual(polygon);
    expect(
      joined({ type: 'FeatureCollection', features: [feature(polygon), feature(null)] }),
    ).toEqual(polygon);
    expect(
      joined({ type: 'FeatureCollection', features: [feature(polygon), feature(polygon)] }),
    ).toEqual({
      type: 'MultiPolygon',
      coordinates: [[square], [square]],
    });
    expect(
      joined({
        type: 'GeometryCollection',
        geometries: [{ type: 'Point', coordinates: [1, 2, 300] }],
      }),
    ).toEqual({ type: 'Point', coordinates: [1, 2] });
    expect(
      joined({
        type: 'Point',
        coordinates: [1, 2],
        crs: { type: 'name', properties: { name: 'urn:ogc:def:crs:OGC:1.3:CRS84' } },
      }),
    ).toEqual({ type: 'Point', coordinates: [1, 2] });
  });

  it.each([
    [
      {
        type: 'LineString',
        coordinates: [
          [0, 0],
          [1, 1],
        ],
      },
      /"LineString" cannot be used/,
    ],
    [
      {
        type: 'Polygon',
        coordinates: [
          [0, 0],
          [1, 1],
        ],
      },
      /Polygon of the GeoJSON cannot be read at coordinates/,
    ],
    [{ type: 'Point', coordinates: ['1', '2'] }, /Point of the GeoJSON cannot be read/],
    [{ type: 'Point', coordinates: [Number.NaN, 2] }, /cannot be read/],
    [{ type: 'FeatureCollection', features: [] }, /holds no geometry/],
    [{ ...polygon, crs: { properties: { name: 'EPSG:3857' } } }, /EPSG:3857/],
    [null, /no GeoJSON/],
    ['POINT (1 2)', /no GeoJSON/],
    [[], /no GeoJSON/],
  ])('refuses %j and says why', (value, message) => {
    expect(() => readAreas(value)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) }),
    );
  });

  it('refuses collections that nest without end', () => {
    let nested: unknown = polygon;
    for (let i = 0; i < 1000; i += 1) nested = { type: 'GeometryCollection', geometries: [nested] };
    expect(() => readAreas(nested)).toThrow(/too deeply/);
  });
});
