/** What the comparison says of whole hours. */
import { expect, it } from 'vitest';
import { counts, hour, none, openReconcileWorld, t0, task } from './reconcile-world.ts';

const firstHours = [0, 180] as const;

it('counts what is missing in a check, and writes it when it is run again without', async () => {
  const world = await openReconcileWorld();
  world.held = ['a', 'b', 'c', 'd'].map((id, i) => ({ id, published: 50 * i }));
  const tasks = [task('created', firstHours)];
  expect(await world.run(tasks, { mode: 'check' })).toMatchObject([{ missing: 4 }]);
  expect(await world.rows()).toEqual([]);
  expect(await counts(world)).toEqual([
    { event: 'created', at: 0, expected: 2, ...none, missing: 2 },
    { event: 'created', at: 1, expected: 1, ...none, missing: 1 },
    { event: 'created', at: 2, expected: 1, ...none, missing: 1 },
  ]);
  // What was missing is no reason to skip the hour, though it was compared since.
  const resumed = await world.run(tasks, { resumeSinceUs: t0 });
  expect(resumed).toMatchObject([{ recovered: 4, missing: 0 }]);
  expect((await counts(world)).map(({ missing }) => missing)).toEqual([0, 0, 0]);
});

it('writes entries without coverage when it is told to', async () => {
  const world = await openReconcileWorld();
  world.held = [{ id: 'a', published: 10 }];
  await world.run([task('created', firstHours)], { coverage: false });
  expect(await world.rows()).toHaveLength(1);
  expect(await world.coverage()).toEqual([]);
});

it('counts an hour in which the filter changed by both filters, when both parts were seen', async () => {
  const world = await openReconcileWorld();
  const name = (id: string) => ({ id, name: id });
  world.held = [
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
  world.onStep = (step) => {
    if (step === 'page' && world.pauses === -1) throw new Error('cut');
    if (step === 'after save') world.pauses = -1;
  };
  await expect(world.run(parts)).rejects.toThrow('cut');
  expect(await counts(world)).toEqual([
    { event: 'created', at: 0, expected: 1, ...none, recovered: 1 },
  ]);
  world.onStep = () => undefined;
  const seen: number[] = [];
  const reports = await world.run(parts, {
    resumeSinceUs: t0,
    onProgress: (progress) => {
      seen[progress.tasksDone] = progress.seen;
    },
  });
  // Of the first part's two, one is of the hour that was compared before.
  expect(reports.map(({ expected }) => expected)).toEqual([2, 1]);
  expect(seen).toEqual([1, 1]);
  expect(await counts(world)).toEqual([
    { event: 'created', at: 0, expected: 1, ...none, recovered: 1 },
    { event: 'created', at: 1, expected: 2, ...none, recovered: 2 },
  ]);
  expect((await world.coverage()).length).toBe(3);
});

it('tells no hour to be complete of which the window has but a part, or that lasts yet', async () => {
  const world = await openReconcileWorld();
  world.held = [
    { id: 'a', published: 35 },
    { id: 'b', published: 70 },
    { id: 'c', published: 125 },
  ];
  const hours = { fromUs: t0 + hour, toUs: t0 + 3 * hour };
  world.now = 150;
  const reports = await world.run([task('created', [30, 180], { hours })]);
  expect(reports).toMatchObject([{ expected: 3, recovered: 3 }]);
  expect((await world.coverage()).map(({ hourUs }) => hourUs)).toEqual([t0 + hour]);
});

it('saves empty hours of a long window, a thousand at a time', async () => {
  const world = await openReconcileWorld();
  const saves: string[] = [];
  world.onStep = (step) => {
    saves.push(step);
  };
  await world.run([task('deleted', [0, 60 * 1_500])]);
  expect(saves.filter((step) => step === 'after save')).toHaveLength(2);
  expect(await world.coverage()).toHaveLength(1_500);
});
