/** Long queries, and queries whose client is gone, do not delay the others. */
import { request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createQueryLine, queryLineDefaults } from '../../src/console/query-line.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { Products } from '../../src/domain/products.ts';
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

/** Sends a request, and disconnects on the signal. */
function ask({ origin }: Console, path: string): { hangUp(): void } {
  const outgoing = request(new URL(path, origin), { agent: false }).on('error', () => undefined);
  outgoing.end();
  return { hangUp: () => void outgoing.destroy() };
}

describe('a query whose client hangs up', () => {
  it.each(slowPaths)('does not delay the next one after thirty of them: %s', async (path) => {
    const { products, searching } = slowProducts();
    const context = await openConsole({ products });
    const clients = Array.from({ length: 30 }, () => ask(context, path));
    await expect.poll(() => searching.size).toBe(queryLineDefaults.atOnceMax);
    for (const { hangUp } of clients) hangUp();
    expect((await context.get('/api/products')).status).toBe(200);
    await expect.poll(() => searching.size).toBe(0);
  });
});

describe('a query that exceeds its time', () => {
  it.each(slowPaths)('gets 503 with Retry-After, and frees its place: %s', async (path) => {
    const { products, searching } = slowProducts();
    const limits = { atOnceMax: 1, waitingMax: 1, timeoutMs: 300 };
    const context = await openConsole({ products, limits });
    const slow = context.get(path);
    await expect.poll(() => searching.size).toBe(1);
    expect(await slow).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(searching.size).toBe(0);
    expect((await context.get('/api/products')).status).toBe(200);
  });
});

it('queries of products do not delay those of notifications', async () => {
  const { products, searching } = slowProducts();
  const limits = { atOnceMax: 1, waitingMax: 0 };
  const context = await openConsole({ products, limits });
  const slow = ask(context, slowPaths[0] ?? '');
  await expect.poll(() => searching.size).toBe(1);
  expect((await context.get('/api/products')).status).toBe(503);
  expect((await context.get('/api/notifications')).status).toBe(200);
  slow.hangUp();
});

describe('a large answer', () => {
  const large = [
    '/api/products?limit=101',
    '/api/products?limit=1000&format=csv',
    '/api/notifications?limit=1000',
    '/api/footprints',
    '/odata/v1/Products?$top=1000',
    '/odata/v1/Products?%24top=1000',
  ];

  it.each(large)(
    'waits for the large answer of another path, small ones do not: %s',
    async (path) => {
      const { products, searching } = slowProducts();
      const context = await openConsole({ products, limits: { waitingMax: 0 } });
      const slow = ask(context, '/api/products?limit=1000&filter=Online%20eq%20false');
      await expect.poll(() => searching.size).toBe(1);
      expect(await context.get(path)).toMatchObject({
        status: 503,
        headers: { 'retry-after': '5' },
      });
      for (const small of ['/api/products?limit=100', '/api/notifications', '/products', '/']) {
        expect((await context.get(small)).status).toBe(200);
      }
      slow.hangUp();
      await expect.poll(async () => (await context.get(path)).status).toBe(200);
    },
  );

  it('keeps its place until it is sent', async () => {
    const line = createQueryLine({ atOnceMax: 1, waitingMax: 0, timeoutMs: 5_000 });
    const { signal } = new AbortController();
    const sent = Promise.withResolvers<void>();
    expect(await line(async () => 'first', signal, sent.promise)).toBe('first');
    const refused = line(async () => 'second', signal);
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    sent.resolve();
    await expect.poll(() => line(async () => 'third', signal).catch(() => null)).toBe('third');
  });

  it('loses its place if its client does not read it in time', async () => {
    const limits = { atOnceMax: 1, waitingMax: 1, timeoutMs: 5_000, sendMsMax: 20 };
    const line = createQueryLine(limits);
    const { signal } = new AbortController();
    await line(async () => 'unread', signal, new Promise(() => undefined));
    expect(await line(async () => 'next', signal)).toBe('next');
  });
});

it('an answer does not stay in memory until the timeout of its query', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const line = createQueryLine({ atOnceMax: 1, waitingMax: 1, timeoutMs: 3_600_000 });
  const { signal } = new AbortController();
  const runOne = async () => new WeakRef(await line(async () => ({ text: 'large' }), signal));
  const answer = await runOne();
  const isGone = () => {
    collectGarbage();
    return answer.deref() === undefined;
  };
  await expect.poll(isGone).toBe(true);
});

describe('work in the queue', () => {
  const present = new AbortController().signal;

  it('starts in a separate turn of the event loop, so that no two checks follow each other', async () => {
    let turn = 0;
    let immediate = setImmediate(function next() {
      turn += 1;
      immediate = setImmediate(next);
    });
    onTestFinished(() => clearImmediate(immediate));
    const line = createQueryLine({ atOnceMax: 5, waitingMax: 5, timeoutMs: 5_000 });
    const began = Array.from({ length: 10 }, () => line(async () => turn, present));
    expect(new Set(await Promise.all(began)).size).toBe(10);
  });

  it('does not start for a client that is gone', async () => {
    const line = createQueryLine({ atOnceMax: 1, waitingMax: 1, timeoutMs: 5_000 });
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
    expect(await line(async () => 'after', present)).toBe('after');
  });

  it('reports its failure, and frees its place', async () => {
    const line = createQueryLine({ atOnceMax: 1, waitingMax: 1, timeoutMs: 5_000 });
    for (let i = 0; i < 3; i += 1) {
      await expect(line(() => Promise.reject(new Error('broken')), present)).rejects.toThrow(
        'broken',
      );
    }
  });
});
