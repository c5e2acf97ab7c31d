import { describe, expect, it } from 'vitest';
import type { SummaryOutcome } from '../../src/domain/summaries.ts';
import { collect } from '../helpers/deliveries.ts';
import { openLocalStore } from './local-store.ts';
import { atUs, enqueued, key, modelText, productJob } from './summary-jobs.ts';

const forever = Number.MAX_SAFE_INTEGER;

const openJob = async () => {
  const { summaries } = (await openLocalStore()).store;
  const [job] = await enqueued(summaries, [productJob(1)]);
  if (job === undefined) throw new Error('no job');
  const settle = (result: SummaryOutcome, nowUs = atUs, seen = job) =>
    summaries.settle({ job: seen, request: null, result, nowUs });
  const row = async () => (await collect(summaries.find({})))[0];
  return { summaries, job, settle, row };
};
const text = modelText('A text.', { verified: false, doubts: ['12 km', 'Köln'] });
const postponed = (fields: object = {}) =>
  ({
    outcome: 'postponed',
    error: 'It was slow.',
    nextAttemptAtUs: atUs + 60,
    counts: true,
    template: null,
    ...fields,
  }) as const;

describe('the outcome of a job', () => {
  it('stores a text under its key and completes the job', async () => {
    const { summaries, settle, row } = await openJob();
    await settle(postponed({ template: 'A template.' }));
    await settle({ outcome: 'text', key: key(1), text });
    expect(await row()).toMatchObject({ state: 'done', text, error: null, nextAttemptAtUs: null });
    expect(await summaries.known(key(1))).toEqual(text);
    expect(await summaries.known(key(2))).toBeNull();
    expect(await summaries.due({ nowUs: forever, limit: 9 })).toEqual([]);
    expect(await summaries.nextDueAtUs()).toBeNull();
  });

  it('reuses a known text, and is refused when the text is unknown', async () => {
    const { summaries, job, settle, row } = await openJob();
    const unknown = settle({ outcome: 'known', key: key(1) });
    await expect(unknown).rejects.toMatchObject({ code: 'internal' });
    expect(await row()).toMatchObject({ state: 'waiting' });
    await settle({ outcome: 'text', key: key(1), text });
    const [requeued] = await enqueued(summaries, [productJob(1)]);
    expect(await row()).toMatchObject({ state: 'waiting', text });
    await settle({ outcome: 'known', key: key(1) }, atUs, requeued);
    expect(await row()).toMatchObject({ id: job.id, state: 'done', text });
  });

  it("postpones the job until the given time, and counts only the job's own failures", async () => {
    const { summaries, settle, row } = await openJob();
    await settle(postponed());
    const nextAttemptAtUs = atUs + 60;
    const error = 'It was slow.';
    expect(await row()).toMatchObject({ state: 'waiting', attempts: 1, nextAttemptAtUs, error });
    await settle(postponed({ counts: false }));
    expect(await row()).toMatchObject({ attempts: 1 });
    expect(await summaries.due({ nowUs: atUs + 59, limit: 1 })).toEqual([]);
    expect(await summaries.due({ nowUs: atUs + 60, limit: 1 })).toMatchObject([{ attempts: 1 }]);
    expect(await summaries.nextDueAtUs()).toBe(atUs + 60);
  });

  it('shows the template until a text exists, with the time it was first written', async () => {
    const { settle, row } = await openJob();
    const template = { model: null, verified: true, doubts: [] };
    await settle(postponed({ template: 'One.' }), atUs + 1);
    await settle(postponed({ template: 'One.' }), atUs + 2);
    expect(await row()).toMatchObject({
      text: { ...template, text: 'One.', createdAtUs: atUs + 1 },
    });
    await settle(postponed({ template: 'Two.' }), atUs + 3);
    await settle({ outcome: 'failed', error: 'No.', template: null }, atUs + 4);
    const two = { ...template, text: 'Two.', createdAtUs: atUs + 3 };
    expect(await row()).toMatchObject({ state: 'failed', error: 'No.', attempts: 4, text: two });
  });

  it('keeps failed and dropped jobs, which can be retried', async () => {
    const { summaries, settle, row } = await openJob();
    const template = 'A template.';
    await settle({ outcome: 'dropped', error: 'Too old.', template });
    expect(await row()).toMatchObject({ state: 'dropped', attempts: 0, error: 'Too old.' });
    const [other, done] = await enqueued(summaries, [productJob(2), productJob(3)]);
    await settle({ outcome: 'failed', error: 'No.', template: null }, atUs, other);
    const sure = { outcome: 'text', key: key(3), text: modelText('Sure.') } as const;
    await settle(sure, atUs, done);
    const ids = [other?.id ?? 0, done?.id ?? 0, 12_345];
    expect(await summaries.retry({ ids, nowUs: atUs + 7 })).toBe(1);
    const [due] = await summaries.due({ nowUs: atUs + 7, limit: 9 });
    const restarted = { attempts: 0, dueAtUs: atUs + 7, requestedAtUs: atUs + 7, revision: 2 };
    expect(due).toEqual({ ...other, ...restarted });
    expect(await summaries.retry({ ids: 'all', nowUs: atUs + 8 })).toBe(1);
    expect(await summaries.counts()).toMatchObject({ waiting: 2, done: 1, failed: 0 });
    expect(await collect(summaries.find({ productId: 'product-1' }))).toMatchObject([
      { error: null, text: { text: template }, nextAttemptAtUs: atUs + 8 },
    ]);
  });

  it("shows a model's text until the next one, or until the job fails permanently", async () => {
    const { summaries, job, settle, row } = await openJob();
    await settle({ outcome: 'text', key: key(1), text });
    const [requeued] = await enqueued(summaries, [productJob(1)]);
    await settle({ ...postponed(), template: 'Newer facts.' }, atUs + 1, requeued);
    expect(await row()).toMatchObject({ state: 'waiting', text });
    expect(await summaries.textsOf(['product-1'])).toEqual(new Map([['product-1', text]]));
    const next = modelText('Another text.');
    await settle({ outcome: 'text', key: key(2), text: next }, atUs + 2, requeued);
    expect(await row()).toMatchObject({ state: 'done', text: next });
    for (const outcome of ['failed', 'dropped'] as const) {
      const [again] = await enqueued(summaries, [productJob(1)]);
      // Without a template there is nothing newer.
      await settle({ outcome, error: 'No.', template: null }, atUs + 3, again);
      expect(await row()).toMatchObject({ id: job.id, state: outcome, text: next });
    }
    const [last] = await enqueued(summaries, [productJob(1)]);
    await settle({ ...postponed(), template: 'Newest facts.' }, atUs + 4, last);
    expect(await row()).toMatchObject({ text: next });
    expect(await summaries.drop({ ids: 'all' })).toBe(1);
    const template = { text: 'Newest facts.', model: null, createdAtUs: atUs + 4 };
    expect(await row()).toMatchObject({ state: 'dropped', text: template });
  });

  it('remembers a doubted answer until the job restarts', async () => {
    const { summaries, job, settle } = await openJob();
    const doubted = async () =>
      (await summaries.due({ nowUs: forever, limit: 1 })).map((one) => one.doubted);
    await settle(postponed({ doubted: ['number', 'place'] }));
    await settle(postponed());
    expect(await doubted()).toEqual([['number', 'place']]);
    await settle({ outcome: 'failed', error: 'No.', template: null });
    await summaries.retry({ ids: [job.id], nowUs: atUs });
    expect(await doubted()).toEqual([null]);
    await settle(postponed({ doubted: ['date'] }), atUs, { ...job, revision: 2 });
    expect(await doubted()).toEqual([['date']]);
    await enqueued(summaries, [productJob(1)]);
    expect(await doubted()).toEqual([null]);
  });

  it('retries an unverified text by its id, and shows it meanwhile', async () => {
    const { summaries, job, settle, row } = await openJob();
    const [sure] = await enqueued(summaries, [productJob(2)]);
    const verified = { outcome: 'text', key: key(2), text: modelText('Sure.') } as const;
    await settle(verified, atUs, sure);
    const ids = [job.id, sure?.id ?? 0];
    for (const revision of [1, 2]) {
      await settle({ outcome: 'text', key: key(1), text }, atUs, { ...job, revision });
      expect(await summaries.retry({ ids: 'all', nowUs: atUs })).toBe(0);
      expect(await summaries.retry({ ids, nowUs: atUs + revision })).toBe(1);
      const [waiting] = await collect(summaries.find({ productId: 'product-1' }));
      expect(waiting).toMatchObject({ state: 'waiting', attempts: 0, text });
      expect(await summaries.known(key(1))).toBeNull();
    }
    const better = modelText('A better text.');
    await settle({ outcome: 'text', key: key(1), text: better }, atUs, { ...job, revision: 3 });
    expect(await collect(summaries.find({ productId: 'product-1' }))).toMatchObject([
      { state: 'done', text: better },
    ]);
    expect((await row())?.text?.text).toBe('Sure.');
  });

  it('removes a withdrawn job, and never reuses its id', async () => {
    const { summaries, job, settle } = await openJob();
    await settle({ outcome: 'withdrawn' }, atUs, { ...job, revision: 2 });
    expect(await summaries.counts()).toMatchObject({ waiting: 1 });
    await settle({ outcome: 'withdrawn' });
    expect(await collect(summaries.find({}))).toEqual([]);
    const [next] = await enqueued(summaries, [productJob(1)]);
    expect(next?.id).toBeGreaterThan(job.id);
    expect(next?.revision).toBe(1);
  });

  it('stores the text even if the job was requested again meanwhile, without changing the job', async () => {
    const { summaries, settle, row } = await openJob();
    await enqueued(summaries, [productJob(1)]);
    const template = 'A template.';
    const late: SummaryOutcome[] = [
      { outcome: 'text', key: key(1), text },
      { outcome: 'known', key: key(1) },
      postponed({ template }),
      { outcome: 'failed', error: 'No.', template },
      { outcome: 'dropped', error: 'No.', template },
      { outcome: 'withdrawn' },
    ];
    for (const result of late) {
      await settle(result);
      const restarted = {
        state: 'waiting',
        attempts: 0,
        nextAttemptAtUs: atUs,
        error: null,
        text: null,
      };
      expect(await row()).toMatchObject(restarted);
    }
    expect(await summaries.known(key(1))).toEqual(text);
  });

  it('does not change a job that another program has ended, nor its text', async () => {
    const { summaries, settle, row } = await openJob();
    await settle({ outcome: 'text', key: key(1), text });
    await settle({ outcome: 'text', key: key(1), text: modelText('Late.') });
    await settle(postponed({ template: 'A template.' }));
    await settle({ outcome: 'failed', error: 'No.', template: null });
    await settle({ outcome: 'withdrawn' });
    expect(await row()).toMatchObject({ state: 'done', text, error: null });
    expect(await summaries.known(key(1))).toEqual(text);
  });
});
