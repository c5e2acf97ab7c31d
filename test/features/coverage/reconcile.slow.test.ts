/**
 * The comparison with the catalogue: outcomes of events, coverage of hours, and what it writes and
 * reports.
 */
import { expect, it } from 'vitest';
import { formatDateUs } from '../../../src/core/terms/dates.ts';
import { readNotifications } from '../../../src/core/terms/notification.ts';
import type { FoundMissing, ReconcileProgress } from '../../../src/features/coverage/tasks.ts';
import { pruneIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { pruneBefore } from '../pruning/prune-to.ts';
import {
  type CatalogueProduct,
  counts,
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

it('writes missing events as readable notifications, and nothing the second time', async () => {
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
  const onMissing = (event: FoundMissing) => missing.push(event);
  const first = await setUp.run(tasks, { onMissing });
  expect(first.map(({ recovered }) => recovered)).toEqual([7, 7, 1]);
  const rows = await setUp.rows();
  expect(rows).toHaveLength(15);
  expect(missing.map(({ productId }) => productId)).toEqual(rows.map(({ productId }) => productId));
  expect(missing.at(-1)).toEqual({
    subscription: 'alps',
    event: 'deleted',
    productId: 'gone',
    productName: 'N_gone',
    eventUs: t0 + 61 * (hour / 60),
    recovered: true,
    isEarlier: false,
  });
  const body = await setUp.store.body(rows.at(-1)?.position ?? 0);
  expect(JSON.parse(Buffer.from(body).toString())).toEqual({
    SubscriptionEvent: 'deleted',
    ProductId: 'gone',
    ProductName: 'N_gone',
    SubscriptionId: subscriptionId,
    value: recordOf(gone),
  });
  const { faults, notifications } = readNotifications(body);
  expect(faults).toEqual([]);
  expect(notifications).toMatchObject([{ productId: 'gone', event: 'deleted', subscriptionId }]);
  expect(rows.at(-1)).toMatchObject({ source: 'reconcile', receivedAtUs: setUp.nowUs() });

  const before = await setUp.coverage();
  expect(before).toHaveLength(9);
  missing.length = 0;
  expect(await setUp.run(tasks, { onMissing })).toEqual(first);
  expect(missing).toEqual([]);
  expect(await setUp.rows()).toEqual(rows);
  expect(await setUp.coverage()).toEqual(before);
});

it('writes nothing in a preview, and lists what is missing', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = ['a', 'b', 'c', 'd'].map((id, i) => ({ id, published: 50 * i }));
  await setUp.push({ event: 'created', product: { id: 'b', published: 50 }, received: 51 });
  const missing: FoundMissing[] = [];
  const steps: string[] = [];
  setUp.onStep = (step) => {
    steps.push(step);
  };
  const options = {
    mode: 'preview',
    onMissing: (event: FoundMissing) => missing.push(event),
  } as const;
  const reports = await setUp.run([task('created', firstHours)], options);
  expect(reports).toMatchObject([{ expected: 4, pushed: 1, missing: 3, recovered: 0 }]);
  expect(missing.map(({ productId, recovered }) => [productId, recovered])).toEqual([
    ['a', false],
    ['c', false],
    ['d', false],
  ]);
  expect(steps).toEqual(['page', 'page']);
  expect(await setUp.rows()).toHaveLength(1);
  expect(await setUp.coverage()).toEqual([]);
});

it('counts unreadable and undecided records, and continues without them', async () => {
  const setUp = await openSetUp(10);
  setUp.catalogue = [
    { id: 'a', published: 10 },
    { id: ' blank ', published: 11 },
    { id: '', published: 12 },
    { id: 'b', published: 13 },
  ];
  setUp.odd = 5;
  setUp.undecided = 9;
  setUp.onStep = (step) => {
    if (step !== 'page') return;
    setUp.odd += 2;
    setUp.undecided += 3;
  };
  const reports = await setUp.run([task('created', firstHours)]);
  expect(reports).toMatchObject([{ expected: 2, recovered: 2, unreadable: 4, undecided: 3 }]);
});

it('accepts pages with more events than the store takes at once', async () => {
  const setUp = await openSetUp(1_100);
  setUp.catalogue = Array.from({ length: 1_050 }, (_, i) => ({ id: `p${i}`, published: i / 10 }));
  expect(await setUp.run([task('created', firstHours)])).toMatchObject([{ recovered: 1_050 }]);
});

it('reports progress and the remaining time', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = Array.from({ length: 6 }, (_, i) => ({ id: `p${i}`, published: 10 * i }));
  setUp.onStep = (step) => {
    if (step === 'page') setUp.now += 1;
  };
  const reports: ReconcileProgress[] = [];
  const tasks = [task('created', [0, 60]), task('deleted', [0, 60])];
  await setUp.run(tasks, { onProgress: (progress) => reports.push(progress) });
  expect(
    reports.map(({ tasksDone, upToUs, seen, total, etaMs }) => [
      tasksDone,
      formatDateUs(upToUs).slice(11, 16),
      seen,
      total,
      etaMs,
    ]),
  ).toEqual([
    // A quarter took one minute, a half two minutes; the last list was empty.
    [0, '10:20', 3, 6, 180_000],
    [0, '11:00', 6, 6, 120_000],
    [1, '11:00', 0, 0, 0],
  ]);
});

it('classifies events by their pushes in the log', async () => {
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
      'a push of the modification does not count for the creation',
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
      'modified before the creation was pushed',
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
  const setUp = await openSetUp();
  // Each case has its own subscription, so that the counts can be assigned.
  for (const [i, [, product, pushes]] of cases.entries()) {
    await setUp.push(...pushes.map((one) => ({ subscription: `s${i}`, product, ...one })));
  }
  await setUp.index();
  const found: Record<string, string[]> = {};
  for (const [i, [why, product, , event]] of cases.entries()) {
    const subscription = `s${i}`;
    setUp.catalogue = [product];
    const tasks = [task(event, firstHours, { subscription })];
    for (const report of await setUp.run(tasks)) {
      found[why] = Object.keys(none).filter((key) => report[key as keyof typeof none] > 0);
    }
  }
  const expected = cases.map(([why, , , , outcome]) => [why, outcome === null ? [] : [outcome]]);
  expect(found).toEqual(Object.fromEntries(expected));
});

it('does not confuse an older state with a newer modification, but ignores the case of ids', async () => {
  const setUp = await openSetUp();
  const product = { id: 'ABC', published: 10 };
  await setUp.push({ event: 'created', product: { ...product, id: 'abc' }, received: 11 });
  await setUp.push({ event: 'modified', product: { ...product, modified: 20 }, received: 21 });
  setUp.catalogue = [{ ...product, modified: 25 }];
  const tasks = [task('created', firstHours), task('modified', firstHours)];
  expect(await setUp.run(tasks)).toMatchObject([
    { expected: 1, pushed: 1 },
    { expected: 1, recovered: 1 },
  ]);
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

it('counts a push received after the recovery as late, in every later comparison', async () => {
  const setUp = await openSetUp();
  const product = { id: 'p', published: 10, modified: 20 };
  setUp.catalogue = [product];
  const tasks = [task('created', firstHours), task('modified', firstHours)];
  setUp.now = 200;
  await setUp.run(tasks);
  for (const event of ['created', 'modified'] as const) {
    await setUp.push({ event, product, received: 25 });
  }
  const late = (event: string) => ({ event, at: 0, expected: 1, ...none, late: 1 });
  const expected = [late('created'), late('modified')];
  expect(await counts(setUp)).toEqual(expected);
  await setUp.run(tasks);
  expect(await counts(setUp)).toEqual(expected);
  expect(await setUp.rows()).toHaveLength(2);
});

it('recognises pushes that arrive during the comparison, and counts them as pushed', async () => {
  const setUp = await openSetUp(10);
  const ids = ['a', 'b', 'c'];
  setUp.catalogue = ids.map((id) => ({ id, published: 170 }));
  setUp.now = 181;
  setUp.onStep = async (step) => {
    if (step !== 'before recover') return;
    setUp.onStep = () => undefined;
    await setUp.push({ event: 'created', product: { id: 'b', published: 170 }, received: 180 });
  };
  const tasks = [task('created', firstHours)];
  const reports = await setUp.run(tasks);
  expect(reports).toMatchObject([{ expected: 3, pushed: 1, recovered: 2, missing: 0 }]);
  const sources = (await setUp.rows()).map(({ productId, source }) => [productId, source]);
  expect(sources).toEqual([
    ['b', 'push'],
    ['a', 'reconcile'],
    ['c', 'reconcile'],
  ]);
  expect(await setUp.run(tasks)).toEqual(reports);
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

it('waits for an index that makes progress, however long that takes', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = [{ id: 'p', published: 10 }];
  await setUp.push(...[1, 2, 3].map((i) => pushOf(`q${i}`)));
  let pauses = 0;
  setUp.products = {
    ...setUp.products,
    indexedPosition: async () => Math.min(3, Math.floor(pauses / 2_900)),
  };
  setUp.pause = async () => {
    pauses += 1;
  };
  expect(await setUp.run([task('created', firstHours)], { mode: 'check' })).toMatchObject([
    { missing: 1 },
  ]);
  expect(pauses).toBe(8_700);
});

const pushOf = (id: string): TestPush => {
  return { event: 'created', product: { id, published: 10 }, received: 11 };
};

it('reports what to do when the index does not follow the log', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = [{ id: 'p', published: 10 }];
  await setUp.push({ event: 'created', product: { id: 'p', published: 10 }, received: 11 });
  let pausedMs = 0;
  setUp.pause = async (ms) => {
    pausedMs += ms;
  };
  const stuck = setUp.run([task('created', firstHours)], { mode: 'check' });
  await expect(stuck).rejects.toMatchObject({
    code: 'unavailable',
    text: expect.stringContaining('lag in notifications: 1'),
  });
  expect(pausedMs).toBe(600_000);
  expect(await setUp.coverage()).toEqual([]);
});

it('counts missing events in a check, and writes them in a later run', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = ['a', 'b', 'c', 'd'].map((id, i) => ({ id, published: 50 * i }));
  const tasks = [task('created', firstHours)];
  expect(await setUp.run(tasks, { mode: 'check' })).toMatchObject([{ missing: 4 }]);
  expect(await setUp.rows()).toEqual([]);
  expect(await counts(setUp)).toEqual([
    { event: 'created', at: 0, expected: 2, ...none, missing: 2 },
    { event: 'created', at: 1, expected: 1, ...none, missing: 1 },
    { event: 'created', at: 2, expected: 1, ...none, missing: 1 },
  ]);
  // Hours with missing events are not skipped, although they were compared.
  const resumed = await setUp.run(tasks, { resumeSinceUs: t0 });
  expect(resumed).toMatchObject([{ recovered: 4, missing: 0 }]);
  expect((await counts(setUp)).map(({ missing }) => missing)).toEqual([0, 0, 0]);
});

it('writes entries without coverage when coverage is off', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = [{ id: 'a', published: 10 }];
  await setUp.run([task('created', firstHours)], { coverage: false });
  expect(await setUp.rows()).toHaveLength(1);
  expect(await setUp.coverage()).toEqual([]);
});

it('counts an hour with a changed filter by both filters, once both parts are compared', async () => {
  const setUp = await openSetUp();
  const name = (id: string) => ({ id, name: id });
  setUp.catalogue = [
    { ...name('A1'), published: 10 },
    { ...name('B1'), published: 20 },
    { ...name('A2'), published: 80 },
    { ...name('B2'), published: 95 },
    { ...name('A3'), published: 100 },
  ];
  const hours = task('created', firstHours).hours;
  const parts = [
    task('created', [0, 90], { filter: 'A', hours }),
    task('created', [90, 180], { filter: 'B', hours }),
  ];
  setUp.onStep = (step) => {
    if (step === 'page' && setUp.pauses === -1) throw new Error('cut');
    if (step === 'after save') setUp.pauses = -1;
  };
  await expect(setUp.run(parts)).rejects.toThrow('cut');
  expect(await counts(setUp)).toEqual([
    { event: 'created', at: 0, expected: 1, ...none, recovered: 1 },
  ]);
  setUp.onStep = () => undefined;
  const seen: number[] = [];
  const reports = await setUp.run(parts, {
    resumeSinceUs: t0,
    onProgress: (progress) => {
      seen[progress.tasksDone] = progress.seen;
    },
  });
  // One of the first part's two events belongs to the hour that was compared before.
  expect(reports.map(({ expected }) => expected)).toEqual([2, 1]);
  expect(seen).toEqual([1, 1]);
  expect(await counts(setUp)).toEqual([
    { event: 'created', at: 0, expected: 1, ...none, recovered: 1 },
    { event: 'created', at: 1, expected: 2, ...none, recovered: 2 },
  ]);
  expect((await setUp.coverage()).length).toBe(3);
});

it('saves no coverage of hours that the window covers in part, or that have not ended', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = [
    { id: 'a', published: 35 },
    { id: 'b', published: 70 },
    { id: 'c', published: 125 },
  ];
  const hours = { fromUs: t0 + hour, toUs: t0 + 3 * hour };
  setUp.now = 150;
  const reports = await setUp.run([task('created', [30, 180], { hours })]);
  expect(reports).toMatchObject([{ expected: 3, recovered: 3 }]);
  expect((await setUp.coverage()).map(({ hourUs }) => hourUs)).toEqual([t0 + hour]);
});

it('saves empty hours of a long window, a thousand at a time', async () => {
  const setUp = await openSetUp();
  const saves: string[] = [];
  setUp.onStep = (step) => {
    saves.push(step);
  };
  await setUp.run([task('deleted', [0, 60 * 1_500])]);
  expect(saves.filter((step) => step === 'after save')).toHaveLength(2);
  expect(await setUp.coverage()).toHaveLength(1_500);
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

it('omits events before the horizon, in counts and in the log', async () => {
  const setUp = await openPushed();
  // Removes p0 to p3, including p2, which was never pushed.
  expect(await pruneBefore(setUp.store, t0 + 110 * minute)).toMatchObject({ notifications: 3 });
  expect(await setUp.completeness.unprunedSinceUs()).toBe(t0 + 120 * minute);
  const tasks = [task('created', [0, 300])];
  expect(await setUp.run(tasks)).toMatchObject([{ expected: 6, pushed: 5, recovered: 1 }]);
  const rows = await setUp.rows();
  expect(rows.map(({ productId }) => productId)).toEqual(['p4', 'p5', 'p6', 'p7', 'p9', 'p8']);
});

it('writes nothing that was pruned during the comparison', async () => {
  const setUp = await openPushed();
  const { dataDir } = setUp;
  setUp.onStep = async (step) => {
    if (step !== 'before recover') return;
    setUp.onStep = () => undefined;
    await pruneBefore(setUp.store, t0 + 110 * minute);
    await pruneIndex({ dataDir, signal: new AbortController().signal });
  };
  const [report] = await setUp.run([task('created', [0, 300])]);
  expect(report).toMatchObject({ recovered: 1 });
  expect((await setUp.rows()).map(({ productId }) => productId)).not.toContain('p2');
});
