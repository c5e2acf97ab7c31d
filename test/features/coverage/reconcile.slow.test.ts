/**
 * The comparison with the catalogue: outcomes of events, coverage of hours, and what it writes and
 * reports.
 */
import { expect, it } from 'vitest';
import { readNotifications } from '../../../src/core/terms/notification.ts';
import type { FoundMissing } from '../../../src/features/coverage/tasks.ts';
import { pruneIndex } from '../products/index-file/product-context.ts';
import { pruneBefore } from '../pruning/prune-to.ts';
import {
  type CatalogueProduct,
  hour,
  minute,
  none,
  openSetUp,
  recordOf,
  type TestPush,
  t0,
  task,
} from './set-up.ts';

const firstHours = [0, 180] as const;

it('writes missing events as readable notifications', async () => {
  const setUp = await openSetUp();
  const gone = { id: 'gone', deleted: 61 };
  setUp.catalogue = [
    ...Array.from({ length: 7 }, (_, i) => ({
      id: `p${i}`,
      published: 10 * i,
      modified: 10 * i + 1,
    })),
    gone,
  ];
  const subscriptionId = 'c06f2e68-fb9e-4e22-ac57-49566e8621fb';
  const tasks = (['created', 'modified', 'deleted'] as const).map((event) =>
    task(event, firstHours, { subscriptionId }),
  );
  const missing: FoundMissing[] = [];
  const onMissing = async (event: FoundMissing) => void missing.push(event);
  const first = await setUp.run(tasks, { onMissing });
  expect(first.map(({ recovered }) => recovered)).toEqual([7, 7, 1]);
  const rows = await setUp.rows();
  expect(missing.map(({ productId }) => productId)).toEqual(rows.map(({ productId }) => productId));
  expect(missing.at(-1)).toEqual({
    ...{ subscription: 'alps', event: 'deleted', productId: 'gone', productName: 'N_gone' },
    ...{ eventUs: t0 + 61 * minute, recovered: true },
  });
  expect(await setUp.coverage()).toHaveLength(9);
  expect(rows.at(-1)).toMatchObject({ source: 'reconcile', receivedAtUs: setUp.nowUs() });
  const body = await setUp.store.body(rows.at(-1)?.position ?? 0);
  expect(JSON.parse(Buffer.from(body).toString())).toEqual({
    ...{ SubscriptionEvent: 'deleted', ProductId: 'gone', ProductName: 'N_gone' },
    ...{ SubscriptionId: subscriptionId, value: recordOf(gone) },
  });
  expect(readNotifications(body)).toMatchObject({
    faults: [],
    notifications: [{ productId: 'gone', event: 'deleted', subscriptionId }],
  });
});

it('accepts pages with more events than the store takes at once', async () => {
  const setUp = await openSetUp(1_100);
  setUp.catalogue = Array.from({ length: 1_050 }, (_, i) => ({ id: `p${i}`, published: i / 10 }));
  expect(await setUp.run([task('created', firstHours)])).toMatchObject([{ recovered: 1_050 }]);
});

type Outcome = keyof typeof none | null;

/** Pushes as "event minute", with "bare" for one without a record, "andes" for another subscription. */
const cases: [title: string, product: string, pushes: string, event: string, Outcome][] = [
  ['pushed in time', 'published', 'created 11', 'created', 'pushed'],
  ['pushed just in time', 'published', 'created 40', 'created', 'pushed'],
  ['pushed late', 'published', 'created 40.001', 'created', 'late'],
  ['pushed twice, late again', 'published', 'created 11, created 90', 'created', 'pushed'],
  ['never pushed', 'published', '', 'created', 'recovered'],
  ['the modification pushed', 'changed', 'modified 21', 'created', 'recovered'],
  ['pushed without a record', 'published', 'created 11 bare', 'created', 'pushed'],
  ['pushed to another subscription', 'published', 'created 11 andes', 'created', 'recovered'],
  ['never modified', 'published', '', 'modified', null],
  ['modified, and pushed', 'changed', 'modified 21', 'modified', 'pushed'],
  ['modified, and pushed late', 'changed', 'modified 55', 'modified', 'late'],
  ['modified before the creation was pushed', 'changed', 'created 21', 'modified', 'pushed'],
  ['modified, and never pushed', 'changed', '', 'modified', 'recovered'],
  ['pushed bare after the modification', 'changed', 'modified 20 bare', 'modified', 'pushed'],
  ['pushed bare before it', 'changed', 'modified 19.99 bare', 'modified', 'recovered'],
  ['the creation pushed bare after it', 'changed', 'created 21 bare', 'modified', 'recovered'],
  ['an older modification pushed', 'changed again', 'modified 21', 'modified', 'recovered'],
  ['deleted, and pushed', 'deleted', 'deleted 31', 'deleted', 'pushed'],
  ['deleted, and the creation pushed', 'deleted', 'created 11', 'deleted', 'recovered'],
];
const states: Record<string, Omit<CatalogueProduct, 'id'>> = {
  published: { published: 10 },
  changed: { published: 10, modified: 20 },
  'changed again': { published: 10, modified: 25 },
  deleted: { deleted: 30 },
};

it('classifies events by their pushes in the log, whatever the case of their ids', async () => {
  const setUp = await openSetUp();
  // Each case has its own subscription, so that the counts can be assigned.
  for (const [i, [id, state, pushes]] of cases.entries()) {
    const pushedState = states[state === 'changed again' ? 'changed' : state];
    for (const push of pushes.split(', ').filter(Boolean)) {
      const [event, received, more] = push.split(' ');
      await setUp.push({
        event: event as TestPush['event'],
        product: { id: id.toUpperCase(), ...pushedState },
        received: Number(received),
        subscription: more === 'andes' ? more : `s${i}`,
        ...(more === 'bare' && { withoutRecord: true }),
      });
    }
  }
  await setUp.index();
  const found: unknown[] = [];
  for (const [i, [id, state, , event]] of cases.entries()) {
    setUp.catalogue = [{ id, ...states[state] }];
    const [report] = await setUp.run([
      task(event as TestPush['event'], firstHours, { subscription: `s${i}` }),
    ]);
    found.push([id, Object.keys(none).find((key) => report?.[key as keyof typeof none]) ?? null]);
  }
  expect(found).toEqual(cases.map(([id, , , , outcome]) => [id, outcome]));
});

it('compares dates of modifications in whole milliseconds', async () => {
  const setUp = await openSetUp();
  const us = (count: number) => count / 60_000_000;
  const product = (id: string, modified: number) => ({ id, published: 10, modified });
  setUp.catalogue = [
    product('pushed', 20 + us(123_456)),
    product('recovered', 20 + us(123_456)),
    product('other', 20 + us(123_456)),
    product('unmodified', 10 + us(999)),
  ];
  const [, recovered] = setUp.catalogue;
  await setUp.push(
    { event: 'modified', product: product('pushed', 20 + us(123_000)), received: 21 },
    { event: 'modified', product: product('other', 20 + us(122_000)), received: 21 },
  );
  await setUp.index();
  const tasks = [task('modified', firstHours)];
  expect(await setUp.run(tasks)).toMatchObject([{ expected: 3, pushed: 1, recovered: 2 }]);
  // From now on the catalogue, or a late push, has only three decimals.
  const three = product('recovered', 20 + us(123_000));
  setUp.catalogue = setUp.catalogue.map((one) => (one === recovered ? three : one));
  expect(await setUp.run(tasks)).toMatchObject([{ expected: 3, pushed: 1, recovered: 2 }]);
  await setUp.push({ event: 'modified', product: three, received: 25 });
  expect(await setUp.run(tasks)).toMatchObject([{ pushed: 1, late: 1, recovered: 1 }]);
  expect(await setUp.rows()).toHaveLength(4);
});

it('repeats the check when the log has grown too much meanwhile', async () => {
  const setUp = await openSetUp(1_000);
  setUp.catalogue = [{ id: 'missing', published: 10 }];
  setUp.onStep = async (step) => {
    if (step !== 'before recover') return;
    setUp.onStep = () => undefined;
    const many = Array.from({ length: 5_001 }, (_, i) => ({
      SubscriptionEvent: 'created',
      ProductId: `p${i}`,
      AckId: `many-${i}`,
    }));
    const body = Buffer.from(JSON.stringify(many));
    const delivery = { body, subscription: 'alps', receivedAtUs: t0, headers: [] };
    await setUp.store.accept({ ...delivery, source: 'push' });
  };
  expect(await setUp.run([task('created', firstHours)])).toMatchObject([{ recovered: 1 }]);
  expect(setUp.pauses).toBe(1);
});

it('starts over when the index is replaced during the check', async () => {
  const setUp = await openSetUp();
  const product = { id: 'p', published: 10 };
  setUp.catalogue = [product];
  await setUp.push({ event: 'created', product, received: 11 });
  await setUp.index();
  // A new index is empty at first.
  const { products } = setUp;
  let isEmpty = false;
  setUp.products = {
    indexedPosition: async () => (isEmpty ? 0 : products.indexedPosition()),
    pushedEvents: async (question) => {
      isEmpty = setUp.pauses === 0;
      return isEmpty ? [] : products.pushedEvents(question);
    },
  };
  setUp.pause = async () => {
    setUp.pauses += 1;
    isEmpty = false;
  };
  expect(await setUp.run([task('created', firstHours)])).toMatchObject([{ pushed: 1 }]);
  expect(setUp.pauses).toBe(1);
  expect(await setUp.rows()).toHaveLength(1);
});

it('saves no coverage of an hour that has not ended, and counts the first hour from the beginning of the subscription', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = [10, 35, 70, 125].map((published) => ({ id: `p${published}`, published }));
  setUp.now = 150;
  const reports = await setUp.run([
    task('created', [-60, 30], { isEarlier: true }),
    task('created', [30, 180]),
  ]);
  expect(reports.map(({ recovered }) => recovered)).toEqual([1, 3]);
  const saved = (await setUp.coverage()).map((one) => [(one.hourUs - t0) / hour, one.expected]);
  expect(saved).toEqual([
    [0, 1],
    [1, 1],
  ]);
});

/** A product every half hour, all pushed in time except two. */
async function openPushed() {
  const setUp = await openSetUp();
  setUp.catalogue = Array.from({ length: 10 }, (_, i) => ({ id: `p${i}`, published: 30 * i + 5 }));
  const lost = ['p2', 'p8'];
  for (const product of setUp.catalogue) {
    if (lost.includes(product.id)) continue;
    await setUp.push({ event: 'created', product, received: (product.published ?? 0) + 1 });
  }
  await setUp.index();
  return setUp;
}

it('writes nothing that was pruned during the comparison', async () => {
  const setUp = await openPushed();
  const { dataDir } = setUp;
  setUp.onStep = async (step) => {
    if (step !== 'before recover') return;
    setUp.onStep = () => undefined;
    await pruneBefore(setUp.store, t0 + 110 * minute);
    await pruneIndex(dataDir);
  };
  const [report] = await setUp.run([task('created', [0, 300])]);
  expect(report).toMatchObject({ recovered: 1 });
  expect((await setUp.rows()).map(({ productId }) => productId)).not.toContain('p2');
});
