/** Summaries in the store: jobs, texts, budget, and the model that does not follow the form. */
import { describe, expect, it } from 'vitest';
import type { Summaries } from '../../../src/features/summary/terms.ts';
import { collect } from '../../helpers/deliveries.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { atUs, dayUs, digestJob, doneWith, hourUs, productJob } from './summary-jobs.ts';

const dueAt = (summaries: Summaries, nowUs = atUs, digestsUntilUs = nowUs) =>
  summaries.due({ nowUs, digestsUntilUs, limit: 99 });

const open = async () => (await openLocalStore()).store.summaries;

const enqueue = (summaries: Summaries, ...jobs: ReturnType<typeof productJob>[]) =>
  summaries.enqueue({ jobs, waitingMax: 99, atUs });

describe('jobs', () => {
  it('keep every field over a restart, and are due with digests first', async () => {
    const { store, reopen } = await openLocalStore();
    const bare = { subscription: null, productName: null, dueAtUs: atUs - 1 };
    const jobs = [productJob(1), productJob(2, bare), digestJob(3)];
    const { ids } = await enqueue(store.summaries, ...jobs);
    const due = await dueAt((await reopen()).summaries);
    const began = { revision: 1, requestedAtUs: atUs, request: null };
    const order = [2, 1, 0];
    expect(due).toEqual(order.map((i) => ({ ...jobs[i], ...began, id: ids[i] })));
  });

  it('are stored together with the cursor, or neither', async () => {
    const { store } = await openLocalStore();
    const cursor = { reader: 'summaries', position: 7 };
    await store.summaries.enqueue({ jobs: [productJob(1)], cursor, waitingMax: 9, atUs });
    const jobs = [productJob(3), productJob(4, { position: Number.NaN })];
    const refused = store.summaries.enqueue({
      ...{ jobs, waitingMax: 9, atUs },
      cursor: { ...cursor, position: 9 },
    });
    await expect(refused).rejects.toMatchObject({ code: 'internal' });
    expect(await store.cursor('summaries')).toBe(7);
    expect(await store.summaries.waiting()).toEqual({ waiting: 1, dueAtUs: atUs });
  });

  it('are not due before their time, unless a clock dated it far ahead, or the end of their period', async () => {
    const summaries = await open();
    const far = productJob(3, { dueAtUs: atUs + 300 * dayUs });
    const { ids } = await enqueue(summaries, productJob(1), digestJob(2), far);
    const due = async (...times: [nowUs?: number, digestsUntilUs?: number]) =>
      (await dueAt(summaries, ...times)).map(({ subject }) => subject);
    expect(await due(atUs - 1)).toEqual(['product-3']);
    expect(await due(atUs, atUs - 1)).toEqual(['product-1', 'product-3']);
    const named = { nowUs: atUs, digestsUntilUs: atUs, limit: 9, ids: ids.slice(1, 2) };
    expect(await summaries.due(named)).toMatchObject([{ kind: 'digest' }]);
  });

  it('requested again keep their id and text, and ignore the result of the earlier request', async () => {
    const summaries = await open();
    await enqueue(summaries, productJob(1));
    const [first = expect.fail()] = await dueAt(summaries);
    await summaries.settle({ job: first, result: doneWith('One.') });
    await enqueue(summaries, productJob(1, { productName: 'other' }));
    await summaries.settle({ job: first, result: doneWith('Late.') });
    const rows = await collect(summaries.find({}));
    expect(rows).toMatchObject([
      { id: first.id, state: 'waiting', productName: 'other', text: { text: 'One.' } },
    ]);
  });

  it('above the maximum end with a reason, the longest waiting ones first', async () => {
    const summaries = await open();
    const jobs = [3, 1, 2].map((number) => productJob(number, { dueAtUs: atUs + number }));
    const { dropped } = await summaries.enqueue({ jobs, waitingMax: 2, atUs });
    expect(dropped).toBe(1);
    const rows = await collect(summaries.find({ state: 'done' }));
    expect(rows).toMatchObject([{ productId: 'product-1', text: null, reason: /^More than 2 / }]);
  });
});

describe('results', () => {
  it('are a text, a postponed attempt with a text for now, the same text, or nothing', async () => {
    const summaries = await open();
    await enqueue(summaries, ...[1, 2, 3, 4].map((number) => productJob(number)));
    const [one, two, three, four] = await dueAt(summaries);
    if (!one || !two || !three || !four) throw new Error('not due');
    const request = new Uint8Array(32).fill(7);
    await summaries.settle({ job: one, result: doneWith('Written.', {}, { request }) });
    const { text } = doneWith('Template.', { model: null });
    const reason = 'Not reached.';
    const postponed = {
      outcome: 'postponed',
      by: 'service',
      dueAtUs: atUs + hourUs,
      reason,
      text,
    } as const;
    await summaries.settle({ job: two, result: postponed });
    await summaries.settle({ job: three, result: { outcome: 'withdrawn' } });
    await summaries.settle({ job: four, result: { outcome: 'same' } });
    expect(await collect(summaries.find({}))).toMatchObject([
      { productId: 'product-4', state: 'done', text: null },
      { productId: 'product-2', state: 'waiting', dueAtUs: atUs + hourUs, reason, text },
      { productId: 'product-1', state: 'done', dueAtUs: null, text: { text: 'Written.' } },
    ]);
    expect(await summaries.textsOf(['product-2', 'product-4', 'PRODUCT-1', 'x'])).toEqual(
      new Map([
        ['product-2', text],
        ['PRODUCT-1', doneWith('Written.').text],
      ]),
    );
    await enqueue(summaries, productJob(1));
    expect(await dueAt(summaries)).toMatchObject([{ request: new Uint8Array(request) }]);
  });

  it('show a model that does not follow the form after three refused answers in a row', async () => {
    const summaries = await open();
    const settle = async (number: number, isRefused: boolean) => {
      await enqueue(summaries, productJob(number));
      const [job] = await dueAt(summaries);
      const reason = `The answer of the model was refused: ${number}.`;
      const createdAtUs = atUs + number;
      const result = isRefused
        ? doneWith('T.', { model: null, createdAtUs }, { reason, request: Buffer.of(1) })
        : doneWith('M.', { createdAtUs });
      await summaries.settle({ job: job ?? expect.fail(), result });
      return /\d/.exec((await summaries.refusedAnswer()) ?? '')?.[0] ?? null;
    };
    const answers = [];
    for (const [i, isRefused] of [true, true, false, true, true, true, false].entries()) {
      answers.push(await settle(i, isRefused));
    }
    expect(answers).toEqual([null, null, null, null, null, '5', null]);
    // A text that no model was asked for changes nothing; a subject may be requested again.
    for (const number of [4, 5, 0]) await settle(number + 10, true);
    const [unasked] = [productJob(20)];
    await enqueue(summaries, unasked);
    const [job] = await dueAt(summaries);
    await summaries.settle({ job: job ?? expect.fail(), result: doneWith('T.', { model: null }) });
    expect(await summaries.refusedAnswer()).not.toBeNull();
  });
});

it('counts the requests of the last 24 hours, with the tokens that a result reports', async () => {
  const summaries = await open();
  await summaries.beginRequest({ atUs: atUs - dayUs, tokens: 1 });
  const id = await summaries.beginRequest({ atUs: atUs - hourUs, tokens: 10 });
  await summaries.beginRequest({ atUs, tokens: 100 });
  await summaries.beginRequest({ atUs: atUs + 1, tokens: 1_000 });
  const job = { id: 1, revision: 1 };
  const requests = [{ id, tokensAbove: 10 }];
  await summaries.settle({ job, result: { outcome: 'withdrawn' }, requests });
  const spent = { requests: 2, tokens: 120, sinceUs: atUs - hourUs };
  expect(await summaries.spending(atUs)).toEqual(spent);
});
