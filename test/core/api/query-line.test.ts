/** Long queries, and queries whose client is gone, do not delay the others. */
import { request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createQueryLine, inTurn, queryLineDefaults } from '../../../src/core/api/query-line.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { Products } from '../../../src/filter/products.ts';
import {
  type Console,
  createMemoryProducts,
  generatedProducts,
  openConsole,
} from './console-context.ts';

const slowPaths = [
  '/api/products?filter=Online%20eq%20false',
  '/odata/v1/Products?$filter=Online%20eq%20false',
  '/odata/v1/Products?$top=0&$count=true&$filter=Online%20eq%20false',
];

const limits = queryLineDefaults;
const present = new AbortController().signal;

/** Products that keep a search with a filter reading, because nothing matches. */
function slowProducts() {
  const memory = createMemoryProducts();
  memory.add('Products', ...generatedProducts(3).products);
  const searching = new Set<AbortSignal>();
  const search = async (signal = AbortSignal.abort()): Promise<never> => {
    searching.add(signal);
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        searching.delete(signal);
        reject(new AppError('cancelled', 'given up'));
      });
    });
  };
  const products: Products = {
    ...memory,
    async *find(query, signal) {
      if (query.filter !== null) await search(signal);
      yield* memory.find(query);
    },
    quickCount: (query, signal) =>
      query.filter === null ? memory.quickCount(query) : search(signal),
  };
  return { products, searching };
}

/** Sends a request; disconnects when the test calls `hangUp`, or when it has finished. */
function ask({ origin }: Console, path: string): { hangUp(): void } {
  const outgoing = request(new URL(path, origin), { agent: false }).on('error', () => undefined);
  outgoing.end();
  onTestFinished(() => void outgoing.destroy());
  return { hangUp: () => void outgoing.destroy() };
}

describe.each(slowPaths)('a query like %s', (path) => {
  it('whose client hangs up does not delay the next one', async () => {
    const { products, searching } = slowProducts();
    const context = await openConsole({ products, limits });
    const clients = Array.from({ length: 30 }, () => ask(context, path));
    await expect.poll(() => searching.size).toBe(queryLineDefaults.atOnceMax);
    for (const { hangUp } of clients) hangUp();
    expect((await context.get('/api/products')).status).toBe(200);
    await expect.poll(() => searching.size).toBe(0);
  });

  it('that exceeds its time gets 503 with Retry-After, and frees its place', async () => {
    const { products, searching } = slowProducts();
    const one = { ...limits, atOnceMax: 1, waitingMax: 1, timeoutMs: 300 };
    const context = await openConsole({ products, limits: one });
    const slow = context.get(path);
    await expect.poll(() => searching.size).toBe(1);
    expect(await slow).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(searching.size).toBe(0);
    expect((await context.get('/api/products')).status).toBe(200);
  });
});

it('queries of products do not delay those of notifications', async () => {
  const { products, searching } = slowProducts();
  const one = { ...limits, atOnceMax: 1, waitingMax: 0 };
  const context = await openConsole({ products, limits: one });
  ask(context, slowPaths[0] ?? '');
  await expect.poll(() => searching.size).toBe(1);
  expect((await context.get('/api/products')).status).toBe(503);
  expect((await context.get('/api/notifications')).status).toBe(200);
});

describe('a large answer', () => {
  it.each([
    '/api/products?limit=101',
    '/api/products?limit=1000&format=csv',
    '/api/notifications?limit=1000',
    '/api/footprints',
    '/odata/v1/Products?$top=1000',
    '/odata/v1/Products?%24top=1000',
  ])('waits for the large answer of another path, small ones do not: %s', async (path) => {
    const { products, searching } = slowProducts();
    const context = await openConsole({ products, limits: { ...limits, waitingMax: 0 } });
    const slow = ask(context, '/api/products?limit=1000&filter=Online%20eq%20false');
    await expect.poll(() => searching.size).toBe(1);
    expect(await context.get(path)).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    for (const small of ['/api/products?limit=100', '/api/notifications', '/products', '/']) {
      expect((await context.get(small)).status).toBe(200);
    }
    slow.hangUp();
    await expect.poll(async () => (await context.get(path)).status).toBe(200);
  });

  it('keeps its place until it is sent, or its client does not read it in time', async () => {
    const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 0 });
    const sent = Promise.withResolvers<void>();
    expect(await line(async () => 'first', present, sent.promise)).toBe('first');
    const refused = line(async () => 'second', present);
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    sent.resolve();
    await expect.poll(() => line(async () => 'third', present).catch(() => null)).toBe('third');
    const patient = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 1, sendMsMax: 20 });
    await patient(async () => 'unread', present, new Promise(() => undefined));
    expect(await patient(async () => 'next', present)).toBe('next');
  });
});

describe('work in the queue', () => {
  it('does not start for a client that is gone', async () => {
    const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 1 });
    const gone = new AbortController();
    const free = Promise.withResolvers<void>();
    const first = line(() => free.promise, present);
    const second = line(() => Promise.reject(new Error('It began.')), gone.signal);
    gone.abort();
    await expect(second).rejects.toMatchObject({ code: 'cancelled' });
    const third = line(async () => 'third', present);
    free.resolve();
    await first;
    expect(await third).toBe('third');
    const late = line(() => Promise.reject(new Error('It began.')), gone.signal);
    await expect(late).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('reports its failure, and frees its place', async () => {
    const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 1 });
    const failing = () => line(() => Promise.reject(new Error('broken')), present);
    for (let i = 0; i < 3; i += 1) await expect(failing()).rejects.toThrow('broken');
  });
});

it('uses at most a third of the time of this thread for long checks', async () => {
  const busyMs = 20;
  const check = () => {
    const startMs = performance.now();
    while (performance.now() - startMs < busyMs);
  };
  const startMs = performance.now();
  await Promise.all([1, 2, 3].map(() => inTurn(check)));
  // Two pauses of twice the time lie between three checks.
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(3 * busyMs + 2 * (2 * busyMs - 1));
});
