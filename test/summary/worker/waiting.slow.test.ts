/**
 * Waiting jobs: for the budget, the index, the end of a window, or a backlog, until they are
 * dropped.
 */

import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ChatClient } from '../../../src/summary/chat/chat-client.ts';
import { startSummaryWorker } from '../../../src/summary/worker/run-summaries.ts';
import {
  clientOf,
  dayUs,
  each,
  eachProduct,
  hourly,
  hourUs,
  minuteUs,
  numbered,
  openFollowing,
  openSandbox,
  productOf,
  rules,
  secondUs,
  startUs,
  type Worker,
  withJobs,
} from './set-up.ts';

const mondayUs = Date.UTC(2026, 3, 27) * 1000;
const weekUs = 7 * dayUs;

describe('a weekly digest', () => {
  const weekly = async () => {
    const worker = await openFollowing({ clock: { us: mondayUs + hourUs } });
    await worker.receive([productOf(1)], { receivedAtUs: mondayUs + secondUs });
    const digest = { kind: 'digest', window: 'week', per: 'all', areas: [] } as const;
    await worker.collect(rules({}, digest));
    worker.clock.us = mondayUs + weekUs + minuteUs - 1;
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    return worker;
  };

  it('is written even if its one notification arrived at its start', async () => {
    const worker = await weekly();
    worker.clock.us += 1;
    await worker.work();
    expect(await worker.rows()).toMatchObject([
      { state: 'done', text: { text: expect.stringContaining('1 product arrived') } },
    ]);
  });

  it('is dropped 7 days after its end, not earlier', async () => {
    const worker = await weekly();
    worker.context.budget = { ...worker.context.budget, requestsPerDay: 0 };
    worker.clock.us = mondayUs + 2 * weekUs;
    expect(await worker.work()).toMatchObject({ end: 'budget' });
    worker.clock.us += dayUs;
    await worker.work();
    expect(await worker.rows()).toMatchObject([
      { state: 'dropped', error: expect.stringContaining('waited 7 days') },
    ]);
  });
});

describe('a fast clock', () => {
  it('blocks no job once it is corrected', async () => {
    const worker = await openFollowing({ clock: { us: startUs + 300 * dayUs } });
    await worker.receive([productOf(1), productOf(2), productOf(3)]);
    await worker.collect(rules({ alps: each }));
    await worker.receive([productOf(4)], { subscription: 'other' });
    await worker.collect(rules({ other: hourly }));
    await worker.claimAndDie();
    worker.clock.us = startUs;
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    expect(await worker.summaries.counts()).toMatchObject({ done: 4, waiting: 0, asking: 0 });
  });
});

describe('a backlog', () => {
  it('is read round after round, without the pause between polls', async () => {
    const worker = await openFollowing({ client: null });
    await worker.receive(numbered(0, 170));
    await worker.index();
    worker.context.budget = { ...worker.context.budget, requestsPerHour: 0 };
    const running = startSummaryWorker(worker.context, eachProduct, { pollMs: 600_000 });
    await expect.poll(() => worker.store.cursor('summaries'), { timeout: 10_000 }).toBe(170);
    await running.stop();
    expect(await worker.rows()).toHaveLength(170);
  });
});

const states = async ({ summaries }: Worker) => {
  const { done, waiting } = await summaries.counts();
  return { done, waiting };
};

describe('the budget', () => {
  it('lets the other jobs wait, with the limit as reason, over a restart, until the hour has passed', async () => {
    const budget = { requestsPerHour: 3 };
    const worker = await withJobs(7, { budget });
    const end = await worker.work();
    const reason = 'The budget is used up: 3 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR).';
    const limit = 'requestsPerHour';
    expect(end).toEqual({ end: 'budget', limit, untilUs: startUs + hourUs, reason });
    expect(await states(worker)).toEqual({ done: 3, waiting: 4 });
    const waited = (await worker.rows()).filter(({ error }) => error === reason);
    expect(waited.length).toBeGreaterThan(0);
    expect(waited[0]).toMatchObject({
      state: 'waiting',
      attempts: 0,
      nextAttemptAtUs: startUs + hourUs,
      text: { model: null },
    });
    const { clock, sandbox } = worker;
    await worker.close();
    const next = await worker.another();
    clock.us = startUs + hourUs - 1;
    expect(await next.work()).toMatchObject({ end: 'budget' });
    expect(await states(next)).toEqual({ done: 3, waiting: 4 });
    clock.us = startUs + hourUs;
    await next.work();
    expect(await states(next)).toEqual({ done: 6, waiting: 1 });
    clock.us = startUs + 2 * hourUs;
    expect(await next.work()).toEqual({ end: 'nothing due' });
    expect(await states(next)).toEqual({ done: 7, waiting: 0 });
    expect(sandbox.inference.totals()).toMatchObject({ distinct: 7, repeated: 0 });
  });

  it('is shared by two programs, and includes failed requests', async () => {
    const budget = { requestsPerDay: 8 };
    const one = await withJobs(12, { budget });
    const { clock, sandbox } = one;
    const other = await one.another();
    sandbox.inference.change({ next: { inventedName: 3 } });
    await Promise.all([one.work(), other.work()]);
    expect(sandbox.inference.totals()).toMatchObject({ requests: 8, distinct: 5, repeated: 0 });
    clock.us = startUs + dayUs - 1;
    await Promise.all([one.work(), other.work()]);
    expect(sandbox.inference.totals().requests).toBe(8);
    clock.us = startUs + dayUs;
    await Promise.all([one.work(), other.work()]);
    expect(await states(one)).toEqual({ done: 12, waiting: 0 });
  });

  it('counts the reported tokens, and never sends a request that exceeds the whole budget', async () => {
    const worker = await withJobs(6, { budget: { tokensPerDay: 3_000 } });
    const end = await worker.work();
    expect(end).toMatchObject({
      end: 'budget',
      reason: 'The budget is used up: 3000 tokens a day (EARSHOT_SUMMARY_TOKENS_PER_DAY).',
    });
    const { tokensLastDay } = await worker.summaries.spending(startUs);
    const { done } = await states(worker);
    expect(done).toBeGreaterThan(0);
    expect(tokensLastDay).toBeLessThanOrEqual(3_000);
    // The estimate is higher because it includes the longest answer.
    expect(tokensLastDay).toBeLessThan(done * 1_200);
    const none = await withJobs(2, { budget: { tokensPerDay: 100 } });
    expect(await none.work()).toMatchObject({ end: 'budget', untilUs: startUs + dayUs });
    expect(none.outcomes()).toEqual({});
  });

  it('is not charged again for a product that changes while its request is in flight', async () => {
    const sandbox = await openSandbox();
    const { complete, models } = clientOf(sandbox);
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    const client: ChatClient = {
      models,
      complete: async (request, signal) => {
        asked += 1;
        await gate.promise;
        return complete(request, signal);
      },
    };
    const worker = await withJobs(1, { sandbox, client });
    const working = worker.work();
    await expect.poll(() => asked).toBe(1);
    await worker.receive([productOf(1)], { event: 'modified' });
    await worker.collect();
    const other = await worker.another();
    expect(await other.work()).toEqual({ end: 'nothing due' });
    gate.resolve();
    await working;
    await other.work();
    expect(await states(worker)).toEqual({ done: 1, waiting: 0 });
    expect(sandbox.inference.totals()).toMatchObject({ distinct: 1, repeated: 0 });
  });

  it('keeps the job of a killed program until its lease expires', async () => {
    const worker = await withJobs(1, {});
    const leaseUntilUs = await worker.claimAndDie();
    worker.clock.us = leaseUntilUs - 1;
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    worker.clock.us = leaseUntilUs;
    await worker.work();
    expect(await states(worker)).toEqual({ done: 1, waiting: 0 });
    const { requestsLastHour } = await worker.summaries.spending(leaseUntilUs);
    expect(requestsLastHour).toBe(2);
  });
});

const waits = 'The product index is not up to date. To check the index: `earshot index status`.';
const indexFiles = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => name.startsWith('products-'));

function removeIndex(dataDir: string) {
  for (const name of indexFiles(dataDir)) rmSync(join(dataDir, name));
}

/** Closes the worker, changes its files, and opens another one on them. */
async function reopened(worker: Worker, change: (dataDir: string) => void) {
  await worker.close();
  change(worker.dataDir);
  return worker.another();
}

/**
 * Reopens the worker with an index backup that is older than the notifications of `receiveMore`.
 */
async function withOlderIndex(worker: Worker, receiveMore: (worker: Worker) => Promise<void>) {
  await worker.index();
  const saved = join(worker.dataDir, 'saved.db');
  const before = await reopened(worker, (dataDir) => {
    const [name = ''] = indexFiles(dataDir);
    copyFileSync(join(dataDir, name), saved);
  });
  await receiveMore(before);
  return reopened(before, (dataDir) => {
    const [name = ''] = indexFiles(dataDir);
    removeIndex(dataDir);
    copyFileSync(saved, join(dataDir, name));
  });
}

describe('the product index', () => {
  it('can be removed with 100 products waiting: all get their texts after the rebuild', async () => {
    const first = await openFollowing();
    await first.receive(numbered(0, 100));
    await first.collect();
    const worker = await reopened(first, removeIndex);
    await expect(worker.work()).rejects.toMatchObject({ code: 'unavailable' });
    expect(await worker.summaries.counts()).toMatchObject({ waiting: 100, failed: 0 });
    await worker.index();
    await worker.work();
    expect(await worker.summaries.counts()).toMatchObject({ done: 100, failed: 0, waiting: 0 });
    expect(worker.sandbox.inference.totals()).toMatchObject({ distinct: 100, repeated: 0 });
  });

  it('restored from a backup serves what it has, and the other jobs wait', async () => {
    const first = await openFollowing();
    await first.receive(numbered(0, 40));
    await first.collect();
    const worker = await withOlderIndex(first, async (before) => {
      await before.receive(numbered(40, 100));
      await before.collect();
    });
    const untilUs = startUs + 5 * secondUs;
    expect(await worker.work()).toEqual({ end: 'index', untilUs, reason: waits });
    expect(await worker.summaries.counts()).toMatchObject({ done: 40, waiting: 60, failed: 0 });
    const waited = (await worker.rows()).filter(({ error }) => error === waits);
    expect(waited[0]).toMatchObject({ state: 'waiting', attempts: 0, nextAttemptAtUs: untilUs });
    // Two at a time, and not all of them every second.
    expect(waited.length).toBeLessThan(3);
    await worker.index();
    worker.clock.us = untilUs;
    await worker.work();
    expect(await worker.summaries.counts()).toMatchObject({ done: 100, failed: 0, waiting: 0 });
  });

  it('with a lag delays only digests whose windows end after its position', async () => {
    const first = await openFollowing();
    await first.receive(numbered(0, 3), { receivedAtUs: startUs - 2 * hourUs });
    await first.receive(numbered(3, 5));
    const worker = await withOlderIndex(first, async (before) => {
      await before.receive(numbered(5, 9));
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
});
