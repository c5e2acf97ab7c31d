import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance } from '../../../src/core/terms/text.ts';

describe('the edit distance', () => {
  it.each([
    ['kitten', 'sitting', 3],
    ['abcd', 'badc', 2],
    // No part is edited twice: two neighbours swapped, then separated, count as three.
    ['ca', 'abc', 3],
  ])('of %o and %o is %d', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
  });

  it('is 1 for two swapped neighbours, at any position', () => {
    const text = fc.string({ minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(text, fc.nat(), (a, at) => {
        const i = at % (a.length - 1);
        const exchanged = `${a.slice(0, i)}${a[i + 1]}${a[i]}${a.slice(i + 2)}`;
        expect(editDistance(a, exchanged)).toBe(a === exchanged ? 0 : 1);
      }),
    );
  });

  it('is symmetric, 0 only for equal texts, and between the length difference and the longer text', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        const direct = editDistance(a, b);
        expect(direct === 0).toBe(a === b);
        expect(direct).toBe(editDistance(b, a));
        expect(direct).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(direct).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});
