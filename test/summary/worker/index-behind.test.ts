/** An index that is not there yet, or is an older one: what it is to tell of waits, and is not told wrong. */
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  each,
  hourUs,
  minuteUs,
  openFollowing,
  openWorker,
  productOf,
  rules,
  secondUs,
  startUs,
  type Worker,
} from './worker-world.ts';

const waits =
  'The product index has yet to read what it is about. `earshot index status` tells more.';
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => productOf(from + i));
const indexFiles = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => name.startsWith('products-'));

function removeIndex(dataDir: string) {
  for (const name of indexFiles(dataDir)) rmSync(join(dataDir, name));
}

/** Closes the worker, changes its files, and opens another one on them. */
async function reopened(worker: Worker, change: (dataDir: string) => void) {
  const { dataDir, clock, sandbox } = worker;
  await worker.close();
  change(dataDir);
  return openWorker({ dataDir, clock, sandbox });
}

/** The worker's folder with an index that was backed up by `until` products, though more are told of since. */
async function withOlderIndex(worker: Worker, tellMore: (worker: Worker) => Promise<void>) {
  await worker.index();
  const saved = join(worker.dataDir, 'saved.db');
  const before = await reopened(worker, (dataDir) => {
    const [name = ''] = indexFiles(dataDir);
    copyFileSync(join(dataDir, name), saved);
  });
  await tellMore(before);
  return reopened(before, (dataDir) => {
    const [name = ''] = indexFiles(dataDir);
    removeIndex(dataDir);
    copyFileSync(saved, join(dataDir, name));
  });
}

it('removed with 100 products waiting, all of them get their texts when it was built anew', async () => {
  const first = await openFollowing();
  await first.tell(numbered(0, 100));
  await first.collect(rules({}, each));
  const worker = await reopened(first, removeIndex);
  await expect(worker.work()).rejects.toMatchObject({ code: 'unavailable' });
  expect(await worker.summaries.counts()).toMatchObject({ waiting: 100, failed: 0 });
  await worker.index();
  await worker.work();
  expect(await worker.summaries.counts()).toMatchObject({ done: 100, failed: 0, waiting: 0 });
  expect(worker.sandbox.inference.totals()).toMatchObject({ distinct: 100, repeated: 0 });
});

it('restored from a backup, tells of what it has, and the rest waits for it', async () => {
  const first = await openFollowing();
  await first.tell(numbered(0, 40));
  await first.collect(rules({}, each));
  const worker = await withOlderIndex(first, async (before) => {
    await before.tell(numbered(40, 100));
    await before.collect(rules({}, each));
  });
  const untilUs = startUs + 5 * secondUs;
  expect(await worker.work()).toEqual({ end: 'index', untilUs, reason: waits });
  expect(await worker.summaries.counts()).toMatchObject({ done: 40, waiting: 60, failed: 0 });
  const told = (await worker.rows()).filter(({ error }) => error === waits);
  expect(told[0]).toMatchObject({ state: 'waiting', attempts: 0, nextTryAtUs: untilUs });
  // Two at a time, and not all of them each second.
  expect(told.length).toBeLessThan(3);
  await worker.index();
  worker.clock.us = untilUs;
  await worker.work();
  expect(await worker.summaries.counts()).toMatchObject({ done: 100, failed: 0, waiting: 0 });
});

it('behind the end of a window, keeps its digest waiting, and none that it has got to', async () => {
  const hourly = { kind: 'digest', window: 'hour', per: 'all', areas: [] } as const;
  const first = await openFollowing();
  await first.tell(numbered(0, 3), { receivedAtUs: startUs - 2 * hourUs });
  await first.tell(numbered(3, 5));
  const worker = await withOlderIndex(first, async (before) => {
    await before.tell(numbered(5, 9));
    await before.collect(rules({}, hourly));
  });
  worker.clock.us += minuteUs;
  expect(await worker.work()).toMatchObject({ end: 'index' });
  const states = async () => (await worker.rows()).map(({ state }) => state).toSorted();
  expect(await states()).toEqual(['done', 'waiting']);
  await worker.index();
  worker.clock.us += 5 * secondUs;
  await worker.work();
  expect(await states()).toEqual(['done', 'done']);
  const texts = (await worker.rows()).map(({ text }) => text?.text);
  expect(texts).toContainEqual(expect.stringContaining('6 products arrived'));
});
