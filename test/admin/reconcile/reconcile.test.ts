/** A comparison as a whole: what it writes, lists and tells. */
import { expect, it } from 'vitest';
import { formatDateUs } from '../../../src/domain/dates.ts';
import { readNotifications } from '../../../src/domain/notification.ts';
import type { FoundMissing, ReconcileProgress } from '../../../src/reconcile/tasks.ts';
import { hour, openReconcileWorld, recordOf, t0, task } from './reconcile-world.ts';

const firstHours = [0, 180] as const;

it('writes what is missing as notifications that the log can read, and nothing the second time', async () => {
  const world = await openReconcileWorld();
  const gone = { id: 'gone', deleted: 61 };
  world.held = [
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
  const first = await world.run(tasks, { onMissing });
  expect(first.map(({ recovered }) => recovered)).toEqual([7, 7, 1]);
  const rows = await world.rows();
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
  const body = await world.store.body(rows.at(-1)?.position ?? 0);
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
  expect(rows.at(-1)).toMatchObject({ source: 'reconcile', receivedAtUs: world.nowUs() });

  const before = await world.coverage();
  expect(before).toHaveLength(9);
  missing.length = 0;
  expect(await world.run(tasks, { onMissing })).toEqual(first);
  expect(missing).toEqual([]);
  expect(await world.rows()).toEqual(rows);
  expect(await world.coverage()).toEqual(before);
});

it('writes nothing at all in a preview, and lists what is missing', async () => {
  const world = await openReconcileWorld();
  world.held = ['a', 'b', 'c', 'd'].map((id, i) => ({ id, published: 50 * i }));
  await world.push({ event: 'created', product: { id: 'b', published: 50 }, received: 51 });
  const missing: FoundMissing[] = [];
  const steps: string[] = [];
  world.onStep = (step) => {
    steps.push(step);
  };
  const options = {
    mode: 'preview',
    onMissing: (event: FoundMissing) => missing.push(event),
  } as const;
  const reports = await world.run([task('created', firstHours)], options);
  expect(reports).toMatchObject([{ expected: 4, pushed: 1, missing: 3, recovered: 0 }]);
  expect(missing.map(({ productId, recovered }) => [productId, recovered])).toEqual([
    ['a', false],
    ['c', false],
    ['d', false],
  ]);
  expect(steps).toEqual(['page', 'page']);
  expect(await world.rows()).toHaveLength(1);
  expect(await world.coverage()).toEqual([]);
});

it('counts records that cannot be read or judged, and goes on without them', async () => {
  const world = await openReconcileWorld(10);
  world.held = [
    { id: 'a', published: 10 },
    { id: ' blank ', published: 11 },
    { id: '', published: 12 },
    { id: 'b', published: 13 },
  ];
  world.odd = 5;
  world.undecided = 9;
  world.onStep = (step) => {
    if (step !== 'page') return;
    world.odd += 2;
    world.undecided += 3;
  };
  const reports = await world.run([task('created', firstHours)]);
  expect(reports).toMatchObject([{ expected: 2, recovered: 2, unreadable: 4, undecided: 3 }]);
});

it('takes more events in a page than the store takes at once', async () => {
  const world = await openReconcileWorld(1_100);
  world.held = Array.from({ length: 1_050 }, (_, i) => ({ id: `p${i}`, published: i / 10 }));
  expect(await world.run([task('created', firstHours)])).toMatchObject([{ recovered: 1_050 }]);
});

it('tells how far it is, and how long it will take', async () => {
  const world = await openReconcileWorld();
  world.held = Array.from({ length: 6 }, (_, i) => ({ id: `p${i}`, published: 10 * i }));
  world.onStep = (step) => {
    if (step === 'page') world.now += 1;
  };
  const told: ReconcileProgress[] = [];
  const tasks = [task('created', [0, 60]), task('deleted', [0, 60])];
  await world.run(tasks, { onProgress: (progress) => told.push(progress) });
  expect(
    told.map(({ tasksDone, upToUs, seen, total, etaMs }) => [
      tasksDone,
      formatDateUs(upToUs).slice(11, 16),
      seen,
      total,
      etaMs,
    ]),
  ).toEqual([
    // A quarter took a minute, one half two; and the last list was empty.
    [0, '10:20', 3, 6, 180_000],
    [0, '11:00', 6, 6, 120_000],
    [1, '11:00', 0, 0, 0],
  ]);
});
