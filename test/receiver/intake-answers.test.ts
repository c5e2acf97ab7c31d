/** What the receiver answers to a POST with the right credentials, and what is in the store then. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../src/domain/app-error.ts';
import type { Intake } from '../../src/domain/ports.ts';
import { goodNotification } from './good-notification.ts';
import { exchange } from './raw-client.ts';
import { collect, startReceiver, startReceiverWith } from './running-receiver.ts';

describe('a notification', () => {
  it('is answered "stored" the first time and "duplicate" after, and is one row', async () => {
    const receiver = await startReceiver();
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

  it('with a known AckId and other content is a duplicate, held and logged once', async () => {
    const receiver = await startReceiver();
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
        message: 'body put in quarantine',
        fields: { quarantineId: 1, reason: 'ack-id-reused', requestId: expect.any(String) },
      },
    ]);
  });

  it('is stored under any Content-Type and without one', async () => {
    const receiver = await startReceiver();
    const types = ['application/json; charset=utf-8', 'text/plain', 'multipart/form-data', 'x', ''];
    for (const contentType of types) {
      const { body } = goodNotification();
      const headers = { 'Content-Type': contentType };
      const answer = await exchange(receiver, { body, headers });
      expect([contentType, answer.body]).toEqual([contentType, '{"status":"stored"}']);
    }
    expect((await receiver.store.counts()).notifications).toBe(types.length);
  });

  it('is stored once when twenty copies of it arrive at the same time', async () => {
    const receiver = await startReceiver();
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
  it('is a duplicate only when all of its items are', async () => {
    const receiver = await startReceiver();
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

  it('with an item that is no notification is answered 400; the others are stored, all is kept', async () => {
    const receiver = await startReceiver();
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
    const [held] = await collect(receiver.store.quarantined({ released: false }));
    const entry = await receiver.store.quarantineEntry(held?.id ?? 0);
    expect(Buffer.from(entry.body).toString()).toBe(whole);
  });
});

describe('a body that is no notification', () => {
  const oddBytes = Buffer.from([0, 255, 123, 13, 10, 192, 175, 34]);
  it.each<[string, string | Buffer, string]>([
    ['nothing at all', '', 'empty-body'],
    ['white space', ' \r\n\t ', 'empty-body'],
    ['no JSON', '{"SubscriptionEvent":', 'not-json'],
    ['arbitrary bytes', oddBytes, 'not-json'],
    ['a number', '42', 'not-an-object'],
    ['null', 'null', 'not-an-object'],
    ['an empty array', '[]', 'empty-array'],
    ['an object without event', '{"ProductId":"x"}', 'event-missing'],
    ['an object without product', '{"SubscriptionEvent":"created"}', 'product-id-missing'],
    ['a prototype trick', '{"__proto__":{"SubscriptionEvent":"created"}}', 'event-missing'],
    ['deep nesting', '['.repeat(200_000), 'not-json'],
  ])('(%s) is answered 400 and kept as it came', async (_name, body, reason) => {
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
    const [held] = await collect(receiver.store.quarantined({ released: false }));
    expect(held).toMatchObject({ reason, subscription: 's1' });
    const entry = await receiver.store.quarantineEntry(held?.id ?? 0);
    expect(Buffer.from(entry.body)).toEqual(Buffer.from(body));
  });

  it('is kept with its headers but without any credentials', async () => {
    const receiver = await startReceiver();
    const headers = {
      'Content-Type': 'text/odd',
      'X-Copy': 'one',
      'x-copy': 'two',
      Cookie: 'session=secret',
      'PROXY-Authorization': 'Basic c2VjcmV0',
    };
    const answer = await exchange(receiver, { body: '{', headers });
    expect(answer.status).toBe(400);
    const [held] = await collect(receiver.store.quarantined({ released: false }));
    const entry = await receiver.store.quarantineEntry(held?.id ?? 0);
    const kept = JSON.stringify(entry.headers);
    for (const part of ['text/odd', 'X-Copy', 'one', 'x-copy', 'two', 'localhost']) {
      expect(kept).toContain(part);
    }
    expect(kept).not.toMatch(/authorization|cookie|secret|c2VjcmV0|Basic/i);
  });

  it('is named in the log by the request id that the sender was told', async () => {
    const receiver = await startReceiver();
    const { requestId } = JSON.parse((await exchange(receiver, { body: '{' })).body);
    expect(receiver.log).toContainEqual({
      level: 'warn',
      message: 'body put in quarantine',
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
    'is answered 503 with Retry-After to %s, and its reason stays inside',
    async (method) => {
      const stub = await startReceiverWith(failing(new AppError('unavailable', reason)));
      const body = method === 'POST' ? { body: goodNotification().body } : {};
      const answer = await exchange(stub, { method, ...body });
      expect(answer.status).toBe(503);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(answer.body).not.toContain('disk');
      if (method !== 'HEAD') expect(JSON.parse(answer.body)).toMatchObject({ status: 503 });
      expect(JSON.stringify(stub.log)).toContain('nothing can be stored');
      expect(stub.outcomes).toEqual(['unavailable']);
    },
  );

  it('with a fault of our own is answered 500 without a word of it', async () => {
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
