/** Geometries for maps. */
import { describe, expect, it } from 'vitest';
import type { AnyGeometry, Geometry, Position, Ring } from '../../../src/filter/filter-tree.ts';
import { displayLimits, toDisplayGeometry } from '../../../src/filter/geometry/geojson.ts';
import { polygonsOf, positionsOf } from '../../../src/filter/geometry/ring.ts';
import { line, point, polygon, ring } from './places.ts';

/** A circle of `count` positions. */
function circle([x, y]: Position, radius: number, count: number): Ring {
  const ring = Array.from({ length: count }, (_, i): Position => {
    const angle = (i * 2 * Math.PI) / count;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });
  return [...ring, ring[0] ?? [x, y]];
}

describe('a geometry for maps', () => {
  it('keeps a usual footprint, rounded, and points as points', () => {
    const usual = circle([10.123456, 46.654321], 1, 40);
    const near = (value: number) => Math.round(value * 10_000) / 10_000;
    const rounded = usual.map(([x, y]): Position => [near(x), near(y)]);
    expect(toDisplayGeometry(polygon(usual))).toEqual(polygon(rounded));
    expect(toDisplayGeometry(point(1, 2))).toEqual(point(1, 2));
    const mixed = { type: 'GeometryCollection', geometries: [point(5, 5), polygon(rounded)] };
    expect(toDisplayGeometry(mixed as AnyGeometry)).toEqual(mixed);
  });

  it('keeps the extent of many positions, and is cut at the antimeridian', () => {
    const shown = positionsOf(toDisplayGeometry(polygon(circle([0, 0], 10, 100_000))));
    expect(shown.length).toBeLessThanOrEqual(displayLimits.positions + 1);
    expect(Math.max(...shown.map(([x]) => x))).toBeCloseTo(10, 2);
    expect(Math.min(...shown.map(([, y]) => y))).toBeCloseTo(-10, 2);
    const long = Array.from({ length: 100_000 }, (_, i): Position => [i / 1000, i % 2]);
    const track = positionsOf(toDisplayGeometry({ type: 'LineString', coordinates: long }));
    expect(track.length).toBeLessThanOrEqual(displayLimits.positions + 1);
    expect(track.at(-1)).toEqual([99.999, 1]);
    expect(toDisplayGeometry(line('170.00001 0, -170 10'))).toEqual({
      type: 'MultiLineString',
      coordinates: [ring('170 0, 180 5'), ring('-180 5, -170 10')],
    });
    const points = { type: 'MultiPoint', coordinates: long } as const;
    expect(positionsOf(toDisplayGeometry(points))).toHaveLength(displayLimits.points);
  });

  it.each<[string, Geometry]>([
    [
      'many holes next to many cuts',
      { type: 'Polygon', coordinates: [zigzag(10_000), ...holes(4_000)] },
    ],
    ['many parts', { type: 'MultiPolygon', coordinates: holes(5_000).map((ring) => [ring]) }],
    ['200,000 positions', { type: 'Polygon', coordinates: [circle([170, 0], 20, 200_000)] }],
  ])('is small, and quickly made, of %s', (_, geometry) => {
    const beganMs = performance.now();
    const shown = toDisplayGeometry(geometry);
    expect(performance.now() - beganMs).toBeLessThan(500);
    expect(polygonsOf(shown).flat().length).toBeLessThan(4 * displayLimits.rings);
    expect(positionsOf(shown).length).toBeLessThan(2 * displayLimits.positions);
  });
});

/** Crosses the antimeridian with each step. */
function zigzag(count: number): Ring {
  const ring = Array.from(
    { length: count },
    (_, i): Position => [i % 2 === 0 ? 179 : -179, (i * 80) / count],
  );
  return [...ring, ring[0] ?? [0, 0]];
}

function holes(count: number): Ring[] {
  return Array.from({ length: count }, (_, i) => circle([178, (i * 80) / count], 0.001, 4));
}
