/** Pushed events of products can be queried, and are the same however the index was built. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { catchUpIndex } from '../../../../src/features/products/index-file/index-maintenance.ts';
import { recordingLog } from '../../../helpers/recording-log.ts';
import { replaceBody } from '../../../helpers/replace-body.ts';
import {
  openProductContext,
  type ProductContext,
  rebuildIndex,
  type TestEvent,
} from './product-context.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1) + minute * 60_000).toISOString();
const atUs = (minute: number) => (Date.UTC(2026, 0, 1) + minute * 60_000) * 1000;

const alive = (Id: string, minute: number) => ({
  Id,
  Name: `${Id}.SAFE`,
  PublicationDate: at(1),
  ModificationDate: at(minute),
});
const gone = (Id: string, minute: number) => ({ Id, Name: `${Id}.SAFE`, DeletionDate: at(minute) });

const idOf = (i: number) => `00000000-0000-4000-8000-0000000000a${i}`;

/**
 * Events of ten products in turn: pushes to two subscriptions and to none, and recovered events.
 */
const manyEvents = Array.from({ length: 40 }, (_, i): TestEvent => {
  const id = idOf(i % 10);
  const subscription = i % 7 === 0 ? null : i % 3 === 0 ? 'other' : 'test';
  const source = i % 5 === 0 ? ('reconcile' as const) : ('push' as const);
  const common = { subscription, source, notificationDate: at(i + 1), receivedAtUs: atUs(i + 2) };
  if (i % 11 === 0) return { ...common, event: 'created', record: null, productId: id };
  if (i % 4 === 0) return { ...common, event: 'deleted', record: gone(id, i) };
  return { ...common, event: i % 2 === 0 ? 'created' : 'modified', record: alive(id, i) };
});
// An event dated only by its time of receipt.
manyEvents.push({
  ...{ event: 'deleted', record: null, productId: idOf(3), source: 'reconcile' },
  ...{ notificationDate: null, receivedAtUs: atUs(60) },
});
const manyIds = Array.from({ length: 10 }, (_, i) => idOf(i));

async function answersOf({ products, find }: ProductContext) {
  const ask = (subscription: string) =>
    products.pushedEvents({ subscription, productIds: manyIds });
  return {
    test: await ask('test'),
    other: await ask('other'),
    delays: await products.timeliness({ sinceUs: 0, untilUs: atUs(1_000) }),
    gone: await find('DeletedProducts'),
  };
}

describe('pushed events', () => {
  it("have the catalogue's dates of their own records, and the requested ids", async () => {
    const context = await openProductContext();
    const id = idOf(1);
    await context.index(
      { event: 'created', record: alive(id, 2), notificationDate: at(3), receivedAtUs: atUs(4) },
      { event: 'MODIFIED', record: alive(id, 5), notificationDate: null, receivedAtUs: atUs(6) },
      { event: 'deleted', record: gone(id, 7), receivedAtUs: atUs(8) },
      { event: 'modified', record: null, productId: id, receivedAtUs: atUs(9) },
      { event: 'archived', record: alive(id, 10), receivedAtUs: atUs(11) },
    );
    const asked = id.toUpperCase();
    const productIds = [asked, idOf(2)];
    const events = await context.products.pushedEvents({ subscription: 'test', productIds });
    const row = (position: number, event: string, ...minutes: (number | null)[]) => {
      const [eventUs, stateUs, receivedUs] = minutes.map((one) => one && atUs(one));
      const notificationUs = position === 2 ? null : atUs(position === 1 ? 3 : 0);
      return { productId: asked, position, event, eventUs, stateUs, receivedUs, notificationUs };
    };
    expect(events).toEqual([
      row(1, 'created', 1, 2, 4),
      row(2, 'modified', 5, 5, 6),
      row(3, 'deleted', 7, null, 8),
      row(4, 'modified', null, null, 9),
      row(5, 'archived', null, 10, 11),
    ]);
  });

  it('are the same, like delays, after a rebuild and after incremental indexing', async () => {
    const context = await openProductContext();
    context.follow();
    for (const event of manyEvents) await context.deliver(event);
    const position = () => context.products.indexedPosition().catch(() => 0);
    await expect.poll(position).toBe(manyEvents.length);
    const live = await answersOf(context);
    const expected = manyEvents.filter(
      ({ source, subscription }) => source === 'push' && subscription === 'test',
    );
    expect(live.test).toHaveLength(expected.length);
    // Late pushes of recovered events, received between two indexing steps.
    for (const position of [6, manyEvents.length]) claim(context, position);
    // The last one identifies the log, whose index is kept; another log would get a new file.
    await catchUpIndex({ dataDir: context.dataDir });
    expect(readdirSync(context.dataDir)).toContain('products-1.db');
    await rebuildIndex(context.dataDir);
    expect(await answersOf(context)).toEqual(live);
  });

  it('omit unreadable bodies, which are logged once, so that these are queried again', async () => {
    const context = await openProductContext();
    await context.deliver(
      { event: 'created', record: alive(idOf(1), 2) },
      { event: 'modified', record: alive(idOf(1), 3) },
      { event: 'created', record: alive(idOf(2), 2) },
    );
    replaceBody(context.dataDir, 1, Buffer.from('not json'));
    const { log, lines } = recordingLog();
    context.follow(log);
    await expect.poll(() => context.products.indexedPosition().catch(() => 0)).toBe(3);
    const message = 'skipped an unreadable notification';
    expect(lines).toEqual([{ level: 'warn', message, fields: { position: 1 } }]);
    const productIds = [idOf(1), idOf(2)];
    const events = await context.products.pushedEvents({ subscription: 'test', productIds });
    expect(events.map(({ position }) => position)).toEqual([2, 3]);
  });

  it('omit unreadable bodies, which are reported before another batch, as that may fail', async () => {
    const { dataDir, index, deliver } = await openProductContext();
    await index({ event: 'created', record: alive(idOf(1), 2) });
    const file = new Sqlite(join(dataDir, 'products-1.db'));
    // Each batch reads the same notifications again.
    file.exec(`CREATE TRIGGER again AFTER UPDATE ON progress
      BEGIN UPDATE progress SET position = OLD.position, mark = OLD.mark; END`);
    file.close();
    await deliver({ event: 'created', record: alive(idOf(2), 2) });
    replaceBody(dataDir, 2, Buffer.from('not json'));
    const stopping = new AbortController();
    const { signal } = stopping;
    const done = await catchUpIndex({ dataDir, signal, onProgress: () => stopping.abort() });
    expect(done).toMatchObject({ indexed: 1, skipped: [2] });
  });
});

/** Changes the row of a recovered event as a late push of the event does. */
function claim({ dataDir }: ProductContext, position: number): void {
  const log = new Sqlite(join(dataDir, 'earshot.db'));
  const sql = `UPDATE notification SET dedupe_key = randomblob(24), ack_id = 'late ' || position,
      pushed_at_us = $us, notification_date_us = $us, times_seen = times_seen + 1, last_seen_at_us = $us
    WHERE position = $position AND source = 'reconcile'`;
  expect(log.prepare(sql).run({ us: atUs(500), position }).changes).toBe(1);
  log.close();
}
