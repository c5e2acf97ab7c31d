import { describe, expect, it } from 'vitest';
import type { NewSummaryJob, SummaryJob, SummaryOutcome } from '../../src/domain/summaries.ts';
import { collect } from '../helpers/deliveries.ts';
import { openLocalStore } from './local-store.ts';
import { openFile } from './sqlite-store.ts';
import {
  atUs,
  claim,
  dayUs,
  enqueued,
  hourUs,
  key,
  modelText,
  productJob,
} from './summary-jobs.ts';

const claimed = { outcome: 'claimed', requestId: expect.any(Number) };
const taken = { outcome: 'taken' };

async function openJobs(count: number) {
  const { store, reopen } = await openLocalStore();
  const jobs = await enqueued(
    store.summaries,
    Array.from({ length: count }, (_, i) => productJob(i)),
  );
  const job = (number: number): SummaryJob => {
    const found = jobs[number];
    if (found === undefined) throw new Error(`no job ${number}`);
    return found;
  };
  return { summaries: store.summaries, reopen, job };
}

describe('the store asked for a claim', () => {
  it('gives a job to one of many who ask', async () => {
    const { summaries, job } = await openJobs(1);
    const answers = await Promise.all(Array.from({ length: 20 }, () => claim(summaries, job(0))));
    expect(answers.filter(({ outcome }) => outcome === 'claimed')).toHaveLength(1);
    expect(answers.filter(({ outcome }) => outcome === 'taken')).toHaveLength(19);
    expect(await summaries.counts()).toMatchObject({ asking: 1, waiting: 0 });
    expect(await summaries.due({ nowUs: atUs, limit: 9 })).toEqual([]);
  });

  it('refuses a job that is done, forgotten, not due, or wanted anew', async () => {
    const { summaries, job } = await openJobs(3);
    const text = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    const error = 'It was slow.';
    const later = { counts: false, nextTryAtUs: atUs + 1, template: null, error } as const;
    const settled = [text, { outcome: 'withdrawn' }, { outcome: 'postponed', ...later }] as const;
    for (const [i, result] of settled.entries()) {
      await summaries.settle({ job: job(i), request: null, result, nowUs: atUs });
      expect(await claim(summaries, job(i))).toEqual(taken);
    }
    const [anew] = await enqueued(summaries, [productJob(2)]);
    expect(await claim(summaries, job(2), { nowUs: atUs + 1 })).toEqual(taken);
    expect(await claim(summaries, anew ?? job(2), { nowUs: atUs + 1 })).toEqual(claimed);
    expect(await summaries.spending(atUs + 1)).toMatchObject({ requestsLastHour: 1 });
  });

  it('lets a job that is wanted anew wait for the request that is out', async () => {
    const { summaries, job } = await openJobs(1);
    const one = await claim(summaries, job(0));
    if (one.outcome !== 'claimed') throw new Error(one.outcome);
    const [anew] = await enqueued(summaries, [productJob(0)], { atUs: atUs + 1 });
    if (anew === undefined) throw new Error('no job');
    expect(await claim(summaries, anew, { nowUs: atUs + 1 })).toEqual(taken);
    const text = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    const request = { id: one.requestId, tokens: null };
    const ended = { job: job(0), request, result: text, nowUs: atUs + 2 };
    await summaries.settle(ended);
    expect(await claim(summaries, anew, { nowUs: atUs + 2 })).toEqual(claimed);
    // Told once more, the first request does not end the second one's claim.
    await summaries.settle({ ...ended, nowUs: atUs + 3 });
    expect(await claim(summaries, anew, { nowUs: atUs + 3 })).toEqual(taken);
  });

  it('lets a job that is wanted anew wait no longer than the lease', async () => {
    const { summaries, job } = await openJobs(1);
    await claim(summaries, job(0), { leaseUs: 100 });
    const [anew] = await enqueued(summaries, [productJob(0)], { atUs: atUs + 1 });
    expect(anew).toMatchObject({ revision: 2, dueAtUs: atUs + 100 });
    await claim(summaries, anew ?? job(0), { nowUs: atUs + 100, leaseUs: 100 });
    const [latest] = await enqueued(summaries, [productJob(0)], { atUs: atUs + 200 });
    expect(latest).toMatchObject({ revision: 3, dueAtUs: atUs });
    expect(await claim(summaries, latest ?? job(0), { nowUs: atUs + 200 })).toEqual(claimed);
  });

  it('gives a job away again when its lease has run out, and counts both requests', async () => {
    const { summaries, job, reopen } = await openJobs(1);
    await claim(summaries, job(0), { leaseUs: 100 });
    expect(await summaries.nextDueAtUs()).toBe(atUs + 100);
    const again = (await reopen()).summaries;
    expect(await claim(again, job(0), { nowUs: atUs + 99 })).toEqual(taken);
    expect(await again.due({ nowUs: atUs + 99, limit: 9 })).toEqual([]);
    const [due] = await again.due({ nowUs: atUs + 100, limit: 9 });
    expect(due).toMatchObject({ id: job(0).id, revision: 1, attempts: 0 });
    expect(await claim(again, job(0), { nowUs: atUs + 100 })).toEqual(claimed);
    const spent = { requestsLastHour: 2, requestsLastDay: 2, tokensLastDay: 200 };
    expect(await again.spending(atUs + 100)).toEqual(spent);
  });
});

describe('the store with a budget of requests', () => {
  it('lets no more than the limit be sent in any hour, also after a restart', async () => {
    const { summaries, job, reopen } = await openJobs(5);
    const limit = { requestsPerHour: 2 };
    expect(await claim(summaries, job(0), { ...limit, nowUs: atUs })).toEqual(claimed);
    expect(await claim(summaries, job(1), { ...limit, nowUs: atUs + 10 })).toEqual(claimed);
    const again = (await reopen()).summaries;
    const refused = { outcome: 'budget', limit: 'requestsPerHour', freeAtUs: atUs + hourUs };
    const justBefore = atUs + hourUs - 1;
    expect(await claim(again, job(2), { ...limit, nowUs: justBefore })).toEqual(refused);
    expect(await again.due({ nowUs: atUs, limit: 1 })).toMatchObject([{ id: job(2).id }]);
    expect(await claim(again, job(2), { ...limit, nowUs: atUs + hourUs })).toEqual(claimed);
    const next = { ...refused, freeAtUs: atUs + 10 + hourUs };
    expect(await claim(again, job(3), { ...limit, nowUs: atUs + hourUs })).toEqual(next);
    // One that allows less than was sent already waits for all that is too much.
    const less = { requestsPerHour: 1, nowUs: atUs + hourUs };
    const longer = { ...refused, freeAtUs: atUs + 2 * hourUs };
    expect(await claim(again, job(3), less)).toEqual(longer);
  });

  it('counts a day as it counts an hour, and names the limit that takes longest', async () => {
    const { summaries, job } = await openJobs(4);
    const limits = { requestsPerHour: 1, requestsPerDay: 2 };
    await claim(summaries, job(0), { ...limits, nowUs: atUs });
    await claim(summaries, job(1), { ...limits, nowUs: atUs + hourUs });
    const refused = { outcome: 'budget', limit: 'requestsPerDay', freeAtUs: atUs + dayUs };
    const ask = (nowUs: number) => claim(summaries, job(2), { ...limits, nowUs });
    expect(await ask(atUs + hourUs + 1)).toEqual(refused);
    expect(await ask(atUs + dayUs - 1)).toEqual(refused);
    expect(await ask(atUs + dayUs)).toEqual(claimed);
    const spent = { requestsLastHour: 1, requestsLastDay: 2, tokensLastDay: 200 };
    expect(await summaries.spending(atUs + dayUs)).toEqual(spent);
  });

  it('lets nothing be sent with a limit of 0', async () => {
    const { summaries, job } = await openJobs(1);
    const windows = { requestsPerHour: hourUs, requestsPerDay: dayUs, tokensPerDay: dayUs };
    for (const [limit, windowUs] of Object.entries(windows)) {
      const refused = { outcome: 'budget', limit, freeAtUs: atUs + windowUs };
      expect(await claim(summaries, job(0), { [limit]: 0 })).toEqual(refused);
      const answer = await claim(summaries, job(0), { [limit]: 0, tokens: 0 });
      expect(answer).toEqual(refused);
    }
    const none = { requestsLastHour: 0, requestsLastDay: 0, tokensLastDay: 0 };
    expect(await summaries.spending(atUs)).toEqual(none);
  });

  it('counts what a clock ahead of its time has dated, from now on and no longer', async () => {
    const { summaries, job } = await openJobs(3);
    const limit = { requestsPerHour: 1 };
    await claim(summaries, job(0), { ...limit, nowUs: atUs + 400 * dayUs });
    expect(await summaries.spending(atUs)).toMatchObject({ requestsLastHour: 1 });
    const refused = { outcome: 'budget', limit: 'requestsPerHour', freeAtUs: atUs + hourUs };
    expect(await claim(summaries, job(1), limit)).toEqual(refused);
    expect(await claim(summaries, job(1), { ...limit, nowUs: atUs + 9 })).toEqual(refused);
    expect(await claim(summaries, job(1), { ...limit, nowUs: atUs + hourUs })).toEqual(claimed);
  });

  it('takes limits larger than anything', async () => {
    const { summaries, job } = await openJobs(2);
    const most = Number.MAX_SAFE_INTEGER;
    const limits = { requestsPerHour: most, requestsPerDay: most, tokensPerDay: most };
    expect(await claim(summaries, job(0), limits)).toEqual(claimed);
    expect(await claim(summaries, job(1), limits)).toEqual(claimed);
  });
});

describe('the store with a budget of tokens', () => {
  it('lets as many be asked for as are left, and no more', async () => {
    const { summaries, job } = await openJobs(5);
    const limit = { tokensPerDay: 1_000 };
    await claim(summaries, job(0), { ...limit, tokens: 300, nowUs: atUs });
    await claim(summaries, job(1), { ...limit, tokens: 500, nowUs: atUs + 10 });
    const ask = (tokens: number, nowUs: number) =>
      claim(summaries, job(2), { ...limit, tokens, nowUs });
    const refused = (freeAtUs: number) => ({
      outcome: 'budget',
      limit: 'tokensPerDay',
      freeAtUs,
    });
    expect(await ask(201, atUs + 20)).toEqual(refused(atUs + dayUs));
    // The first to run out would not be enough.
    expect(await ask(501, atUs + 20)).toEqual(refused(atUs + 10 + dayUs));
    expect(await ask(1_000, atUs + 20)).toEqual(refused(atUs + 10 + dayUs));
    expect(await ask(1_001, atUs + 20)).toEqual(refused(atUs + 20 + dayUs));
    expect(await ask(200, atUs + 20)).toEqual(claimed);
  });

  it('counts the tokens that were really spent, once they are told', async () => {
    const { summaries, job } = await openJobs(4);
    const claims = [];
    for (const i of [0, 1, 2]) claims.push(await claim(summaries, job(i), { tokens: 100 }));
    const told = [40, null, 250];
    for (const [i, one] of claims.entries()) {
      if (one.outcome !== 'claimed') throw new Error(one.outcome);
      const request = { id: one.requestId, tokens: told[i] ?? null };
      const text = { outcome: 'text', key: key(i), text: modelText('A text.') } as const;
      await summaries.settle({ job: job(i), request, result: text, nowUs: atUs });
    }
    const spent = { requestsLastHour: 3, requestsLastDay: 3, tokensLastDay: 390 };
    expect(await summaries.spending(atUs)).toEqual(spent);
    const limit = { tokensPerDay: 490 };
    expect(await claim(summaries, job(3), { ...limit, tokens: 101 })).toMatchObject({
      outcome: 'budget',
    });
    expect(await claim(summaries, job(3), { ...limit, tokens: 100 })).toEqual(claimed);
  });

  it('counts them also for a job that was wanted anew or forgotten meanwhile', async () => {
    const { summaries, job } = await openJobs(1);
    const one = await claim(summaries, job(0), { tokens: 100 });
    if (one.outcome !== 'claimed') throw new Error(one.outcome);
    const [anew] = await enqueued(summaries, [productJob(0)]);
    const request = { id: one.requestId, tokens: 70 };
    const text = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    await summaries.settle({ job: job(0), request, result: text, nowUs: atUs });
    expect(await summaries.spending(atUs)).toMatchObject({ tokensLastDay: 70 });
    const gone = { job: anew ?? job(0), request: null, nowUs: atUs };
    await summaries.settle({ ...gone, result: { outcome: 'withdrawn' } });
    expect(await summaries.spending(atUs)).toMatchObject({ tokensLastDay: 70 });
  });
});

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
    nextTryAtUs: atUs + 60,
    counts: true,
    template: null,
    ...fields,
  }) as const;

describe('the store told what came of a job', () => {
  it('keeps a text under its key, and the job is done', async () => {
    const { summaries, settle, row } = await openJob();
    await settle(postponed({ template: 'A template.' }));
    await settle({ outcome: 'text', key: key(1), text });
    expect(await row()).toMatchObject({ state: 'done', text, error: null, nextTryAtUs: null });
    expect(await summaries.known(key(1))).toEqual(text);
    expect(await summaries.known(key(2))).toBeNull();
    expect(await summaries.due({ nowUs: forever, limit: 9 })).toEqual([]);
    expect(await summaries.nextDueAtUs()).toBeNull();
  });

  it('gives a job the text that is known, and refuses one that is not', async () => {
    const { summaries, job, settle, row } = await openJob();
    const unknown = settle({ outcome: 'known', key: key(1) });
    await expect(unknown).rejects.toMatchObject({ code: 'internal' });
    expect(await row()).toMatchObject({ state: 'waiting' });
    await settle({ outcome: 'text', key: key(1), text });
    const [anew] = await enqueued(summaries, [productJob(1)]);
    expect(await row()).toMatchObject({ state: 'waiting', text });
    await settle({ outcome: 'known', key: key(1) }, atUs, anew);
    expect(await row()).toMatchObject({ id: job.id, state: 'done', text });
  });

  it('tries again when it was told to, and counts what is the job’s own failure', async () => {
    const { summaries, settle, row } = await openJob();
    await settle(postponed());
    const nextTryAtUs = atUs + 60;
    const error = 'It was slow.';
    expect(await row()).toMatchObject({ state: 'waiting', attempts: 1, nextTryAtUs, error });
    await settle(postponed({ counts: false }));
    expect(await row()).toMatchObject({ attempts: 1 });
    expect(await summaries.due({ nowUs: atUs + 59, limit: 1 })).toEqual([]);
    expect(await summaries.due({ nowUs: atUs + 60, limit: 1 })).toMatchObject([{ attempts: 1 }]);
    expect(await summaries.nextDueAtUs()).toBe(atUs + 60);
  });

  it('shows the template until there is a text, with the time it was first written', async () => {
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

  it('keeps a failed and a dropped job, and tries them again when it is asked to', async () => {
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
    const anew = { attempts: 0, dueAtUs: atUs + 7, requestedAtUs: atUs + 7, revision: 2 };
    expect(due).toEqual({ ...other, ...anew });
    expect(await summaries.retry({ ids: 'all', nowUs: atUs + 8 })).toBe(1);
    expect(await summaries.counts()).toMatchObject({ waiting: 2, done: 1, failed: 0 });
    expect(await collect(summaries.find({ productId: 'product-1' }))).toMatchObject([
      { error: null, text: { text: template }, nextTryAtUs: atUs + 8 },
    ]);
  });

  it('shows the text of a model until the next one, or until it has failed for good', async () => {
    const { summaries, job, settle, row } = await openJob();
    await settle({ outcome: 'text', key: key(1), text });
    const [anew] = await enqueued(summaries, [productJob(1)]);
    await settle({ ...postponed(), template: 'Newer facts.' }, atUs + 1, anew);
    expect(await row()).toMatchObject({ state: 'waiting', text });
    expect(await summaries.textsOf(['product-1'])).toEqual(new Map([['product-1', text]]));
    const next = modelText('Another text.');
    await settle({ outcome: 'text', key: key(2), text: next }, atUs + 2, anew);
    expect(await row()).toMatchObject({ state: 'done', text: next });
    for (const outcome of ['failed', 'dropped'] as const) {
      const [again] = await enqueued(summaries, [productJob(1)]);
      // Without a template, nothing newer is there.
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

  it('remembers that an answer was doubted, until the job begins anew', async () => {
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

  it('tries a text that is not verified again by its id, and shows it meanwhile', async () => {
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

  it('forgets a job that is withdrawn, and never gives its id again', async () => {
    const { summaries, job, settle } = await openJob();
    await settle({ outcome: 'withdrawn' }, atUs, { ...job, revision: 2 });
    expect(await summaries.counts()).toMatchObject({ waiting: 1 });
    await settle({ outcome: 'withdrawn' });
    expect(await collect(summaries.find({}))).toEqual([]);
    const [next] = await enqueued(summaries, [productJob(1)]);
    expect(next?.id).toBeGreaterThan(job.id);
    expect(next?.revision).toBe(1);
  });

  it('keeps the text for a job that was wanted anew meanwhile, and leaves the job', async () => {
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
      const anew = { state: 'waiting', attempts: 0, nextTryAtUs: atUs, error: null, text: null };
      expect(await row()).toMatchObject(anew);
    }
    expect(await summaries.known(key(1))).toEqual(text);
  });

  it('leaves a job that another has ended, and its text', async () => {
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

const productJobs = (count: number, fields: Partial<NewSummaryJob> = {}) =>
  Array.from({ length: count }, (_, i) => productJob(i, fields));

describe('the store of summaries', () => {
  it('takes a thousand jobs in less than 100 ms of computing', async () => {
    const { store } = await openLocalStore();
    const tookMs: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const jobs = productJobs(1_000).map((job) => ({
        ...job,
        subject: `${round}-${job.subject}`,
      }));
      const before = process.cpuUsage();
      await store.summaries.enqueue({ jobs, waitingMax: 3_000, atUs: atUs + round });
      const { user, system } = process.cpuUsage(before);
      tookMs.push((user + system) / 1_000);
    }
    // Of all threads. The clock would tell what else the machine does.
    expect(Math.min(...tookMs)).toBeLessThan(100);
    expect(await store.summaries.counts()).toMatchObject({ waiting: 3_000, dropped: 2_000 });
  });

  it('drops and tries again however many there are', async () => {
    const { summaries } = (await openLocalStore()).store;
    const enqueue = (jobs: NewSummaryJob[]) => summaries.enqueue({ jobs, waitingMax: 0, atUs });
    const { dropped } = await enqueue(productJobs(6_000));
    expect(dropped + (await enqueue([])).dropped).toBe(6_000);
    expect(await summaries.retry({ ids: 'all', nowUs: atUs })).toBe(6_000);
    expect(await summaries.counts()).toMatchObject({ waiting: 6_000, dropped: 0 });
  });

  it('removes requests of more than 31 days ago with a new one', async () => {
    const { store, dataDir } = await openLocalStore();
    const jobs = await enqueued(store.summaries, productJobs(3));
    const requests = () =>
      openFile(dataDir).prepare('SELECT job_id, settled FROM summary_request').raw().all();
    const times = [atUs, atUs + 1, atUs + 31 * dayUs + 1];
    for (const [i, job] of jobs.entries()) {
      await claim(store.summaries, job, { nowUs: times[i] ?? 0 });
    }
    expect(await requests()).toEqual(jobs.slice(1).map(({ id }) => [id, 0]));
  });

  it('keeps the template’s words out of the texts', async () => {
    const { store, dataDir } = await openLocalStore();
    const [job] = await enqueued(store.summaries, [productJob(1)]);
    if (job === undefined) throw new Error('no job');
    const failed = { outcome: 'failed', error: 'No.', template: 'A template.' } as const;
    await store.summaries.settle({ job, request: null, result: failed, nowUs: atUs });
    expect(await collect(store.summaries.find({}))).toMatchObject([
      { text: { text: 'A template.', model: null, verified: true, doubts: [] } },
    ]);
    expect(openFile(dataDir).prepare('SELECT count(*) FROM summary_text').pluck().get()).toBe(0);
  });

  it('refuses a key that is no SHA-256, and keeps nothing of it', async () => {
    const { store } = await openLocalStore();
    const [job] = await enqueued(store.summaries, [productJob(1)]);
    if (job === undefined) throw new Error('no job');
    const result = {
      outcome: 'text',
      key: key(1).subarray(1),
      text: modelText('A text.'),
    } as const;
    const refused = store.summaries.settle({ job, request: null, result, nowUs: atUs });
    await expect(refused).rejects.toMatchObject({ code: 'internal' });
    expect(await store.summaries.counts()).toMatchObject({ waiting: 1, done: 0 });
  });
});
