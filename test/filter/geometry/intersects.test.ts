/**
 * Intersection of two places: compared with JTS in the plane, at any longitude, and for any
 * footprint.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  AnyGeometry,
  Box,
  Geometry,
  Position,
  Ring,
} from '../../../src/filter/filter-tree.ts';
import { linesOf } from '../../../src/filter/geometry/ring.ts';
import { boxesOf, toShape } from '../../../src/filter/geometry/shape.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitraryFootprints, mapped, turnedBy } from './arbitrary-areas.ts';
import { box, meet, multi, parallel, point, polygon, ring } from './places.ts';
import { isReferenceValid, referenceIntersects } from './reference.ts';

/** The polygons of a geometry are valid, and its lines have a length. */
const isValid = (geometry: AnyGeometry) =>
  geometry.type === 'GeometryCollection'
    ? geometry.geometries.every(isValid)
    : linesOf(geometry).every((line) => new Set(line.map(String)).size > 1) &&
      (/Line/.test(geometry.type) || isReferenceValid(geometry as Geometry));

describe('two geometries intersect', () => {
  it('exactly when JTS reports it', () => {
    fc.assert(
      fc.property(arbitraryFootprints, arbitraryFootprints, (a, b) => {
        fc.pre(isValid(a) && isValid(b));
        expect(meet(a, b)).toBe(referenceIntersects(a, b));
      }),
      { numRuns: times(200, 800) },
    );
  });

  it('at any longitude, if they do at one', () => {
    const degrees = fc.integer({ min: -1440, max: 1440 }).map((quarters) => quarters / 4);
    fc.assert(
      fc.property(arbitraryFootprints, arbitraryFootprints, degrees, (a, b, by) => {
        expect(meet(turnedBy(a, by), turnedBy(b, by))).toBe(meet(a, b));
      }),
      { numRuns: times(400, 2_000) },
    );
  });

  it('when a polygon with thousands of corners and a footprint touch in one corner', () => {
    const count = 4000;
    const corners = Array.from({ length: count }, (_, i): Position => {
      const [angle, radius] = [(2 * Math.PI * i) / count, i % 2 === 0 ? 10 : 9];
      return [radius * Math.cos(angle), radius * Math.sin(angle)];
    });
    const area = polygon([...corners, ...corners.slice(0, 1)]);
    const [x, y] = corners[1000] ?? [0, 0];
    const reversed = ring(`${x} ${y}, ${x - 1} ${y + 1}, ${x + 1} ${y + 1}, ${x} ${y}`);
    expect(meet(area, polygon(reversed))).toBe(true);
    expect(meet(area, polygon(box(11, -1, 12, 1)))).toBe(false);
    expect(meet(area, polygon(box(-1, -1, 1, 1)))).toBe(true);
    for (let i = 0; i < times(30, 200); i += 1)
      expect(meet(area, point(8 * Math.cos(i), 8 * Math.sin(i)))).toBe(true);
  });
});

describe('any footprint is accepted', () => {
  it('open rings are closed', () => {
    expect(meet(polygon(ring('0 0, 10 0, 10 10, 0 10')), point(0, 5))).toBe(true);
    expect(meet(polygon([[5, 5]]), polygon(box(0, 0, 9, 9)))).toBe(true);
    expect(meet(polygon(ring('5 5, 6 6, 5 5')), point(5.5, 5.5))).toBe(true);
  });

  it('any positions give an answer', () => {
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer({ min: -400, max: 400 }),
    );
    const ring = fc.array(fc.tuple(number, number), { minLength: 1, maxLength: 6 });
    const wild = fc.array(ring, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(wild, wild, (a, b) => {
        expect(typeof meet(polygon(...a), polygon(...b))).toBe('boolean');
      }),
    );
  });
});

/** Expects the area to intersect all places of the first list, and none of the second. */
function expectMet(area: Geometry, met: Ring, missed: Ring = []): void {
  for (const place of met) expect(meet(area, point(...place)), `${place}`).toBe(true);
  for (const place of missed) expect(meet(area, point(...place)), `${place}`).toBe(false);
}

describe('across the antimeridian', () => {
  it('an edge takes the short way, and parts that were cut there are one', () => {
    expectMet(polygon(box(-100, -10, 100, 10)), ring('180 0'), ring('0 0'));
    const cut = multi(box(177, -20, 180, -15), box(-180, -20, -178, -15));
    expect(meet(cut, polygon(box(179.5, -18, 180, -17)))).toBe(true);
    expect(meet(polygon(box(177, -20, 180, -15)), polygon(box(-180, -20, -178, -15)))).toBe(true);
    expect(meet(point(180, 3), point(-180, 3))).toBe(true);
  });
});

describe('around the globe', () => {
  it('the seam is a border when only one end lies on it', () => {
    const step = polygon(ring('-180 0, 0 0, 180 0, 180 9, 0 9, 0 5, -180 5, -180 0'));
    expectMet(step, ring('180 7'), ring('-179 7, 180 9.1'));
  });

  it('the rectangle of all longitudes and latitudes covers the globe, and a hole in it is a hole', () => {
    const globe = polygon(box(-180, -90, 180, 90));
    expectMet(globe, ring('0 0, 180 0, -180 10, 77 90, 3 -90'));
    expectMet(polygon(box(-180, -10, 180, 10)), ring('180 0'), ring('0 11, 180 11'));
    const holed = polygon(box(-180, -90, 180, 90), box(5, -5, 15, 5));
    expectMet(holed, ring('0 0, 180 0'), ring('10 0'));
    expect(meet(holed, polygon(box(9, -1, 11, 1)))).toBe(false);
    expect(meet(holed, polygon(box(4, -1, 6, 1)))).toBe(true);
  });
});

describe('around a pole', () => {
  it('a ring encloses the nearer pole, in either direction and from any first corner', () => {
    const turned = [parallel(80), parallel(80).toReversed(), parallel(80, 45), parallel(80, 1)];
    for (const one of turned) {
      expectMet(polygon(one), ring('17 85, 180 89.9, -45 90'), ring('17 79, 0 -90'));
    }
    expectMet(polygon(parallel(-70)), ring('10 -75'), ring('10 -60'));
  });

  it('a hole around the pole leaves a ring without a seam', () => {
    const area = polygon(parallel(70), parallel(85));
    for (const longitude of [-180, -90, 0, 77, 180]) {
      expectMet(area, [[longitude, 80]], [[longitude, 87]]);
      expect(meet(area, polygon(box(longitude - 1, 86, longitude + 1, 89)))).toBe(false);
    }
    expect(meet(area, point(0, 90))).toBe(false);
  });

  it('the pole is one place for all longitudes', () => {
    expect(meet(point(0, 90), point(120, 90))).toBe(true);
    expect(meet(polygon(ring('10 80, 20 80, 15 90, 10 80')), point(-100, 90))).toBe(true);
    expect(meet(point(0, -90), point(0, 90))).toBe(false);
  });
});

const boxes = (geometry: AnyGeometry) => boxesOf(toShape(geometry));
const overlap = (a: Box, b: Box) =>
  a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north;

describe('the bounding boxes of a shape', () => {
  const around = (west: number, south: number, east: number, north: number) => ({
    ...{ west, south, east, north },
  });
  const points = (text: string): AnyGeometry => ({ type: 'MultiPoint', coordinates: ring(text) });

  it.each<[string, AnyGeometry, Box[]]>([
    ['one', polygon(ring('1 2, 3 2, 3 5, 1 2')), [around(1, 2, 3, 5)]],
    [
      'two at the antimeridian',
      polygon(ring('175 0, -170 0, -170 5, 175 0')),
      [around(175, 0, 180, 5), around(-180, 0, -170, 5)],
    ],
    [
      'two without the largest gap between parts',
      points('170 1, -160 1, -120 1'),
      [around(170, 1, 180, 1), around(-180, 1, -120, 1)],
    ],
    ['one between parts', points('-100 1, 20 1'), [around(-100, 1, 20, 1)]],
    ['all longitudes at a pole', point(40, 90), [around(-180, 90, 180, 90)]],
    [
      'all longitudes around a pole',
      polygon(ring('0 80, 120 75, -120 80, 0 80')),
      [around(-180, 75, 180, 90)],
    ],
    ['the globe', polygon(box(-180, -90, 180, 90)), [around(-180, -90, 180, 90)]],
  ])('are %s', (_, geometry, expected) => {
    expect(boxes(geometry)).toEqual(expected);
  });

  it('overlap whenever the shapes intersect', () => {
    const anywhere = fc
      .tuple(arbitraryFootprints, fc.integer({ min: 0, max: 359 }), fc.constantFrom(-90, -6, 78))
      .map(([geometry, by, up]) =>
        mapped(turnedBy(geometry, by), ([x, y]) => [x, Math.min(90, y + up)]),
      );
    const near = fc.tuple(anywhere, arbitraryFootprints, fc.integer({ min: 168, max: 182 }));
    let met = 0;
    fc.assert(
      fc.property(near, ([a, other, by]) => {
        const b = turnedBy(other, by);
        for (const box of boxes(a)) {
          expect(box.west).toBeGreaterThanOrEqual(-180);
          expect(box.west).toBeLessThanOrEqual(box.east);
          expect(box.east).toBeLessThanOrEqual(180);
        }
        const moved = turnedBy(a, 0);
        for (const [one, two] of [
          [a, b],
          [moved, a],
          [turnedBy(other, 175), b],
        ] as const) {
          if (!meet(one, two)) continue;
          met += 1;
          expect(
            boxes(one).some((box) => boxes(two).some((another) => overlap(box, another))),
          ).toBe(true);
        }
      }),
      { numRuns: times(400, 2_000) },
    );
    expect(met).toBeGreaterThan(times(400, 2_000));
  });
});
