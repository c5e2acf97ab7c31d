/** The library's store and options: reading, following, cursors, products, and refusals. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  AppError,
  and,
  type CreateReceiverOptions,
  cloudCover,
  collection,
  createReceiver,
  intersects,
  isAppError,
  name,
  openStore,
  type Store,
} from '../src/index.ts';
import { recordOf, samples } from './features/products/product-samples.ts';
import { atUs, doneWith, productJob } from './features/summary/summary-jobs.ts';
import { collect, delivery, notification } from './helpers/deliveries.ts';
import { openTestStore, pair } from './helpers/mounted-receiver.ts';
import { openStore as openStoreAt } from './helpers/store.ts';
import { temporaryDirectory } from './helpers/temporary-directory.ts';

describe('openStore', () => {
  it('creates the folder, and reads stored notifications after reopening', async () => {
    const dataDir = join(temporaryDirectory(), 'new', 'data');
    const store = await openStore({ dataDir });
    await store.accept(delivery(notification(1)));
    await store.moveCursor('downloads', 1);
    await store.close();
    const again = await openStore({ dataDir });
    expect(await collect(again.find({ ackId: 'ack-1' }))).toHaveLength(1);
    expect(await again.cursor('downloads')).toBe(1);
    await again.close();
  });

  it('follows the log from a position until it is stopped', async () => {
    const store = await openTestStore();
    for (const number of [1, 2]) await store.accept(delivery(notification(number)));
    const stop = new AbortController();
    const seen: (string | null)[] = [];
    for await (const { ackId } of store.follow({ afterPosition: 1, signal: stop.signal })) {
      seen.push(ackId);
      if (ackId === 'ack-2') await store.accept(delivery(notification(3)));
      else stop.abort();
    }
    expect(seen).toEqual(['ack-2', 'ack-3']);
  });

  it('reads the summaries that a worker has written', async () => {
    const dataDir = temporaryDirectory();
    const own = await openStoreAt({ dataDir });
    const { ids } = await own.summaries.enqueue({ jobs: [productJob(1)], waitingMax: 9, atUs });
    const job = { id: ids[0] ?? 0, revision: 1 };
    await own.summaries.settle({ job, result: doneWith('A product.') });
    await own.close();
    const store = await openStore({ dataDir });
    const productId = 'product-1';
    const texts = await store.summaries.textsOf([productId, 'another']);
    expect([...texts]).toMatchObject([[productId, { text: 'A product.' }]]);
    expect(await collect(store.summaries.find({ kind: 'digest' }))).toEqual([]);
    expect(await collect(store.summaries.find({ kind: 'product' }))).toHaveLength(1);
    await store.close();
  });

  it.each([[{}], [{ dataDir: '' }], [{ dataDir: './data', dir: 1 }], [undefined]])(
    'refuses the options %j',
    async (options) => {
      const opened = openStore(options as { dataDir: string });
      await expect(opened).rejects.toThrow(/^Invalid options of openStore: (dataDir|options)/);
      await expect(opened).rejects.toSatisfy((error) => isAppError(error));
    },
  );
});

describe('createReceiver', () => {
  it('lists every problem of its options at once, without passwords', async () => {
    const store = await openTestStore();
    const wrong = {
      store,
      credentials: [
        { username: 'a:b', password: 'hidden' },
        { username: 'c', password: '' },
      ],
      trustedProxies: ['10.0.0.0/8', 'proxy.example.org'],
      log: { warn: () => undefined },
      onOutcome: 'shout',
      logger: console,
    };
    const error = refusalOf(wrong);
    expect(error.code).toBe('configuration');
    expect(error.details.toSorted()).toEqual([
      'credentials.0.password: must have at least 12 characters',
      'credentials.0.username: must not be empty or contain a colon (RFC 7617)',
      'credentials.1.password: must have at least 12 characters',
      'log: must have the methods debug, info, warn and error, as pino and console have',
      'onOutcome: must be a function',
      'options: Unrecognized key: "logger"',
      'trustedProxies.1: must be IP addresses or ranges such as 10.0.0.0/8, separated by commas',
    ]);
    for (const detail of error.details) expect(error.message).toContain(detail);
    expect(error.message).not.toContain('hidden');
  });

  it('refuses to run without credentials or a store', async () => {
    const store = await openTestStore();
    expect(refusalOf({ store, credentials: [] }).details).toEqual([
      'credentials: must have at least one user name and password; otherwise, every request is refused',
    ]);
    expect(refusalOf({ store }).details).toEqual([expect.stringMatching(/^credentials: /)]);
    expect(refusalOf({ store: {}, credentials: [pair] }).details).toEqual([
      'store: must be the result of openStore',
    ]);
    expect(refusalOf(undefined).details).toEqual([expect.stringMatching(/^options: /)]);
  });
});

function refusalOf(options: unknown): AppError {
  try {
    createReceiver(options as CreateReceiverOptions);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('It was not refused.');
}

/** Opens a store that has received the samples. */
async function filledStore(): Promise<Store> {
  const store = await openTestStore();
  for (const sample of samples) await store.accept(deliveryOf(sample));
  return store;
}

function deliveryOf(sample: (typeof samples)[number]) {
  const { id: ProductId, name: ProductName, event: SubscriptionEvent = 'created' } = sample;
  const value = recordOf(sample);
  return delivery(
    notification(1, { AckId: ProductId, ProductId, ProductName, SubscriptionEvent, value }),
  );
}

async function digits(
  store: Store,
  question?: Parameters<Store['products']['find']>[0],
): Promise<string> {
  const found = await collect(store.products.find(question));
  return found.map(({ row }) => row.productId.slice(-1)).join('');
}

describe('store.products', () => {
  it('finds by text and by expression, and counts', async () => {
    const store = await filledStore();
    expect(await digits(store)).toBe('4321');
    expect(await digits(store, { filter: "Collection/Name eq 'SENTINEL-2'" })).toBe('21');
    const filter = and(collection('SENTINEL-2'), cloudCover.lt(20));
    expect(await digits(store, { filter })).toBe('1');
    expect(await store.products.count({ filter })).toBe(1);
    const here = intersects({ type: 'Point', coordinates: [11.5, 45.5] });
    expect(await digits(store, { filter: here })).toBe('2');
    expect(await digits(store, { entity: 'DeletedProducts' })).toBe('5');
    const [found] = await collect(store.products.find({ filter }));
    expect(found?.record).toEqual(samples[0] && recordOf(samples[0]));
  });

  it('continues after a key', async () => {
    const store = await filledStore();
    const order = { by: 'ContentDate/Start', direction: 'asc' } as const;
    const filter = name.endsWith('.SAFE');
    const [first] = await collect(store.products.find({ filter, order, limit: 1 }));
    if (first === undefined) throw new Error('Nothing was found.');
    const after = store.products.keyOf(first.row, { order });
    const rest = await digits(store, { filter, order, after });
    expect(first.row.productId.slice(-1) + rest).toBe(await digits(store, { filter, order }));
  });

  it('refuses a faulty filter, with the place', async () => {
    const store = await openTestStore();
    for (const search of [
      store.products.count({ filter: "foo eq 'bar'" }),
      collect(store.products.find({ filter: "foo eq 'bar'" })),
    ]) {
      await expect(search).rejects.toMatchObject({
        code: 'invalid',
        details: [expect.stringContaining("foo eq 'bar'\n  ^^^")],
      });
    }
  });
});
