/** Long queries, and queries whose client is gone, do not delay the others. */
import { request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createQueryLine, queryLineDefaults } from '../../../src/core/api/query-line.ts';
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

/** No query is slow, on a slow machine either. */
const limits = { ...queryLineDefaults, quickMs: 3_600_000 };

/** Products that keep a search with a filter reading, because nothing matches. */
function slowProducts() {
  const memory = createMemoryProducts();
  memory.add('Products', ...generatedProducts(3).products);
  const searching = new Set<AbortSignal>();
  let count = 0;
  const search = async (signal = AbortSignal.abort()): Promise<never> => {
    count += 1;
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
  return { products, searching, begun: () => count };
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
    const context = await openConsole({ products, limits });
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
    const context = await openConsole({
      products,
      limits: { ...limits, atOnceMax: 1, waitingMax: 1, timeoutMs: 300 },
    });
    const slow = context.get(path);
    await expect.poll(() => searching.size).toBe(1);
    expect(await slow).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(searching.size).toBe(0);
    expect((await context.get('/api/products')).status).toBe(200);
  });
});

describe('slow queries', () => {
  it.each(slowPaths)('run one at a time, and others pass them: %s', async (path) => {
    const { products, searching, begun } = slowProducts();
    const context = await openConsole({ products, limits: { quickMs: 500, slowMs: 3_600_000 } });
    const clients = Array.from({ length: 9 }, () => ask(context, path));
    onTestFinished(() => {
      for (const { hangUp } of clients) hangUp();
    });
    await expect.poll(() => begun() >= 9 && searching.size, { timeout: 15_000 }).toBe(1);
    const quick = ['/api/products', '/odata/v1/Products/$count', '/stac/search', '/products'];
    for (const other of quick) expect((await context.get(other)).status).toBe(200);
    expect(searching.size).toBe(1);
  });

  it('start again when the slow lane is free, and end with its time', async () => {
    const started: number[] = [];
    const free = Promise.withResolvers<void>();
    const slowWork = (number: number) => async (signal: AbortSignal) => {
      started.push(number);
      await Promise.race([
        free.promise,
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new AppError('cancelled', 'given up')));
        }),
      ]);
      return number;
    };
    const line = createQueryLine({ ...limits, atOnceMax: 1, quickMs: 250 });
    const { signal } = new AbortController();
    const [first, second] = [line(slowWork(1), signal), line(slowWork(2), signal)];
    await expect.poll(() => started).toEqual([1, 2]);
    expect(await line(async () => 'quick', signal)).toBe('quick');
    free.resolve();
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    expect(started).toEqual([1, 2, 2]);
    const never = () => new Promise(() => undefined);
    const limited = createQueryLine({ ...limits, quickMs: 250, slowMs: 5 });
    await expect(limited(never, signal)).rejects.toMatchObject({
      code: 'unavailable',
      message: 'The query took too long.',
      advice: expect.stringContaining('more specific'),
    });
    expect(await limited(async () => 'next', signal)).toBe('next');
  });
});

it('queries of products do not delay those of notifications', async () => {
  const { products, searching } = slowProducts();
  const context = await openConsole({
    products,
    limits: { ...limits, atOnceMax: 1, waitingMax: 0 },
  });
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
      const context = await openConsole({ products, limits: { ...limits, waitingMax: 0 } });
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
    const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 0 });
    const { signal } = new AbortController();
    const sent = Promise.withResolvers<void>();
    expect(await line(async () => 'first', signal, sent.promise)).toBe('first');
    const refused = line(async () => 'second', signal);
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    sent.resolve();
    await expect.poll(() => line(async () => 'third', signal).catch(() => null)).toBe('third');
  });

  it('loses its place if its client does not read it in time', async () => {
    const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 1, sendMsMax: 20 });
    const { signal } = new AbortController();
    await line(async () => 'unread', signal, new Promise(() => undefined));
    expect(await line(async () => 'next', signal)).toBe('next');
  });
});

it('an answer does not stay in memory until the timeout of its query', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 1, timeoutMs: 3_600_000 });
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
    const line = createQueryLine({ ...limits, atOnceMax: 5, waitingMax: 5 });
    const began = Array.from({ length: 10 }, () => line(async () => turn, present));
    expect(new Set(await Promise.all(began)).size).toBe(10);
  });

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
    expect(await line(async () => 'after', present)).toBe('after');
  });

  it('reports its failure, and frees its place', async () => {
    const line = createQueryLine({ ...limits, atOnceMax: 1, waitingMax: 1 });
    for (let i = 0; i < 3; i += 1) {
      await expect(line(() => Promise.reject(new Error('broken')), present)).rejects.toThrow(
        'broken',
      );
    }
  });
});
