import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance } from '../../src/domain/edit-distance.ts';

describe('the edit distance', () => {
  it.each([
    ['', '', 0],
    ['', 'name', 4],
    ['name', '', 4],
    ['kitten', 'sitting', 3],
    ['saturday', 'sunday', 3],
    ['cloudCover', 'cloudcover', 1],
  ])('of %o and %o is %d', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
  });

  it('is a metric, and no larger than the longer text', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        const direct = editDistance(a, b);
        expect(direct === 0).toBe(a === b);
        expect(direct).toBe(editDistance(b, a));
        expect(direct).toBeLessThanOrEqual(editDistance(a, c) + editDistance(c, b));
        expect(direct).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(direct).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});
