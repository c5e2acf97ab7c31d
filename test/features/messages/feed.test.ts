/** `/api/feed` on real sockets: the past, then new notifications; rules, limits, failures and the end. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import type { ApiRoute } from '../../../src/core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../../src/core/api/listener-slot.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { NotificationLog, NotificationRow } from '../../../src/core/terms/ports.ts';
import { documentOf } from '../../../src/features/messages/document.ts';
import type { StreamLimits } from '../../../src/features/messages/event-stream.ts';
import { formatNames } from '../../../src/features/messages/formats.ts';
import { feedRoute } from '../../../src/features/messages/listener.ts';
import { createMemoryLog, notificationRow, openConsole } from '../../core/api/console-context.ts';
import { openSeeded } from '../../core/page/seeded-receiver.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { openFeed } from './feed-client.ts';

const recordAt = (position: number) => ({
  Id: `product-${position - 1}`,
  Name: position % 10 === 0 ? `S1A_${position}` : `S2A_${position}`,
});

/** Positions from 1. */
const to = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

/** A listener over a log in memory that grows. */
async function openGrowing(count: number, limits: Partial<StreamLimits> = {}) {
  const rows: NotificationRow[] = [];
  const add = (more: number) => {
    for (let i = 0; i < more; i += 1) {
      const position = (rows.at(-1)?.position ?? 0) + 1;
      const event = position % 4 === 0 ? 'deleted' : 'created';
      const subscription = position % 5 === 0 ? 'rhine' : 'alps';
      rows.push(notificationRow(position, { event, subscription, receivedAtUs: position * 1e6 }));
    }
  };
  add(count);
  const memory = createMemoryLog(rows);
  const encoder = new TextEncoder();
  const notifications = {
    ...memory,
    find: vi.fn<NotificationLog['find']>(async function* ({ sinceUs = 0, limit, ...query }) {
      let left = limit ?? Number.POSITIVE_INFINITY;
      for await (const row of memory.find(query)) {
        if (row.receivedAtUs < sinceUs) continue;
        left -= 1;
        if (left < 0) return;
        yield row;
      }
    }),
    body: vi.fn(
      async (position: number): Promise<Uint8Array> =>
        encoder.encode(JSON.stringify({ value: recordAt(position) })),
    ),
    lastPosition: vi.fn(memory.lastPosition),
  };
  const all = { readersMax: 64, frameMs: 20, unreadMs: 30_000, ...limits };
  const log = { ...silentLog, debug: vi.fn(), error: vi.fn() };
  const routes = (parts: ConsoleParts): ServedRoute[] => {
    route = feedRoute(parts, all);
    return [{ route, line: 'none' }];
  };
  let route: ApiRoute | undefined;
  const context = await openConsole({ ...{ notifications, log }, slots: [{ routes }] });
  const client = { headers: new Headers(), disconnect: () => undefined };
  const respond = async (gone: AbortSignal) =>
    route?.respond(new URL(`${context.origin}/api/feed`), gone, client);
  const feed = (search = '', headers = {}) =>
    openFeed(`${context.origin}/api/feed${search}`, headers);
  return { ...context, ...{ rows, notifications, add, feed, log, respond } };
}

describe('the feed', () => {
  it('sends the whole past, then each new notification, as documented', async () => {
    const { feed, add, rows, get: ask } = await openGrowing(250);
    const reader = await feed('?after=0');
    expect(reader.status).toBe(200);
    expect(reader.headers.get('content-type')).toBe('text/event-stream');
    await reader.expectPositions(to(250));
    add(120);
    await reader.expectPositions(to(370));
    const { json } = await ask('/api/openapi.json');
    const { content } = json.paths['/api/feed'].get.responses[200];
    const schema = z.fromJSONSchema(content['text/event-stream'].schema);
    for (const [i, message] of reader.messages().entries()) {
      const row = rows[i] ?? expect.fail();
      const record = recordAt(row.position);
      expect(message).toEqual(documentOf({ row, record, sink: 'feed', replayId: null }));
      expect(schema.safeParse(message).error).toBeUndefined();
    }
  });

  it.each<[string, number[], Record<string, string>?]>([
    ['', []],
    ['?after=5', [6, 7, 8]],
    ['?since=1970-01-01T00:00:07Z', [7, 8]],
    ['?since=1970-01-01T01:00:00Z', []],
    ['?after=5', [8], { 'Last-Event-ID': '7' }],
    ['?since=1970-01-01T00:00:07Z', [3, 4, 5, 6, 7, 8], { 'Last-Event-ID': '2' }],
    ['?after=99', []],
    ['?after=0&event=deleted', [4, 8]],
    ['?after=0&event=deleted,modified&subscription=alps', [4, 8]],
    ['?after=0&subscription=rhine', [5]],
    ["?after=0&filter=Name eq 'S2A_3'", [3]],
    ['?after=0&maxAge=30d&format=stac&stacIds=catalogue', to(8)],
  ])('%s starts and selects: %j', async (search, positions, headers = {}) => {
    const { feed, add } = await openGrowing(8);
    const reader = await feed(search, headers);
    await expect.poll(() => reader.blocks.length).toBeGreaterThan(positions.length);
    expect(reader.positions()).toEqual(positions);
    // Nothing that arrives later is missing.
    if (search !== '') return;
    add(1);
    await reader.expectPositions([9]);
  });

  it.each<[string, RegExp, Record<string, string>?]>([
    ['?after=1&since=2026-01-01', /Use after or since, not both/],
    ['?after=-1', /after/],
    ['?since=now', /since/],
    ['?event=created,lost', /event/],
    ['?format=xml', /format/],
    ['?stacIds=mine', /stacIds/],
    ['?maxAge=old', /must be an age in hours/],
    ['?filter=Name', /One error in the filter for Products/],
    ['?position=1', /position/],
    ['', /Last-Event-ID must be a position/, { 'Last-Event-ID': 'x' }],
    ['', /Last-Event-ID must be a position/, { 'Last-Event-ID': '1e3' }],
  ])('refuses %s', async (search, reason, headers = {}) => {
    const { get: ask } = await openGrowing(1);
    const { status, text } = await ask(`/api/feed${search}`, { headers });
    expect(status).toBe(400);
    expect(text).toMatch(reason);
  });

  it.each(formatNames)('sends the format %s on one line', async (format) => {
    const { feed } = await openGrowing(3);
    const reader = await feed(`?after=0&format=${format}`);
    await reader.expectPositions([1, 2, 3]);
    const [first, second] = reader.messages();
    expect(first.id).not.toBe(second.id);
  });

  it('moves the position of a reader for which nothing is selected', async () => {
    const { feed, add } = await openGrowing(9, { idleMs: 30 });
    const reader = await feed("?after=0&filter=startswith(Name,'S1A')");
    await expect.poll(() => reader.blocks[0]).toEqual({ id: 0, data: null });
    await expect.poll(() => reader.blocks.at(-1)).toEqual({ id: 9, data: null });
    add(2);
    await reader.expectPositions([10]);
    await expect.poll(() => reader.blocks.at(-1)).toEqual({ id: 11, data: null });
  });

  it('moves the position while a long past is searched', async () => {
    const { feed, notifications } = await openGrowing(150, { idleMs: 0 });
    const waiting = Promise.withResolvers<void>();
    const read = notifications.body.getMockImplementation() ?? expect.fail();
    notifications.body.mockImplementation(async (position) => {
      if (position > 100) await waiting.promise;
      return read(position);
    });
    const reader = await feed("?after=0&filter=Name eq 'S1A_150'");
    await expect.poll(() => reader.blocks.at(-1)).toEqual({ id: 100, data: null });
    waiting.resolve();
    await reader.expectPositions([150]);
  });

  it('has at most 64 readers; the next one gets 503 until one leaves', async () => {
    const { feed, get: ask } = await openGrowing(1);
    for (let i = 0; i < 70; i += 1)
      expect(await ask('/api/feed', { method: 'HEAD' })).toMatchObject({ status: 200 });
    const readers = await Promise.all(Array.from({ length: 64 }, () => feed()));
    expect(readers.map(({ status }) => status)).toEqual(Array(64).fill(200));
    const refused = await ask('/api/feed');
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(refused.json.detail).toMatch('already 64 readers of the feed, the maximum. Close one');
    readers[0]?.close();
    await expect.poll(async () => (await feed()).status).toBe(200);
  });

  it('keeps no place for a client that left before its stream was opened', async () => {
    const { feed, respond } = await openGrowing(1, { readersMax: 1 });
    await expect(respond(AbortSignal.abort())).rejects.toThrow();
    expect((await feed()).status).toBe(200);
  });

  it('reads once for all readers, and nothing without one', async () => {
    const { feed, notifications, add } = await openGrowing(150);
    expect(notifications.lastPosition).not.toHaveBeenCalled();
    const beganMs = performance.now();
    const formats = ['document', 'stac', 'cloudevents', 'cloudevents-document'] as const;
    const readers = await Promise.all(
      [...formats, ...formats].map((format) => feed(`?after=0&format=${format}`)),
    );
    for (const reader of readers) await reader.expectPositions(to(150));
    add(10);
    for (const reader of readers) await reader.expectPositions(to(160));
    const readings = (performance.now() - beganMs) / 19 + 1;
    expect(notifications.lastPosition.mock.calls.length).toBeLessThanOrEqual(readings);
    const messages = readers.map((reader) => JSON.stringify(reader.messages()[0]));
    expect(new Set(messages).size).toBe(formats.length);
    const bodies = notifications.body.mock.calls.map(([position]) => position);
    expect(bodies.toSorted((a, b) => a - b)).toEqual(to(160));
    expect(notifications.find.mock.calls.length).toBeLessThanOrEqual(4);
    for (const reader of readers) reader.close();
    await Promise.all(readers.map(({ ended }) => ended));
    const other = await openGrowing(1);
    await other.feed();
    const { lastPosition } = other.notifications;
    const untilCalled = async (more: number) => {
      const calls = lastPosition.mock.calls.length;
      await expect.poll(() => lastPosition.mock.calls.length).toBeGreaterThan(calls + more);
    };
    await untilCalled(2);
    const calls = notifications.lastPosition.mock.calls.length;
    await untilCalled(3);
    expect(notifications.lastPosition.mock.calls.length).toBe(calls);
  });

  it('disconnects a reader that does not read, and no other; it resumes at its position', async () => {
    const limits = { unreadMs: 500, readersMax: 2 };
    const { feed, notifications, origin, get: ask } = await openGrowing(200, limits);
    const padding = 'x'.repeat(100_000);
    notifications.body.mockImplementation(async (position) =>
      Buffer.from(JSON.stringify({ value: { ...recordAt(position), padding } })),
    );
    const other = await feed('?after=199');
    const request = get(`${origin}/api/feed?after=0`);
    onTestFinished(() => void request.destroy());
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const statusOfThird = async () => (await ask('/api/feed', { method: 'HEAD' })).status;
    expect(await statusOfThird()).toBe(503);
    await expect.poll(statusOfThird).toBe(200);
    let text = '';
    answer.on('error', () => undefined).setEncoding('utf8');
    await new Promise((resolve) =>
      answer.on('data', (part) => (text += part)).on('close', resolve),
    );
    const ids = [...text.matchAll(/^id: (\d+)\ndata: .*\n\n/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(to(ids.length));
    expect(ids.length).toBeLessThan(200);
    await other.expectPositions([200]);
    const resumed = await feed('', { 'Last-Event-ID': String(ids.length) });
    await resumed.expectPositions(to(200).slice(ids.length));
  });

  it('keeps readers while the store cannot be read, and continues without a gap', async () => {
    const { feed, notifications, add, log } = await openGrowing(30);
    const reader = await feed('?after=0');
    await reader.expectPositions(to(30));
    const { body, lastPosition } = notifications;
    const [readBody, readLast] = [
      body.getMockImplementation(),
      lastPosition.getMockImplementation(),
    ];
    const unavailable = () => Promise.reject(new AppError('unavailable', 'The disk is away.'));
    lastPosition.mockImplementation(unavailable);
    add(10);
    await expect.poll(() => log.debug.mock.calls.length).toBeGreaterThan(1);
    lastPosition.mockImplementation(readLast ?? expect.fail());
    // Fails within a page, after some of its rows.
    body.mockImplementation((position) =>
      position < 36 ? Promise.resolve(Buffer.from('{"value":{}}')) : unavailable(),
    );
    const failures = log.debug.mock.calls.length;
    await expect.poll(() => log.debug.mock.calls.length).toBeGreaterThan(failures + 2);
    body.mockImplementation(readBody ?? expect.fail());
    await reader.expectPositions(to(40));
    // Another fault ends the stream: the reader connects again.
    lastPosition.mockRejectedValue(new Error('a fault'));
    await reader.ended;
    expect(log.error).toHaveBeenCalledOnce();
  });

  it('skips pruned notifications, and sends those with a damaged body without their record', async () => {
    const { feed, notifications, rows } = await openGrowing(12, { idleMs: 30 });
    rows.splice(0, 4);
    // The newest notification was pruned after the last position was read.
    notifications.lastPosition.mockResolvedValue(13);
    const facts = { isDamaged: true };
    const bodies = new Map([
      [7, () => Promise.reject(new AppError('not_found', 'The log has no position 7.'))],
      [8, () => Promise.reject(new AppError('unavailable', 'A body is damaged.', { facts }))],
      [9, async () => Buffer.from('{')],
    ]);
    const read = notifications.body.getMockImplementation() ?? expect.fail();
    notifications.body.mockImplementation(
      (position): Promise<Uint8Array> => bodies.get(position)?.() ?? read(position),
    );
    const reader = await feed('?after=2');
    await reader.expectPositions([5, 6, 8, 9, 10, 11, 12]);
    await expect.poll(() => reader.blocks.at(-1)).toEqual({ id: 13, data: null });
    const values = reader.messages().map(({ value }) => value);
    expect(values).toEqual(
      [5, 6, 8, 9, 10, 11, 12].map((one) => ([8, 9].includes(one) ? null : recordAt(one))),
    );
  });

  it('sends a record that a format cannot write without its value', async () => {
    const { feed, notifications } = await openGrowing(2);
    const value = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
    notifications.body.mockImplementation(async () => Buffer.from(`{"value":${value}}`));
    const reader = await feed('?after=0');
    await reader.expectPositions([1, 2]);
    expect(reader.messages().map((message) => message.value)).toEqual([null, null]);
  });

  it('ends with the receiver', async () => {
    const seeded = await openSeeded({ products: 20 });
    onTestFinished(() => seeded.close());
    const reader = await openFeed(`${seeded.url}/api/feed?after=0`);
    await expect.poll(() => reader.positions().length).toBeGreaterThan(19);
    const closedMs = performance.now();
    await seeded.receiver.close();
    await reader.ended;
    expect(performance.now() - closedMs).toBeLessThan(1_500);
    await seeded.restart();
  });
});
