import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { NotificationDocument } from '../../../../src/features/messages/document.ts';
import { createChain } from '../../../admin/endpoint/certificate-chain.ts';
import { startTcpServer } from '../../../helpers/tcp-server.ts';
import { hasMosquitto, startMosquitto } from '../mosquitto.ts';
import { startBroker } from '../simulated-broker.ts';
import { openSinkContext, openTestTarget } from '../sink-context.ts';
import { definition, mqttTarget as mqtt } from '../sink-definition.ts';
import { sinkDocument } from '../sink-items.ts';

describe.skipIf(!hasMosquitto)('MQTT (needs mosquitto)', () => {
  it('publishes each document once under its id, to topics made from its product and fields', async () => {
    const broker = await startMosquitto();
    const received = await broker.subscribe();
    const { accept, start, isDone } = await openSinkContext();
    await accept({}, { subscription: 'alps' });
    await accept({
      SubscriptionEvent: 'a/+#\u0000\u0085b',
      ProductName: 'other',
      value: null,
      ProductId: '$x',
    });
    start(
      definition(mqtt(broker.url), { name: 'usual' }),
      definition(mqtt(broker.url, { topic: '{productId}/{subscription}/{collection}/{event}' }), {
        name: 'own',
      }),
    );
    await expect.poll(() => received.length).toBe(4);
    await expect.poll(() => isDone('usual')).toBe(true);
    await expect.poll(() => isDone('own')).toBe(true);
    expect(received.map(({ topic }) => topic).toSorted()).toEqual([
      '_x/default/unknown/a_____b',
      'earshot/SENTINEL-2/created',
      'earshot/unknown/a_____b',
      'product-1/alps/SENTINEL-2/created',
    ]);
    for (const { id, payload, contentType, isRetained } of received) {
      expect(JSON.parse(payload).id).toBe(id);
      expect({ contentType, isRetained }).toEqual({
        contentType: 'application/json',
        isRetained: false,
      });
    }
  });

  it('accepts the right login over TLS with the user’s authority, and no other', async () => {
    const chain = await createChain();
    const cert = `${chain.leafPem}\n${chain.middlePem}`;
    const tls = { key: chain.keyPem, cert, ca: chain.rootPem };
    const broker = await startMosquitto({ users: { earshot: 'right' }, tls });
    const received = await broker.subscribe({ username: 'earshot', password: 'right' });
    const [login, ca] = [{ user: 'earshot', password: 'right' }, chain.rootPem];
    expect(await open(broker.url, { login, ca }).deliver()).toEqual({ kind: 'acknowledged' });
    await expect.poll(() => received.length).toBe(1);
    for (const wrong of [{ ...login, password: 'wrong' }, null]) {
      // mosquitto answers a wrong password with 0x87 (not authorized).
      const reason = expect.stringMatching(/^it rejected the login$|^the login has no permission$/);
      const answer = await open(broker.url, { login: wrong, ca }).deliver();
      expect(answer).toEqual({ kind: 'misconfigured', reason });
    }
    const reason = expect.stringMatching(/SELF_SIGNED|UNABLE_TO/);
    expect(await open(broker.url, { login }).deliver()).toMatchObject({ reason });
  });
});

function open(url: string, fields: Parameters<typeof mqtt>[1] = {}) {
  const opened = openTestTarget(mqtt(url, fields));
  const never = new AbortController().signal;
  return {
    ...opened,
    deliver: (item: Partial<NotificationDocument> = {}, signal = never) =>
      opened.deliver({ ...sinkDocument, ...item }, signal),
  };
}

describe('an acknowledgement', () => {
  it.each<[code: number, kind: string, reason?: string]>([
    [0x00, 'acknowledged'],
    [0x10, 'acknowledged'],
    [0x80, 'unavailable', 'it answered 0x80'],
    [0x87, 'misconfigured', 'the login has no permission to publish to earshot/SENTINEL-2/created'],
    [0x90, 'refused', 'the broker rejects the topic'],
  ])('with the reason code %i is %s', async (code, kind, reason) => {
    const broker = await startBroker({ answer: () => code });
    const { deliver } = open(broker.url);
    expect(await deliver()).toMatchObject({ kind, ...(reason !== undefined && { reason }) });
    expect(broker.published).toMatchObject([{ qos: 1, dup: false, retain: false }]);
    expect(broker.open()).toBe(1);
  });
});

describe('a connection', () => {
  it.each<[code: number, kind: string, reason: string]>([
    [0x01, 'misconfigured', 'it does not support MQTT 5'],
    [0x86, 'misconfigured', 'it rejected the login'],
    [0x87, 'misconfigured', 'the login has no permission'],
    [0x88, 'unavailable', 'it answered 0x88'],
  ])('refused with the reason code %i is %s', async (reasonCode, kind, reason) => {
    const broker = await startBroker({ connack: { reasonCode } });
    const { deliver } = open(broker.url);
    expect(await deliver()).toMatchObject({ kind, reason });
    await expect.poll(broker.open).toBe(0);
    broker.change({ connack: { reasonCode: 0 } });
    expect(await deliver()).toEqual({ kind: 'acknowledged' });
  });

  it('has its own client id, and another one for test deliveries, which are not retained', async () => {
    const broker = await startBroker();
    const { deliver } = open(broker.url, { retain: true });
    await deliver();
    await deliver({ replay: true });
    const named = open(broker.url, { clientId: 'mine', retain: true });
    await named.deliver({ test: true });
    const clientId = expect.stringMatching(/^mqttjs_/);
    expect(broker.connects).toMatchObject([
      { clientId, clean: true },
      { clientId: 'mine-test', clean: true },
    ]);
    expect(broker.published.map(({ retain }) => retain)).toEqual([true, false, false]);
  });

  const closed =
    'it closed the connection; another client with the same client id can be the cause';
  const taken = 'another client connected with the same client id: set clientId';
  it.each([
    ['is taken over by another client', { disconnect: 0x8e }, 'misconfigured', taken],
    ['is ended by the broker', { disconnect: 0x8b }, 'unavailable', 'it answered 0x8b'],
    ['ends without a reason', 'close', 'unavailable', closed],
  ] as const)(
    'that %s fails with the reason, and the next delivery connects again',
    async (_, answer, kind, reason) => {
      const broker = await startBroker({ answer: () => answer });
      const { deliver } = open(broker.url);
      const failed = { kind, reason };
      expect(await Promise.all([deliver(), deliver()])).toMatchObject([failed, failed]);
      expect(broker.connects.length).toBe(1);
      broker.change({ answer: () => 0 });
      expect(await deliver()).toEqual({ kind: 'acknowledged' });
    },
  );

  it('that ends before the login names a possible cause', async () => {
    const { port } = await startTcpServer((socket) => socket.end());
    const reason = expect.stringContaining('is this the port of an MQTT broker?');
    expect(await open(`mqtt://127.0.0.1:${port}`).deliver()).toMatchObject({ reason });
  });
});

describe('the limits of a broker', () => {
  it('are reported when it lacks QoS 1, or retained messages that the sink needs', async () => {
    const broker = await startBroker({ connack: { properties: { maximumQoS: 0 } } });
    const misconfigured = (reason: RegExp) => ({
      ...{ kind: 'misconfigured', reason: expect.stringMatching(reason) },
    });
    expect(await open(broker.url).deliver()).toEqual(misconfigured(/does not support QoS 1/));
    const other = await startBroker({ connack: { properties: { retainAvailable: false } } });
    const retained = await open(other.url, { retain: true }).deliver();
    expect(retained).toEqual(misconfigured(/retained messages: set retain to false/));
    expect(await open(other.url).deliver()).toEqual({ kind: 'acknowledged' });
    expect([broker, other].map(({ published }) => published.length)).toEqual([0, 1]);
  });

  it('apply to the size of the packet', async () => {
    const broker = await startBroker({ connack: { properties: { maximumPacketSize: 1_000 } } });
    const { deliver } = open(broker.url);
    expect(await deliver({ value: { Name: 'x'.repeat(400) } })).toEqual({ kind: 'acknowledged' });
    expect(await deliver({ value: { Name: 'x'.repeat(1_000) } })).toEqual({
      kind: 'refused',
      reason: 'the message is larger than the broker accepts',
    });
    expect(broker.published.length).toBe(1);
  });

  it('apply to the number of unacknowledged messages', async () => {
    const broker = await startBroker({
      connack: { properties: { receiveMaximum: 2 } },
      answer: () => 'none',
    });
    const { deliver } = open(broker.url);
    const deliveries = [deliver(), deliver(), deliver()];
    for (let i = 0; i < 7; i += 1) {
      const sent = Math.min(7, i + 2);
      await expect.poll(() => broker.published.length).toBe(sent);
      if (deliveries.length < 7) deliveries.push(deliver());
      await setImmediate();
      expect(broker.published.length).toBe(sent);
      broker.acknowledge(broker.published[i] ?? {});
    }
    expect(await Promise.all(deliveries)).toEqual(Array(7).fill({ kind: 'acknowledged' }));
  });
});

describe('a broker without an answer', () => {
  /** Delivers an item whose time is up as soon as the broker has something. */
  const deliverLate = async ({ deliver }: ReturnType<typeof open>, reached: () => number) => {
    const late = new AbortController();
    const answer = deliver({}, late.signal);
    await expect.poll(reached, { timeout: 10_000 }).toBe(1);
    late.abort(new DOMException('the time is up', 'TimeoutError'));
    expect(await answer).toMatchObject({
      ...{ kind: 'unavailable', reason: 'it did not answer in time' },
    });
  };

  it('to the login is unavailable, and leaves no socket open', async () => {
    const silent = await startTcpServer();
    const opened = open(`mqtt://127.0.0.1:${silent.port}`);
    await deliverLate(opened, silent.open);
    await opened.close();
    await expect.poll(silent.open).toBe(0);
  });

  it.each([1, 65_535])(
    'to a message is unavailable, and the connection is replaced (maximum %i)',
    async (receiveMaximum) => {
      const connack = { properties: { receiveMaximum } };
      const broker = await startBroker({ connack, answer: () => 'none' });
      const opened = open(broker.url);
      await deliverLate(opened, () => broker.published.length);
      await expect.poll(broker.open).toBe(0);
      broker.change({ answer: () => 0 });
      expect(await opened.deliver()).toEqual({ kind: 'acknowledged' });
      await opened.close();
      await expect.poll(broker.open).toBe(0);
    },
  );
});
