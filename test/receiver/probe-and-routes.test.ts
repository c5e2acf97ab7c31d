/** What the receiver answers to probes, to other methods and on other paths. */
import { describe, expect, it } from 'vitest';
import type { Answer } from './answer-reader.ts';
import { expectStillTakesNotifications, goodNotification } from './good-notification.ts';
import { exchange, type RequestParts } from './raw-client.ts';
import { collect, startReceiver, type TestReceiver } from './running-receiver.ts';

const nothing = { notifications: 0, duplicates: 0, quarantined: 0 };

/** No product, version, stack or path of ours stands in an answer. */
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
  'a longer word': '/notificationsx',
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
  'the private face': '/healthz',
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
    // Only who knows the password is told where to go.
    detail:
      parts.authorization === null
        ? 'There is nothing here.'
        : expect.stringMatching(/^Notifications go to \/notifications\/<name>/),
    requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  expectNoLeak(answer);
}

describe('the probe', () => {
  it('answers GET and HEAD with an empty 200 on every spelling of the path, and writes nothing', async () => {
    const receiver = await startReceiver();
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

  it('answers HEAD without credentials with 401 and no body', async () => {
    const receiver = await startReceiver();
    const answer = await exchange(receiver, { method: 'HEAD', authorization: null });
    expect(answer).toMatchObject({ status: 401, body: '' });
    expect(answer.headers).toHaveProperty('www-authenticate');
  });

  it('answers a GET that carries a body, and the next request on the connection', async () => {
    const receiver = await startReceiver();
    const answer = await exchange(receiver, { method: 'GET', body: goodNotification().body });
    expect(answer.status).toBe(200);
    await expectNothingWritten(receiver);
    await expectStillTakesNotifications(receiver);
  });
});

describe('other methods', () => {
  it('are answered 405 with those that are allowed, and write nothing', async () => {
    const receiver = await startReceiver();
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
  it('are answered 404 in problem JSON, with credentials or without', async () => {
    const receiver = await startReceiver();
    for (const [name, path] of Object.entries(unknownPaths)) {
      for (const method of ['GET', 'POST', 'PUT']) {
        await expectNotFound(receiver, name, { method, path });
        await expectNotFound(receiver, name, { method, path, authorization: null });
      }
    }
    await expectNothingWritten(receiver);
  });

  it('keeps the name in the path, at its longest and shortest, and none where there is none', async () => {
    const receiver = await startReceiver();
    const names = ['a', '0', `a${'-'.repeat(62)}`, null];
    for (const name of names) {
      const path = name === null ? '/notifications/' : `/notifications/${name}`;
      const { body } = goodNotification();
      expect((await exchange(receiver, { path, body })).status).toBe(200);
    }
    const rows = await collect(receiver.store.find({ order: 'oldest' }));
    expect(rows.map((row) => row.subscription)).toEqual(names);
  });

  it('takes no notice of a query string', async () => {
    const receiver = await startReceiver();
    const { body } = goodNotification();
    const answer = await exchange(receiver, { path: '/notifications/s2?x=1&subscription=y', body });
    expect(answer.status).toBe(200);
    const [row] = await collect(receiver.store.find({}));
    expect(row?.subscription).toBe('s2');
  });
});
