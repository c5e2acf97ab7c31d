/** Files of older versions: every feature works on them, and no data is lost. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { collect, delivery } from '../helpers/deliveries.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { keptRows } from './bodies/bodies-in-file.ts';
import { atUs, missing, push, pushed, subscription } from './catalogue-events.ts';
import { openReader, openSqliteStore, writeVersion } from './sqlite-store.ts';
import { digestJob, productJob } from './summary-jobs.ts';

const oneNotification = `
  INSERT INTO body VALUES (1, 'identity', CAST('the body' AS BLOB));
  INSERT INTO notification VALUES
    (1, x'00', 'ack-0', 'product-0', NULL, 'created', 'alps', NULL, NULL, 7, 'push', 3, 9, 1, 0);`;

describe('a file of version 1', () => {
  const write = () => writeVersion(1, (database) => database.exec(oneNotification));

  it('is migrated and keeps its notifications', async () => {
    const { store, reopen } = await openSqliteStore({ dataDir: write() });
    const gap = { subscription, events: ['created'], filter: '', fromUs: 5, reason: 'x' } as const;
    await store.administration.commit({ openGap: gap });
    await store.accept(push(pushed(1)));
    const again = await reopen();
    expect(await again.administration.gaps()).toMatchObject([gap]);
    expect(await collect(again.find({ order: 'oldest' }))).toMatchObject([
      { position: 1, ackId: 'ack-0', timesSeen: 3, lastSeenAtUs: 9 },
      { position: 2, ackId: 'ack-1' },
    ]);
    expect(Buffer.from(await again.body(1)).toString()).toBe('the body');
  });

  it('is not read before the migration, and the error says what to do', async () => {
    const refused = openReader(write()).administration.gaps();
    await expect(refused).rejects.toMatchObject({
      code: 'configuration',
      text: expect.stringContaining('older version of earshot. Run `earshot start` once'),
    });
  });
});

it('migrates a file of version 2 and keeps its cursors and registrations', async () => {
  const dataDir = writeVersion(2, (database) => {
    database.exec("INSERT INTO reader_cursor VALUES ('index', 7, 1)");
    database.exec("INSERT INTO delivery_mark VALUES ('alps', 'catalogue', 9)");
  });
  const { store } = await openSqliteStore({ dataDir });
  const jobs = [productJob(1)];
  const cursor = { reader: 'summaries', position: 3 };
  await store.summaries.enqueue({ jobs, cursor, waitingMax: 9, atUs });
  expect([await store.cursor('index'), await store.cursor('summaries')]).toEqual([7, 3]);
  expect(await store.administration.deliveryMarks()).toMatchObject([{ lastAtUs: 9 }]);
  expect(await collect(store.summaries.find({}))).toMatchObject([{ productId: 'product-1' }]);
});

it('migrates a file of version 3, with its registrations as the first definitions', async () => {
  const dataDir = writeVersion(3, (database) =>
    database.exec(`${oneNotification}
      INSERT INTO registration (name, events, filter, status, unfinished, activity_at_us, notified_at_us)
        VALUES ('andes', '["deleted"]', '', 'running', 0, 30, 31),
               ('alps', '["created","modified"]', 'true', 'running', 0, 99, 99);
      INSERT INTO history (at_us, subscription, action, actor, reason)
        VALUES (10, 'alps', 'created', 'register', ''), (40, 'alps', 'replaced', 'register', ''),
               (50, 'alps', 'resumed', 'maintain', ''), (60, 'other', 'created', 'register', '');
    `),
  );
  const { store } = await openSqliteStore({ dataDir });
  expect(await store.completeness.definitions()).toEqual([
    { subscription: 'andes', fromUs: 30, events: ['deleted'], filter: '' },
    { subscription: 'alps', fromUs: 40, events: ['created', 'modified'], filter: 'true' },
  ]);
  expect(await collect(store.find({}))).toMatchObject([{ ackId: 'ack-0', timesSeen: 3 }]);
  const options = { events: [missing(1), missing(2)], knownUpTo: 1, atUs };
  expect(await store.completeness.recover(options)).toEqual([2, 3]);
  expect(await store.accept(push(pushed(2)))).toMatchObject({ outcome: 'duplicate' });
});

it('reads a file of version 6, with one body per row, and packs new bodies', async () => {
  const bodies = generatedBodies(3);
  const dataDir = writeVersion(6, (database) => {
    const insertBody = database.prepare("INSERT INTO body VALUES (?, 'identity', ?)");
    const insert = database.prepare(
      `INSERT INTO notification (dedupe_key, product_id, event, received_at_us, source, times_seen,
         last_seen_at_us, body_id, body_index)
       VALUES (randomblob(24), 'p', 'created', 1, 'push', 1, 1, ?, 0)`,
    );
    for (const [i, body] of bodies.entries()) {
      insertBody.run(i + 1, body);
      insert.run(i + 1);
    }
    insertBody.run(4, Buffer.from('no notification'));
    database.exec("INSERT INTO quarantine VALUES (1, 1, NULL, 'push', '[]', '[]', 4, NULL)");
  });
  const { store } = await openSqliteStore({ dataDir });
  for (const [i, body] of bodies.entries()) {
    expect(Buffer.from(await store.body(i + 1))).toEqual(body);
  }
  const [entry] = await collect(store.quarantined({ released: false }));
  expect(entry?.bodyBytes).toBe('no notification'.length);
  const more = generatedBodies(5, 9);
  await Promise.all(more.map((body) => store.accept(delivery(body))));
  expect(Buffer.from(await store.body(8))).toEqual(more[4]);
  expect(keptRows(dataDir)).toMatchObject([
    ...[1, 2, 3, 4].map((id) => ({ id, encoding: 'identity', bodies: 1 })),
    { id: 5, encoding: 'zstd-1', bodies: 5 },
  ]);
});

/** A data directory as a released version left it. */
async function openFixture() {
  const dataDir = temporaryDirectory();
  const packed = readFileSync(join(import.meta.dirname, 'fixtures/schema-11.db.gz'));
  writeFileSync(join(dataDir, databaseFileName), gunzipSync(packed), { mode: 0o600 });
  return (await openSqliteStore({ dataDir })).store;
}

describe('a file of version 11', () => {
  it('is read unchanged', async () => {
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
    const quarantined = await collect(store.quarantined({ released: false }));
    expect(quarantined.map(({ reason }) => reason)).toEqual(['event-missing', 'event-missing']);
    expect((await store.quarantineEntry(2)).headers).toEqual(['Host', 'x']);
    expect(await store.drift()).toMatchObject([{ shape: 'body-array', count: 1 }]);
  });

  it('keeps account data, coverage, alerts, sinks and backups', async () => {
    const store = await openFixture();
    const { administration, completeness, alerts, sinks, backups, pruning } = store;
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
    expect(await alerts.unsentDeliveries(atUs)).toMatchObject([
      {
        change: 'raised',
        channel: 'url',
        alert: { subject: 'alps', evidence: ['Usually 20 an hour.'] },
      },
    ]);
    expect(await sinks.counts()).toMatchObject([{ sink: 'act', waiting: 1, dead: 1 }]);
    expect(await sinks.deliveries()).toEqual([{ sink: 'act', delivered: 1, lastAtUs: atUs }]);
    expect(await sinks.replays({ all: false })).toMatchObject([{ sink: 'act', lastPosition: 5 }]);
    expect(await backups.lastBackups()).toMatchObject({ made: { bytes: 4_096 }, failed: null });
    expect(await pruning.logSize()).toMatchObject({ firstPosition: 1, lastPosition: 25 });
  });

  it('accepts deliveries and changes of every kind', async () => {
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
    expect(enqueued).toEqual({ ids: [1], dropped: 0 });
    expect(await pruning.removeReader('a-reader')).toBe(true);
  });
});
