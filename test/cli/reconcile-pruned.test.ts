/** `earshot reconcile` and `earshot coverage` of a log that was pruned. */
import { expect, it } from 'vitest';
import { hourUs, nowUs, openReconcileWorld } from './reconcile-world.ts';

/** All that was published in the last two days was pushed; of the first, it was pruned. */
async function openPruned() {
  const world = await openReconcileWorld({ modifiedShare: 0, deletedShare: 0 });
  await world.register('sea-ice');
  await world.push('sea-ice', await world.held());
  await world.run(['reconcile', '--since', '3d']);
  const { err } = await world.run(['prune', '--older-than', '1d', '--yes']);
  expect(err).toContain('Removed: 47 notifications.');
  return world;
}

it('compares from where the log is whole, and fetches nothing of what was pruned', async () => {
  const { run, withStore } = await openPruned();
  const { code, err } = await run(['reconcile', '--since', '3d']);
  expect(code).toBe(0);
  expect(err).toContain(
    'Compared from 2026-05-01 12:00 (UTC) on. What was received before was pruned, and is not fetched again (`earshot prune`).',
  );
  expect(await withStore((store) => store.counts())).toMatchObject({ notifications: 49 });
});

it('refuses a window of which nothing is left', async () => {
  const { run, asked } = await openPruned();
  const before = asked();
  const { code, err } = await run(['reconcile', '--since', '3d', '--until', '2d']);
  expect(code).toBe(2);
  expect(err).toContain('The log is whole since 2026-05-01 12:00 (UTC), after --until.');
  expect(asked()).toBe(before);
});

it('says of hours that were pruned that they were, and counts the others alone', async () => {
  const { run, withStore } = await openPruned();
  const { code, out } = await run(['coverage', '--since', '3d']);
  expect(code).toBe(0);
  const [table = '', strip = '', legend] = out.split('\n\n');
  expect(table).toMatch(/sea-ice +48 +48 +0 +0 +0 +24 of 24 h +100 %/);
  expect(strip).toContain('  2026-04-30  ------------------------\n');
  expect(strip).toContain('  2026-05-01  ------------████████████\n');
  expect(legend).toMatch(/^- pruned {3}░ no event/);
  const wholeSinceUs = nowUs - 24 * hourUs - 20 * 60_000_000;
  expect(await withStore(({ completeness }) => completeness.wholeSinceUs())).toBe(wholeSinceUs);
});
