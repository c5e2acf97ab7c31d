import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NewSummaryJob } from '../../src/domain/summaries.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { migrations } from '../../src/store/engine/migrations.ts';
import { openStore, openStoreReader } from '../../src/store/store.ts';
import {
  atUs,
  claim,
  dayUs,
  enqueued,
  hourUs,
  key,
  modelText,
  productJob,
} from '../contract/summary-jobs.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from './sqlite-store.ts';

function openReader(dataDir: string) {
  const reader = openStoreReader(dataDir);
  onTestFinished(() => reader.close());
  return reader;
}

function openFile(dataDir: string) {
  const database = new Sqlite(join(dataDir, databaseFileName));
  onTestFinished(() => void database.close());
  return database;
}

async function openTwo() {
  const { store, dataDir } = await openSqliteStore();
  const other = await openStore({ dataDir, nowUs: () => 0 });
  onTestFinished(() => other.close());
  return { summaries: store.summaries, others: other.summaries, dataDir };
}

const productJobs = (count: number, fields: Partial<NewSummaryJob> = {}) =>
  Array.from({ length: count }, (_, i) => productJob(i, fields));

describe('changes of summaries that arrive with notifications', () => {
  it('share their commit; one that fails is alone with its failure', async () => {
    const { store } = await openSqliteStore();
    const [job] = await enqueued(store.summaries, [productJob(1)]);
    if (job === undefined) throw new Error('no job');
    const nobody = { outcome: 'known', key: key(9) } as const;
    // All in one turn: the writer finds them together.
    const receipts = [1, 2, 3].map((n) => store.accept(delivery(notification(n))));
    const failing = store.summaries.settle({ job, request: null, result: nobody, nowUs: atUs });
    const wanted = store.summaries.enqueue({ jobs: [productJob(2)], waitingMax: 9, atUs });
    // More than one transaction takes.
    const numbers = Array.from({ length: 900 }, (_, i) => i + 4);
    const more = numbers.map((n) => store.accept(delivery(notification(n))));
    await expect(failing).rejects.toMatchObject({ code: 'internal' });
    for (const receipt of await Promise.all([...receipts, ...more])) {
      expect(receipt).toEqual({ outcome: 'stored', stored: 1, duplicates: 0 });
    }
    expect((await wanted).ids).toHaveLength(1);
    expect(await collect(store.find({}))).toHaveLength(903);
    expect(await store.summaries.counts()).toMatchObject({ waiting: 2 });
  });
});

describe('a file of version 2', () => {
  it('is brought up to date with its cursors and registrations kept', async () => {
    const dataDir = temporaryDirectory();
    const database = openFile(dataDir);
    database.exec(migrations.slice(0, 2).join(''));
    database.exec("INSERT INTO reader_cursor VALUES ('index', 7, 1)");
    database.exec("INSERT INTO delivery_mark VALUES ('alps', 'catalogue', 9)");
    database.pragma(`application_id = ${0x65617273}`);
    database.pragma('user_version = 2');
    const refused = openReader(dataDir).summaries.counts();
    await expect(refused).rejects.toMatchObject({ code: 'configuration' });
    const { store } = await openSqliteStore({ dataDir });
    const jobs = [productJob(1)];
    const cursor = { reader: 'summaries', position: 3 };
    await store.summaries.enqueue({ jobs, cursor, waitingMax: 9, atUs });
    expect([await store.cursor('index'), await store.cursor('summaries')]).toEqual([7, 3]);
    expect(await store.administration.deliveryMarks()).toMatchObject([{ lastAtUs: 9 }]);
    expect(await store.summaries.due({ nowUs: atUs, limit: 9 })).toMatchObject(jobs);
  });
});

describe('summaries made by two programs', () => {
  it('are claimed by one of them, and stay within one budget', async () => {
    const { summaries, others } = await openTwo();
    const jobs = await enqueued(summaries, productJobs(30));
    const outcomes = await Promise.all(
      jobs.flatMap((job) =>
        [summaries, others].map(async (one) => {
          const { outcome } = await claim(one, job, { requestsPerHour: 10 });
          return `${job.id} ${outcome}`;
        }),
      ),
    );
    const claimed = outcomes.filter((one) => one.endsWith('claimed'));
    expect(claimed).toHaveLength(10);
    expect(new Set(claimed).size).toBe(10);
    expect(await others.spending(atUs)).toMatchObject({ requestsLastHour: 10 });
    expect(await summaries.counts()).toMatchObject({ asking: 10, waiting: 20 });
  });

  it('share their texts, and a cursor that either moves with its jobs', async () => {
    const { summaries, others, dataDir } = await openTwo();
    const cursor = { reader: 'summaries', position: 5 };
    await summaries.enqueue({ jobs: [productJob(1)], cursor, waitingMax: 9, atUs });
    const [job] = await others.due({ nowUs: atUs, limit: 1 });
    if (job === undefined) throw new Error('no job');
    const result = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    await others.settle({ job, request: null, result, nowUs: atUs });
    expect(await summaries.known(key(1))).toEqual(result.text);
    const reader = openReader(dataDir);
    expect(await reader.cursor('summaries')).toBe(5);
    expect(await reader.summaries.textsOf(['product-1'])).toEqual(
      new Map([['product-1', result.text]]),
    );
  });

  it('are asked for again when the one that asked was killed, and its request stays counted', async () => {
    const { store, dataDir } = await openSqliteStore();
    const { summaries } = store;
    const [job] = await enqueued(summaries, [productJob(1)]);
    if (job === undefined) throw new Error('no job');
    const file = join(import.meta.dirname, 'summary-claim-child.ts');
    const child = spawn(process.execPath, [file, dataDir, String(job.id)], { stdio: 'pipe' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [answer] = await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(String(answer)).toBe('claimed\n');
    expect(await claim(summaries, job)).toEqual({ outcome: 'taken' });
    const afterLease = { nowUs: atUs + 60_000_000 };
    const due = await summaries.due({ ...afterLease, limit: 9 });
    expect(due).toMatchObject([{ id: job.id, revision: job.revision }]);
    const refused = { outcome: 'budget', limit: 'requestsPerHour', freeAtUs: atUs + hourUs };
    expect(await claim(summaries, job, { ...afterLease, requestsPerHour: 1 })).toEqual(refused);
    expect(await claim(summaries, job, { ...afterLease, requestsPerHour: 2 })).toMatchObject({
      outcome: 'claimed',
    });
  });
});

describe('the store of summaries', () => {
  it('takes a thousand jobs in less than 100 ms of computing', async () => {
    const { store } = await openSqliteStore();
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
    const { summaries } = (await openSqliteStore()).store;
    const enqueue = (jobs: NewSummaryJob[]) => summaries.enqueue({ jobs, waitingMax: 0, atUs });
    const { dropped } = await enqueue(productJobs(6_000));
    expect(dropped + (await enqueue([])).dropped).toBe(6_000);
    expect(await summaries.retry({ ids: 'all', nowUs: atUs })).toBe(6_000);
    expect(await summaries.counts()).toMatchObject({ waiting: 6_000, dropped: 0 });
  });

  it('removes requests of more than 31 days ago with a new one', async () => {
    const { store, dataDir } = await openSqliteStore();
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
    const { store, dataDir } = await openSqliteStore();
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
    const { store } = await openSqliteStore();
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

  it('answers questions without a writer, and while another program holds the lock', async () => {
    const { store, dataDir } = await openSqliteStore();
    await enqueued(store.summaries, productJobs(2));
    await store.close();
    const { summaries } = openReader(dataDir);
    openFile(dataDir).exec('BEGIN IMMEDIATE; DELETE FROM summary_job');
    expect(await summaries.counts()).toMatchObject({ waiting: 2 });
    expect(await summaries.due({ nowUs: atUs, limit: 9 })).toHaveLength(2);
    expect(await summaries.nextDueAtUs()).toBe(atUs);
    expect(await summaries.spending(atUs)).toMatchObject({ requestsLastDay: 0 });
    expect(await summaries.known(key(1))).toBeNull();
    expect(await collect(summaries.find({ limit: 1 }))).toHaveLength(1);
  });
});
