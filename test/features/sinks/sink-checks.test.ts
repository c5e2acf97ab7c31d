/** The doctor's checks of sinks: real servers on loopback, without deliveries. */
import { describe, expect, it } from 'vitest';
import { situationAt } from '../../../src/core/terms/evaluation.ts';
import { checkSinks, type SinkTarget } from '../../../src/features/sinks/registry.ts';
import { evaluateConfig } from '../../../src/features/sinks/report.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { startHook } from './hook-server.ts';
import { hasNats, startNats } from './nats-server.ts';
import { startBroker } from './simulated-broker.ts';
import { definition, mqttTarget, natsTarget, webhookTarget } from './sink-definition.ts';

const deps = {
  findProgram: (program: string) => (program === 'tool' ? null : 'there is no such file'),
  signal: new AbortController().signal,
};

async function check(target: SinkTarget) {
  const [finding] = await checkSinks([definition(target, { name: 'bus' })], deps);
  return finding;
}

const critical = (text: string) => ({ level: 'critical', text: expect.stringContaining(text) });
/** This machine, with an address outside the loopback range. */
const toOtherMachine = (url: string) => url.replace('127.0.0.1', '0.0.0.0');

async function expectPlainWarning(target: SinkTarget, scheme: string): Promise<void> {
  const warned = await check(target);
  const text = expect.stringContaining('unencrypted');
  const nextStep = expect.stringContaining(scheme);
  expect(warned).toMatchObject({ level: 'warning', text, nextStep });
  expect(JSON.stringify(warned)).not.toMatch(/right|secret-token/);
}

const unused = async () => `127.0.0.1:${await freePort()}`;

const receiver = { startedAtUs: 2, pid: 1, refusing: null, queue: null };

it.each([
  ['faulty since the start of the receiver', 'x', 1, receiver, 'critical', 'are off'],
  ['faulty since later', 'x', 3, receiver, 'warning', 'uses the version of its start'],
  ['faulty, without a receiver', 'x', 3, null, 'warning', 'is invalid'],
  ['valid, but changed', null, 3, receiver, 'warning', 'has changed'],
  ['valid', null, 1, receiver, 'ok', 'valid'],
  ['valid, without a receiver', null, 3, null, 'ok', 'valid'],
])('earshot.config.ts that is %s', (_name, fault, modifiedAtUs, running, level, text) => {
  const config = { configFile: { fault, modifiedAtUs }, receiver: running };
  const evaluation = evaluateConfig(config, situationAt(4));
  expect(evaluation).toMatchObject({ level, text: expect.stringContaining(text) });
});

describe('the check of sinks', () => {
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
    const text = expect.stringContaining('not signed');
    expect(await check(webhookTarget(hook.url))).toMatchObject({ level: 'ok', text });
    expect(hook.received).toEqual([]);
  });

  it('reports a server that does not answer', async () => {
    const targets = [
      webhookTarget(`http://${await unused()}/hook`),
      natsTarget(`nats://${await unused()}`),
      mqttTarget(`mqtt://${await unused()}`),
    ];
    for (const target of targets) {
      const nextStep = expect.stringContaining('Start the server');
      expect(await check(target)).toMatchObject({ ...critical('cannot be used'), nextStep });
    }
  });
});

it('the check of an MQTT sink reports what the broker lacks, and a login in plain text, and publishes nothing', async () => {
  const { url, connects, published, change } = await startBroker({
    connack: { properties: { retainAvailable: false } },
  });
  expect(await check(mqttTarget(url))).toMatchObject({ level: 'ok' });
  const retaining = await check(mqttTarget(url, { retain: true }));
  expect(retaining).toMatchObject(critical('set retain to false'));
  change({ connack: {} });
  const login = { user: 'earshot', password: 'right' };
  expect(await check(mqttTarget(url, { login }))).toMatchObject({ level: 'ok' });
  await expectPlainWarning(mqttTarget(toOtherMachine(url), { login }), 'mqtts://');
  expect(connects).toMatchObject(Array(4).fill({ clean: true }));
  expect(published).toEqual([]);
});

it.skipIf(!hasNats)(
  'the check of a NATS sink uses the login, warns of one in plain text, and leaves the stream to a test delivery',
  async () => {
    const login = { token: 'secret-token' };
    const { server } = await startNats(['--auth', login.token], login);
    const text = expect.stringContaining('earshot sinks test bus');
    expect(await check(natsTarget(server, { login }))).toMatchObject({ level: 'ok', text });
    expect(await check(natsTarget(server))).toMatchObject(critical('rejected the credentials'));
    await expectPlainWarning(natsTarget(toOtherMachine(server), { login }), 'tls://');
  },
);
