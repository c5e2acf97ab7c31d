/** Faults of a geometry: compared with JTS, and on the globe. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Geometry, Position, Ring } from '../../../src/filter/filter-tree.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';
import { times } from '../../helpers/thorough.ts';
import { arbitraryAreas } from './arbitrary-areas.ts';
import { box, multi, polygon, ring } from './places.ts';
import { isReferenceValid } from './reference.ts';

const faultsOf = (geometry: Geometry) => geometryFaults(geometry).join('\n');

describe('a geometry is valid', () => {
  it('if JTS reports it as valid, and only then if it has one ring', () => {
    fc.assert(
      fc.property(arbitraryAreas, (geometry) => {
        const isSingle = geometry.type === 'Polygon' && geometry.coordinates.length === 1;
        const isValid = isReferenceValid(geometry);
        fc.pre(isSingle || isValid);
        expect(faultsOf(geometry) === '').toBe(isValid);
      }),
      { numRuns: times(500, 2_000) },
    );
  });

  it('around the globe, around a pole and where it is cut at the antimeridian', () => {
    const cap: Ring = ring('0 70, 90 75, 180 70, -90 75, 0 70');
    expect(faultsOf(polygon(box(-180, -90, 180, 90)))).toBe('');
    expect(faultsOf(polygon(ring('-180 0, 0 0, 180 0, 180 9, 0 9, -180 9, -180 0')))).toBe('');
    expect(faultsOf(polygon(cap, ring('0 80, 120 80, -120 80, 0 80')))).toBe('');
    expect(faultsOf(multi(box(170, 0, 180, 5), box(-180, 0, -170, 5)))).toBe('');
  });
});

describe('each fault has its place and advice', () => {
  const square = box(0, 0, 10, 10);
  it.each<[RegExp, Geometry]>([
    [/^190 50 is out of range/, { type: 'Point', coordinates: [190, 50] }],
    [/^1 91 is out of range/, polygon(ring('0 0, 1 0, 1 91, 0 0'))],
    [/ends at 4 51 is not closed/, polygon(ring('4 50, 5 50, 5 51, 4 51'))],
    [/at 4 50 has too few/, polygon(ring('4 50, 5 50, 4 50'))],
    [/at 4 50 has too few/, polygon(ring('4 50, 5 50, 5 50, 4 50'))],
    [/begins at 4 0: The ring crosses/, polygon(ring('0 0, 4 4, 4 0, 0 4, 0 0'))],
    [/The ring crosses/, polygon(ring('0 0, 5 0, 9 0, 5 0, 5 5, 0 0'))],
    [/Two rings of a polygon/, polygon(square, box(8, 8, 12, 12))],
    [/Two rings of a polygon/, polygon(square, box(0, 2, 3, 4))],
    [/Two parts/, multi(square, box(8, 8, 12, 12))],
    [/Two parts/, multi(square, box(10, 0, 12, 10))],
  ])('%s: %j', (fault, geometry) => {
    expect(faultsOf(geometry)).toMatch(fault);
  });

  it('at most twenty are reported', () => {
    const coordinates = Array.from({ length: 500 }, (_, i): Position => [200 + i, 0]);
    expect(geometryFaults({ type: 'MultiPoint', coordinates })).toHaveLength(20);
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
  it.each<readonly [string, Ring]>([
    ['upright', upright],
    ['level', level],
  ])('with %s stripes is checked in well under a second', (_name, ring) => {
    const start = performance.now();
    expect(faultsOf(polygon(ring))).toBe('');
    expect(performance.now() - start).toBeLessThan(4_000);
  });

  it('that crosses itself once, or is a tangle, is refused at once', () => {
    const tangle = zigzag((i) => [(i * 7919) % 90, (i * 104_729) % 80], []);
    const crossing = upright.with(2500, [0.5, -5]);
    const start = performance.now();
    expect(faultsOf(polygon(tangle))).toMatch(/crosses/);
    expect(faultsOf(polygon(crossing))).toMatch(/crosses/);
    expect(performance.now() - start).toBeLessThan(4_000);
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
  const needles = (count: number) =>
    multi(
      ...Array.from({ length: count }, (_, i): Ring => {
        const x = (80 * i) / count;
        return ring(`${x - 80} -80, ${x} 80, ${x + 20 / count} 80, ${x - 80} -80`);
      }),
    );
  it.each<[string, Geometry, Geometry]>([
    ['triangles that touch in one point', triangles(100), triangles(3000)],
    ['adjacent needles', needles(100), needles(3000)],
  ])('with %s is checked, or refused quickly as too intricate', (_name, few, many) => {
    expect(faultsOf(few)).toBe('');
    const start = performance.now();
    expect(faultsOf(many)).toMatch(/too complex/);
    expect(performance.now() - start).toBeLessThan(6_000);
  });

  it('with 200,000 positions is checked without exhausting the stack', () => {
    const ring = Array.from({ length: 200_000 }, (_, i): Position => {
      const angle = (2 * Math.PI * i) / 200_000;
      return [50 * Math.cos(angle), 50 * Math.sin(angle)];
    });
    expect(faultsOf(polygon([...ring, ...ring.slice(0, 1)]))).toBe('');
  });
});
