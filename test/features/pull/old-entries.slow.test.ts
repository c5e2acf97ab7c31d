/** Entries of a queue that are older than three days have no record: the comparison with the catalogue fetches it. */
import { expect, it, onTestFinished } from 'vitest';
import { openListing, reconcile } from '../../../src/features/coverage/reconcile.ts';
import { tasksOf } from '../../../src/features/coverage/tasks.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { dayMs, openPullSetUp, startMs } from '../../admin/queue-set-up.ts';
import { collect } from '../../helpers/deliveries.ts';
import { registration } from '../alerts/watch-context.ts';

const { signal } = new AbortController();
const dayUs = dayMs * 1_000;
const events = ['created', 'modified', 'deleted'] as const;

/** Opens a queue of the sandbox, with the catalogue's listing, the product index, and a registration. */
async function openOldEntries() {
  const setUp = await openPullSetUp({}, { events: [...events] });
  const { sandbox, store, dataDir, id: subscriptionId, nowUs } = setUp;
  const config = { account: null, dataDir, sharedLog: null, diskReserveBytes: undefined };
  const { listing } = openListing(
    { ...config, catalogueUrl: sandbox.catalogueUrl, requestsPerMinute: 1e9 },
    { nowUs, random: () => 0.5, fetch, signal },
    () => undefined,
  );
  const index = () => catchUpIndex({ dataDir });
  await index();
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  const activityAtUs = startMs * 1_000 - dayUs;
  const save = registration({ type: 'pull', events, subscriptionId, activityAtUs });
  await store.administration.commit({ save });
  const { completeness } = store;
  return {
    ...{ ...setUp, products, index },
    /** Compares the day of the events; returns its counts. */
    compare: async () => {
      await index();
      const window = { fromUs: activityAtUs, toUs: startMs * 1_000 + dayUs };
      const definitions = await completeness.definitions();
      const tasks = tasksOf({
        definitions,
        registrations: [save],
        window,
        subscriptions: ['alps'],
      });
      const pause = async () => void (await index());
      const reports = await reconcile(
        { listing, products, log: store, completeness, nowUs, ownNowUs: nowUs, pause },
        { tasks, mode: 'write', coverage: true, signal },
      );
      await index();
      return reports
        .filter(({ task }) => !task.isEarlier)
        .map(({ expected, late, recovered }) => ({ expected, late, recovered }));
    },
  };
}

it('get one row each with the record of the catalogue, which the index reads', async () => {
  const { sandbox, store, id, drain, compare, rows, products } = await openOldEntries();
  await sandbox.publishNow(5);
  await sandbox.publishNow(1, 'modified');
  await sandbox.publishNow(2, 'deleted');
  sandbox.clock.advance(4 * dayMs);
  await drain();
  // The products that were deleted since then are no longer listed as created.
  expect(await compare()).toEqual([
    { expected: 3, late: 0, recovered: 3 },
    { expected: 1, late: 0, recovered: 1 },
    { expected: 2, late: 0, recovered: 2 },
  ]);
  const all = await rows();
  const recovered = all.filter(({ source }) => source === 'reconcile');
  expect(all).toHaveLength(8 + recovered.length);
  const body = await store.body(recovered[0]?.position ?? 0);
  const { SubscriptionId, value } = JSON.parse(Buffer.from(body).toString());
  expect(SubscriptionId).toBe(id);
  expect(value.Attributes.length).toBeGreaterThan(0);
  for (const [entity, count] of [
    ['Products', 3],
    ['DeletedProducts', 2],
  ] as const) {
    const found = await collect(products.find({ entity, filter: null }));
    expect(found).toHaveLength(count);
    for (const { row, record } of found) {
      expect(record).toMatchObject({ Id: row.productId, Name: row.productName });
    }
  }
});

it('count as late when the comparison ran before the queue was read', async () => {
  const { sandbox, drain, compare, rows } = await openOldEntries();
  await sandbox.publishNow(3);
  sandbox.clock.advance(4 * dayMs);
  expect((await compare())[0]).toEqual({ expected: 3, late: 0, recovered: 3 });
  await drain();
  expect((await rows()).map(({ timesSeen }) => timesSeen)).toEqual([2, 2, 2]);
  expect((await compare())[0]).toEqual({ expected: 3, late: 3, recovered: 0 });
});
