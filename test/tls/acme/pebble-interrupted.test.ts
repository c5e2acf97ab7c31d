/** A program is ended as it touches the disk: the next one finishes the same order, and never a second. */
import { describe, expect, it } from 'vitest';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import {
  checkAfterwards,
  filesOf,
  interrupt,
  type Place,
  watchSteps,
} from './interrupted-world.ts';

const places: Place[] = [
  ['context.openListener', 1],
  ['folder.writeAccount', 1],
  ['folder.writeAccount', 2],
  ['folder.writeOrder', 1],
  ['challenges.clear', 1],
  ['challenges.put', 1],
  ['challenges.clear', 2],
  ['folder.writeCertificate', 1],
  ['states.write', 1],
  ['folder.removeOrder', 1],
];

describe.skipIf(!hasPebble)('a program that is ended in the middle (needs pebble)', () => {
  it.each(['stopped', 'killed'] as const)(
    'leaves what the next one needs, where it touches the disk and is %s',
    async (end) => {
      const pebble = await startPebble();
      watchSteps('asking');
      const all = await Promise.all(places.map((place) => interrupt(pebble, end, place)));
      for (const one of all) checkAfterwards(one);
      // Else nothing was there to be taken up.
      expect(all.filter(({ order }) => order !== null).length).toBeGreaterThanOrEqual(4);
    },
    40_000,
  );

  it('after everything was saved but the end: the next renewal is another order', async () => {
    const pebble = await startPebble();
    const { next, order, outcome } = await interrupt(pebble, 'killed', ['folder.removeOrder', 1]);
    expect([outcome, next.saved('order.json')]).toEqual(['current', order]);
    const { key } = next.saved('certificate.json');
    expect(key).toBe(order?.key);
    expect((await next.look('anyway')).outcome).toBe('renewed');
    expect(next.saved('certificate.json').key).not.toBe(key);
    expect(filesOf(next)).not.toContain('order.json');
  });
});
