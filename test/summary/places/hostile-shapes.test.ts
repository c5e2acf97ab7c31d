/** No footprint keeps the program from its other work for long. */
import { describe, expect, it } from 'vitest';
import type { Geometry } from '../../../src/domain/geometry.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';
import { hostileShapes } from './hostile-shapes.ts';

const places = openPlaces();
/** Some 10 ms on a quiet machine; it was 40 to 600 ms for half of the shapes. */
const boundMs = 50;

/** The time of the processor, as the machine may have other work; the least of three. */
function fastestMs(geometry: Geometry): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    places.placeOf(geometry);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...times);
}

describe('a footprint', () => {
  for (const geometry of Object.values(hostileShapes(100))) places.placeOf(geometry);

  it.each(Object.keys(hostileShapes(100)))('of %s takes little time', (name) => {
    for (const corners of [100, 590, 2_500, 5_000]) {
      const shape = hostileShapes(corners)[name];
      if (shape === undefined) throw new Error('no shape');
      expect(fastestMs(shape), `${corners} corners`).toBeLessThan(boundMs);
    }
  });

  it('has a place with up to 600 corners, 20 rings or 100 points, and none with more', () => {
    const shape = (name: string, corners: number) => {
      const geometry = hostileShapes(corners)[name];
      if (geometry === undefined) throw new Error('no shape');
      return places.placeOf(geometry);
    };
    for (const [name, corners] of [
      ['a zigzag up and down', 600],
      ['small boxes everywhere', 100],
      ['a world of holes', 100],
      ['points everywhere', 100],
    ] as const) {
      expect(shape(name, corners), name).not.toBeNull();
      expect(shape(name, corners + 5), name).toBeNull();
    }
    expect(shape('a zigzag across the antimeridian', 30)).not.toBeNull();
    expect(shape('a zigzag across the antimeridian', 100)).toBeNull();
  });
});
