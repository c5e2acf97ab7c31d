/** Whether two places meet: against JTS in the plane, at any longitude, and whatever the footprint. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Position } from '../../../src/domain/geometry.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { arbitraryGeometries, turnedBy } from './arbitrary.ts';
import { box, meet, point, polygon } from './places.ts';
import { referenceIntersects } from './reference.ts';

describe('two geometries meet', () => {
  it('exactly when JTS says so', () => {
    fc.assert(
      fc.property(arbitraryGeometries, arbitraryGeometries, (a, b) => {
        fc.pre(geometryFaults(a).length === 0 && geometryFaults(b).length === 0);
        expect(meet(a, b)).toBe(referenceIntersects(a, b));
      }),
      { numRuns: 800 },
    );
  });

  it('at any longitude, if they do at one', () => {
    const degrees = fc.integer({ min: -1440, max: 1440 }).map((quarters) => quarters / 4);
    fc.assert(
      fc.property(arbitraryGeometries, arbitraryGeometries, degrees, (a, b, by) => {
        expect(meet(turnedBy(a, by), turnedBy(b, by))).toBe(meet(a, b));
      }),
      { numRuns: 2000 },
    );
  });

  it('in every corner, also where a ring has been laid out across the antimeridian', () => {
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

  it('when a polygon of thousands of corners and a footprint touch in one of them', () => {
    const count = 4000;
    const ring = Array.from({ length: count }, (_, i): Position => {
      const [angle, radius] = [(2 * Math.PI * i) / count, i % 2 === 0 ? 10 : 9];
      return [radius * Math.cos(angle), radius * Math.sin(angle)];
    });
    const area = polygon([...ring, ...ring.slice(0, 1)]);
    const [x, y] = ring[1000] ?? [0, 0];
    expect(
      meet(
        area,
        polygon([
          [x, y],
          [x - 1, y + 1],
          [x + 1, y + 1],
          [x, y],
        ]),
      ),
    ).toBe(true);
    expect(meet(area, polygon(box(11, -1, 12, 1)))).toBe(false);
    expect(meet(area, polygon(box(-1, -1, 1, 1)))).toBe(true);
    for (let i = 0; i < 200; i += 1)
      expect(meet(area, point(8 * Math.cos(i), 8 * Math.sin(i)))).toBe(true);
  });
});

describe('footprints of any kind are borne', () => {
  it('open rings are closed, and what is no number is left out', () => {
    expect(
      meet(
        polygon([
          [0, 0],
          [10, 0],
          [10, 10],
          [0, 10],
        ]),
        point(0, 5),
      ),
    ).toBe(true);
    expect(
      meet(
        polygon([
          [0, 0],
          [Number.NaN, 0],
          [10, 10],
        ]),
        polygon(box(-20, -20, 20, 20)),
      ),
    ).toBe(false);
    expect(meet(polygon([]), polygon(box(-20, -20, 20, 20)))).toBe(false);
    expect(meet(polygon([[5, 5]]), polygon(box(0, 0, 9, 9)))).toBe(true);
    expect(
      meet(
        polygon([
          [5, 5],
          [6, 6],
          [5, 5],
        ]),
        point(5.5, 5.5),
      ),
    ).toBe(true);
  });

  it('any positions at all give an answer', () => {
    const number = fc.oneof(fc.double(), fc.integer({ min: -400, max: 400 }));
    const wild = fc.array(fc.array(fc.tuple(number, number), { maxLength: 6 }), { maxLength: 3 });
    fc.assert(
      fc.property(wild, wild, (a, b) => {
        expect(typeof meet(polygon(...a), polygon(...b))).toBe('boolean');
      }),
    );
  });
});
