/** A program is ended as it talks to the authority: the next one finishes the same order, and never a second. */
import { describe, expect, it } from 'vitest';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import { checkAfterwards, interrupt, type Place, watchSteps } from './interrupted-world.ts';

const places: Place[] = [
  ['sign-me-up', 1],
  ['order-plz', 1],
  ['my-order', 1],
  ['authZ', 1],
  ['chalZ', 1],
  ['authZ', 2],
  ['finalize-order', 1],
  ['my-order', 2],
  ['certZ', 1],
];

describe.skipIf(!hasPebble)('a program that is ended in the middle (needs pebble)', () => {
  it.each(['asking', 'answered'] as const)(
    'leaves what the next one needs, at each request that is begun or answered: %s',
    async (end) => {
      const pebble = await startPebble();
      watchSteps(end);
      const all = await Promise.all(places.map((place) => interrupt(pebble, end, place)));
      for (const one of all) checkAfterwards(one);
      // Else nothing was there to be taken up.
      expect(all.filter(({ order }) => order !== null).length).toBeGreaterThanOrEqual(4);
    },
    40_000,
  );
});
