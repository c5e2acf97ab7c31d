/** What makes a geometry unusable: as JTS sees it, and on the globe. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Geometry, Position, Ring } from '../../../src/domain/geometry.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { arbitraryAreas, turnedBy } from './arbitrary.ts';
import { isReferenceValid } from './reference.ts';

const polygon = (...coordinates: Ring[]): Geometry => ({ type: 'Polygon', coordinates });
const multi = (...rings: Ring[]): Geometry => ({
  type: 'MultiPolygon',
  coordinates: rings.map((ring) => [ring]),
});
const box = (west: number, south: number, east: number, north: number): Ring => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
const hasEdgeOnAntimeridian = (geometry: Geometry) => {
  const parts = geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
  const isOnIt = (at: Position | undefined) => Math.abs(at?.[0] ?? 0) === 180;
  return parts.flat().some((ring) => ring.some((at, i) => isOnIt(at) && isOnIt(ring[i + 1])));
};
const codesOf = (geometry: Geometry) => geometryFaults(geometry).map(({ code }) => code);

describe('a geometry is without fault', () => {
  it('exactly when JTS calls it valid', () => {
    fc.assert(
      fc.property(arbitraryAreas, (geometry) => {
        expect(codesOf(geometry).length === 0).toBe(isReferenceValid(geometry));
      }),
      { numRuns: 1200 },
    );
  });

  it('at any longitude, if it is at one', () => {
    fc.assert(
      fc.property(arbitraryAreas, fc.integer({ min: -180, max: 180 }), (geometry, degrees) => {
        const moved = turnedBy(geometry, degrees);
        // There parts may share an edge, as RFC 7946 cuts them: see the next test.
        fc.pre(!hasEdgeOnAntimeridian(moved));
        expect(codesOf(moved).length === 0).toBe(codesOf(geometry).length === 0);
      }),
      { numRuns: 2000 },
    );
  });

  it('right round the globe and round a pole', () => {
    const band: Ring = [
      [-180, 0],
      [0, 0],
      [180, 0],
      [180, 9],
      [0, 9],
      [-180, 9],
      [-180, 0],
    ];
    const cap: Ring = [
      [0, 70],
      [90, 75],
      [180, 70],
      [-90, 75],
      [0, 70],
    ];
    expect(codesOf(polygon(box(-180, -90, 180, 90)))).toEqual([]);
    expect(codesOf(polygon(band))).toEqual([]);
    expect(codesOf(polygon(cap))).toEqual([]);
    expect(
      codesOf(
        polygon(cap, [
          [0, 80],
          [120, 80],
          [-120, 80],
          [0, 80],
        ]),
      ),
    ).toEqual([]);
    const overSeam: Ring = [
      [175, 1],
      [-175, 1],
      [-175, 5],
      [175, 5],
      [175, 1],
    ];
    expect(codesOf(polygon(band, overSeam))).toEqual([]);
    expect(codesOf(multi(cap, box(170, 80, 175, 85)))).toEqual(['parts-overlapping']);
    // How RFC 7946 cuts a polygon at the antimeridian.
    expect(codesOf(multi(box(170, 0, 180, 5), box(-180, 1, -170, 3)))).toEqual([]);
    expect(codesOf(multi(box(170, 0, 180, 5), box(-180, 0, -170, 5)))).toEqual([]);
    expect(codesOf(multi(box(170, 0, 180, 5), box(172, 5, 180, 9)))).toEqual(['parts-overlapping']);
  });
});

describe('each fault has its name and place', () => {
  const square = box(0, 0, 10, 10);
  const inner = box(2, 2, 4, 4);
  const cases: readonly (readonly [string, Geometry, Position?])[] = [
    ['empty', polygon()],
    ['empty', polygon([])],
    ['empty', { type: 'MultiPoint', coordinates: [] }],
    ['no-number', { type: 'Point', coordinates: [Number.NaN, 4] }, [Number.NaN, 4]],
    ['outside-globe', { type: 'Point', coordinates: [190, 50] }, [190, 50]],
    [
      'outside-globe',
      polygon([
        [0, 0],
        [1, 0],
        [1, 91],
        [0, 0],
      ]),
      [1, 91],
    ],
    [
      'not-closed',
      polygon([
        [4, 50],
        [5, 50],
        [5, 51],
        [4, 51],
      ]),
      [4, 51],
    ],
    [
      'too-few-points',
      polygon([
        [4, 50],
        [5, 50],
        [4, 50],
      ]),
      [4, 50],
    ],
    [
      'too-few-points',
      polygon([
        [4, 50],
        [5, 50],
        [5, 50],
        [4, 50],
      ]),
      [4, 50],
    ],
    [
      'self-intersecting',
      polygon([
        [0, 0],
        [4, 4],
        [4, 0],
        [0, 4],
        [0, 0],
      ]),
      [4, 0],
    ],
    [
      'self-intersecting',
      polygon([
        [0, 0],
        [5, 0],
        [9, 0],
        [5, 0],
        [5, 5],
        [0, 0],
      ]),
    ],
    ['rings-crossing', polygon(square, box(8, 8, 12, 12))],
    ['rings-crossing', polygon(square, box(0, 2, 3, 4))],
    ['hole-outside', polygon(square, box(20, 20, 22, 22)), [20, 20]],
    [
      'hole-outside',
      polygon(square, [
        [10, 5],
        [12, 4],
        [12, 6],
        [10, 5],
      ]),
    ],
    ['holes-nested', polygon(square, box(1, 1, 9, 9), inner), [2, 2]],
    [
      'inside-divided',
      polygon(square, [
        [0, 5],
        [5, 4],
        [10, 5],
        [5, 6],
        [0, 5],
      ]),
    ],
    ['parts-overlapping', multi(square, inner), [2, 2]],
    ['parts-overlapping', multi(square, box(10, 0, 12, 10))],
  ];

  it.each(cases.map(([code, geometry, at]) => ({ code, geometry, at })))(
    '$code: $geometry',
    ({ code, geometry, at }) => {
      const faults = geometryFaults(geometry);
      expect(faults.map((fault) => fault.code)).toContain(code);
      expect(faults.every(({ message }) => message.endsWith('.'))).toBe(true);
      if (at !== undefined) expect(faults[0]?.at).toEqual(at);
    },
  );

  it('the place is the very position, so that its text can be found', () => {
    const wrong: Position = [190, 50];
    expect(geometryFaults({ type: 'Point', coordinates: wrong })[0]?.at).toBe(wrong);
  });

  it('no more than twenty are told', () => {
    const positions = Array.from({ length: 500 }, (_, i): Position => [200 + i, 0]);
    expect(geometryFaults({ type: 'MultiPoint', coordinates: positions })).toHaveLength(20);
  });
});

describe('a large ring', () => {
  const count = 5000;
  const zigzag = (place: (i: number) => Position, back: readonly Position[]): Ring => {
    const ring = Array.from({ length: count }, (_, i) => place(i));
    return [...ring, ...back, ...ring.slice(0, 1)];
  };
  const fraction = (i: number) => i / count;
  const upright = zigzag((i) => [fraction(i), i % 2], [[2, -1]]);
  const level = zigzag((i) => [i % 2, fraction(i)], [[-1, 2]]);
  const slanting = zigzag(
    (i) => [fraction(i) + (i % 2), (i % 2) - fraction(i)],
    [
      [3, -3],
      [-3, -1],
    ],
  );

  it.each<readonly [string, Ring]>([
    ['upright', upright],
    ['level', level],
    ['slanting', slanting],
  ])('of %s stripes is checked in well under a second', (_name, ring) => {
    const start = performance.now();
    expect(codesOf(polygon(ring))).toEqual([]);
    expect(performance.now() - start).toBeLessThan(4_000);
  });

  it('in a tangle is refused at once', () => {
    const tangle = zigzag((i) => [(i * 7919) % 90, (i * 104_729) % 80], []);
    const start = performance.now();
    expect(codesOf(polygon(tangle))).toEqual(['self-intersecting']);
    expect(performance.now() - start).toBeLessThan(4_000);
  });

  it('that crosses itself once is found out', () => {
    const crossing = upright.with(2500, [0.5, -5]);
    expect(codesOf(polygon(crossing))).toContain('self-intersecting');
  });
});
