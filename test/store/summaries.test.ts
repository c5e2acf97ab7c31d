import { describe, expect, it } from 'vitest';
import {
  type NewSummaryJob,
  type SummaryOutcome,
  type SummaryQuery,
  summaryStates,
  summaryWaitMaxUs,
} from '../../src/domain/summaries.ts';
import { collect } from '../helpers/deliveries.ts';
import { openLocalStore } from './local-store.ts';
import { openFile } from './sqlite-store.ts';
import {
  atUs,
  claim,
  dayUs,
  digestJob,
  enqueued,
  key,
  modelText,
  productJob,
} from './summary-jobs.ts';

describe('stored summary jobs', () => {
  it('keep every field, including null fields, over a restart', async () => {
    const { store, reopen } = await openLocalStore();
    const bare = { subscription: null, position: null, productName: null };
    const jobs = [digestJob(3), productJob(1), productJob(2, bare)];
    const { ids } = await store.summaries.enqueue({ jobs, waitingMax: 9, atUs });
    const due = await (await reopen()).summaries.due({ nowUs: atUs, limit: 9 });
    const began = { revision: 1, attempts: 0, doubted: null, requestedAtUs: atUs };
    expect(due).toEqual(jobs.map((job, i) => ({ ...job, ...began, id: ids[i] })));
  });

  it('are stored together with the cursor, or neither', async () => {
    const { store } = await openLocalStore();
    const cursor = { reader: 'summaries', position: 7 };
    await store.summaries.enqueue({ jobs: [productJob(1)], cursor, waitingMax: 9, atUs });
    const unkeepable = [
      { jobs: [productJob(2)], cursor: { ...cursor, position: Number.NaN } },
      { jobs: [productJob(3), productJob(4, { dueAtUs: Number.NaN })], cursor },
    ];
    for (const one of unkeepable) {
      const refused = store.summaries.enqueue({ ...one, waitingMax: 9, atUs });
      await expect(refused).rejects.toMatchObject({ code: 'internal' });
    }
    expect(await store.cursor('summaries')).toBe(7);
    expect(await store.summaries.counts()).toMatchObject({ waiting: 1 });
    await store.moveCursor('summaries', 3, atUs);
    expect(await store.cursor('summaries')).toBe(3);
  });

  it('restart under their old id when their subject is requested again', async () => {
    const { summaries } = (await openLocalStore()).store;
    const [job] = await enqueued(summaries, [productJob(1)]);
    if (job === undefined) throw new Error('no job');
    const error = 'It failed.';
    const result = { outcome: 'failed', error, template: 'A product.' } as const;
    await summaries.settle({ job, request: null, result, nowUs: atUs });
    const repeated = productJob(1, { productName: 'other', subscription: 'b', position: 9 });
    const [requeued] = await enqueued(summaries, [repeated], { atUs: atUs + 5 });
    const began = { revision: job.revision + 1, attempts: 0, requestedAtUs: atUs + 5 };
    expect(requeued).toEqual({ ...repeated, ...began, doubted: null, id: job.id });
    const [row] = await collect(summaries.find({}));
    expect(row).toMatchObject({ state: 'waiting', text: { text: 'A product.' }, error: null });
  });

  it('use the last of two equal subjects, and distinguish products from digests', async () => {
    const { summaries } = (await openLocalStore()).store;
    const jobs = [productJob(1), productJob(1, { position: 2 }), digestJob(1)];
    const digest = digestJob(1, { subject: 'product-1' });
    const { ids } = await summaries.enqueue({ jobs: [...jobs, digest], waitingMax: 9, atUs });
    expect(ids).toHaveLength(4);
    expect(ids[1]).toBe(ids[0]);
    const due = await summaries.due({ nowUs: atUs, limit: 9 });
    expect(due.map(({ kind, position }) => [kind, position])).toEqual([
      ['digest', null],
      ['digest', null],
      ['product', 2],
    ]);
  });

  it('return digests before all products, however long these have been due', async () => {
    const { summaries } = (await openLocalStore()).store;
    const products = [1, 2, 3].map((n) => productJob(n, { dueAtUs: atUs + n }));
    const digests = [7, 8].map((n) => digestJob(n, { dueAtUs: atUs + 10 * n }));
    await summaries.enqueue({ jobs: [...products, ...digests], waitingMax: 9, atUs });
    const kinds = async (limit: number) =>
      (await summaries.due({ nowUs: atUs + 100, limit })).map(({ kind }) => kind);
    expect(await kinds(1)).toEqual(['digest']);
    expect(await kinds(4)).toEqual(['digest', 'digest', 'product', 'product']);
  });

  it('are returned when due, the longest due first, of all or by id', async () => {
    const { summaries } = (await openLocalStore()).store;
    expect(await summaries.nextDueAtUs()).toBeNull();
    const times = [30, 10, 20, 90];
    const jobs = times.map((dueAtUs, i) => productJob(i, { dueAtUs }));
    const { ids } = await summaries.enqueue({ jobs, waitingMax: 9, atUs });
    const due = async (nowUs: number, limit: number, among?: number[]) => {
      const named = among === undefined ? {} : { ids: among };
      return (await summaries.due({ nowUs, limit, ...named })).map(({ dueAtUs }) => dueAtUs);
    };
    expect(await due(9, 9)).toEqual([]);
    expect(await due(30, 9)).toEqual([10, 20, 30]);
    expect(await due(30, 2)).toEqual([10, 20]);
    expect(await due(99, 9, [ids[3] ?? 0, ids[2] ?? 0, 12_345])).toEqual([20, 90]);
    expect(await due(99, 9, [])).toEqual([]);
    expect(await summaries.nextDueAtUs()).toBe(10);
  });

  it('are due when a fast clock has dated them too far ahead, and not otherwise', async () => {
    const { summaries } = (await openLocalStore()).store;
    const late = (us: number) => ({ dueAtUs: atUs + us });
    const { product, digest, asking } = summaryWaitMaxUs;
    const jobs = [
      productJob(1, late(product)),
      productJob(2, late(product + 1)),
      digestJob(3, late(digest)),
      digestJob(4, late(digest + 1)),
      productJob(5),
      productJob(6),
    ];
    const [, , , , five, six] = await enqueued(summaries, jobs);
    for (const [job, leaseUs] of [
      [five, asking],
      [six, asking + 1],
    ] as const) {
      if (job !== undefined) await claim(summaries, job, { leaseUs });
    }
    const stranded = await summaries.due({ nowUs: atUs, limit: 9 });
    const subjects = stranded.map(({ subject }) => subject);
    expect(subjects).toEqual(['product-6', 'product-2', 'digest-4']);
    const named = { ids: [stranded[2]?.id ?? 0] };
    expect(await summaries.due({ nowUs: atUs, limit: 9, ...named })).toEqual([stranded[2]]);
    expect(await summaries.due({ nowUs: atUs, limit: 2 })).toHaveLength(2);
    for (const job of stranded) {
      expect(await claim(summaries, job)).toMatchObject({ outcome: 'claimed' });
    }
  });

  it('are dropped by id, or all waiting ones, with the reason', async () => {
    const { summaries } = (await openLocalStore()).store;
    const [one, two, three] = await enqueued(
      summaries,
      [1, 2, 3, 4].map((n) => productJob(n)),
    );
    if (one === undefined || two === undefined || three === undefined) throw new Error('no job');
    await claim(summaries, one);
    expect(await summaries.drop({ ids: [one.id, two.id, 12_345] })).toBe(1);
    const row = async () => (await collect(summaries.find({ productId: 'product-2' })))[0];
    const dropped = { state: 'dropped', error: 'Dropped by command.', nextAttemptAtUs: null };
    expect(await row()).toMatchObject(dropped);
    expect(await summaries.drop({ ids: 'all' })).toBe(2);
    expect(await summaries.counts()).toMatchObject({ asking: 1, waiting: 0, dropped: 3 });
    expect(await summaries.drop({ ids: 'all' })).toBe(0);
    const late = { outcome: 'text', key: key(3), text: modelText('Late.') } as const;
    await summaries.settle({ job: three, request: null, result: late, nowUs: atUs });
    expect(await summaries.counts()).toMatchObject({ done: 0, dropped: 3 });
    expect(await summaries.retry({ ids: [two.id], nowUs: atUs })).toBe(1);
    expect(await row()).toMatchObject({ state: 'waiting', error: null });
  });
});

describe('more waiting products than allowed', () => {
  it('drop the jobs that have waited longest, and report why', async () => {
    const { summaries } = (await openLocalStore()).store;
    await enqueued(summaries, [productJob(1), productJob(2)], { atUs });
    await enqueued(summaries, [productJob(3)], { atUs: atUs + 1 });
    // Requested again, the first job has waited the shortest time.
    const jobs = [productJob(1), productJob(4)];
    const { dropped } = await summaries.enqueue({ jobs, waitingMax: 2, atUs: atUs + 2 });
    expect(dropped).toBe(2);
    const rows = await collect(summaries.find({ state: 'dropped' }));
    expect(rows.map(({ productId }) => productId)).toEqual(['product-3', 'product-2']);
    expect(rows[0]).toMatchObject({
      error: 'more than 2 summaries were waiting',
      nextAttemptAtUs: null,
    });
    const waiting = await summaries.due({ nowUs: atUs, limit: 9 });
    expect(waiting.map(({ subject }) => subject)).toEqual(['product-1', 'product-4']);
  });

  it('drop no digest, and no claimed job', async () => {
    const { summaries } = (await openLocalStore()).store;
    const [asked] = await enqueued(summaries, [productJob(1), digestJob(2), digestJob(3)]);
    if (asked !== undefined) await claim(summaries, asked);
    const options = { waitingMax: 0, atUs };
    expect(await summaries.enqueue({ ...options, jobs: [] })).toEqual({ ids: [], dropped: 0 });
    const { dropped } = await summaries.enqueue({ ...options, jobs: [productJob(4)] });
    expect(dropped).toBe(1);
    const counts = { waiting: 2, asking: 1, done: 0, failed: 0, dropped: 1 };
    expect(await summaries.counts()).toEqual(counts);
  });
});

describe('stored texts', () => {
  it('are returned for products over a restart, or the template when there is no other text', async () => {
    const { store, reopen } = await openLocalStore();
    const jobs = await enqueued(
      store.summaries,
      [1, 2, 3].map((n) => productJob(n)),
    );
    const text = modelText('Of a model.');
    const results: SummaryOutcome[] = [
      { outcome: 'text', key: key(1), text },
      { outcome: 'failed', error: 'No.', template: 'A template.' },
    ];
    for (const [i, result] of results.entries()) {
      const job = jobs[i] ?? { id: 0, revision: 0 };
      await store.summaries.settle({ job, request: null, result, nowUs: atUs + 5 });
    }
    const { summaries } = await reopen();
    const ids = [1, 2, 3, 4].map((n) => `product-${n}`);
    const template = modelText('A template.', { model: null, createdAtUs: atUs + 5 });
    const texts = [
      ['product-1', text],
      ['product-2', template],
    ] as const;
    expect(await summaries.textsOf(ids)).toEqual(new Map(texts));
    expect(await summaries.textsOf([])).toEqual(new Map());
    const many = Array.from({ length: 1_000 }, (_, i) => `product-${i}`);
    expect((await summaries.textsOf(many)).size).toBe(2);
    const refused = summaries.textsOf([...many, 'one-more']);
    await expect(refused).rejects.toMatchObject({ code: 'invalid' });
  });

  it('are the newest of several texts of a product, without those of digests', async () => {
    const { summaries } = (await openLocalStore()).store;
    const newJobs = [
      productJob(1, { subject: 'a' }),
      productJob(1, { subject: 'b' }),
      digestJob(1, { productId: 'product-1' }),
    ];
    const jobs = await enqueued(summaries, newJobs);
    for (const [i, job] of jobs.entries()) {
      const text = modelText(`Text ${i}.`, { createdAtUs: atUs + 100 - i });
      const result = { outcome: 'text', key: key(i), text } as const;
      await summaries.settle({ job, request: null, result, nowUs: atUs });
    }
    const texts = await summaries.textsOf(['product-1']);
    expect(texts.get('product-1')?.text).toBe('Text 0.');
  });
});

describe('queries of summaries', () => {
  it('find the newest first, by each condition and all together', async () => {
    const { summaries } = (await openLocalStore()).store;
    const jobs = [productJob(1), productJob(2, { subscription: 'b' }), digestJob(3)];
    const [one, two] = await enqueued(summaries, jobs);
    const [, four] = await enqueued(summaries, [digestJob(4), productJob(5)], { atUs: atUs + 9 });
    const settled = [
      [one, { outcome: 'text', key: key(1), text: modelText('Sure.') }],
      [two, { outcome: 'text', key: key(2), text: modelText('Unsure.', { verified: false }) }],
      [four, { outcome: 'failed', error: 'No.', template: 'A template.' }],
    ] as const;
    for (const [job, result] of settled) {
      if (job !== undefined) {
        await summaries.settle({ job, request: null, result, nowUs: atUs });
      }
    }
    const ids = async (query: SummaryQuery) =>
      (await collect(summaries.find(query))).map(({ id }) => id - (one?.id ?? 0) + 1);
    expect(await ids({})).toEqual([5, 4, 3, 2, 1]);
    expect(await ids({ kind: 'digest' })).toEqual([4, 3]);
    expect(await ids({ state: 'done' })).toEqual([2, 1]);
    expect(await ids({ productId: 'product-5' })).toEqual([5]);
    expect(await ids({ subscription: 'b' })).toEqual([2]);
    expect(await ids({ verified: true })).toEqual([5, 1]);
    expect(await ids({ verified: false })).toEqual([2]);
    expect(await ids({ sinceUs: atUs + 9 })).toEqual([5, 4]);
    expect(await ids({ untilUs: atUs + 9 })).toEqual([3, 2, 1]);
    expect(await ids({ beforeId: two?.id, limit: 3 })).toEqual([1]);
    expect(await ids({ limit: 2 })).toEqual([5, 4]);
    const all = { kind: 'product', state: 'done', subscription: 'alps', verified: true } as const;
    expect(await ids({ ...all, sinceUs: atUs, untilUs: atUs + 1 })).toEqual([1]);
    expect(await ids({ ...all, sinceUs: atUs + 1 })).toEqual([]);
  });

  it('return every field of a digest', async () => {
    const { summaries } = (await openLocalStore()).store;
    const [job] = await enqueued(summaries, [digestJob(1)]);
    expect(await collect(summaries.find({}))).toEqual([
      {
        id: job?.id,
        kind: 'digest',
        productId: null,
        productName: null,
        subscription: 'alps',
        scope: digestJob(1).scope,
        state: 'waiting',
        text: null,
        attempts: 0,
        requestedAtUs: atUs,
        nextAttemptAtUs: atUs,
        error: null,
      },
    ]);
  });

  it('stream page after page, and count every state', async () => {
    const { summaries } = (await openLocalStore()).store;
    const none = Object.fromEntries(summaryStates.map((state) => [state, 0]));
    expect(await summaries.counts()).toEqual(none);
    const jobs = Array.from({ length: 1_200 }, (_, i) => productJob(i));
    const { ids } = await summaries.enqueue({ jobs, waitingMax: 5_000, atUs });
    const found = await collect(summaries.find({ state: 'waiting' }));
    expect(found.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(await summaries.counts()).toEqual({ ...none, waiting: 1_200 });
  });
});

const productJobs = (count: number, fields: Partial<NewSummaryJob> = {}) =>
  Array.from({ length: count }, (_, i) => productJob(i, fields));

describe('the summary store', () => {
  it('accepts a thousand jobs in less than 100 ms of CPU time', async () => {
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
    // CPU time of all threads: elapsed time would depend on the load of the machine.
    expect(Math.min(...tookMs)).toBeLessThan(100);
    expect(await store.summaries.counts()).toMatchObject({ waiting: 3_000, dropped: 2_000 });
  });

  it('drops and retries any number of jobs', async () => {
    const { summaries } = (await openLocalStore()).store;
    const enqueue = (jobs: NewSummaryJob[]) => summaries.enqueue({ jobs, waitingMax: 0, atUs });
    const { dropped } = await enqueue(productJobs(6_000));
    expect(dropped + (await enqueue([])).dropped).toBe(6_000);
    expect(await summaries.retry({ ids: 'all', nowUs: atUs })).toBe(6_000);
    expect(await summaries.counts()).toMatchObject({ waiting: 6_000, dropped: 0 });
  });

  it('removes requests older than 31 days when a new one is added', async () => {
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

  it("does not store the template's text as a summary text", async () => {
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

  it('refuses a key that is not a SHA-256 hash, and stores nothing of it', async () => {
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
