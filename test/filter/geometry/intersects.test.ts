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
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitraryFootprints, mapped, turnedBy } from './arbitrary-areas.ts';
import { box, line, meet, multi, parallel, point, polygon, ring } from './places.ts';
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

  it('in every corner, also when a ring crosses the antimeridian', () => {
    const corner = fc.tuple(
      fc.double({ min: -180, max: 180, noNaN: true }),
      fc.double({ min: -80, max: 80, noNaN: true }),
    );
    fc.assert(
      fc.property(
        fc.array(corner, { minLength: 3, maxLength: 6 }),
        fc.integer({ min: 0, max: 5 }),
        (ring, i) => {
          const at = ring[i % ring.length] ?? [0, 0];
          expect(meet(polygon(ring), point(...at))).toBe(true);
        },
      ),
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
  it('open rings are closed, and values that are not numbers are ignored', () => {
    expect(meet(polygon(ring('0 0, 10 0, 10 10, 0 10')), point(0, 5))).toBe(true);
    const around = polygon(box(-20, -20, 20, 20));
    expect(meet(polygon(ring('0 0, NaN 0, 10 10')), around)).toBe(false);
    expect(meet(polygon([]), around)).toBe(false);
    expect(meet(polygon([[5, 5]]), polygon(box(0, 0, 9, 9)))).toBe(true);
    expect(meet(polygon(ring('5 5, 6 6, 5 5')), point(5.5, 5.5))).toBe(true);
  });

  it('any positions give an answer', () => {
    const number = fc.oneof(fc.double(), fc.integer({ min: -400, max: 400 }));
    const wild = fc.array(fc.array(fc.tuple(number, number), { maxLength: 6 }), { maxLength: 3 });
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

describe('a line', () => {
  it('meets areas that it crosses, touches or lies in, and contains no point next to it', () => {
    const corner = line('0 0, 4 0, 4 4');
    const inside = [
      polygon(box(-1, -1, 9, 9)),
      polygon(box(2, -1, 3, 1)),
      polygon(box(4, 4, 5, 5)),
    ];
    for (const area of [...inside, point(4, 2), line('4 4, 9 9')])
      expect(meet(corner, area)).toBe(true);
    const outside = [polygon(box(1, 1, 3, 3)), point(3, 1), point(2, -1), line('0 4, 3 1')];
    for (const area of outside) expect(meet(corner, area)).toBe(false);
  });

  it('takes the short way across the antimeridian, and may go round the globe', () => {
    const track = line('170 10, -170 20');
    expect(meet(track, point(180, 15))).toBe(true);
    expect(meet(track, point(0, 15))).toBe(false);
    expect(boxes(track)).toEqual([
      { west: 170, south: 10, east: 180, north: 20 },
      { west: -180, south: 10, east: -170, north: 20 },
    ]);
    const round = line('-180 0, -60 0, 60 0, 180 0, 180 9');
    expect(meet(round, point(-180, 5))).toBe(true);
    expect(meet(round, point(100, 5))).toBe(false);
    expect(meet(line('0 80, 0 90'), point(77, 90))).toBe(true);
  });
});

describe('across the antimeridian', () => {
  const fiji = polygon(ring('177 -20, -178 -20, -178 -15, 177 -15, 177 -20'));

  it('an edge takes the short way', () => {
    const inside = ring('179 -17, -179 -17, 180 -17, -180 -17');
    expectMet(fiji, inside, ring('0 -17, 176.9 -17, -177.9 -17'));
  });

  it('parts that were cut there are one', () => {
    const cut = multi(box(177, -20, 180, -15), box(-180, -20, -178, -15));
    expect(meet(cut, polygon(box(179.5, -18, 180, -17)))).toBe(true);
    expect(meet(polygon(box(177, -20, 180, -15)), polygon(box(-180, -20, -178, -15)))).toBe(true);
    expect(meet(point(180, 3), point(-180, 3))).toBe(true);
  });

  it('a hole across it is a hole', () => {
    const holed = polygon(
      box(170, -30, 190, 30).map(([x, y]) => [x > 180 ? x - 360 : x, y]),
      ring('178 -5, -178 -5, -178 5, 178 5, 178 -5'),
    );
    expectMet(holed, ring('-178 0, -175 0'), ring('180 0, -179 0'));
  });
});

describe('around the globe', () => {
  it('the seam is a border when only one end lies on it', () => {
    const step = polygon(ring('-180 0, 0 0, 180 0, 180 9, 0 9, 0 5, -180 5, -180 0'));
    expectMet(step, ring('180 7'), ring('-179 7, 180 9.1'));
  });

  it('the rectangle of all longitudes and latitudes covers the globe, and a hole in it is a hole', () => {
    const context = polygon(box(-180, -90, 180, 90));
    expectMet(context, ring('0 0, 180 0, -180 10, 77 90, 3 -90'));
    expect(meet(context, context)).toBe(true);
    const holed = polygon(box(-180, -90, 180, 90), box(5, -5, 15, 5));
    expectMet(holed, ring('0 0, 180 0'), ring('10 0'));
    expect(meet(holed, polygon(box(9, -1, 11, 1)))).toBe(false);
    expect(meet(holed, polygon(box(4, -1, 6, 1)))).toBe(true);
  });

  it('a band of 360 degrees covers all longitudes', () => {
    expectMet(polygon(box(-180, -10, 180, 10)), ring('180 0'), ring('0 11, 180 11'));
  });

  it('an edge of 200 degrees takes the short way', () => {
    expectMet(polygon(box(-100, -10, 100, 10)), ring('180 0'), ring('0 0'));
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

  it('the same ring with sides along the pole is the same place', () => {
    const written = polygon(ring('-180 80, 0 80, 180 80, 180 90, -180 90, -180 80'));
    const within = ring('180 85, 5 90, -180 80');
    expectMet(written, within, ring('180 79'));
    expectMet(polygon(parallel(80)), within);
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

  it('a swath of Sentinel-3 over the pole intersects only what lies under it', () => {
    // Up at 100 degrees east, over the pole, down at 80 degrees west, about 1,400 km wide.
    const swath = polygon(
      ring(
        '90 70, 110 70, 115 78, 150 85, -150 86, -110 84, -93 78, -90 70, -70 70, -65 78, -30 85, 30 86, 70 84, 87 78, 90 70',
      ),
    );
    expect(geometryFaults(swath)).toEqual([]);
    expectMet(swath, ring('0 90, 100 75'), ring('10 70'));
    expect(meet(swath, polygon(parallel(89)))).toBe(true);
  });
});

const boxes = (geometry: AnyGeometry) => boxesOf(toShape(geometry));
const ofRing = (...ring: Ring) => boxes({ type: 'Polygon', coordinates: [ring] });
const overlap = (a: Box, b: Box) =>
  a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north;

describe('the bounding boxes of a shape', () => {
  it('are one, or two at the antimeridian', () => {
    expect(ofRing([1, 2], [3, 2], [3, 5], [1, 2])).toEqual([
      { west: 1, south: 2, east: 3, north: 5 },
    ]);
    expect(ofRing([175, 0], [-170, 0], [-170, 5], [175, 0])).toEqual([
      { west: 175, south: 0, east: 180, north: 5 },
      { west: -180, south: 0, east: -170, north: 5 },
    ]);
  });

  it('exclude the largest gap between parts', () => {
    const points = (...longitudes: number[]) =>
      boxes({ type: 'MultiPoint', coordinates: longitudes.map((x): Position => [x, 1]) });
    expect(points(170, -160, -120)).toEqual([
      { west: 170, south: 1, east: 180, north: 1 },
      { west: -180, south: 1, east: -120, north: 1 },
    ]);
    expect(points(-100, 20)).toEqual([{ west: -100, south: 1, east: 20, north: 1 }]);
  });

  it('span all longitudes at a pole and for the whole globe', () => {
    const all = { west: -180, east: 180 };
    expect(boxes({ type: 'Point', coordinates: [40, 90] })).toEqual([
      { ...all, south: 90, north: 90 },
    ]);
    expect(ofRing([0, 80], [120, 75], [-120, 80], [0, 80])).toEqual([
      { ...all, south: 75, north: 90 },
    ]);
    const context = ofRing([-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]);
    expect(context).toEqual([{ ...all, south: -90, north: 90 }]);
  });

  it('do not exist for a shape without a place', () => {
    expect(ofRing()).toEqual([]);
    expect(ofRing([Number.NaN, 3])).toEqual([]);
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
