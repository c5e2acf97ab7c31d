/** The stream of positions on real sockets: limits, failures and the end. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { NotificationRow } from '../../../src/core/terms/ports.ts';
import { liveRoute } from '../../../src/features/live/feed.ts';
import {
  createMemoryLog,
  createMemoryProducts,
  notificationRow,
  openConsole,
} from '../../core/api/console-context.ts';
import { openSeeded } from '../../core/page/seeded-receiver.ts';
import { silentLog } from '../../helpers/recording-log.ts';

interface StreamEvent {
  name: string;
  data: { lastPosition: number; indexedPosition: number | null };
  atMs: number;
}

/** Opens a stream; `next` resolves with the next event that was not taken yet. */
async function openStream(url: string) {
  const leaving = new AbortController();
  const close = () => leaving.abort();
  onTestFinished(close);
  const { status, headers, body } = await fetch(url, { signal: leaving.signal });
  const events: StreamEvent[] = [];
  let taken = 0;
  const collect = async () => {
    let text = '';
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const parts = `${text}${chunk}`.split('\n\n');
      text = parts.pop() ?? '';
      events.push(...parts.filter((part) => !part.startsWith(':')).map(parsed));
    }
  };
  const ended = collect().catch(() => undefined);
  return {
    ...{ status, headers: Object.fromEntries(headers), events, ended, close },
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
  return { name: field('event'), data: JSON.parse(field('data')), atMs: performance.now() };
}

/** A listener over a log in memory that grows, and an index that lags. */
async function openGrowing(options: Parameters<typeof openConsole>[0] = {}) {
  const rows: NotificationRow[] = [];
  const add = (count: number) => {
    for (let i = 0; i < count; i += 1) rows.push(notificationRow(rows.length + 1));
  };
  add(1);
  const index = { position: 1 };
  const products = {
    ...createMemoryProducts(),
    indexedPosition: async () => {
      if (index.position === 0) throw new AppError('unavailable', 'There is no index.');
      return index.position;
    },
  };
  const notifications = createMemoryLog(rows);
  const context = await openConsole({ notifications, products, ...options });
  const live = (search = '') => openStream(`${context.origin}/api/live${search}`);
  return { ...context, notifications, add, index, live };
}

describe('the live feed', () => {
  it('ends with the receiver', async () => {
    const seeded = await openSeeded({ products: 20 });
    onTestFinished(() => seeded.close());
    const stream = await openStream(`${seeded.url}/api/live`);
    await stream.next();
    // Streams end at once: other open requests have 2 s.
    const closedMs = performance.now();
    await seeded.receiver.close();
    await stream.ended;
    expect(performance.now() - closedMs).toBeLessThan(1_500);
    await seeded.restart();
  });

  it('sends the positions as documented, first the current ones, at most four times a second', async () => {
    const { get, live, add } = await openGrowing();
    const stream = await live();
    expect(stream).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    expect((await stream.next()).data).toEqual({ lastPosition: 1, indexedPosition: 1 });
    const timer = setInterval(() => add(1), 10);
    onTestFinished(() => clearInterval(timer));
    await expect.poll(() => stream.events.length, { timeout: 5_000 }).toBeGreaterThan(5);
    const times = stream.events.map(({ atMs }) => atMs);
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan((times.length - 1) * 245);
    const document = (await get('/api/openapi.json')).json;
    const { content } = document.paths['/api/live'].get.responses[200];
    const schema = z.fromJSONSchema(content['text/event-stream'].schema);
    for (const { name, data } of stream.events) {
      expect(name).toBe('update');
      expect(schema.safeParse(data).error).toBeUndefined();
    }
    expect((await live('?rows=0')).status).toBe(400);
  });

  it('reports the progress of the index, its absence, and an older log', async () => {
    const rows = [1, 2, 3].map((position) => notificationRow(position));
    const { live, index } = await openGrowing({ notifications: createMemoryLog(rows) });
    const stream = await live();
    expect((await stream.next()).data).toEqual({ lastPosition: 3, indexedPosition: 1 });
    index.position = 3;
    expect((await stream.next()).data).toEqual({ lastPosition: 3, indexedPosition: 3 });
    index.position = 0;
    expect((await stream.next()).data).toEqual({ lastPosition: 3, indexedPosition: null });
    rows.pop();
    expect((await stream.next()).data).toEqual({ lastPosition: 2, indexedPosition: null });
  });

  it('reads once for all viewers', async () => {
    const memory = createMemoryLog([notificationRow(1)]);
    const lastPosition = vi.fn(memory.lastPosition);
    const { live } = await openGrowing({ notifications: { ...memory, lastPosition } });
    const beganMs = performance.now();
    const streams = await Promise.all(Array.from({ length: 8 }, () => live()));
    await Promise.all(streams.map((stream) => stream.next()));
    await expect.poll(() => lastPosition.mock.calls.length).toBeGreaterThan(3);
    const readings = (performance.now() - beganMs) / 245 + 1;
    expect(lastPosition.mock.calls.length).toBeLessThanOrEqual(readings);
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

  it('disconnects a viewer that does not read, and no other', async () => {
    const notifications = createMemoryLog([notificationRow(1)]);
    const lastPosition = async () => Math.round(performance.now());
    const { signal: closing } = new AbortController();
    const route = liveRoute(
      {
        ...{ notifications: { ...notifications, lastPosition }, products: createMemoryProducts() },
        ...{ log: silentLog, closing },
      },
      { frameMs: 5, readersMax: 2, unreadMs: 300 },
    );
    const open = async () => {
      const gone = new AbortController();
      onTestFinished(() => gone.abort());
      const disconnect = vi.fn(() => gone.abort());
      const client = { disconnect, headers: new Headers() };
      const { body } = (await route.respond(new URL('http://h/'), gone.signal, client)) as Response;
      return { disconnect, reader: body?.getReader() ?? expect.fail() };
    };
    const [stalled, other] = [await open(), await open()];
    await expect(open()).rejects.toThrow('already 2 live streams');
    await stalled.reader.read();
    const beganMs = performance.now();
    while (stalled.disconnect.mock.calls.length === 0) await other.reader.read();
    expect(performance.now() - beganMs).toBeGreaterThan(250);
    await open();
    expect(other.disconnect).not.toHaveBeenCalled();
  });

  it('keeps viewers while the store cannot be read, and sends the positions later', async () => {
    const memory = await openGrowing();
    let failure: Error | null = null;
    const notifications = {
      ...memory.notifications,
      lastPosition: async () => {
        if (failure !== null) throw failure;
        return memory.notifications.lastPosition();
      },
    };
    const [failed, broken] = [vi.fn(), vi.fn()];
    const log = { ...silentLog, debug: failed, error: broken };
    const { origin } = await openConsole({ notifications, log });
    const stream = await openStream(`${origin}/api/live`);
    await stream.next();
    failure = new AppError('unavailable', 'The store cannot be read now.');
    memory.add(2);
    await expect.poll(() => failed.mock.calls.length).toBeGreaterThan(1);
    failure = null;
    expect((await stream.next()).data.lastPosition).toBe(3);
    // Another fault ends the stream: the viewer connects again.
    failure = new Error('a fault');
    await stream.ended;
    expect(broken).toHaveBeenCalledOnce();
  });
});
