/** MQTT: topics, retained messages, sessions, and refusals of a real broker. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openMqtt } from '../../../../src/features/sinks/targets/mqtt-connection.ts';
import { createChain } from '../../../admin/endpoint/certificate-chain.ts';
import { hasMosquitto, startMosquitto } from '../mosquitto.ts';
import { mqttTarget as mqtt } from '../mqtt-target.ts';
import { openSinkContext } from '../sink-context.ts';
import { definition } from '../sink-definition.ts';
import { createVirtualTime } from '../virtual-time.ts';

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

  it('retains the newest message of each topic for later subscribers, but no replays', async () => {
    const broker = await startMosquitto();
    const { accept, start, isDone, store } = await openSinkContext();
    const same = { ProductId: 'same' };
    await accept(same);
    await accept({ ...same, SubscriptionEvent: 'modified' });
    await accept({ ...same, SubscriptionEvent: 'deleted', value: null });
    await accept({ ProductId: 'other' });
    const topic = 'products/{productId}';
    start(definition(mqtt(broker.url, { topic, isRetained: true })));
    await expect.poll(() => isDone()).toBe(true);
    const newest = async () => {
      const received = await broker.subscribe();
      await expect.poll(() => received.length).toBe(2);
      return received
        .map(({ topic, isRetained, payload }) => {
          const { position, event } = JSON.parse(payload);
          return { topic, isRetained, position, event };
        })
        .toSorted((one, other) => one.topic.localeCompare(other.topic));
    };
    const retained = [
      { topic: 'products/other', isRetained: true, position: 4, event: 'created' },
      { topic: 'products/same', isRetained: true, position: 3, event: 'deleted' },
    ];
    expect(await newest()).toEqual(retained);
    const live = await broker.subscribe();
    const all = { sinceUs: null, untilUs: null, lastPosition: 4, afterPosition: 0 };
    await store.sinks.addReplay({ sink: 'sink', filter: '', requestedAtUs: 0, ...all });
    await expect.poll(() => live.filter(({ isRetained }) => !isRetained).length).toBe(4);
    expect(await newest()).toEqual(retained);
  });

  it('accepts the right login over TLS with the user’s authority, and no other', async () => {
    const chain = await createChain();
    const cert = `${chain.leafPem}\n${chain.middlePem}`;
    const tls = { key: chain.keyPem, cert, ca: chain.rootPem };
    const broker = await startMosquitto({ users: { earshot: 'right' }, tls });
    const received = await broker.subscribe({ username: 'earshot', password: 'right' });
    const { accept, start, items, isDone } = await openSinkContext();
    await accept();
    const [login, ca] = [{ user: 'earshot', password: 'right' }, chain.rootPem];
    start(
      definition(mqtt(broker.url, { login, ca }), { name: 'right' }),
      definition(mqtt(broker.url, { login: { ...login, password: 'wrong' }, ca }), {
        name: 'wrong',
      }),
      definition(mqtt(broker.url, { ca }), { name: 'none' }),
      definition(mqtt(broker.url, { login }), { name: 'untrusting' }),
    );
    await expect.poll(() => isDone('right')).toBe(true);
    expect(received.length).toBe(1);
    const error = (sink: string) => async () => (await items('waiting', sink))[0]?.error;
    // mosquitto answers a wrong password with 0x87 (not authorized).
    for (const sink of ['wrong', 'none']) {
      await expect
        .poll(error(sink))
        .toMatch(/^it rejected the login$|^the login has no permission$/);
    }
    await expect.poll(error('untrusting')).toMatch(/SELF_SIGNED|UNABLE_TO/);
  });

  it('waits for a permission, and refuses only messages that are larger than the broker accepts', async () => {
    const time = createVirtualTime();
    const broker = await startMosquitto({
      config: ['acl_file FOLDER/acl', 'max_packet_size 4000'],
      files: { acl: 'topic write earshot/SENTINEL-2/#\ntopic read #\n' },
    });
    const received = await broker.subscribe();
    const { accept, start, items } = await openSinkContext(time);
    await accept({ value: { Name: 'S2A_X', Note: 'x'.repeat(5_000) } });
    await accept({ ProductName: 'S1A_X', value: null });
    await accept({});
    start(definition(mqtt(broker.url), { attemptsMax: 1, timeoutMs: 600_000 }));
    await time.runUntil(async () => (await items('dead')).length === 1 && received.length === 1);
    await time.runUntil(async () => (await items('waiting')).length === 1);
    await time.runUntil(async () => (await items('waiting'))[0]?.error !== null);
    expect((await items('dead'))[0]).toMatchObject({
      position: 1,
      error: 'the message is larger than the broker accepts',
    });
    expect(await items('waiting')).toMatchObject([
      {
        position: 2,
        error: 'the login has no permission to publish to earshot/SENTINEL-1/created',
      },
    ]);
  });

  it('waits for a killed and for a hanging broker, without counting attempts', async () => {
    const time = createVirtualTime();
    const broker = await startMosquitto();
    const { accept, start, items, isDone, lines } = await openSinkContext(time);
    await accept();
    // Retained: the reader below may subscribe after the first messages.
    const target = mqtt(broker.url, { topic: '{productId}', isRetained: true });
    start(definition(target, { attemptsMax: 1, timeoutMs: 60_000 }));
    await time.runUntil(() => isDone());
    await broker.kill();
    for (let i = 0; i < 20; i += 1) await accept();
    const warned = (words: string) => () =>
      lines.some((line) => `${line.fields.reason}`.includes(words));
    await time.runUntil(warned('the connection was refused'));
    await broker.start();
    const received = await broker.subscribe();
    await time.runUntil(() => isDone(), { stepMs: 400 });
    await expect.poll(() => new Set(received.map(({ id }) => id)).size).toBe(20);
    broker.pause();
    await accept();
    const errors = async () => (await items('waiting')).map(({ error }) => error);
    await time.runUntil(async () => (await errors())[0] === 'it did not answer in time');
    broker.resume();
    await time.runUntil(() => isDone());
    await expect.poll(() => new Set(received.map(({ id }) => id)).size).toBe(21);
    expect(await items('dead')).toEqual([]);
  });

  it('resumes its session after a connection loss, and also after a kill of the broker', async () => {
    const broker = await startMosquitto({
      config: ['persistence true', 'persistence_location FOLDER/'],
    });
    const { signal } = new AbortController();
    const options = { url: broker.url, login: null, ca: null, clientId: 'earshot-archive' };
    const isResumed = async (sessionExpirySeconds: number | null) => {
      const connection = await openMqtt({ ...options, sessionExpirySeconds }, { signal });
      await connection.close();
      return connection.isResumed;
    };
    expect(await isResumed(60)).toBe(false);
    expect(await isResumed(60)).toBe(true);
    broker.save();
    await expect.poll(() => existsSync(join(broker.folder, 'mosquitto.db'))).toBe(true);
    await broker.kill();
    await broker.start();
    expect(await isResumed(60)).toBe(true);
    expect(await isResumed(null)).toBe(false);
    expect(await isResumed(0)).toBe(false);
    expect(await isResumed(60)).toBe(false);
  });
});
