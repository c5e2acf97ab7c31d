/** Name patterns of the log: what they match, and that no name or pattern makes matching slow. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { openSqliteStore } from './sqlite-store.ts';

async function fill(store: Store, names: readonly string[]): Promise<void> {
  await Promise.all(
    names.map((ProductName, i) => store.accept(delivery(notification(i, { ProductName })))),
  );
}

async function found(store: Store, name: string): Promise<(string | null)[]> {
  const rows = await collect(store.find({ name, order: 'oldest' }));
  return rows.map(({ productName }) => productName);
}

/** Reference definition: `*` is any text, `?` one character, every other character itself. */
function matches(
  [first, ...rest]: readonly string[],
  [letter, ...others]: readonly string[],
): boolean {
  if (first === undefined) return letter === undefined;
  if (first === '*') {
    return (
      matches(rest, letter === undefined ? [] : [letter, ...others]) ||
      (letter !== undefined && matches([first, ...rest], others))
    );
  }
  return letter !== undefined && (first === '?' || first === letter) && matches(rest, others);
}

it('matches as defined, for any short pattern', async () => {
  const { store } = await openSqliteStore();
  const letter = fc.constantFrom('a', 'b', 'ä', '[', ']', '^', '-', '*', '?');
  const text = fc.string({ unit: letter, minLength: 1, maxLength: 7 });
  const names = [...new Set(fc.sample(text, { numRuns: 200, seed: 1 }))];
  await fill(store, names);
  await fc.assert(
    fc.asyncProperty(text, async (pattern) => {
      const expected = names.filter((name) => matches([...pattern], [...name]));
      expect(new Set(await found(store, pattern))).toEqual(new Set(expected));
    }),
    { numRuns: 100 },
  );
});

it('takes milliseconds for names of a megabyte and any accepted pattern', async () => {
  const { store } = await openSqliteStore();
  const long = 'a'.repeat(2 ** 20 - 1_000);
  const longest = 'a'.repeat(255);
  await fill(store, [long, `${long}b`, longest, `${longest}b`]);
  const beganMs = performance.now();
  for (const pattern of ['*a?'.repeat(80), `*${'a'.repeat(127)}b`, `${'*a'.repeat(126)}*b`]) {
    expect(await found(store, pattern)).not.toContain(`${longest}b`);
  }
  expect(await found(store, '*aaa*')).toEqual([longest]);
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  // Without a wildcard, a name of any length is found.
  expect(await found(store, `${long}b`)).toEqual([`${long}b`]);
  await expectRefused(found(store, `*${'a'.repeat(255)}`), 'invalid');
});
