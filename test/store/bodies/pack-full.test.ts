import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/random.ts';
import { unpackBodies } from '../../../src/store/bodies/body-codec.ts';
import { createPackFull } from '../../../src/store/bodies/compact-step.ts';
import { generatedBodies } from '../../helpers/generated-bodies.ts';

/** All bodies in packs, one after the other. */
function packAll(bodies: readonly Uint8Array[], level: number) {
  const packFull = createPackFull(level);
  const rows = [];
  for (let at = 0; at < bodies.length; ) {
    const packed = packFull(bodies.slice(at));
    rows.push(...packed);
    at += packed.reduce((sum, row) => sum + row.bodies, 0);
  }
  return rows;
}

describe('full packs', () => {
  it('fill half a page each, and hold every body in its order', () => {
    const bodies = generatedBodies(200);
    const rows = packAll(bodies, 9);
    const sizes = rows.slice(0, -1).map(({ bytes }) => bytes.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8_160);
    expect(sizes.reduce((sum, size) => sum + size, 0) / sizes.length).toBeGreaterThan(7_400);
    expect(Buffer.concat(rows.flatMap(unpackBodies)).equals(Buffer.concat(bodies))).toBe(true);
  });

  it('lose nothing of bodies that are tiny, huge or cannot be compressed', () => {
    const noise = fc
      .tuple(fc.integer({ min: 0, max: 40_000 }), fc.integer())
      .map(([length, seed]) => Buffer.from(createRandom(seed).hex(2 * length), 'hex'));
    const pattern = fc
      .integer({ min: 0, max: 300_000 })
      .map((length) => Buffer.alloc(length, 'ab'));
    const body = fc.oneof(noise, pattern);
    fc.assert(
      fc.property(fc.array(body, { minLength: 1, maxLength: 100, size: 'max' }), (bodies) => {
        const unpacked = packAll(bodies, 1).flatMap(unpackBodies);
        expect(unpacked.length).toBe(bodies.length);
        expect(Buffer.concat(unpacked).equals(Buffer.concat(bodies))).toBe(true);
      }),
      { numRuns: 8 },
    );
  });
});
