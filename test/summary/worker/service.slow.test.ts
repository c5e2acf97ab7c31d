/**
 * The worker with a service that fails or answers badly: its requests, their times, and the visible
 * summaries.
 */
import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../../src/summary/chat/chat-client.ts';
import { InferenceFault } from '../../../src/summary/chat/inference-fault.ts';
import { startSummaryWorker } from '../../../src/summary/worker/run-summaries.ts';
import { createServicePause } from '../../../src/summary/worker/summary-context.ts';
import {
  clientOf,
  dayUs,
  eachProduct,
  hourUs,
  minuteUs,
  numbered,
  openFollowing,
  openSandbox,
  productOf,
  startUs,
  type Worker,
  withJobs,
} from './set-up.ts';

/** Works until a time, advancing the clock to each next due time. */
async function workUntil(worker: Worker, untilUs: number) {
  for (;;) {
    const end = await worker.work();
    const dueUs = (await worker.summaries.nextDueAtUs()) ?? Number.POSITIVE_INFINITY;
    const nextUs = 'untilUs' in end ? Math.max(end.untilUs, dueUs) : dueUs;
    if (nextUs > untilUs) return;
    worker.clock.us = Math.max(nextUs, worker.clock.us + 1);
  }
}

/** A service that times out after a minute and a half, until it recovers. */
function hanging(clock: { us: number }, backAtUs: number, answering: (r: ChatRequest) => string) {
  const asked: number[] = [];
  const complete = async (request: ChatRequest) => {
    asked.push(clock.us);
    if (clock.us >= backAtUs) return { text: answering(request), totalTokens: null };
    const words = { happened: 'It did not answer in time.', advice: 'Retry later.' };
    await Promise.resolve();
    clock.us += 90_000_000;
    throw new InferenceFault('timeout', words);
  };
  return { asked, client: { complete, models: async () => null } };
}

describe('a service that hangs', () => {
  it('for an hour is asked only a few times, and all texts are written when it recovers', async () => {
    const clock = { us: startUs };
    const { asked, client } = hanging(clock, startUs + hourUs, () => 'A product.');
    const worker = await withJobs(40, { clock, client });
    await workUntil(worker, startUs + hourUs);
    expect(asked.filter((atUs) => atUs < startUs + hourUs).length).toBeLessThan(15);
    expect(await worker.summaries.counts()).toMatchObject({ done: 0, failed: 0, dropped: 0 });
    const reported = (await worker.rows()).filter(({ error }) => error?.startsWith('It did not'));
    expect(reported.length).toBeGreaterThan(3);
    expect(reported.every(({ text }) => text?.model === null)).toBe(true);
    await workUntil(worker, startUs + 4 * hourUs);
    expect(await worker.summaries.counts()).toMatchObject({ done: 40, waiting: 0 });
    expect(worker.log.map(({ message }) => message)).toContain('paused summaries');
  });

  it('for real is aborted at the timeout', async () => {
    const sandbox = await openSandbox();
    sandbox.inference.change({ next: { hang: 2 } });
    const worker = await withJobs(2, { sandbox, client: clientOf(sandbox, 200) });
    expect(await worker.work()).toMatchObject({
      end: 'service',
      reason: expect.stringContaining('did not complete its answer within 0.2 s'),
    });
    const [row] = await worker.rows();
    expect(row).toMatchObject({ state: 'waiting', attempts: 0, text: { model: null } });
    await workUntil(worker, startUs + hourUs);
    expect(worker.outcomes()).toEqual({ hang: 2, answered: 2 });
  });
});

describe('a service that refuses requests', () => {
  it('as too many is paused for as long as it asks', async () => {
    const worker = await withJobs(3);
    worker.sandbox.inference.change({ retryAfterSeconds: 500, next: { rateLimited: 2 } });
    const end = await worker.work();
    expect(end).toMatchObject({ end: 'service', untilUs: startUs + 500_000_000 });
    worker.clock.us = startUs + 499_000_000;
    await worker.work();
    expect(worker.outcomes()).toEqual({ rateLimited: 2 });
    await workUntil(worker, startUs + hourUs);
    expect(await worker.summaries.counts()).toMatchObject({ done: 3 });
    expect((await worker.rows()).map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
  });

  it('is asked at once when a fast clock was corrected', async () => {
    const worker = await withJobs(3, { clock: { us: startUs + 30 * dayUs } });
    worker.sandbox.inference.change({ retryAfterSeconds: 500, next: { rateLimited: 2 } });
    expect(await worker.work()).toMatchObject({ end: 'service' });
    worker.clock.us = startUs;
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    expect(await worker.summaries.counts()).toMatchObject({ done: 3 });
  });

  it('stays paused although an earlier request is answered', async () => {
    const sandbox = await openSandbox();
    sandbox.inference.change({ retryAfterSeconds: 500, next: { rateLimited: 1 } });
    const { complete, models } = clientOf(sandbox);
    const limited = Promise.withResolvers<void>();
    const both = Promise.withResolvers<void>();
    let asked = 0;
    const client = {
      models,
      complete: async (request: ChatRequest, signal: AbortSignal) => {
        asked += 1;
        if (asked === 1) {
          await both.promise;
          return complete(request, signal).finally(limited.resolve);
        }
        both.resolve();
        await limited.promise;
        return complete(request, signal);
      },
    };
    const worker = await withJobs(4, { sandbox, client });
    const end = await worker.work();
    expect(end).toMatchObject({ end: 'service', untilUs: startUs + 500_000_000 });
    expect(worker.outcomes()).toEqual({ rateLimited: 1, answered: 1 });
    expect(worker.pause.isProbing()).toBe(true);
    await workUntil(worker, startUs + hourUs);
    expect(worker.outcomes()).toEqual({ rateLimited: 1, answered: 4 });
    expect(worker.pause.isProbing()).toBe(false);
  });

  it('repeatedly is asked again after at most ten minutes', () => {
    const pause = createServicePause({ nowUs: () => startUs, random: () => 0.999 });
    for (let failures = 0; failures < 12; failures += 1) pause.noteFault('service', null);
    expect(pause.untilUs()).toBe(startUs + 10 * minuteUs);
  });

  it('because of the key is asked every 15 minutes, without counting attempts of jobs', async () => {
    const worker = await withJobs(3);
    worker.sandbox.inference.change({ faults: { unauthorized: 1 } });
    await workUntil(worker, startUs + 2 * hourUs);
    const refused = worker.outcomes().unauthorized ?? 0;
    expect(refused).toBeGreaterThan(5);
    expect(refused).toBeLessThan(14);
    for (const row of await worker.rows())
      expect(row).toMatchObject({ state: 'waiting', attempts: 0 });
    worker.sandbox.inference.change({ faults: { unauthorized: 0 } });
    await workUntil(worker, startUs + 3 * hourUs);
    expect(await worker.summaries.counts()).toMatchObject({ done: 3 });
  });

  it('for one job only does not block the others, and drops the job after seven days', async () => {
    const sandbox = await openSandbox();
    const { complete, models } = clientOf(sandbox);
    let poisoned = 0;
    const failing = {
      models,
      complete: (request: ChatRequest, signal: AbortSignal) => {
        if (!JSON.stringify(request).includes('T32TAB')) return complete(request, signal);
        poisoned += 1;
        const words = { happened: 'It failed (500).', advice: 'Retry later.' };
        throw new InferenceFault('service_error', words);
      },
    };
    const worker = await withJobs(30, { sandbox, client: failing });
    await workUntil(worker, startUs + 10 * minuteUs);
    expect(await worker.summaries.counts()).toMatchObject({ done: 29, waiting: 1 });
    await workUntil(worker, startUs + 8 * dayUs);
    const dropped = (await worker.rows()).filter(({ state }) => state === 'dropped');
    expect(dropped).toMatchObject([
      { error: 'Dropped: the summary waited 7 days for the budget or the service.' },
    ]);
    expect(dropped[0]?.text).toMatchObject({ model: null, verified: true });
    expect(poisoned).toBeLessThan(60);
  });
});

describe('an answer', () => {
  it('with an invented number is requested once more', async () => {
    const worker = await withJobs(1);
    worker.sandbox.inference.change({ next: { inventedNumber: 1 } });
    await worker.work();
    expect(worker.outcomes()).toEqual({ inventedNumber: 1, answered: 1 });
    expect(await worker.rows()).toMatchObject([{ state: 'done', text: { verified: true } }]);
  });

  it('with repeated inventions is kept as unverified with its doubts, and not requested again', async () => {
    const worker = await withJobs(1);
    worker.sandbox.inference.change({ faults: { inventedName: 1 } });
    // By id, as a command requests it.
    const due = await worker.summaries.due({ nowUs: startUs, limit: 9 });
    await worker.work({ ids: due.map(({ id }) => id) });
    const [row] = await worker.rows();
    expect(row).toMatchObject({ state: 'done', error: null, text: { verified: false } });
    expect(row?.text?.doubts.length).toBeGreaterThan(0);
    await worker.receive([productOf(1)], { event: 'modified' });
    await worker.collect();
    await worker.work();
    expect(worker.outcomes()).toEqual({ inventedPlace: 2 });
  });

  it.each(['markup', 'emptyContent', 'cut'] as const)(
    'that is unusable (%s) is requested three times; then the template stays until a retry',
    async (fault) => {
      const worker = await withJobs(2);
      worker.sandbox.inference.change({ faults: { [fault]: 1 } });
      await workUntil(worker, startUs + hourUs);
      for (const row of await worker.rows()) {
        expect(row).toMatchObject({ state: 'failed', attempts: 3, text: { model: null } });
        expect(row.error).not.toBeNull();
      }
      expect(worker.outcomes()).toEqual({ [fault]: 6 });
      worker.sandbox.inference.change({ faults: { [fault]: 0 } });
      const nowUs = worker.clock.us;
      expect(await worker.summaries.retry({ ids: 'all', nowUs })).toBe(2);
      await worker.work();
      expect(await worker.summaries.counts()).toMatchObject({ done: 2, failed: 0 });
    },
  );

  it('that causes an error in our own code fails only its job, and is logged', async () => {
    const worker = await withJobs(3);
    const { places } = worker.context;
    let calls = 0;
    worker.context.places = () => {
      calls += 1;
      if (calls === 1) throw new TypeError('a bug');
      return places();
    };
    await worker.work();
    expect(await worker.summaries.counts()).toMatchObject({ done: 2, failed: 1 });
    expect(worker.log).toMatchObject([{ level: 'error', fields: { err: { message: 'a bug' } } }]);
  });
});

describe('without a model', () => {
  it('the facts alone make the texts', async () => {
    const worker = await withJobs(2, { client: null });
    await worker.work();
    for (const { state, text } of await worker.rows()) {
      expect(state).toBe('done');
      expect(text).toMatchObject({ model: null, verified: true, doubts: [] });
      expect(text?.text).toContain('Sentinel-2B');
    }
  });
});

describe('a stopped worker', () => {
  it('aborts its open request at once; another worker repeats it', async () => {
    const worker = await openFollowing();
    // Without an index, the worker would wait ten seconds for it.
    await worker.index();
    worker.sandbox.inference.change({ next: { hang: 2 } });
    const running = startSummaryWorker(worker.context, eachProduct, { pollMs: 5 });
    await worker.receive(numbered(1, 3));
    await worker.index();
    await expect.poll(() => worker.outcomes().hang, { timeout: 10_000 }).toBe(2);
    const startedMs = performance.now();
    await running.stop();
    expect(performance.now() - startedMs).toBeLessThan(8_000);
    expect(await worker.summaries.counts()).toMatchObject({ waiting: 2, asking: 0 });
    await worker.work();
    expect(worker.outcomes()).toEqual({ hang: 2, answered: 2 });
  });

  it('ends the work of a command as well, without an error', async () => {
    const worker = await withJobs(3);
    worker.stop();
    expect(await worker.work()).toEqual({ end: 'stopped' });
    expect(worker.outcomes()).toEqual({});
  });
});

const remark = 'An earlier text stated a number that the facts do not have.';
const invented = 'It has 4711 bands.';
const plain = 'A product.';

/**
 * Answers in order; '' is an empty answer. Records for each request whether it was the repeated
 * one.
 */
function scripted(answers: string[], totalTokens: number | null = null) {
  const repeated: boolean[] = [];
  const complete = async ({ messages }: ChatRequest) => {
    repeated.push(messages.some(({ content }) => content.includes(remark)));
    const text = answers.shift() ?? plain;
    if (text !== '') return { text, totalTokens };
    throw new InferenceFault('empty', { happened: 'It was empty.', advice: 'Retry.' });
  };
  return { repeated, client: { complete, models: async () => null } };
}

async function workOnAll(worker: Worker) {
  for (let i = 0; i < 5; i += 1) {
    await worker.work();
    worker.clock.us += hourUs;
  }
  const [row] = await worker.rows();
  return { state: row?.state, text: row?.text?.text, verified: row?.text?.verified };
}

async function withJob(client: ReturnType<typeof scripted>['client']) {
  const worker = await openFollowing({ client });
  await worker.receive([productOf(1)]);
  await worker.collect();
  return worker;
}

describe('a doubted answer', () => {
  it.each([
    [['', '', invented, plain], [false, false, false, true], { state: 'done', verified: true }],
    [['', invented, invented], [false, false, true], { state: 'done', verified: false }],
    [[invented, '', invented], [false, true, true], { state: 'done', verified: false }],
    [['', plain], [false, false], { state: 'done', verified: true }],
  ])('is requested once more: of %j, repeated %j', async (answers, repeats, outcome) => {
    const { repeated, client } = scripted([...answers]);
    expect(await workOnAll(await withJob(client))).toMatchObject(outcome);
    expect(repeated).toEqual(repeats);
  });

  it('is also requested once more by the next program', async () => {
    const { repeated, client } = scripted([invented, plain]);
    const worker = await withJob(client);
    await worker.work({ limit: 1 });
    await worker.close();
    await (await worker.another({ client })).work();
    expect(repeated).toEqual([false, true]);
  });

  it('that was kept is requested again by its id, and shown meanwhile', async () => {
    const { repeated, client } = scripted([invented, invented]);
    const worker = await withJob(client);
    await worker.work();
    const [kept] = await worker.rows();
    expect(kept).toMatchObject({ state: 'done', text: { text: invented, verified: false } });
    const nowUs = worker.clock.us;
    expect(await worker.summaries.retry({ ids: [kept?.id ?? 0], nowUs })).toBe(1);
    expect(await worker.rows()).toMatchObject([{ state: 'waiting', text: { text: invented } }]);
    await worker.work();
    expect(await worker.rows()).toMatchObject([{ state: 'done', text: { text: plain } }]);
    expect(repeated).toEqual([false, true, false]);
  });
});

describe('changed facts', () => {
  it("keep the model's text until the next one, or the template if that fails", async () => {
    const { client } = scripted([plain, '', '', '']);
    const worker = await withJob(client);
    await worker.work();
    await worker.receive([productOf(1, { area: 'POLYGON ((2 47, 3 47, 3 48, 2 48, 2 47))' })], {
      event: 'modified',
    });
    await worker.collect();
    expect(await worker.rows()).toMatchObject([{ state: 'waiting', text: { text: plain } }]);
    await worker.work();
    const postponed = { state: 'waiting', attempts: 1, text: { text: plain } };
    expect(await worker.rows()).toMatchObject([postponed]);
    await workOnAll(worker);
    expect(await worker.rows()).toMatchObject([
      { state: 'failed', text: { model: null, text: expect.stringContaining('France') } },
    ]);
  });
});

describe('a service that reports absurdly many tokens', () => {
  it('does not use up the daily budget', async () => {
    const { client } = scripted([], 90_000_000);
    const budget = { tokensPerDay: 500_000 };
    const worker = await openFollowing({ client, budget });
    await worker.receive([1, 2, 3].map((number) => productOf(number)));
    await worker.collect();
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    expect(await worker.summaries.counts()).toMatchObject({ done: 3 });
    const { tokensLastDay } = await worker.summaries.spending(worker.clock.us);
    expect(tokensLastDay).toBeGreaterThan(3 * 5_000);
    expect(tokensLastDay).toBeLessThan(3 * 20_000);
  });
});
