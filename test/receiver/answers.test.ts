/**
 * Responses of the receiver to a request with the right credentials, and the resulting state of the
 * store.
 */
import { describe, expect } from 'vitest';
import { AppError } from '../../src/core/terms/app-error.ts';
import { collect } from '../helpers/deliveries.ts';
import {
  type Answer,
  exchange,
  expectStillAcceptsNotifications,
  goodNotification,
} from './raw-client.ts';
import { it, type TestReceiver } from './running-receiver.ts';

const none = { notifications: 0, duplicates: 0, quarantined: 0 };

/** Returns the quarantined entries, newest first. */
async function quarantinedIn({ store }: TestReceiver) {
  const entries = await collect(store.quarantined({}));
  return Promise.all(entries.map(({ id }) => store.quarantineEntry(id)));
}

describe('a notification', () => {
  it('is answered "stored" the first time and "duplicate" after that, and is one row', async ({
    receiver,
  }) => {
    const { ackId, productId, body } = goodNotification();
    const answers: Answer[] = [];
    for (let i = 0; i < 3; i += 1) answers.push(await exchange(receiver, { body }));
    expect(answers.map((answer) => [answer.status, answer.body])).toEqual([
      [200, '{"status":"stored"}'],
      [200, '{"status":"duplicate"}'],
      [200, '{"status":"duplicate"}'],
    ]);
    expect(answers[0]?.headers['content-type']).toMatch(/^application\/json/);
    expect(await receiver.store.counts()).toEqual({ ...none, notifications: 1, duplicates: 2 });
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
    const answers = [];
    for (const sent of [body, other, other])
      answers.push((await exchange(receiver, { body: sent })).body);
    const duplicate = '{"status":"duplicate"}';
    expect(answers).toEqual(['{"status":"stored"}', duplicate, duplicate]);
    expect((await receiver.store.counts()).quarantined).toBe(1);
    const fields = { quarantineId: 1, reason: 'ack-id-reused', requestId: expect.any(String) };
    const warned = receiver.log.filter(({ level }) => level === 'warn');
    expect(warned).toMatchObject([{ message: 'quarantined body', fields }]);
  });

  it('keeps the name in its path, and none when it is absent; a query string is ignored', async ({
    receiver,
  }) => {
    const names = ['a', '0', `a${'-'.repeat(62)}`, null];
    for (const name of names) {
      const path = `/notifications/${name ?? ''}?x=1&subscription=y`;
      expect((await exchange(receiver, { path, ...goodNotification() })).status).toBe(200);
    }
    const rows = await collect(receiver.store.find({ order: 'oldest' }));
    expect(rows.map((row) => row.subscription)).toEqual(names);
  });
});

it('an array with an invalid item is answered 400; the valid items and the whole body are stored', async ({
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
  expect(await receiver.store.counts()).toEqual({ ...none, notifications: 1, quarantined: 1 });
  expect(await collect(receiver.store.find({ ackId }))).toHaveLength(1);
  const [entry] = await quarantinedIn(receiver);
  expect(Buffer.from(entry?.body ?? []).toString()).toBe(whole);
});

describe('a body that is not a notification', () => {
  it('is answered 400 with its fault, and quarantined unchanged', async ({ receiver }) => {
    const bodies: [string | Buffer, string][] = [
      ['', 'empty-body'],
      [Buffer.from([0, 255, 123, 13, 10, 192, 175, 34]), 'not-json'],
      ['42', 'not-an-object'],
    ];
    for (const [body, reason] of bodies) {
      const answer = await exchange(receiver, { path: '/notifications/s1', body });
      expect(answer.headers['content-type']).toBe('application/problem+json');
      const problem = JSON.parse(answer.body);
      expect(problem).toMatchObject({ type: 'about:blank', title: 'Bad request', status: 400 });
      expect(problem.errors).toHaveLength(1);
      const [entry] = await quarantinedIn(receiver);
      expect(entry).toMatchObject({ reason, subscription: 's1' });
      expect(Buffer.from(entry?.body ?? [])).toEqual(Buffer.from(body));
      const fields = expect.objectContaining({ requestId: problem.requestId });
      const line = { level: 'warn', message: 'quarantined body', fields };
      expect(receiver.log).toContainEqual(line);
    }
    const quarantined = bodies.length;
    expect(await receiver.store.counts()).toEqual({ ...none, quarantined });
  });

  it('is quarantined with its headers but without credentials', async ({ receiver }) => {
    const secrets = { Cookie: 'session=secret', 'Set-Cookie': 'session=secret' };
    const usual = { 'Content-Type': 'text/odd', 'X-Copy': 'one', 'x-copy': 'two' };
    const headers = { ...usual, ...secrets, 'PROXY-Authorization': 'Basic c2VjcmV0' };
    expect((await exchange(receiver, { body: '{', headers })).status).toBe(400);
    const [entry] = await quarantinedIn(receiver);
    const kept = JSON.stringify(entry?.headers);
    for (const part of ['text/odd', 'X-Copy', 'one', 'x-copy', 'two', 'localhost'])
      expect(kept).toContain(part);
    expect(kept).not.toMatch(/authorization|cookie|secret|c2VjcmV0|Basic/i);
  });
});

describe('a store that fails', () => {
  const failWith = ({ store }: TestReceiver, error: Error) => {
    store.accept = () => Promise.reject(error);
    store.checkWritable = () => Promise.reject(error);
  };

  it.for(['GET', 'HEAD', 'POST'])(
    'for want of space is answered 503 with Retry-After to %s, without its reason',
    async (method, { receiver }) => {
      failWith(receiver, new AppError('unavailable', 'disk /var/lib/earshot is full'));
      const body = method === 'POST' ? { body: goodNotification().body } : {};
      const answer = await exchange(receiver, { method, ...body });
      expect(answer.status).toBe(503);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(answer.body).not.toContain('disk');
      expect(JSON.stringify(receiver.log)).toContain('failed to store notification');
    },
  );

  it('by an internal error is answered 500 without its reason', async ({ receiver }) => {
    failWith(receiver, new TypeError('secret internals'));
    const answer = await exchange(receiver, { body: goodNotification().body });
    const { requestId, ...problem } = JSON.parse(answer.body);
    expect(problem).toMatchObject({ status: 500, title: 'Internal error' });
    expect(answer.body).not.toMatch(/secret|TypeError|at /);
    const fields = expect.objectContaining({ requestId });
    const line = { level: 'error', message: 'request failed', fields };
    expect(receiver.log).toContainEqual(line);
  });
});

/** Expects no product, version, stack trace or path in a response. */
function expectNoLeak(answer: Answer): void {
  const text = JSON.stringify(answer).toLowerCase();
  expect(answer.headers).not.toHaveProperty('server');
  expect(answer.headers).not.toHaveProperty('x-powered-by');
  expect(text).not.toMatch(/node|hono|sqlite|\.ts\b|\bat [\w.]+ \(|v\d+\.\d+/);
}

describe('a request that is no notification, and writes nothing:', () => {
  it('GET and HEAD get an empty 200 for every spelling of the path, also with a body', async ({
    receiver,
  }) => {
    for (const end of ['', '/', '/s2', '/s2/']) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await exchange(receiver, { method, path: `/notifications${end}` });
        expect({ end, ...answer }).toMatchObject({ end, status: 200, body: '' });
        expectNoLeak(answer);
      }
    }
    const withBody = await exchange(receiver, { method: 'GET', ...goodNotification() });
    expect(withBody.status).toBe(200);
    const head = await exchange(receiver, { method: 'HEAD', authorization: null });
    expect(head).toMatchObject({ status: 401, body: '' });
    expect(await receiver.store.counts()).toEqual(none);
    await expectStillAcceptsNotifications(receiver);
  });

  it('other methods get 405 with the allowed ones', async ({ receiver }) => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      const path = '/notifications/s2-l2a';
      const answer = await exchange(receiver, { method, path, ...goodNotification() });
      expect({ method, ...answer }).toMatchObject({ method, status: 405 });
      expect(answer.headers.allow).toBe('GET, HEAD, POST');
      expectNoLeak(answer);
    }
    expect(await receiver.store.counts()).toEqual(none);
  });

  it('other paths get 404; only an authenticated sender learns the right one', async ({
    receiver,
  }) => {
    const paths = [
      ...['/', '/notificationsx', '/Notifications', '/notifications/S2', '/notifications/-s2'],
      ...[`/notifications/${'a'.repeat(64)}`, '/notifications/s2.l2a', '/notifications/s2/l2a'],
      ...['/notifications/s2%2Fl2a', '/notifications/s2%00', '/notifications/%zz'],
      ...['/notifications//s2', '//notifications/s2', '/healthz', `/${'a/'.repeat(4_096)}`],
    ];
    for (const path of paths) {
      for (const parts of [{}, { method: 'GET' }, { authorization: null }]) {
        const answer = await exchange(receiver, { ...parts, path, ...goodNotification() });
        expect([path, answer.status]).toEqual([path, 404]);
        expect(answer.headers['content-type']).toBe('application/problem+json');
        const { detail } = JSON.parse(answer.body);
        const isKnown = !('authorization' in parts);
        expect(/^Send notifications to \/notifications\/<name>/.test(detail)).toBe(isKnown);
        expectNoLeak(answer);
      }
    }
    expect(await receiver.store.counts()).toEqual(none);
  });
});
