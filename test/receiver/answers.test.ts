/**
 * Responses of the receiver to a POST with the right credentials, and the resulting state of the
 * store.
 */
import { describe, expect } from 'vitest';
import { AppError } from '../../src/core/terms/app-error.ts';
import type { Intake } from '../../src/core/terms/ports.ts';
import { collect } from '../helpers/deliveries.ts';
import {
  type Answer,
  exchange,
  expectStillAcceptsNotifications,
  goodNotification,
  type RequestParts,
} from './raw-client.ts';
import { it, startReceiver, startReceiverWith, type TestReceiver } from './running-receiver.ts';

describe('a notification', () => {
  it('is answered "stored" the first time and "duplicate" after that, and is one row', async ({
    receiver,
  }) => {
    const { ackId, productId, body } = goodNotification();
    const answers = [];
    for (let i = 0; i < 3; i += 1) answers.push(await exchange(receiver, { body }));
    expect(answers.map((answer) => [answer.status, answer.body])).toEqual([
      [200, '{"status":"stored"}'],
      [200, '{"status":"duplicate"}'],
      [200, '{"status":"duplicate"}'],
    ]);
    expect(answers[0]?.headers['content-type']).toMatch(/^application\/json/);
    expect(await receiver.store.counts()).toEqual({
      notifications: 1,
      duplicates: 2,
      quarantined: 0,
    });
    const [row, ...others] = await collect(receiver.store.find({ ackId }));
    expect(others).toEqual([]);
    expect(row).toMatchObject({ productId, timesSeen: 3, receivedAtUs: receiver.clock.us });
    const kept = await receiver.store.body(row?.position ?? 0);
    expect(Buffer.from(kept).toString()).toBe(body);
  });

  it('with a known AckId and other content is a duplicate, quarantined and logged once', async ({
    receiver,
  }) => {
    const { ackId, body } = goodNotification();
    const other = JSON.stringify({ ...JSON.parse(body), AckId: ackId, ProductName: 'another' });
    for (const [sent, status] of [
      [body, 'stored'],
      [other, 'duplicate'],
      [other, 'duplicate'],
    ] as const) {
      expect((await exchange(receiver, { body: sent })).body).toBe(`{"status":"${status}"}`);
    }
    expect((await receiver.store.counts()).quarantined).toBe(1);
    const warned = receiver.log.filter(({ level }) => level === 'warn');
    expect(warned).toMatchObject([
      {
        message: 'quarantined body',
        fields: { quarantineId: 1, reason: 'ack-id-reused', requestId: expect.any(String) },
      },
    ]);
  });

  it('is stored under any Content-Type and without one', async ({ receiver }) => {
    const types = ['application/json; charset=utf-8', 'text/plain', 'multipart/form-data', 'x', ''];
    for (const contentType of types) {
      const { body } = goodNotification();
      const headers = { 'Content-Type': contentType };
      const answer = await exchange(receiver, { body, headers });
      expect([contentType, answer.body]).toEqual([contentType, '{"status":"stored"}']);
    }
    expect((await receiver.store.counts()).notifications).toBe(types.length);
  });

  it('is stored once when twenty copies of it arrive at the same time', async ({ receiver }) => {
    const { body } = goodNotification();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => exchange(receiver, { body })),
    );
    const stored = answers.filter((answer) => answer.body === '{"status":"stored"}');
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
    expect(stored).toHaveLength(1);
    const counts = { notifications: 1, duplicates: 19, quarantined: 0 };
    expect(await receiver.store.counts()).toEqual(counts);
  });
});

describe('an array', () => {
  it('is a duplicate only when all of its items are duplicates', async ({ receiver }) => {
    const [a, b, c] = [goodNotification(), goodNotification(), goodNotification()];
    const send = async (...items: { body: string }[]) => {
      const answer = await exchange(receiver, {
        body: `[${items.map((item) => item.body).join(',')}]`,
      });
      return [answer.status, answer.body];
    };
    expect(await send(a, b)).toEqual([200, '{"status":"stored"}']);
    expect(await send(a, c)).toEqual([200, '{"status":"stored"}']);
    expect(await send(c, b, a)).toEqual([200, '{"status":"duplicate"}']);
    const counts = { notifications: 3, duplicates: 4, quarantined: 0 };
    expect(await receiver.store.counts()).toEqual(counts);
  });

  it('with an invalid item is answered 400; the valid items and the whole body are stored', async ({
    receiver,
  }) => {
    const { ackId, body } = goodNotification();
    const whole = `[${body}, {"SubscriptionEvent":"created"}, 7]`;
    const answer = await exchange(receiver, { body: whole });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).errors).toEqual([
      expect.stringMatching(/^Item 1: .*ProductId/),
      expect.stringMatching(/^Item 2: .*object/),
    ]);
    const counts = { notifications: 1, duplicates: 0, quarantined: 1 };
    expect(await receiver.store.counts()).toEqual(counts);
    expect(await collect(receiver.store.find({ ackId }))).toHaveLength(1);
    const [quarantined] = await collect(receiver.store.quarantined({ released: false }));
    const entry = await receiver.store.quarantineEntry(quarantined?.id ?? 0);
    expect(Buffer.from(entry.body).toString()).toBe(whole);
  });
});

describe('a body that is not a notification', () => {
  const oddBytes = Buffer.from([0, 255, 123, 13, 10, 192, 175, 34]);
  it.each<[string, string | Buffer, string]>([
    ['an empty body', '', 'empty-body'],
    ['white space', ' \r\n\t ', 'empty-body'],
    ['invalid JSON', '{"SubscriptionEvent":', 'not-json'],
    ['arbitrary bytes', oddBytes, 'not-json'],
    ['a number', '42', 'not-an-object'],
    ['null', 'null', 'not-an-object'],
    ['an empty array', '[]', 'empty-array'],
    ['an object without event', '{"ProductId":"x"}', 'event-missing'],
    ['an object without product', '{"SubscriptionEvent":"created"}', 'product-id-missing'],
    ['a prototype trick', '{"__proto__":{"SubscriptionEvent":"created"}}', 'event-missing'],
    ['deep nesting', '['.repeat(200_000), 'not-json'],
  ])('(%s) is answered 400 and quarantined unchanged', async (_name, body, reason) => {
    const receiver = await startReceiver();
    const answer = await exchange(receiver, { path: '/notifications/s1', body });
    expect(answer.status).toBe(400);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    const problem = JSON.parse(answer.body);
    expect(problem).toMatchObject({ type: 'about:blank', title: 'Bad request', status: 400 });
    expect(problem.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(problem.errors).toHaveLength(1);
    const counts = { notifications: 0, duplicates: 0, quarantined: 1 };
    expect(await receiver.store.counts()).toEqual(counts);
    const [quarantined] = await collect(receiver.store.quarantined({ released: false }));
    expect(quarantined).toMatchObject({ reason, subscription: 's1' });
    const entry = await receiver.store.quarantineEntry(quarantined?.id ?? 0);
    expect(Buffer.from(entry.body)).toEqual(Buffer.from(body));
  });

  it('is quarantined with its headers but without credentials', async ({ receiver }) => {
    const headers = {
      'Content-Type': 'text/odd',
      'X-Copy': 'one',
      'x-copy': 'two',
      Cookie: 'session=secret',
      'Set-Cookie': 'session=secret',
      'PROXY-Authorization': 'Basic c2VjcmV0',
    };
    const answer = await exchange(receiver, { body: '{', headers });
    expect(answer.status).toBe(400);
    const [quarantined] = await collect(receiver.store.quarantined({ released: false }));
    const entry = await receiver.store.quarantineEntry(quarantined?.id ?? 0);
    const kept = JSON.stringify(entry.headers);
    for (const part of ['text/odd', 'X-Copy', 'one', 'x-copy', 'two', 'localhost']) {
      expect(kept).toContain(part);
    }
    expect(kept).not.toMatch(/authorization|cookie|secret|c2VjcmV0|Basic/i);
  });

  it('has the request id of the response in its log line', async ({ receiver }) => {
    const { requestId } = JSON.parse((await exchange(receiver, { body: '{' })).body);
    expect(receiver.log).toContainEqual({
      level: 'warn',
      message: 'quarantined body',
      fields: expect.objectContaining({ requestId }),
    });
  });
});

describe('a store that cannot commit', () => {
  const reason = 'disk /var/lib/earshot is full';
  const failing = (error: Error): Intake => ({
    accept: () => Promise.reject(error),
    checkWritable: () => Promise.reject(error),
  });

  it.each(['GET', 'HEAD', 'POST'])(
    'is answered 503 with Retry-After to %s, without its reason',
    async (method) => {
      const stub = await startReceiverWith(failing(new AppError('unavailable', reason)));
      const body = method === 'POST' ? { body: goodNotification().body } : {};
      const answer = await exchange(stub, { method, ...body });
      expect(answer.status).toBe(503);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(answer.body).not.toContain('disk');
      if (method !== 'HEAD') expect(JSON.parse(answer.body)).toMatchObject({ status: 503 });
      expect(JSON.stringify(stub.log)).toContain('failed to store notification');
      expect(stub.outcomes).toEqual(['unavailable']);
    },
  );

  it('with an internal error is answered 500 without its reason', async () => {
    const stub = await startReceiverWith(failing(new TypeError('secret internals')));
    const answer = await exchange(stub, { body: goodNotification().body });
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body)).toMatchObject({ status: 500, title: 'Internal error' });
    expect(answer.body).not.toMatch(/secret|TypeError|at /);
    const { requestId } = JSON.parse(answer.body);
    expect(stub.log).toContainEqual({
      level: 'error',
      message: 'request failed',
      fields: expect.objectContaining({ requestId }),
    });
  });
});

const nothing = { notifications: 0, duplicates: 0, quarantined: 0 };

/** Expects no product, version, stack trace or path in a response. */
function expectNoLeak(answer: Answer): void {
  const text = JSON.stringify(answer).toLowerCase();
  expect(answer.headers).not.toHaveProperty('server');
  expect(answer.headers).not.toHaveProperty('x-powered-by');
  expect(text).not.toMatch(/node|hono|sqlite|\.ts\b|\bat [\w.]+ \(|v\d+\.\d+/);
}

async function expectNothingWritten(receiver: TestReceiver): Promise<void> {
  expect(await receiver.store.counts()).toEqual(nothing);
}

const unknownPaths: Record<string, string> = {
  'the root': '/',
  'a longer path': '/notificationsx',
  'another case': '/Notifications',
  'an upper-case name': '/notifications/S2',
  'a name of 64 characters': `/notifications/${'a'.repeat(64)}`,
  'a name that begins with a dash': '/notifications/-s2',
  'a name with a dot': '/notifications/s2.l2a',
  'a nested name': '/notifications/s2/l2a',
  'an encoded slash': '/notifications/s2%2Fl2a',
  'an encoded zero byte': '/notifications/s2%00',
  'broken percent encoding': '/notifications/%zz',
  'two slashes': '/notifications//s2',
  'two slashes in front': '//notifications/s2',
  'the private listener': '/healthz',
  'a path of 8 kB': `/${'a/'.repeat(4_096)}`,
};

async function expectNotFound(receiver: TestReceiver, name: string, parts: RequestParts) {
  const answer = await exchange(receiver, { ...parts, body: goodNotification().body });
  expect([name, answer.status]).toEqual([name, 404]);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(JSON.parse(answer.body)).toEqual({
    type: 'about:blank',
    title: 'Not found',
    status: 404,
    // Only an authenticated sender learns the right path.
    detail:
      parts.authorization === null
        ? 'Unknown path.'
        : expect.stringMatching(/^Send notifications to \/notifications\/<name>/),
    requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  expectNoLeak(answer);
}

describe('the probe', () => {
  it('answers GET and HEAD with an empty 200 for every spelling of the path, and writes nothing', async ({
    receiver,
  }) => {
    for (const path of [
      '/notifications',
      '/notifications/',
      '/notifications/s2',
      '/notifications/s2/',
    ]) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await exchange(receiver, { method, path });
        expect({ path, ...answer }).toMatchObject({ path, status: 200, body: '' });
        expectNoLeak(answer);
      }
    }
    await expectNothingWritten(receiver);
  });

  it('answers HEAD without credentials with 401 and no body', async ({ receiver }) => {
    const answer = await exchange(receiver, { method: 'HEAD', authorization: null });
    expect(answer).toMatchObject({ status: 401, body: '' });
    expect(answer.headers).toHaveProperty('www-authenticate');
  });

  it('answers a GET that carries a body, and the next request on the connection', async ({
    receiver,
  }) => {
    const answer = await exchange(receiver, { method: 'GET', body: goodNotification().body });
    expect(answer.status).toBe(200);
    await expectNothingWritten(receiver);
    await expectStillAcceptsNotifications(receiver);
  });
});

describe('other methods', () => {
  it('are answered 405 with the allowed methods, and write nothing', async ({ receiver }) => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      for (const path of ['/notifications', '/notifications/s2-l2a']) {
        const answer = await exchange(receiver, { method, path, body: goodNotification().body });
        expect({ method, ...answer }).toMatchObject({ method, status: 405 });
        expect(answer.headers.allow).toBe('GET, HEAD, POST');
        expectNoLeak(answer);
      }
    }
    await expectNothingWritten(receiver);
  });
});

describe('other paths', () => {
  it('are answered 404 in problem JSON, with credentials or without', async ({ receiver }) => {
    for (const [name, path] of Object.entries(unknownPaths)) {
      for (const method of ['GET', 'POST', 'PUT']) {
        await expectNotFound(receiver, name, { method, path });
        await expectNotFound(receiver, name, { method, path, authorization: null });
      }
    }
    await expectNothingWritten(receiver);
  });

  it('keeps the name in the path, at its longest and shortest, and none when it is absent', async ({
    receiver,
  }) => {
    const names = ['a', '0', `a${'-'.repeat(62)}`, null];
    for (const name of names) {
      const path = name === null ? '/notifications/' : `/notifications/${name}`;
      const { body } = goodNotification();
      expect((await exchange(receiver, { path, body })).status).toBe(200);
    }
    const rows = await collect(receiver.store.find({ order: 'oldest' }));
    expect(rows.map((row) => row.subscription)).toEqual(names);
  });

  it('ignores a query string', async ({ receiver }) => {
    const { body } = goodNotification();
    const answer = await exchange(receiver, { path: '/notifications/s2?x=1&subscription=y', body });
    expect(answer.status).toBe(200);
    const [row] = await collect(receiver.store.find({}));
    expect(row?.subscription).toBe('s2');
  });
});
