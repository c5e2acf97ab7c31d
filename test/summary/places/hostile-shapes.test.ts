/** No footprint blocks the program for long. */

import { describe, expect, it } from 'vitest';
import type { Geometry, Position, Ring } from '../../../src/domain/filter-tree.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';

function polygon(...rings: Ring[]): Geometry {
  return { type: 'Polygon', coordinates: rings };
}

function polygons(count: number, of: (index: number) => Ring): Geometry {
  return { type: 'MultiPolygon', coordinates: Array.from({ length: count }, (_, i) => [of(i)]) };
}

function closed(count: number, of: (index: number) => Position): Ring {
  const corners = Array.from({ length: count - 1 }, (_, index) => of(index));
  return [...corners, ...corners.slice(0, 1)];
}

function box(west: number, south: number, width: number, height: number): Ring {
  const [east, north] = [west + width, south + height];
  return closed(5, (i) => [i === 1 || i === 2 ? east : west, i > 1 ? north : south]);
}

/** From pole to pole, and back on almost the same path. */
function spiral(count: number): Ring {
  const half = Math.floor(count / 2);
  const at = (i: number, off: number): Position => [
    (Math.cos(i / 8) * 170 * i) / half + off,
    (Math.sin(i / 8) * 85 * i) / half + off,
  ];
  return closed(count, (i) => (i < half ? at(i, 0) : at(count - 1 - i, 1e-7)));
}

/** Shapes by name, each with about `corners` corners. */
function hostileShapes(corners: number): Readonly<Record<string, Geometry>> {
  const fifth = Math.floor(corners / 5);
  const spread = (i: number): Position => [((i * 37) % 350) - 175, ((i * 17) % 160) - 80];
  const rising = (i: number) => -85 + (170 * i) / corners;
  const holes = Array.from({ length: fifth - 1 }, (_, i) => box(...spread(i), 2, 2));
  return {
    'boxes of the size of the globe': polygons(fifth, (i) => box(-179, -89, 358, 178 - i / 1e3)),
    'small boxes everywhere': polygons(fifth, (i) => box(...spread(i), 1, 1)),
    'boxes across the antimeridian': polygons(fifth, (i) => box(178, spread(i)[1], 4, 1)),
    'a star': polygon(
      closed(corners, (i) => {
        const angle = i * Math.PI * (1 - 1 / corners);
        return [170 * Math.cos(angle), 85 * Math.sin(angle)];
      }),
    ),
    'a zigzag to and fro': polygon(closed(corners, (i) => [i % 2 ? 170 : -170, rising(i)])),
    'a zigzag up and down': polygon(
      closed(corners, (i) => [-179 + (358 * i) / corners, i % 2 ? 85 : -85]),
    ),
    'a zigzag across the antimeridian': polygon(
      closed(corners, (i) => [i % 2 ? 185 : 175, rising(i)]),
    ),
    'a zigzag with holes': polygon(
      closed(Math.floor(corners / 2), (i) => [i % 2 ? 185 : 175, rising(2 * i)]),
      ...holes.slice(0, Math.floor(fifth / 2)),
    ),
    'a spiral without an inside': polygon(spiral(corners)),
    'a line to and fro': polygon(closed(corners, (i) => [i % 2 ? -170 : 170, 50])),
    'a globe of holes': polygon(box(-179, -89, 358, 178), ...holes),
    'corners without order': polygon(
      closed(corners, (i) => [
        (((i * 7919) % 3571) / 3571) * 340 - 170,
        (((i * 104_729) % 3253) / 3253) * 170 - 85,
      ]),
    ),
    'points everywhere': {
      type: 'MultiPoint',
      coordinates: Array.from({ length: corners }, (_, i) => spread(i)),
    },
    'points at sea': {
      type: 'MultiPoint',
      coordinates: Array.from({ length: corners }, (_, i): Position => [-30 + i / 1e4, 30]),
    },
  };
}

const places = openPlaces();
/** CPU time of a call. */
function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * A million sines as the unit of time, because the speed of machines differs by a factor of five.
 */
function millionSines(): number {
  let sum = 0;
  for (let i = 0; i < 1e6; i += 1) sum += Math.sin(i);
  return sum;
}

/** The slowest shape takes three units. Before the limits, half of the shapes took 12 to 180. */
const millionsOfSinesMax = 6;

function shapeOf(name: string, corners: number): Geometry {
  const shape = hostileShapes(corners)[name];
  if (shape === undefined) throw new Error('no shape');
  return shape;
}

describe('a footprint', () => {
  for (const geometry of Object.values(hostileShapes(100))) places.placeOf(geometry);

  it.each(Object.keys(hostileShapes(100)))('of %s takes little time', (name) => {
    for (const corners of [100, 590, 2_500, 5_000]) {
      const shape = shapeOf(name, corners);
      let took = Number.POSITIVE_INFINITY;
      // Up to three times, because the machine may be busy.
      for (let tries = 0; tries < 3 && took >= millionsOfSinesMax; tries += 1)
        took = Math.min(took, cpuMs(() => places.placeOf(shape)) / cpuMs(millionSines));
      expect(took, `${corners} corners`).toBeLessThan(millionsOfSinesMax);
    }
  });

  it('has a place with up to 600 corners, 20 rings or 100 points, and none with more', () => {
    const place = (name: string, corners: number) => places.placeOf(shapeOf(name, corners));
    for (const [name, corners] of [
      ['a zigzag up and down', 600],
      ['small boxes everywhere', 100],
      ['a globe of holes', 100],
      ['points everywhere', 100],
    ] as const) {
      expect(place(name, corners), name).not.toBeNull();
      expect(place(name, corners + 5), name).toBeNull();
    }
    expect(place('a zigzag across the antimeridian', 30)).not.toBeNull();
    expect(place('a zigzag across the antimeridian', 100)).toBeNull();
  });
});
