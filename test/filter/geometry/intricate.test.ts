/** Geometries of many parts are checked, or refused soon where that would take long. */
import { describe, expect, it } from 'vitest';
import type { Geometry, Position, Ring } from '../../../src/domain/geometry.ts';
import { geometryFaults } from '../../../src/filter/geometry/validity.ts';

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
const codesOf = (geometry: Geometry) => geometryFaults(geometry).map(({ code }) => code);

describe('a geometry of many parts', () => {
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
        const from = (80 * i) / count;
        return [
          [from - 80, -80],
          [from, 80],
          [from + 20 / count, 80],
          [from - 80, -80],
        ];
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
    ['needles side by side', needles(100), needles(3000)],
    ['holes behind a comb', comb(300), comb(4000)],
  ])('%s is checked, or refused soon as too intricate', (_name, few, many) => {
    expect(codesOf(few)).toEqual([]);
    const start = performance.now();
    expect(codesOf(many)).toEqual(['too-intricate']);
    expect(performance.now() - start).toBeLessThan(6_000);
  });

  it('in a grid, or with corners that touch, is checked', () => {
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

  it('is told the faults that were found before it was too intricate', () => {
    const crossing: Ring = [
      [-120, -80],
      [-110, -70],
      [-110, -80],
      [-120, -70],
      [-120, -80],
    ];
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
