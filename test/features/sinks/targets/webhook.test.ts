/** Webhooks: the request and its signature, and the meaning of each answer. */
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { webhookSignature } from '../../../../src/features/sinks/targets/webhook.ts';
import { createChain } from '../../../admin/endpoint/certificate-chain.ts';
import { collect } from '../../../helpers/deliveries.ts';
import { startHook } from '../hook-server.ts';
import { openSinkContext } from '../sink-context.ts';
import { definition } from '../sink-definition.ts';
import { createVirtualTime } from '../virtual-time.ts';

const secret = `whsec_${Buffer.from('a secret of the user, long enough').toString('base64')}`;
const webhook = (url: string, fields: { secret?: string; ca?: string } = {}) =>
  ({ kind: 'webhook', url, secret: null, ca: null, ...fields }) as const;

describe('a webhook', () => {
  it('receives the whole notification once, signed by the scheme', async () => {
    const hook = await startHook();
    const { accept, start, items, store } = await openSinkContext();
    const value = { Id: 'product-1', Name: 'S2A.SAFE', ContentLength: 8_200_000_000 };
    await accept({ value, SubscriptionEvent: 'modified' }, { subscription: 'alps' });
    start(definition(webhook(hook.url, { secret })));
    await expect.poll(() => hook.received.length).toBe(1);
    const [first] = hook.received;
    const verified = new Webhook(secret).verify(first?.body ?? '', {
      'webhook-id': String(first?.headers['webhook-id']),
      'webhook-timestamp': String(first?.headers['webhook-timestamp']),
      'webhook-signature': String(first?.headers['webhook-signature']),
    });
    const [row] = await collect(store.find({}));
    const id = `n_1_${row?.receivedAtUs.toString(36)}`;
    expect(first?.headers).toMatchObject({ 'webhook-id': id, 'content-type': 'application/json' });
    const receivedAt = expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/);
    expect(verified).toEqual({
      type: 'product.modified',
      timestamp: receivedAt,
      data: {
        id,
        notificationId: id,
        replay: false,
        sink: 'sink',
        position: 1,
        subscription: 'alps',
        event: 'modified',
        productId: 'product-1',
        productName: 'S2A_MSIL2A_000001.SAFE',
        subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
        ackId: 'ack-1',
        notificationDate: '2026-11-20T06:00:00.123000Z',
        receivedAt,
        source: 'push',
        value,
      },
    });
    await expect.poll(() => items('waiting')).toEqual([]);
    expect(await store.cursor('sink:sink')).toBe(1);
  });

  it('has the signature of the example in the specification', () => {
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
    const [timestamp, body] = ['1614265330', '{"test": 2432232314}'];
    const key = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    expect(webhookSignature(key, { id, timestamp, body })).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  it('without a secret has no signature', async () => {
    const hook = await startHook();
    const { accept, start } = await openSinkContext();
    await accept();
    start(definition(webhook(hook.url)));
    await expect.poll(() => hook.received.length).toBe(1);
    expect(hook.received[0]?.headers['webhook-signature']).toBeUndefined();
    expect(hook.received[0]?.headers['webhook-timestamp']).toMatch(/^\d{10}$/);
  });

  it('works over HTTPS with the user’s certificate authority, and not without it', async () => {
    const chain = await createChain();
    const tls = { key: chain.keyPem, cert: `${chain.leafPem}\n${chain.middlePem}` };
    const hook = await startHook({ tls });
    const { accept, start, items } = await openSinkContext();
    await accept();
    start(
      definition(webhook(hook.url, { ca: chain.rootPem, secret }), { name: 'trusting' }),
      definition(webhook(hook.url), { name: 'other' }),
    );
    await expect.poll(() => hook.received.length).toBe(1);
    expect(hook.received[0]?.data.sink).toBe('trusting');
    const errors = async () => (await items('waiting', 'other')).map(({ error }) => error);
    await expect
      .poll(errors)
      .toEqual([expect.stringContaining('the certificate is not publicly trusted')]);
  });

  it('that answers 4xx refuses the item, which is a dead letter after its attempts', async () => {
    const time = createVirtualTime();
    const statuses = [400, 402, 409, 413, 422];
    const hook = await startHook({
      answer: ({ data }, response) => {
        response.writeHead(Number(data.sink)).end('no\u0007 thanks');
      },
    });
    const { accept, start, items } = await openSinkContext(time);
    await accept();
    const sinkOf = (status: number) =>
      definition(webhook(hook.url), { name: `${status}`, attemptsMax: 3 });
    start(...statuses.map(sinkOf));
    const dead = async () =>
      (await Promise.all(statuses.map((one) => items('dead', `${one}`)))).flat();
    await time.runUntil(async () => (await dead()).length === statuses.length, { stepMs: 400 });
    expect(hook.received.length).toBe(3 * statuses.length);
    expect(await dead()).toMatchObject(
      statuses.map((status) => ({ attempts: 3, error: `it answered ${status}: no\\u0007 thanks` })),
    );
  });

  it('that answers 408, 425, 429 or 5xx is retried without counting attempts', async () => {
    const time = createVirtualTime();
    const statuses = [408, 425, 429, 500, 503, 599];
    const hook = await startHook({
      answer: ({ data }, response) => {
        const asked = hook.received.filter((one) => one.data.sink === data.sink).length;
        if (asked < 6) response.writeHead(Number(data.sink)).end();
      },
    });
    const { accept, start, store } = await openSinkContext(time);
    await accept();
    start(
      ...statuses.map((one) => definition(webhook(hook.url), { name: `${one}`, attemptsMax: 2 })),
    );
    const isDone = () => hook.received.length === 6 * statuses.length;
    await time.runUntil(isDone, { stepMs: 400 });
    const counts = async () => (await store.sinks.counts()).map(({ waiting }) => waiting);
    await time.runUntil(async () => (await counts()).every((waiting) => waiting === 0));
    expect(await store.sinks.counts()).toMatchObject(
      statuses.map((one) => ({ sink: `${one}`, dead: 0 })),
    );
  });

  it.each([307, 401, 403, 404, 405, 410])(
    'that answers %i is misconfigured: no attempt counts, and no redirect is followed',
    async (status) => {
      const time = createVirtualTime();
      const other = await startHook();
      const hook = await startHook({
        answer: (_hooked, response) =>
          void response.writeHead(status, { location: other.url }).end(),
      });
      const { accept, start, items, lines } = await openSinkContext(time);
      await accept();
      start(definition(webhook(hook.url), { attemptsMax: 1 }));
      await time.runUntil(() => hook.received.length >= 3, { stepMs: 400 });
      expect(other.received).toEqual([]);
      expect(await items('dead')).toEqual([]);
      const reason = expect.stringContaining(`it answered ${status}`);
      expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
        { fields: { sink: 'sink', reason } },
      ]);
      hook.change(() => undefined);
      await time.runUntil(async () => (await items('waiting')).length === 0, { stepMs: 400 });
      expect(lines.at(-1)).toMatchObject({ level: 'info', message: 'sink is up again' });
    },
  );

  it('that requests a wait gets it, for all items', async () => {
    const time = createVirtualTime();
    const atUs: number[] = [];
    const hook = await startHook({
      answer: (_hooked, response) => {
        atUs.push(time.nowUs());
        if (atUs.length === 1) response.writeHead(429, { 'retry-after': '120' }).end();
      },
    });
    const { accept, start, items } = await openSinkContext(time);
    for (let i = 0; i < 3; i += 1) await accept();
    start(definition(webhook(hook.url), { concurrency: 1 }));
    await time.runUntil(async () => atUs.length === 4 && (await items('waiting')).length === 0);
    expect((atUs[1] ?? 0) - (atUs[0] ?? 0)).toBeGreaterThanOrEqual(120_000_000);
  });
});
