/** The guarantees for users of a reverse proxy with the shipped configuration: nginx, and nightly Caddy. */
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { collect, notification } from '../helpers/deliveries.ts';
import { sendRequest } from '../helpers/send-request.ts';
import { createReceiverContext, credentials } from '../helpers/spawned-receiver.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed, isComplete } from '../helpers/thorough.ts';
import { behindProxy, caddy, nginx, startShippedProxy } from './behind-proxy.ts';

interface Ask {
  method?: string;
  path?: string;
  body?: string;
  headers?: Record<string, string>;
  password?: string;
  /** Loopback address of the client. */
  from?: string;
}

/** Runs the proxy in front of a receiver; both end with the test. */
async function startBehind(file: string) {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const receiver = await context.start(behindProxy);
  const address = `127.0.0.1:${receiver.port}`;
  const toReceivers = (text: string) => text.replaceAll('127.0.0.1:8081', address);
  const { port, ca } = await startShippedProxy(file, { folder, toReceivers });
  /** Starts the receiver again at the address that the proxy uses. */
  const restart = () => context.start({ ...behindProxy, EARSHOT_LISTEN: address });
  const agents = new Map<string, Agent>();
  onTestFinished(() => {
    for (const agent of agents.values()) agent.destroy();
  });
  const agentOf = (localAddress: string) => {
    const options = { keepAlive: true, maxSockets: 8, localAddress };
    const agent = agents.get(localAddress) ?? new Agent(options);
    agents.set(localAddress, agent);
    return agent;
  };
  /** Sends one request over HTTPS. Rejects when the connection breaks before the complete answer. */
  const ask = ({ method = 'POST', path = '/notifications/proxied', body, ...more }: Ask) => {
    const { password = credentials.password, from = '127.0.0.1' } = more;
    const target = { port, servername: 'localhost', ca, path, method, agent: agentOf(from) };
    const headers = { Host: `localhost:${port}`, ...more.headers };
    return sendRequest({ ...target, auth: `${credentials.username}:${password}`, headers }, body);
  };
  /** Repeats a push until it is acknowledged, as the catalogue does. */
  const sendUntilAcknowledged = async (body: string): Promise<void> => {
    const statusOf = () =>
      ask({ body }).then(
        ({ status }) => status,
        () => 0,
      );
    // Limits the attempts: a stopped receiver would get a thousand requests a second.
    while ((await statusOf()) !== 200) await delay(20);
  };
  const storedAckIds = async () => {
    const reader = openStoreReader(context.dataDir);
    const rows = await collect(reader.find({}));
    await reader.close();
    return rows.map(({ ackId }) => ackId);
  };
  const database = join(context.dataDir, databaseFileName);
  return { database, receiver, restart, ask, sendUntilAcknowledged, storedAckIds };
}

const body = (number: number) => JSON.stringify(notification(number));

const proxies = [
  { name: 'nginx', program: nginx, file: 'nginx/earshot.conf' },
  ...(isComplete ? [{ name: 'Caddy', program: caddy, file: 'caddy/Caddyfile' }] : []),
];

describe.each(proxies)(
  'earshot behind $name with the shipped configuration',
  ({ program, file }) => {
    beforeEach(({ skip }) => skip(!installed(program), `needs ${program}`));

    it('stores a notification over HTTPS, and answers only for the endpoint', async () => {
      const { ask, receiver, storedAckIds } = await startBehind(file);
      expect(await ask({ method: 'GET' })).toMatchObject({ status: 200, body: '' });
      const stored = await ask({ body: body(1) });
      expect(stored).toMatchObject({ status: 200, body: '{"status":"stored"}' });
      expect(stored.headers.server ?? 'nginx').toBe('nginx');
      const again = await ask({ path: '/notifications', body: body(1) });
      expect(again).toMatchObject({ status: 200, body: '{"status":"duplicate"}' });
      const near = ['/', '/notificationsx/a', '/notification', '/notifications/../healthz'];
      for (const path of [...near, '/healthz', '/api/notifications'])
        expect((await ask({ path, body: body(2) })).status, path).toBe(404);
      expect(receiver.log()).not.toContain('unknown path');
      expect((await ask({ path: '/notifications/a/b', body: body(2) })).status).toBe(404);
      await expect.poll(receiver.log).toContain('unknown path');
      expect(await storedAckIds()).toEqual(['ack-1']);
    });

    // Only Linux answers on every address of 127.0.0.0/8 without configuration.
    it.runIf(process.platform === 'linux')(
      'limits failed logins by the address of the client, whatever its headers claim',
      async () => {
        const { ask, receiver } = await startBehind(file);
        const guess = async (from: string, i: number) => {
          const forged = `127.0.0.${i}, 198.51.100.${i}`;
          const headers = { 'X-Forwarded-For': forged, Forwarded: `for=${forged}` };
          return (await ask({ method: 'GET', from, password: `${i}`, headers })).status;
        };
        for (let i = 0; i < 100; i += 1) expect(await guess('127.0.0.2', i)).toBe(401);
        expect(await guess('127.0.0.2', 100)).toBe(429);
        expect(await guess('127.0.0.3', 101)).toBe(401);
        expect((await ask({ from: '127.0.0.2', body: body(1) })).status).toBe(200);
        const addresses = receiver.log().matchAll(/"address":"([^"]*)"/g);
        const seen = new Set([...addresses].map(([, address]) => address));
        expect([...seen]).toEqual(['127.0.0.2', '127.0.0.3']);
      },
    );

    it('forwards refusals: of a body that is too large, and of any while nothing can be stored', async () => {
      const behind = await startBehind(file);
      const { ask } = behind;
      const slightly = await ask({ body: 'x'.repeat(1.5 * 2 ** 20) });
      expect(slightly.status).toBe(413);
      expect(JSON.parse(slightly.body)).toMatchObject({ title: 'Content too large' });
      expect((await ask({ body: 'x'.repeat(12 * 2 ** 20) })).status).toBe(413);
      const database = new Sqlite(behind.database);
      onTestFinished(() => void database.close());
      database.exec('BEGIN IMMEDIATE');
      const refused = await ask({ body: body(1) });
      expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
      expect(JSON.parse(refused.body)).toMatchObject({ title: 'Service unavailable' });
      database.exec('ROLLBACK');
      await behind.sendUntilAcknowledged(body(1));
    }, 40_000);

    it('loses nothing while the receiver restarts twice under load', async () => {
      const { ask, restart, sendUntilAcknowledged, storedAckIds, ...behind } =
        await startBehind(file);
      let { receiver } = behind;
      let [next, taken, sending] = [0, 0, true];
      const sender = async () => {
        while (sending) {
          next += 1;
          await sendUntilAcknowledged(body(next));
          taken += 1;
        }
      };
      const senders = Array.from({ length: 8 }, sender);
      const afterMore = async (count: number) => {
        const enough = taken + count;
        await expect.poll(() => taken, { timeout: 10_000 }).toBeGreaterThan(enough);
      };
      for (let round = 0; round < 2; round += 1) {
        await afterMore(200);
        await receiver.end();
        // While the receiver is down, the proxy answers the sender.
        expect([502, 503]).toContain((await ask({ method: 'GET' })).status);
        receiver = await restart();
      }
      await afterMore(200);
      sending = false;
      await Promise.all(senders);
      const expected = Array.from({ length: next }, (_, i) => `ack-${i + 1}`);
      const stored = await storedAckIds();
      expect(stored.length).toBe(next);
      expect(new Set(stored)).toEqual(new Set(expected));
    }, 60_000);
  },
);
