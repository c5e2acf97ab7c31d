/** No footprint keeps the program from its other work for long. */
import { describe, expect, it } from 'vitest';
import { openPlaces } from '../../../src/summary/places/places.ts';
import { hostileShapes } from './hostile-shapes.ts';

const places = openPlaces();
/** The least processor time of three calls, as the machine may have other work. */
function fastestMs(work: () => unknown): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...times);
}

/** A million sines: the measure, as machines differ by a factor of five. */
function millionSines(): number {
  let sum = 0;
  for (let i = 0; i < 1e6; i += 1) sum += Math.sin(i);
  return sum;
}

/** The slowest shape takes three of them; before it was bounded, half of the shapes took 12 to 180. */
const millionsOfSinesMax = 6;

describe('a footprint', () => {
  for (const geometry of Object.values(hostileShapes(100))) places.placeOf(geometry);

  it.each(Object.keys(hostileShapes(100)))('of %s takes little time', (name) => {
    for (const corners of [100, 590, 2_500, 5_000]) {
      const shape = hostileShapes(corners)[name];
      if (shape === undefined) throw new Error('no shape');
      const took = fastestMs(() => places.placeOf(shape)) / fastestMs(millionSines);
      expect(took, `${corners} corners`).toBeLessThan(millionsOfSinesMax);
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
