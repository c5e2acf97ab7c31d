/** The boxes that an index finds shapes by. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Box, Geometry, Position, Ring } from '../../../src/domain/geometry.ts';
import { shapesIntersect } from '../../../src/filter/geometry/intersects.ts';
import { boxesOf, toShape } from '../../../src/filter/geometry/shape.ts';
import { arbitraryGeometries, mapped, turnedBy } from './arbitrary-areas.ts';

const boxes = (geometry: Geometry) => boxesOf(toShape(geometry));
const ofRing = (...ring: Ring) => boxes({ type: 'Polygon', coordinates: [ring] });
const overlap = (a: Box, b: Box) =>
  a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north;

describe('the boxes of a shape', () => {
  it('are one, or two at the antimeridian', () => {
    expect(ofRing([1, 2], [3, 2], [3, 5], [1, 2])).toEqual([
      { west: 1, south: 2, east: 3, north: 5 },
    ]);
    expect(ofRing([175, 0], [-170, 0], [-170, 5], [175, 0])).toEqual([
      { west: 175, south: 0, east: 180, north: 5 },
      { west: -180, south: 0, east: -170, north: 5 },
    ]);
  });

  it('leave out the largest gap between parts', () => {
    const points = (...longitudes: number[]) =>
      boxes({ type: 'MultiPoint', coordinates: longitudes.map((x): Position => [x, 1]) });
    expect(points(170, -160, -120)).toEqual([
      { west: 170, south: 1, east: 180, north: 1 },
      { west: -180, south: 1, east: -120, north: 1 },
    ]);
    expect(points(-100, 20)).toEqual([{ west: -100, south: 1, east: 20, north: 1 }]);
  });

  it('go all round at a pole and for the whole world', () => {
    const all = { west: -180, east: 180 };
    expect(boxes({ type: 'Point', coordinates: [40, 90] })).toEqual([
      { ...all, south: 90, north: 90 },
    ]);
    expect(ofRing([0, 80], [120, 75], [-120, 80], [0, 80])).toEqual([
      { ...all, south: 75, north: 90 },
    ]);
    const world = ofRing([-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]);
    expect(world).toEqual([{ ...all, south: -90, north: 90 }]);
  });

  it('are none for a shape without a place', () => {
    expect(ofRing()).toEqual([]);
    expect(ofRing([Number.NaN, 3])).toEqual([]);
  });

  it('overlap whenever the shapes meet', () => {
    const anywhere = fc
      .tuple(arbitraryGeometries, fc.integer({ min: 0, max: 359 }), fc.constantFrom(-90, -6, 78))
      .map(([geometry, by, up]) =>
        mapped(turnedBy(geometry, by), ([x, y]) => [x, Math.min(90, y + up)]),
      );
    const near = fc.tuple(anywhere, arbitraryGeometries, fc.integer({ min: 168, max: 182 }));
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
          if (!shapesIntersect(toShape(one), toShape(two))) continue;
          met += 1;
          expect(
            boxes(one).some((box) => boxes(two).some((another) => overlap(box, another))),
          ).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
    expect(met).toBeGreaterThan(2000);
  });
});
