/** What the user allowed to spend holds, whoever asks and however often the program starts. */
import { expect, it } from 'vitest';
import type { ChatClient } from '../../../src/summary/chat/chat-client.ts';
import {
  clientOf,
  dayUs,
  each,
  hourUs,
  openFollowing,
  openSandbox,
  openWorker,
  productOf,
  rules,
  secondUs,
  startUs,
  type Worker,
} from './worker-world.ts';

const ruleOf = rules({}, each);

async function withJobs(count: number, options: Parameters<typeof openFollowing>[0]) {
  const worker = await openFollowing(options);
  await worker.tell(Array.from({ length: count }, (_, i) => productOf(i + 1)));
  await worker.collect(ruleOf);
  return worker;
}

const states = async ({ summaries }: Worker) => {
  const { done, waiting } = await summaries.counts();
  return { done, waiting };
};

it('lets the rest wait, with the limit named, over a restart, until the hour is over', async () => {
  const budget = { requestsPerHour: 3 };
  const worker = await withJobs(7, { budget });
  const end = await worker.work();
  const reason = 'It waits for the budget: 3 requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR).';
  const limit = 'requestsPerHour';
  expect(end).toEqual({ end: 'budget', limit, untilUs: startUs + hourUs, reason });
  expect(await states(worker)).toEqual({ done: 3, waiting: 4 });
  const told = (await worker.rows()).filter(({ error }) => error === reason);
  expect(told.length).toBeGreaterThan(0);
  expect(told[0]).toMatchObject({
    state: 'waiting',
    attempts: 0,
    nextTryAtUs: startUs + hourUs,
    text: { model: null },
  });
  const { dataDir, clock, sandbox } = worker;
  await worker.close();
  const next = await openWorker({ dataDir, clock, sandbox, budget });
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

it('is one for two programs, and for requests that failed', async () => {
  const budget = { requestsPerDay: 8 };
  const one = await withJobs(12, { budget });
  const { dataDir, clock, sandbox } = one;
  const other = await openWorker({ dataDir, clock, sandbox, budget });
  sandbox.inference.change({ next: { markup: 3 } });
  await Promise.all([one.work(), other.work()]);
  expect(sandbox.inference.totals()).toMatchObject({ requests: 8, distinct: 5, repeated: 0 });
  clock.us = startUs + dayUs - 1;
  await Promise.all([one.work(), other.work()]);
  expect(sandbox.inference.totals().requests).toBe(8);
  clock.us = startUs + dayUs;
  await Promise.all([one.work(), other.work()]);
  expect(await states(one)).toEqual({ done: 12, waiting: 0 });
});

it('counts the tokens that the service tells of, and never sends what is beyond the whole of it', async () => {
  const worker = await withJobs(6, { budget: { tokensPerDay: 3_000 } });
  const end = await worker.work();
  expect(end).toMatchObject({
    end: 'budget',
    reason: 'It waits for the budget: 3000 tokens a day (EARSHOT_SUMMARY_TOKENS_PER_DAY).',
  });
  const { tokensLastDay } = await worker.summaries.spending(startUs);
  const { done } = await states(worker);
  expect(done).toBeGreaterThan(0);
  expect(tokensLastDay).toBeLessThanOrEqual(3_000);
  // An estimate is higher: it holds the longest answer.
  expect(tokensLastDay).toBeLessThan(done * 1_200);
  const none = await withJobs(2, { budget: { tokensPerDay: 100 } });
  expect(await none.work()).toMatchObject({ end: 'budget', untilUs: startUs + dayUs });
  expect(none.outcomes()).toEqual({});
});

it('is not charged again for a product that is told of anew while its request is out', async () => {
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
  await worker.tell([productOf(1)], { event: 'modified' });
  await worker.collect(ruleOf);
  const { dataDir, clock } = worker;
  const other = await openWorker({ dataDir, clock, sandbox });
  expect(await other.work()).toEqual({ end: 'nothing due' });
  gate.resolve();
  await working;
  await other.work();
  expect(await states(worker)).toEqual({ done: 1, waiting: 0 });
  expect(sandbox.inference.totals()).toMatchObject({ distinct: 1, repeated: 0 });
});

it('of one who died in the middle of a request is taken over when its time has run out', async () => {
  const worker = await withJobs(1, {});
  const [job] = await worker.summaries.due({ nowUs: startUs, limit: 1 });
  if (job === undefined) throw new Error('no job');
  const { budget } = worker.context;
  const leaseUntilUs = startUs + 150 * secondUs;
  const dead = { job, model: 'a/b', tokens: 1, budget, leaseUntilUs, nowUs: startUs };
  expect(await worker.summaries.claim(dead)).toMatchObject({ outcome: 'claimed' });
  worker.clock.us = leaseUntilUs - 1;
  expect(await worker.work()).toEqual({ end: 'nothing due' });
  worker.clock.us = leaseUntilUs;
  await worker.work();
  expect(await states(worker)).toEqual({ done: 1, waiting: 0 });
  const { requestsLastHour } = await worker.summaries.spending(leaseUntilUs);
  expect(requestsLastHour).toBe(2);
});
