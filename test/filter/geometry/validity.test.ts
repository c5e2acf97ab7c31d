/** Faults of a geometry: compared with JTS, and on the globe. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Geometry, Position, Ring } from '../../../src/domain/filter-tree.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitraryAreas, turnedBy } from './arbitrary-areas.ts';
import { box, multi, polygon, ring } from './places.ts';
import { isReferenceValid } from './reference.ts';

const hasEdgeOnAntimeridian = (geometry: Geometry) => {
  const parts = geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
  const isOnIt = (at: Position | undefined) => Math.abs(at?.[0] ?? 0) === 180;
  return parts.flat().some((ring) => ring.some((at, i) => isOnIt(at) && isOnIt(ring[i + 1])));
};
const codesOf = (geometry: Geometry) => geometryFaults(geometry).map(({ code }) => code);

/** Moves each ring a little, so that no corner is on another ring. */
function withoutTouches(geometry: Geometry): Geometry {
  let count = 0;
  const move = (polygon: readonly Ring[]) =>
    polygon.map((ring): Ring => {
      count += 1;
      // Exact numbers, so that what is on a line stays on it.
      const [x, y] = [((count * 37) % 101) / 2 ** 16, ((count * 53) % 103) / 2 ** 16];
      return ring.map(([longitude, latitude]): Position => [longitude + x, latitude + y]);
    });
  if (geometry.type === 'Polygon') return { ...geometry, coordinates: move(geometry.coordinates) };
  if (geometry.type !== 'MultiPolygon') return geometry;
  return { ...geometry, coordinates: geometry.coordinates.map(move) };
}

describe('a geometry is valid', () => {
  it('if JTS reports it as valid', () => {
    fc.assert(
      fc.property(arbitraryAreas, (geometry) => {
        fc.pre(isReferenceValid(geometry));
        expect(codesOf(geometry)).toEqual([]);
      }),
      { numRuns: times(300, 1_200) },
    );
  });

  it('exactly when JTS reports it as valid, if rings do not touch each other', () => {
    fc.assert(
      fc.property(arbitraryAreas, (geometry) => {
        const apart = withoutTouches(geometry);
        expect(codesOf(apart).length === 0).toBe(isReferenceValid(apart));
      }),
      { numRuns: times(300, 1_200) },
    );
  });

  it('at any longitude, if it is at one', () => {
    fc.assert(
      fc.property(arbitraryAreas, fc.integer({ min: -180, max: 180 }), (geometry, degrees) => {
        const moved = turnedBy(geometry, degrees);
        // There, parts may share an edge, as RFC 7946 cuts them: see the next test.
        fc.pre(!hasEdgeOnAntimeridian(moved));
        expect(codesOf(moved).length === 0).toBe(codesOf(geometry).length === 0);
      }),
      { numRuns: times(400, 2_000) },
    );
  });

  it('around the globe and around a pole', () => {
    const band: Ring = ring('-180 0, 0 0, 180 0, 180 9, 0 9, -180 9, -180 0');
    const cap: Ring = ring('0 70, 90 75, 180 70, -90 75, 0 70');
    expect(codesOf(polygon(box(-180, -90, 180, 90)))).toEqual([]);
    expect(codesOf(polygon(band))).toEqual([]);
    expect(codesOf(polygon(cap))).toEqual([]);
    expect(codesOf(polygon(cap, ring('0 80, 120 80, -120 80, 0 80')))).toEqual([]);
    const overSeam: Ring = ring('175 1, -175 1, -175 5, 175 5, 175 1');
    expect(codesOf(polygon(band, overSeam))).toEqual([]);
    expect(codesOf(multi(cap, box(170, 80, 175, 85)))).toEqual(['parts-overlapping']);
    // As RFC 7946 cuts a polygon at the antimeridian.
    expect(codesOf(multi(box(170, 0, 180, 5), box(-180, 1, -170, 3)))).toEqual([]);
    expect(codesOf(multi(box(170, 0, 180, 5), box(-180, 0, -170, 5)))).toEqual([]);
    expect(codesOf(multi(box(170, 0, 180, 5), box(172, 5, 180, 9)))).toEqual(['parts-overlapping']);
  });
});

describe('each fault has a name and a place', () => {
  const square = box(0, 0, 10, 10);
  const inner = box(2, 2, 4, 4);
  const cases: readonly (readonly [string, Geometry, Position?])[] = [
    ['empty', polygon()],
    ['empty', polygon([])],
    ['empty', { type: 'MultiPoint', coordinates: [] }],
    ['no-number', { type: 'Point', coordinates: [Number.NaN, 4] }, [Number.NaN, 4]],
    ['outside-globe', { type: 'Point', coordinates: [190, 50] }, [190, 50]],
    ['outside-globe', polygon(ring('0 0, 1 0, 1 91, 0 0')), [1, 91]],
    ['not-closed', polygon(ring('4 50, 5 50, 5 51, 4 51')), [4, 51]],
    ['too-few-points', polygon(ring('4 50, 5 50, 4 50')), [4, 50]],
    ['too-few-points', polygon(ring('4 50, 5 50, 5 50, 4 50')), [4, 50]],
    ['self-intersecting', polygon(ring('0 0, 4 4, 4 0, 0 4, 0 0')), [4, 0]],
    ['self-intersecting', polygon(ring('0 0, 5 0, 9 0, 5 0, 5 5, 0 0'))],
    ['rings-crossing', polygon(square, box(8, 8, 12, 12))],
    ['rings-crossing', polygon(square, box(0, 2, 3, 4))],
    ['rings-crossing', polygon(square, box(20, 20, 22, 22)), [20, 20]],
    ['rings-crossing', polygon(square, ring('10 5, 12 4, 12 6, 10 5'))],
    ['rings-crossing', polygon(square, box(1, 1, 9, 9), inner), [2, 2]],
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

  it('the place is the exact position, so that its text can be found', () => {
    const wrong: Position = [190, 50];
    expect(geometryFaults({ type: 'Point', coordinates: wrong })[0]?.at).toBe(wrong);
  });

  it('at most twenty are reported', () => {
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
    ring('3 -3, -3 -1'),
  );

  it.each<readonly [string, Ring]>([
    ['upright', upright],
    ['level', level],
    ['slanting', slanting],
  ])('with %s stripes is checked in well under a second', (_name, ring) => {
    const start = performance.now();
    expect(codesOf(polygon(ring))).toEqual([]);
    expect(performance.now() - start).toBeLessThan(4_000);
  });

  it('that is a tangle is refused at once', () => {
    const tangle = zigzag((i) => [(i * 7919) % 90, (i * 104_729) % 80], []);
    const start = performance.now();
    expect(codesOf(polygon(tangle))).toEqual(['self-intersecting']);
    expect(performance.now() - start).toBeLessThan(4_000);
  });

  it('that crosses itself once is refused', () => {
    const crossing = upright.with(2500, [0.5, -5]);
    expect(codesOf(polygon(crossing))).toContain('self-intersecting');
  });
});

describe('a geometry with many parts', () => {
  const triangles = (count: number) =>
    multi(
      ...Array.from({ length: count }, (_, i): Ring => {
        const at = (angle: number): Position => [60 * Math.cos(angle), 60 * Math.sin(angle)];
        const turn = (2 * Math.PI) / count;
        return [[0, 0], at(i * turn), at((i + 0.5) * turn), [0, 0]];
      }),
    );
  const frames = (count: number): Geometry => ({
    type: 'MultiPolygon',
    coordinates: Array.from({ length: count }, (_, i) => {
      const size = (80 * (i + 1)) / count;
      const inner = size - 30 / count;
      return [box(-size, -size, size, size), box(-inner, -inner, inner, inner)];
    }),
  });
  const needles = (count: number) =>
    multi(
      ...Array.from({ length: count }, (_, i): Ring => {
        const x = (80 * i) / count;
        return ring(`${x - 80} -80, ${x} 80, ${x + 20 / count} 80, ${x - 80} -80`);
      }),
    );
  const comb = (count: number) => {
    const teeth = Array.from(
      { length: count },
      (_, i): Position => [i % 2 === 0 ? 0 : -70, 80 - (80 * i) / count],
    );
    const outline: Ring = [[-80, -80], [80, -80], [80, 81], ...teeth, [-80, -1], [-80, -80]];
    const holes = Array.from({ length: count }, (_, i) => {
      const west = -60 + (i * 50) / count;
      return box(west, -50, west + 25 / count, -40);
    });
    return polygon(outline, ...holes);
  };

  it.each<[string, Geometry, Geometry]>([
    ['triangles that touch in one point', triangles(100), triangles(3000)],
    ['frames within frames', frames(100), frames(2000)],
    ['adjacent needles', needles(100), needles(3000)],
    ['holes behind a comb', comb(300), comb(4000)],
  ])('with %s is checked, or refused quickly as too intricate', (_name, few, many) => {
    expect(codesOf(few)).toEqual([]);
    const start = performance.now();
    expect(codesOf(many)).toEqual(['too-intricate']);
    expect(performance.now() - start).toBeLessThan(6_000);
  });

  it('in a grid, or with touching corners, is checked', () => {
    const squares = (count: number, isThere: (x: number, y: number) => boolean, width: number) =>
      multi(
        ...Array.from({ length: count * count }, (_, i): readonly [number, number] => [
          i % count,
          Math.floor(i / count),
        ])
          .filter(([x, y]) => isThere(x, y))
          .map(([x, y]) => box(x, y, x + width, y + width)),
      );
    expect(codesOf(squares(50, () => true, 0.9))).toEqual([]);
    expect(codesOf(squares(50, (x, y) => (x + y) % 2 === 0, 1))).toEqual([]);
  });

  it('reports the faults found before the check stopped as too intricate', () => {
    const crossing: Ring = ring('-120 -80, -110 -70, -110 -80, -120 -70, -120 -80');
    const many = triangles(3000);
    if (many.type !== 'MultiPolygon') throw new Error('not of many parts');
    const coordinates = [...many.coordinates, [crossing]];
    expect(codesOf({ type: 'MultiPolygon', coordinates })).toEqual(['self-intersecting']);
  });

  it('with 200,000 positions is checked without exhausting the stack', () => {
    const count = 200_000;
    const ring = Array.from({ length: count }, (_, i): Position => {
      const angle = (2 * Math.PI * i) / count;
      return [50 * Math.cos(angle), 50 * Math.sin(angle)];
    });
    expect(codesOf(polygon([...ring, ...ring.slice(0, 1)]))).toEqual([]);
  });
});
