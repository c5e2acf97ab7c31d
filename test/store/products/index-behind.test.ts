/** An index that has fallen behind says so, and answers with what it has until it is complete. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { startIndexing } from '../../../src/store/products/index-maintenance.ts';
import { openProductWorld } from './product-world.ts';

it('an index of an older version is made anew beside the receiver, which tells that and goes on', async () => {
  const world = await openProductWorld();
  const { dataDir, products, store } = world;
  await world.index({ event: 'created', record: { Id: 'first' } });
  const old = new Sqlite(join(dataDir, 'products-1.db'));
  // The tables of the first version.
  old.exec('DROP TABLE product_event; ALTER TABLE progress RENAME COLUMN mark TO dedupe_key');
  old.pragma('user_version = 1');
  old.close();
  const count = 3_000;
  const items = Array.from({ length: count }, (_, i) => ({
    AckId: `many-${i}`,
    ProductId: `product-${i}`,
    SubscriptionEvent: 'created',
  }));
  const body = Buffer.from(JSON.stringify(items));
  await store.accept({ body, subscription: 'test', source: 'push', headers: [], receivedAtUs: 1 });

  const told: { fields: object; message: string }[] = [];
  const info = (fields: object, message: string) => void told.push({ fields, message });
  const quiet = () => {};
  const log = { debug: quiet, info, warn: quiet, error: quiet };
  const indexing = startIndexing({ dataDir, log, besideIntake: true });
  onTestFinished(() => indexing.stop());
  await expect.poll(() => told.length).toBeGreaterThan(0);
  // Nobody is refused meanwhile.
  expect(await products.count({ entity: 'Products', filter: null })).toBeGreaterThan(0);
  await world.deliver({ event: 'modified', record: { Id: 'first' } });
  const lastPosition = count + 2;
  await expect.poll(() => products.indexedPosition(), { timeout: 20_000 }).toBe(lastPosition);
  await expect
    .poll(() => told.map(({ message }) => message))
    .toEqual(['the product index is behind and catches up', 'the product index is complete']);
  expect(told[0]?.fields).toMatchObject({ lastPosition: count + 1 });
  expect(await products.count({ entity: 'Products', filter: null })).toBe(count + 1);
  const events = await products.pushedEvents({ subscription: 'test', productIds: ['FIRST'] });
  expect(events.map(({ position }) => position)).toEqual([1, lastPosition]);
}, 40_000);
