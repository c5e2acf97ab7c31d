/** What was pruned is neither missing nor fetched again. */
import { expect, it } from 'vitest';
import { pruneIndex } from '../../../src/store/products/index-maintenance.ts';
import { pruneBefore } from '../../store/pruning/prune-to.ts';
import { openReconcileWorld, t0, task } from './reconcile-world.ts';

const minuteUs = 60_000_000;
const firstHours = [0, 300] as const;

/** A product each half hour, all pushed in time but for two. */
async function openPushed() {
  const world = await openReconcileWorld();
  world.held = Array.from({ length: 10 }, (_, i) => ({ id: `p${i}`, published: 30 * i + 5 }));
  const lost = ['p2', 'p8'];
  for (const product of world.held) {
    if (lost.includes(product.id)) continue;
    await world.push({ event: 'created', product, received: (product.published ?? 0) + 1 });
  }
  await world.index();
  return world;
}

it('leaves out what lies before the horizon, in counts and in the log', async () => {
  const world = await openPushed();
  // p0 to p3 go, with p2, which never came.
  expect(await pruneBefore(world.store, t0 + 110 * minuteUs)).toMatchObject({ notifications: 3 });
  expect(await world.completeness.wholeSinceUs()).toBe(t0 + 120 * minuteUs);
  const tasks = [task('created', firstHours)];
  expect(await world.run(tasks)).toMatchObject([{ expected: 6, pushed: 5, recovered: 1 }]);
  const rows = await world.rows();
  expect(rows.map(({ productId }) => productId)).toEqual(['p4', 'p5', 'p6', 'p7', 'p9', 'p8']);
});

it('writes nothing that was pruned while it was being compared', async () => {
  const world = await openPushed();
  const { dataDir } = world;
  world.onStep = async (step) => {
    if (step !== 'before recover') return;
    world.onStep = () => undefined;
    await pruneBefore(world.store, t0 + 110 * minuteUs);
    await pruneIndex({ dataDir, signal: new AbortController().signal });
  };
  const [report] = await world.run([task('created', firstHours)]);
  expect(report).toMatchObject({ recovered: 1 });
  expect((await world.rows()).map(({ productId }) => productId)).not.toContain('p2');
});
