/** Answers that state what the facts do not have: asked for once more, kept, and tried again by command. */
import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../../src/summary/chat/chat-client.ts';
import { InferenceFault } from '../../../src/summary/chat/inference-fault.ts';
import {
  each,
  hourUs,
  openFollowing,
  openWorker,
  productOf,
  rules,
  type Worker,
} from './worker-world.ts';

const ruleOf = rules({}, each);
const remark = 'An earlier text stated a number that the facts do not have.';
const invented = 'It has 4711 bands.';
const plain = 'A product.';

/** Answers in turn; '' is an empty answer. Tells for each request whether it was the repeated one. */
function scripted(answers: string[], totalTokens: number | null = null) {
  const repeated: boolean[] = [];
  const complete = async ({ messages }: ChatRequest) => {
    repeated.push(messages.some(({ content }) => content.includes(remark)));
    const text = answers.shift() ?? plain;
    if (text !== '') return { text, totalTokens };
    throw new InferenceFault('empty', { happened: 'It was empty.', advice: 'Try again.' });
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
  await worker.tell([productOf(1)]);
  await worker.collect(ruleOf);
  return worker;
}

describe('an answer that is doubted', () => {
  it.each([
    [['', '', invented, plain], [false, false, false, true], { state: 'done', verified: true }],
    [['', invented, invented], [false, false, true], { state: 'done', verified: false }],
    [[invented, '', invented], [false, true, true], { state: 'done', verified: false }],
    [['', plain], [false, false], { state: 'done', verified: true }],
  ])('is asked for once more: of %j, repeated %j', async (answers, repeats, outcome) => {
    const { repeated, client } = scripted([...answers]);
    expect(await workOnAll(await withJob(client))).toMatchObject(outcome);
    expect(repeated).toEqual(repeats);
  });

  it('is so also by the next program', async () => {
    const { repeated, client } = scripted([invented, plain]);
    const worker = await withJob(client);
    await worker.work({ limit: 1 });
    const { dataDir, clock, sandbox } = worker;
    await worker.close();
    await (await openWorker({ dataDir, clock, sandbox, client })).work();
    expect(repeated).toEqual([false, true]);
  });

  it('and kept, is asked for anew when its id is named, and shown until then', async () => {
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

describe('facts that changed', () => {
  it('keep the text of the model until the next one, or the template where that fails', async () => {
    const { client } = scripted([plain, '', '', '']);
    const worker = await withJob(client);
    await worker.work();
    await worker.tell([productOf(1, { area: 'POLYGON ((2 47, 3 47, 3 48, 2 48, 2 47))' })], {
      event: 'modified',
    });
    await worker.collect(ruleOf);
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

describe('a service that tells of absurdly many tokens', () => {
  it('does not end the day', async () => {
    const { client } = scripted([], 90_000_000);
    const budget = { tokensPerDay: 500_000 };
    const worker = await openFollowing({ client, budget });
    await worker.tell([1, 2, 3].map((number) => productOf(number)));
    await worker.collect(ruleOf);
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    expect(await worker.summaries.counts()).toMatchObject({ done: 3 });
    const { tokensLastDay } = await worker.summaries.spending(worker.clock.us);
    expect(tokensLastDay).toBeGreaterThan(3 * 5_000);
    expect(tokensLastDay).toBeLessThan(3 * 20_000);
  });
});
