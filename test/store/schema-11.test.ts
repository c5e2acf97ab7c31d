/** A data directory as a released version left it (schema 11): every feature works on it, and nothing of it is lost. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { atUs, missing, push, pushed, subscription } from '../contract/catalogue-events.ts';
import { digestJob, key } from '../contract/summary-jobs.ts';
import { collect } from '../helpers/deliveries.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from './sqlite-store.ts';

async function openFixture() {
  const dataDir = temporaryDirectory();
  const packed = readFileSync(join(import.meta.dirname, 'fixtures/schema-11.db.gz'));
  writeFileSync(join(dataDir, databaseFileName), gunzipSync(packed), { mode: 0o600 });
  return (await openSqliteStore({ dataDir })).store;
}

it('is read as it was written', async () => {
  const store = await openFixture();
  expect(await store.counts()).toEqual({ notifications: 24, duplicates: 2, quarantined: 2 });
  expect(await store.lastPosition()).toBe(25);
  const rows = await collect(store.find({ order: 'oldest', subscription }));
  expect(rows.map(({ productId }) => productId).slice(0, 3)).toEqual([
    'product-1',
    'product-2',
    'product-3',
  ]);
  expect(JSON.parse(Buffer.from(await store.body(3)).toString())).toEqual(pushed(3));
  expect(await store.cursor('a-reader')).toBe(7);
  const held = await collect(store.quarantined({ released: false }));
  expect(held.map(({ reason }) => reason)).toEqual(['event-missing', 'event-missing']);
  expect((await store.quarantineEntry(2)).headers).toEqual(['Host', 'x']);
  expect(await store.drift()).toMatchObject([{ shape: 'body-array', count: 1 }]);
});

it('keeps what is known of the account, coverage, alerts, sinks, summaries and backups', async () => {
  const store = await openFixture();
  const { administration, completeness, alerts, sinks, summaries, backups, pruning } = store;
  expect(await administration.registrations()).toMatchObject([
    { name: 'alps', events: ['created', 'deleted'], status: 'running', unfinished: false },
  ]);
  expect(await administration.history({ limit: 9 })).toHaveLength(1);
  expect(await administration.gaps()).toMatchObject([{ fromUs: atUs, toUs: null }]);
  expect(await administration.deliveryMarks()).toMatchObject([{ username: 'earshot' }]);
  expect(await completeness.definitions()).toMatchObject([
    { subscription, filter: "contains(Name,'S2')" },
  ]);
  expect(await completeness.uptimes(0)).toEqual([{ fromUs: atUs, toUs: atUs + 5 }]);
  expect(
    await completeness.coverage({ sinceUs: atUs, untilUs: atUs + 1, subscription }),
  ).toMatchObject([{ expected: 3, pushed: 1, late: 0, recovered: 1, missing: 1 }]);
  expect(
    await completeness.recoveredEvents({
      subscription,
      productIds: ['product-101', 'product-102'],
    }),
  ).toMatchObject([{ pushedAtUs: null }, { pushedAtUs: atUs + 600_000_000 }]);
  expect(await alerts.untold(atUs)).toMatchObject([
    {
      change: 'raised',
      channel: 'url',
      alert: { subject: 'alps', evidence: ['Usually 20 an hour.'] },
    },
  ]);
  expect(await sinks.counts()).toMatchObject([{ sink: 'act', waiting: 1, dead: 1 }]);
  expect(await sinks.deliveries()).toEqual([{ sink: 'act', delivered: 1, lastAtUs: atUs }]);
  expect(await sinks.replays({ all: false })).toMatchObject([{ sink: 'act', lastPosition: 5 }]);
  expect(await summaries.counts()).toMatchObject({ waiting: 2, done: 1 });
  expect(await summaries.known(key(1))).toMatchObject({ text: 'A summary.', verified: true });
  expect(await summaries.spending(1_795_000_000_000_001)).toMatchObject({ tokensLastDay: 90 });
  expect(await backups.lastBackups()).toMatchObject({ made: { bytes: 4_096 }, failed: null });
  expect(await pruning.logSize()).toMatchObject({ firstPosition: 1, lastPosition: 25 });
});

it('takes deliveries and changes of every kind', async () => {
  const store = await openFixture();
  const { completeness, sinks, summaries, pruning } = store;
  expect(await store.accept(push(pushed(1)))).toEqual({ outcome: 'duplicate', duplicates: 1 });
  expect(await store.accept(push(pushed(101)))).toEqual({ outcome: 'duplicate', duplicates: 1 });
  expect(await store.accept(push(pushed(30)))).toMatchObject({ outcome: 'stored', stored: 1 });
  expect(await store.lastPosition()).toBe(27);
  const recover = { events: [missing(30), missing(101), missing(103)], knownUpTo: 25, atUs };
  expect(await completeness.recover(recover)).toEqual([null, null, 28]);
  expect(await completeness.beginRun({ request: 'a run', atUs: atUs + 1 })).toMatchObject({
    startedAtUs: atUs,
  });
  expect(await store.retry(2, atUs)).toMatchObject({ outcome: 'rejected', quarantineId: 2 });
  expect(await store.drop([2])).toBe(1);
  const [due] = await sinks.due({ sink: 'act', nowUs: atUs, limit: 9 });
  expect(due).toMatchObject({ position: 1 });
  expect(await sinks.retry({ sink: 'act', ids: 'all', nowUs: atUs })).toBe(1);
  const enqueued = await summaries.enqueue({ jobs: [digestJob(3)], waitingMax: 9, atUs });
  expect(enqueued).toEqual({ ids: [3], dropped: 0 });
  expect(await pruning.forgetReader('a-reader')).toBe(true);
});
