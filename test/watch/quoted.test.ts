/** Words of others in alerts: a chat makes no link and no markup of them, and people can still read them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoted } from '../../src/watch/situation.ts';

describe('words that others wrote', () => {
  it('have no marks of markup, and no address that a chat would link', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'[](a)`*_~| :/é_-') }), (words) => {
        expect(quoted(words)).not.toMatch(/[[\]`*~|]|:\/\/|(^|[^a-zé])_|_($|[^a-zé])/);
      }),
    );
  });

  it('stay readable', () => {
    expect(quoted('500: [reset](https://evil.example/p) **now** `x` _y_')).toBe(
      "500: (reset)(https : //evil.example/p) ∗∗now∗∗ 'x' ‗y‗",
    );
    const plain = 'it answered 500 (UND_ERR_SOCKET): S2A_MSIL2A is not known, 3 > 2.';
    expect(quoted(plain)).toBe(plain);
  });
});
