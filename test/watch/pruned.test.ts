/** What was pruned is no reason for an alert. */
import { expect, it } from 'vitest';
import { pruneBefore } from '../store/pruning/prune-to.ts';
import { beginUs, covered, hourUs, moments, openWorld } from './watch-world.ts';

const hour = (at: number) => beginUs + at * hourUs;
const weeks = 14 * 24;

it('does not teach that silence is usual, nor is it taken for one', async () => {
  const world = await openWorld();
  const { store, live } = world;
  await live({ toUs: hour(weeks), pushedAtUs: moments(0, weeks) });
  // The four days that are left are not enough to learn from.
  await pruneBefore(store, hour(weeks - 4 * 24));
  await world.restart();
  await live({ toUs: hour(weeks + 12), pushedAtUs: [] });
  await world.look();
  expect(await world.lasting()).toEqual([]);
});

it('is learned from no more, while what is left still is', async () => {
  const world = await openWorld();
  await world.live({ toUs: hour(weeks), pushedAtUs: moments(0, weeks) });
  await pruneBefore(world.store, hour(weeks - 9 * 24));
  await world.restart();
  await world.live({ toUs: hour(weeks + 12), pushedAtUs: [] });
  await world.look();
  const [alert] = await world.lasting();
  expect(alert).toMatchObject({ kind: 'silence' });
  expect(alert?.evidence.join(' ')).toContain('learned from 9 days of watching');
});

it('ends alerts of what is missing or unknown there', async () => {
  const { live, look, lasting, store } = await openWorld({ reconcile: true });
  await live({ toUs: hour(20), pushedAtUs: moments(0, 20) });
  await store.completeness.saveCoverage([covered(2, { pushed: 8, missing: 2 }), covered(19)]);
  await look();
  expect((await lasting()).map(({ kind }) => kind).toSorted()).toEqual(['missing', 'unknown']);
  await pruneBefore(store, hour(18));
  await look();
  expect(await lasting()).toEqual([]);
});
