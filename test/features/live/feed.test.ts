/** The stream of new notifications on real sockets: limits, resumption, failures and the end. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { NotificationRow } from '../../../src/core/terms/ports.ts';
import type { EventQuery, IndexedEvent } from '../../../src/filter/products.ts';
import {
  createMemoryLog,
  createMemoryProducts,
  notificationRow,
  openConsole,
} from '../../core/api/console-context.ts';
import { openSeeded } from '../../core/page/seeded-receiver.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { foundProduct } from '../summary/found-product.ts';

interface StreamEvent {
  id: string;
  name: string;
  // biome-ignore lint/suspicious/noExplicitAny: parsed JSON
  data: any;
  atMs: number;
  bytes: number;
}

type Stream = Awaited<ReturnType<typeof openStream>>;

/** Opens a stream; `next` resolves with the next event that was not taken yet. */
async function openStream(url: string, headers: Record<string, string> = {}) {
  const outgoing = request(url, { headers, agent: false }).end();
  onTestFinished(() => void outgoing.destroy());
  const [response]: IncomingMessage[] = await once(outgoing, 'response');
  if (response === undefined) throw new Error('no response');
  outgoing.on('error', () => undefined);
  const events: StreamEvent[] = [];
  let text = '';
  let taken = 0;
  const ended = new Promise<void>((end) => response.once('close', end));
  response.on('error', () => undefined);
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const parts = text.split('\n\n');
    if (response.headers['content-type'] !== 'text/event-stream') return;
    text = parts.pop() ?? '';
    events.push(...parts.filter((part) => !part.startsWith(':')).map(parsed));
  });
  return {
    ...{ status: response.statusCode, headers: response.headers, events, ended },
    close: () => void outgoing.destroy(),
    next: async () => {
      await expect
        .poll(() => events.length, { timeout: 5_000, interval: 5 })
        .toBeGreaterThan(taken);
      taken += 1;
      return events[taken - 1] ?? expect.fail();
    },
  };
}

function parsed(part: string): StreamEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1] ?? '';
  const data = field('data');
  return {
    ...{ id: field('id'), name: field('event'), data: JSON.parse(data) },
    ...{ atMs: performance.now(), bytes: Buffer.byteLength(part) },
  };
}

const positions = ({ data }: StreamEvent): number[] =>
  data.rows.map(({ position }: { position: number }) => position);

/** A listener over a log in memory that grows. */
async function openGrowing(options: Parameters<typeof openConsole>[0] = {}) {
  const rows: NotificationRow[] = [];
  const add = (count: number, changes: Partial<NotificationRow> = {}) => {
    for (let i = 0; i < count; i += 1) rows.push(notificationRow(rows.length + 1, changes));
  };
  add(1);
  const notifications = createMemoryLog(rows);
  const context = await openConsole({ notifications, ...options });
  const live = (search = '', headers: Record<string, string> = {}) =>
    openStream(`${context.origin}/api/live${search}`, headers);
  return { ...context, notifications, add, live };
}

describe('the live feed', () => {
  it('lists a push within two seconds, with texts about the product, and follows a filter', async () => {
    const seeded = await openSeeded({ products: 20 });
    onTestFinished(() => seeded.close());
    const filter = encodeURIComponent("Collection/Name eq 'SENTINEL-2'");
    const all = await openStream(`${seeded.url}/api/live`);
    const some = await openStream(`${seeded.url}/api/live?filter=${filter}`);
    await Promise.all([all.next(), some.next()]);
    const generated = Array.from({ length: 200 }, () => seeded.generator.next(Date.now()));
    const { true: inside = [], false: outside = [] } = Object.groupBy(generated, ({ Name }) =>
      Name.startsWith('S2') ? 'true' : 'false',
    );
    const products = [...inside.slice(0, 4), ...outside.slice(0, 4)];
    const beganMs = performance.now();
    for (const product of products) expect(await seeded.push(product)).toBe(200);
    const listed = (stream: Stream) =>
      stream.events.flatMap(({ data }) => data.rows).map(({ productId }) => productId);
    const ids = products.map(({ Id }) => Id).toSorted();
    await expect.poll(() => listed(all).toSorted()).toEqual(ids);
    expect(products).toHaveLength(8);
    const matching = inside.slice(0, 4).map(({ Id }) => Id);
    await expect.poll(() => listed(some).toSorted()).toEqual(matching.toSorted());
    expect(performance.now() - beganMs).toBeLessThan(2_000);
    // Streams end at once: other open requests have 2 s.
    const closedMs = performance.now();
    await seeded.receiver.close();
    await Promise.all([all.ended, some.ended]);
    expect(performance.now() - closedMs).toBeLessThan(1_500);
    await seeded.restart();
  });

  it('sends frames as documented, at most four a second', async () => {
    const { get, live, add } = await openGrowing();
    const stream = await live();
    expect(stream).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    const timer = setInterval(() => add(1), 10);
    onTestFinished(() => clearInterval(timer));
    await expect.poll(() => stream.events.length, { timeout: 5_000 }).toBeGreaterThan(5);
    const times = stream.events.map(({ atMs }) => atMs);
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan((times.length - 1) * 245);
    const all = stream.events.flatMap(positions).toSorted((a, b) => a - b);
    expect(all).toEqual(all.map((_, i) => i + 2));
    const document = (await get('/api/openapi.json')).json;
    const { content } = document.paths['/api/live'].get.responses[200];
    const schema = z.fromJSONSchema(content['text/event-stream'].schema);
    for (const { name, data } of stream.events) {
      expect(name).toBe('update');
      expect(schema.safeParse(data).error).toBeUndefined();
    }
  });

  it('bounds the rows and the size of a frame, and counts the others', async () => {
    const { live, add } = await openGrowing();
    const stream = await live();
    await stream.next();
    add(500);
    const many = await stream.next();
    expect(many.data).toMatchObject({ count: 100, omitted: 400, lastPosition: 501 });
    expect(positions(many)).toEqual(Array.from({ length: 100 }, (_, i) => 501 - i));
    add(50, { productName: 'ü'.repeat(10_000) });
    const long = await stream.next();
    expect(long.bytes).toBeLessThan(140_000);
    expect(long.data.count + long.data.omitted).toBe(50);
    expect(long.data.count).toBeGreaterThan(3);
    expect(positions(long)[0]).toBe(551);
  });

  it('resumes after the last event without loss or repetition', async () => {
    const { live, add } = await openGrowing();
    const first = await live();
    await first.next();
    add(2);
    const { id } = await first.next();
    first.close();
    add(3);
    for (const again of [await live('', { 'last-event-id': id }), await live(`?after=${id}`)]) {
      expect(positions(await again.next())).toEqual([6, 5, 4]);
      again.close();
    }
    expect((await live('?after=1')).status).toBe(400);
  });

  it('reports a gap, and continues after it', async () => {
    const { live, add } = await openGrowing();
    add(1_500);
    const stream = await live('?after=1.1');
    expect(await stream.next()).toMatchObject({ name: 'gap', data: { from: 1, to: 1_501 } });
    add(1);
    expect(positions(await stream.next())).toEqual([1_502]);
    // An older log: a restored backup.
    const older = await live('?after=9999.1');
    expect(await older.next()).toMatchObject({ name: 'gap', data: { from: 9_999, to: 1_502 } });
  });

  it('reports none to a viewer that has read further than the others', async () => {
    const { live, add } = await openGrowing();
    const other = await live();
    await other.next();
    add(10);
    const stream = await live('?after=11.11');
    add(1);
    expect(await stream.next()).toMatchObject({ name: 'update', id: '12.11' });
    other.close();
  });

  it('has at most 16 viewers; the next one gets 503 until one leaves', async () => {
    const { live, get } = await openGrowing();
    // A HEAD opens no stream.
    for (let i = 0; i < 20; i += 1)
      expect(await get('/api/live', { method: 'HEAD' })).toMatchObject({ status: 200 });
    const streams = await Promise.all(Array.from({ length: 16 }, () => live()));
    expect(streams.map(({ status }) => status)).toEqual(Array(16).fill(200));
    const refused = await get('/api/live');
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(refused.json.detail).toBe(
      'There are already 16 live streams, the maximum. Close another page that shows live data.',
    );
    streams[0]?.close();
    await expect.poll(async () => (await live()).status).toBe(200);
  });

  it('disconnects a viewer that does not read, and serves the others', async () => {
    const liveLimits = { frameMs: 5, viewersMax: 2, unreadMs: 300 };
    const { port, live, add } = await openGrowing({ liveLimits });
    const socket = connect(port, '127.0.0.1').pause();
    const closed = new Promise((resolve) => socket.once('error', resolve).once('close', resolve));
    onTestFinished(() => void socket.destroy());
    socket.write('GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const reader = await live();
    expect((await live()).status).toBe(503);
    const timer = setInterval(() => add(12, { productName: 'x'.repeat(10_000) }), 2);
    onTestFinished(() => clearInterval(timer));
    await expect.poll(async () => (await live()).status, { timeout: 15_000 }).toBe(200);
    clearInterval(timer);
    socket.resume();
    await closed;
    const last = reader.events.length;
    add(1);
    await expect.poll(() => reader.events.length).toBeGreaterThan(last);
  });

  it('keeps viewers while the store cannot be read, and sends the rows later', async () => {
    const memory = await openGrowing();
    let failure: AppError | null = null;
    const notifications = {
      ...memory.notifications,
      lastPosition: async () => {
        if (failure !== null) throw failure;
        return memory.notifications.lastPosition();
      },
    };
    const failed = vi.fn();
    const log = { ...silentLog, debug: failed };
    const { origin } = await openConsole({ notifications, log });
    const stream = await openStream(`${origin}/api/live`);
    await stream.next();
    failure = new AppError('unavailable', 'The store cannot be read now.');
    memory.add(2);
    await expect.poll(() => failed.mock.calls.length).toBeGreaterThan(1);
    failure = null;
    expect(positions(await stream.next())).toEqual([3, 2]);
  });
});

/** An index that has read the log up to a position. */
function createIndex() {
  const events = Array.from({ length: 9 }, (_, i) => indexedEvent(i + 1));
  const products = { ...createMemoryProducts(), position: 1 };
  return Object.assign(products, {
    indexedPosition: async () => {
      if (products.position === 0) throw new AppError('unavailable', 'There is no index.');
      return products.position;
    },
    events: async ({ afterPosition = 0, beforePosition = 99, limit }: EventQuery) => {
      const end = Math.min(beforePosition - 1, products.position);
      const found = events.filter(({ position }) => position > afterPosition && position <= end);
      return { events: found.toReversed().slice(0, limit), next: null };
    },
  });
}

function indexedEvent(position: number): IndexedEvent {
  const { productId, event, subscription, receivedAtUs, source } = notificationRow(position);
  const product = {
    ...foundProduct({ position, productId, receivedAtUs, sizeBytes: 0, online: true }).row,
    ...{ cloudCoverPercent: 12, tile: '32TMT' },
  };
  const footprint = { type: 'Point', coordinates: [11, 45.5] } as const;
  const times = { notificationUs: receivedAtUs, receivedAtUs };
  return { position, event, subscription, ...times, source, product, footprint };
}

describe('a lagging product index', () => {
  it('adds the texts about products later', async () => {
    const products = createIndex();
    const { live, add } = await openGrowing({ products });
    const stream = await live();
    await stream.next();
    add(2);
    const { data } = await stream.next();
    expect(data).toMatchObject({ indexedPosition: 1, lastPosition: 3, products: [] });
    expect(data.rows[0].cells.cloud).toBeNull();
    products.position = 3;
    const later = await stream.next();
    expect(later.data.rows).toEqual([]);
    expect(later.data.products).toMatchObject([
      { position: 3, cells: { cloud: '12.0 %', tile: expect.stringContaining('32TMT') } },
      { position: 2, cells: { cloud: '12.0 %', place: 'northern Italy' } },
    ]);
  });

  it('delays the rows of a filter; a rebuilt index does not repeat them', async () => {
    const products = createIndex();
    const { live, add } = await openGrowing({ products, liveLimits: { frameMs: 5 } });
    const stream = await live('?filter=Online%20eq%20true');
    const other = await live();
    await Promise.all([stream.next(), other.next()]);
    add(2);
    expect(positions(await other.next())).toEqual([3, 2]);
    products.position = 3;
    expect(positions(await stream.next())).toEqual([3, 2]);
    for (const position of [0, 1, 2, 3]) {
      products.position = position;
      add(1);
      await expect.poll(() => other.events.at(-1)?.data.indexedPosition ?? 0).toBe(position);
    }
    products.position = 4;
    expect(positions(await stream.next())).toEqual([4]);
  });
});
