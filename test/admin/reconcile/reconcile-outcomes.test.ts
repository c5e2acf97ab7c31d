/** How events of the catalogue are found in the log: pushed, late, recovered, or missing. */
import { expect, it } from 'vitest';
import {
  type CatalogueProduct,
  counts,
  none,
  openReconcileWorld,
  type TestPush,
  t0,
  task,
} from './reconcile-world.ts';

const firstHours = [0, 180] as const;

it('tells events apart by what the log has of them', async () => {
  type Case = [
    string,
    CatalogueProduct,
    Omit<TestPush, 'product'>[],
    'created' | 'modified' | 'deleted',
    keyof typeof none | null,
  ];
  const published = { published: 10 };
  const changed = { published: 10, modified: 20 };
  const pushed = (event: TestPush['event'], received: number, more: object = {}) => ({
    event,
    received,
    ...more,
  });
  const cases: Case[] = [
    ['pushed in time', published, [pushed('created', 11)], 'created', 'pushed'],
    ['pushed just in time', published, [pushed('created', 40)], 'created', 'pushed'],
    ['pushed late', published, [pushed('created', 40.001)], 'created', 'late'],
    [
      'pushed twice, late again',
      published,
      [pushed('created', 11), pushed('created', 90)],
      'created',
      'pushed',
    ],
    ['never pushed', published, [], 'created', 'recovered'],
    [
      'a modification does not tell of the creation',
      changed,
      [pushed('modified', 21)],
      'created',
      'recovered',
    ],
    [
      'pushed without a record',
      published,
      [pushed('created', 11, { withoutRecord: true })],
      'created',
      'pushed',
    ],
    [
      'pushed to another subscription',
      published,
      [pushed('created', 11, { subscription: 'andes' })],
      'created',
      'recovered',
    ],
    ['never modified', published, [], 'modified', null],
    ['modified, and pushed', changed, [pushed('modified', 21)], 'modified', 'pushed'],
    ['modified, and pushed late', changed, [pushed('modified', 55)], 'modified', 'late'],
    [
      'modified before the creation was told',
      changed,
      [pushed('created', 21)],
      'modified',
      'pushed',
    ],
    ['modified, and never pushed', changed, [], 'modified', 'recovered'],
    [
      'pushed without a record, after the modification',
      changed,
      [pushed('modified', 20, { withoutRecord: true })],
      'modified',
      'pushed',
    ],
    [
      'pushed without a record, before the modification',
      changed,
      [pushed('modified', 19.99, { withoutRecord: true })],
      'modified',
      'recovered',
    ],
    [
      'the creation pushed without a record, after the modification',
      changed,
      [pushed('created', 21, { withoutRecord: true })],
      'modified',
      'recovered',
    ],
    ['deleted, and pushed', { deleted: 30 }, [pushed('deleted', 31)], 'deleted', 'pushed'],
    [
      'deleted, and only the creation pushed',
      { deleted: 30 },
      [pushed('created', 11)],
      'deleted',
      'recovered',
    ],
  ].map(
    ([why, product, ...rest]) => [why, { id: String(why), ...Object(product) }, ...rest] as Case,
  );
  const world = await openReconcileWorld();
  // Each in a subscription of its own, so that the counts tell which is which.
  for (const [i, [, product, pushes]] of cases.entries()) {
    await world.push(...pushes.map((one) => ({ subscription: `s${i}`, product, ...one })));
  }
  await world.index();
  const found: Record<string, string[]> = {};
  for (const [i, [why, product, , event]] of cases.entries()) {
    const subscription = `s${i}`;
    world.held = [product];
    const tasks = [task(event, firstHours, { subscription })];
    for (const report of await world.run(tasks)) {
      found[why] = Object.keys(none).filter((key) => report[key as keyof typeof none] > 0);
    }
  }
  const wanted = cases.map(([why, , , , outcome]) => [why, outcome === null ? [] : [outcome]]);
  expect(found).toEqual(Object.fromEntries(wanted));
});

it('does not take an older state for a newer modification, nor another case for another product', async () => {
  const world = await openReconcileWorld();
  const product = { id: 'ABC', published: 10 };
  await world.push({ event: 'created', product: { ...product, id: 'abc' }, received: 11 });
  await world.push({ event: 'modified', product: { ...product, modified: 20 }, received: 21 });
  world.held = [{ ...product, modified: 25 }];
  const tasks = [task('created', firstHours), task('modified', firstHours)];
  expect(await world.run(tasks)).toMatchObject([
    { expected: 1, pushed: 1 },
    { expected: 1, recovered: 1 },
  ]);
});

it('compares dates of modifications in whole milliseconds', async () => {
  const world = await openReconcileWorld();
  const us = (count: number) => count / 60_000_000;
  const product = (id: string, modified: number) => ({ id, published: 10, modified });
  world.held = [
    product('pushed', 20 + us(123_456)),
    product('recovered', 20 + us(123_456)),
    product('other', 20 + us(123_456)),
    product('unmodified', 10 + us(999)),
  ];
  const [, recovered] = world.held;
  await world.push(
    { event: 'modified', product: product('pushed', 20 + us(123_000)), received: 21 },
    { event: 'modified', product: product('other', 20 + us(122_000)), received: 21 },
  );
  await world.index();
  const tasks = [task('modified', firstHours)];
  expect(await world.run(tasks)).toMatchObject([{ expected: 3, pushed: 1, recovered: 2 }]);
  // The catalogue gives three digits from now on, or a late push does.
  const three = product('recovered', 20 + us(123_000));
  world.held = world.held.map((one) => (one === recovered ? three : one));
  expect(await world.run(tasks)).toMatchObject([{ expected: 3, pushed: 1, recovered: 2 }]);
  await world.push({ event: 'modified', product: three, received: 25 });
  expect(await world.run(tasks)).toMatchObject([{ pushed: 1, late: 1, recovered: 1 }]);
  expect(await world.rows()).toHaveLength(4);
});

it('counts a push that comes after the event was recovered as late, in every later comparison', async () => {
  const world = await openReconcileWorld();
  const product = { id: 'p', published: 10, modified: 20 };
  world.held = [product];
  const tasks = [task('created', firstHours), task('modified', firstHours)];
  world.now = 200;
  await world.run(tasks);
  for (const event of ['created', 'modified'] as const) {
    await world.push({ event, product, received: 25 });
  }
  const late = (event: string) => ({ event, at: 0, expected: 1, ...none, late: 1 });
  const told = [late('created'), late('modified')];
  expect(await counts(world)).toEqual(told);
  await world.run(tasks);
  expect(await counts(world)).toEqual(told);
  expect(await world.rows()).toHaveLength(2);
});

it('sees what is pushed while it compares, and counts it as pushed', async () => {
  const world = await openReconcileWorld(10);
  const ids = ['a', 'b', 'c'];
  world.held = ids.map((id) => ({ id, published: 170 }));
  world.now = 181;
  world.onStep = async (step) => {
    if (step !== 'before recover') return;
    world.onStep = () => undefined;
    await world.push({ event: 'created', product: { id: 'b', published: 170 }, received: 180 });
  };
  const tasks = [task('created', firstHours)];
  const reports = await world.run(tasks);
  expect(reports).toMatchObject([{ expected: 3, pushed: 1, recovered: 2, missing: 0 }]);
  const sources = (await world.rows()).map(({ productId, source }) => [productId, source]);
  expect(sources).toEqual([
    ['b', 'push'],
    ['a', 'reconcile'],
    ['c', 'reconcile'],
  ]);
  expect(await world.run(tasks)).toEqual(reports);
});

it('looks again when the log has grown too much since it looked', async () => {
  const world = await openReconcileWorld(1_000);
  world.held = [{ id: 'wanted', published: 10 }];
  world.onStep = async (step) => {
    if (step !== 'before recover') return;
    world.onStep = () => undefined;
    const many = Array.from({ length: 5_001 }, (_, i) => ({
      SubscriptionEvent: 'created',
      ProductId: `p${i}`,
      AckId: `many-${i}`,
    }));
    const body = Buffer.from(JSON.stringify(many));
    const delivery = { body, subscription: 'alps', receivedAtUs: t0, headers: [] };
    await world.store.accept({ ...delivery, source: 'push' });
  };
  expect(await world.run([task('created', firstHours)])).toMatchObject([{ recovered: 1 }]);
  expect(world.pauses).toBe(1);
});

it('starts over when the index is replaced while it looks', async () => {
  const world = await openReconcileWorld();
  const product = { id: 'p', published: 10 };
  world.held = [product];
  await world.push({ event: 'created', product, received: 11 });
  await world.index();
  // A new index knows nothing at first.
  const { products } = world;
  let isEmpty = false;
  world.products = {
    indexedPosition: async () => (isEmpty ? 0 : products.indexedPosition()),
    pushedEvents: async (question) => {
      isEmpty = world.pauses === 0;
      return isEmpty ? [] : products.pushedEvents(question);
    },
  };
  world.pause = async () => {
    world.pauses += 1;
    isEmpty = false;
  };
  expect(await world.run([task('created', firstHours)])).toMatchObject([{ pushed: 1 }]);
  expect(world.pauses).toBe(1);
  expect(await world.rows()).toHaveLength(1);
});

it('waits for an index that moves, however long that takes', async () => {
  const world = await openReconcileWorld();
  world.held = [{ id: 'p', published: 10 }];
  await world.push(...[1, 2, 3].map((i) => pushOf(`q${i}`)));
  let pauses = 0;
  world.products = {
    ...world.products,
    indexedPosition: async () => Math.min(3, Math.floor(pauses / 2_900)),
  };
  world.pause = async () => {
    pauses += 1;
  };
  expect(await world.run([task('created', firstHours)], { mode: 'check' })).toMatchObject([
    { missing: 1 },
  ]);
  expect(pauses).toBe(8_700);
});

const pushOf = (id: string): TestPush => {
  return { event: 'created', product: { id, published: 10 }, received: 11 };
};

it('says what to do when the index does not follow the log', async () => {
  const world = await openReconcileWorld();
  world.held = [{ id: 'p', published: 10 }];
  await world.push({ event: 'created', product: { id: 'p', published: 10 }, received: 11 });
  let pausedMs = 0;
  world.pause = async (ms) => {
    pausedMs += ms;
  };
  const stuck = world.run([task('created', firstHours)], { mode: 'check' });
  await expect(stuck).rejects.toMatchObject({
    code: 'unavailable',
    text: expect.stringContaining('1 notifications behind the log'),
  });
  expect(pausedMs).toBe(600_000);
  expect(await world.coverage()).toEqual([]);
});
