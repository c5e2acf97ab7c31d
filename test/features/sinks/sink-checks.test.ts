/** The doctor's checks of sinks: real servers on loopback, without deliveries. */
import { describe, expect, it } from 'vitest';
import { checkSinks, type SinkTarget } from '../../../src/features/sinks/registry.ts';
import { createChain } from '../../admin/endpoint/certificate-chain.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { startHook } from './hook-server.ts';
import { hasMosquitto, startMosquitto } from './mosquitto.ts';
import { mqttTarget } from './mqtt-target.ts';
import { hasNats, startNats } from './nats-server.ts';
import { startBroker } from './simulated-broker.ts';
import { definition } from './sink-definition.ts';

const deps = {
  findProgram: (program: string) => (program === 'tool' ? null : 'there is no such file'),
  subscriptions: [],
  signal: new AbortController().signal,
};

async function check(target: SinkTarget, fields: Parameters<typeof definition>[1] = {}) {
  const [finding] = await checkSinks([definition(target, { name: 'bus', ...fields })], deps);
  return finding;
}

const webhook = (url: string, ca: string | null = null): SinkTarget => ({
  kind: 'webhook',
  url,
  secret: null,
  ca,
});
const nats = (server: string, subject = 'earshot.products'): SinkTarget => ({
  kind: 'nats',
  servers: [server],
  subject,
  credentials: { kind: 'none' },
  ca: null,
});

describe('the check of sinks', () => {
  it('finds no problem without sinks', async () => {
    expect(await checkSinks([], deps)).toMatchObject([{ check: 'sinks', level: 'ok' }]);
  });

  it('reports whether a command exists', async () => {
    const found = await check({ kind: 'command', command: ['tool', '--flag'] });
    expect(found).toMatchObject({ check: 'sink bus', level: 'ok' });
    const gone = await check({ kind: 'command', command: ['gone'] });
    expect(gone).toMatchObject({
      level: 'critical',
      text: 'gone cannot be run: there is no such file.',
      nextStep: expect.stringContaining('chmod +x'),
    });
  });

  it('connects to a webhook and posts nothing', async () => {
    const hook = await startHook();
    expect(await check(webhook(hook.url))).toMatchObject({
      level: 'ok',
      text: expect.stringContaining('not signed'),
    });
    expect(hook.received).toEqual([]);
    const away = await check(webhook(`http://127.0.0.1:${await freePort()}/hook`));
    expect(away).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('trusts the user’s certificate authority for a webhook, and no other', async () => {
    const chain = await createChain();
    const tls = { key: chain.keyPem, cert: `${chain.leafPem}\n${chain.middlePem}` };
    const hook = await startHook({ tls });
    expect(await check(webhook(hook.url, chain.rootPem))).toMatchObject({ level: 'ok' });
    expect(await check(webhook(hook.url))).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('the certificate is not publicly trusted'),
    });
  });

  it('reports a NATS server that does not answer', async () => {
    expect(await check(nats(`nats://127.0.0.1:${await freePort()}`))).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('cannot be used'),
    });
  });
});

describe('the check of an MQTT sink', () => {
  it('reports a broker that does not answer, or that lacks what the sink needs', async () => {
    const away = await check(mqttTarget(`mqtt://127.0.0.1:${await freePort()}`));
    expect(away).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('ECONNREFUSED'),
      nextStep: expect.stringContaining('Start the server'),
    });
    const old = await startBroker({ connack: { reasonCode: 0x84 } });
    expect(await check(mqttTarget(old.url))).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('it does not support MQTT 5'),
    });
    const bare = await startBroker({
      connack: { properties: { maximumQoS: 0, retainAvailable: false } },
    });
    expect(await check(mqttTarget(bare.url))).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('does not support QoS 1'),
    });
    bare.change({ connack: { properties: { retainAvailable: false } } });
    expect(await check(mqttTarget(bare.url))).toMatchObject({ level: 'ok' });
    expect(await check(mqttTarget(bare.url, { isRetained: true }))).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('set retain to false'),
    });
    expect([...old.connects, ...bare.connects]).toMatchObject(
      Array(4).fill({ clientId: 'earshot-bus-doctor', clean: true }),
    );
    expect(bare.published).toEqual([]);
  });

  it.skipIf(!hasMosquitto)(
    'checks the login, and warns of one to another machine without TLS (needs mosquitto)',
    async () => {
      const broker = await startMosquitto({ users: { earshot: 'right' } });
      const login = { user: 'earshot', password: 'right' };
      expect(await check(mqttTarget(broker.url))).toMatchObject({ level: 'critical' });
      expect(await check(mqttTarget(broker.url, { login }))).toMatchObject({
        level: 'ok',
        text: expect.stringContaining('Permission to publish to the topic is not checked'),
      });
      // This machine, with an address outside the loopback range.
      const warned = await check(mqttTarget(`mqtt://0.0.0.0:${broker.port}`, { login }));
      expect(warned).toMatchObject({
        level: 'warning',
        text: expect.stringContaining('unencrypted'),
        nextStep: expect.stringContaining('mqtts://'),
      });
      expect(JSON.stringify(warned)).not.toContain('right');
    },
  );
});

describe.skipIf(!hasNats)('the check of a NATS sink (needs nats-server)', () => {
  it('reports whether a stream listens to each possible subject', async () => {
    const server = await startNats();
    const none = await check(nats(server.server));
    expect(none).toMatchObject({
      level: 'critical',
      text: 'No stream listens to the subject earshot.products.',
      nextStep: expect.stringContaining("--subjects 'earshot.products'"),
    });
    await server.addStream(['earshot.products', 'earshot.alps.created']);
    expect(await check(nats(server.server))).toMatchObject({ level: 'ok' });
    const subject = 'earshot.{subscription}.{event}';
    const both = await check(nats(server.server, subject), {
      subscriptions: ['alps'],
      events: ['created', 'deleted'],
    });
    expect(both).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('alps.deleted'),
      nextStep: expect.stringContaining("--subjects 'earshot.*.*' "),
    });
    const one = await check(nats(server.server, subject), {
      subscriptions: ['alps'],
      events: ['created'],
    });
    expect(one?.text).toBe('A stream listens to earshot.alps.created.');
    expect(await server.messages()).toEqual([]);
  });

  it('warns of a login to another machine without TLS', async () => {
    const server = await startNats(['--auth', 'secret-token'], { token: 'secret-token' });
    await server.addStream(['earshot.products']);
    const credentials = { kind: 'token', token: 'secret-token' } as const;
    const here = { ...nats(server.server), credentials } as SinkTarget;
    expect(await check(here)).toMatchObject({ level: 'ok' });
    // This machine, with an address outside the loopback range.
    const other = { ...here, servers: [`nats://0.0.0.0:${server.port}`] } as SinkTarget;
    const warned = await check(other);
    expect(warned).toMatchObject({
      level: 'warning',
      text: expect.stringContaining('unencrypted'),
      nextStep: expect.stringContaining('tls://'),
    });
    expect(JSON.stringify(warned)).not.toContain('secret-token');
  });
});
