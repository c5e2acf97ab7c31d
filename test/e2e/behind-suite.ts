/** The guarantees for users of a reverse proxy, tested with one of them. */
import { once } from 'node:events';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { notification } from '../helpers/deliveries.ts';
import { openStoreReader } from '../helpers/store.ts';
import {
  installed,
  type PrepareProxy,
  type ProxyContext,
  sendUntilAcknowledged,
  startBehind,
} from './behind-proxy.ts';

async function storedAckIds({ context }: ProxyContext): Promise<(string | null)[]> {
  const reader = openStoreReader(context.dataDir);
  onTestFinished(() => reader.close());
  const ackIds: (string | null)[] = [];
  for await (const { ackId } of reader.find({})) ackIds.push(ackId);
  return ackIds;
}

const body = (number: number) => JSON.stringify(notification(number));

/** Declares the tests; they are visibly skipped when the program is not installed. */
export function describeBehind(name: string, program: string, prepare: PrepareProxy): void {
  describe.runIf(installed(program))(
    `earshot behind ${name} with the shipped configuration`,
    () => {
      it('stores a notification that came over HTTPS, and answers the probe', async () => {
        const behind = await startBehind(prepare);
        const { ask } = behind;
        expect(await ask({ method: 'GET' })).toMatchObject({ status: 200, body: '' });
        const stored = await ask({ body: body(1) });
        expect(stored).toMatchObject({ status: 200, body: '{"status":"stored"}' });
        expect(await ask({ path: '/notifications', body: body(1) })).toMatchObject({
          status: 200,
          body: '{"status":"duplicate"}',
        });
        expect(await storedAckIds(behind)).toEqual(['ack-1']);
        expect(stored.headers.server ?? 'nginx').toBe('nginx');
      });

      // Only Linux answers on every address of 127.0.0.0/8 without configuration.
      it.runIf(process.platform === 'linux')(
        'limits failed logins by the address of the client, whatever its headers claim',
        async () => {
          const { ask, receiver } = await startBehind(prepare);
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

      it('lets the sender read the answer that a body is too large', async () => {
        const { ask } = await startBehind(prepare);
        const slightly = await ask({ body: 'x'.repeat(1.5 * 2 ** 20) });
        expect(slightly.status).toBe(413);
        expect(JSON.parse(slightly.body)).toMatchObject({ title: 'Content too large' });
        expect((await ask({ body: 'x'.repeat(12 * 2 ** 20) })).status).toBe(413);
        expect((await ask({ body: body(1) })).status).toBe(200);
      });

      it('forwards only requests to the endpoint', async () => {
        const { ask, receiver } = await startBehind(prepare);
        const near = ['/', '/notificationsx/a', '/notification', '/notifications/../healthz'];
        for (const path of [...near, '/healthz', '/api/notifications'])
          expect((await ask({ path, body: body(1) })).status, path).toBe(404);
        expect(receiver.log()).not.toContain('unknown path');
        expect((await ask({ path: '/notifications/a/b', body: body(1) })).status).toBe(404);
        await expect.poll(receiver.log).toContain('unknown path');
      });

      it('forwards the answer that nothing can be stored, with its Retry-After', async () => {
        const { ask, context } = await startBehind(prepare);
        const database = new Sqlite(join(context.dataDir, databaseFileName));
        onTestFinished(() => void database.close());
        database.exec('BEGIN IMMEDIATE');
        const refused = await ask({ body: body(1) });
        expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
        expect(JSON.parse(refused.body)).toMatchObject({ title: 'Service unavailable' });
        database.exec('ROLLBACK');
        await sendUntilAcknowledged(ask, body(1));
      }, 40_000);

      it('loses nothing while the receiver restarts twice under load', async () => {
        const behind = await startBehind(prepare);
        const { ask, restart } = behind;
        let { receiver } = behind;
        let [next, taken, sending] = [0, 0, true];
        const sender = async () => {
          while (sending) {
            next += 1;
            await sendUntilAcknowledged(ask, body(next));
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
          receiver.child.kill('SIGTERM');
          await once(receiver.child, 'exit');
          // While the receiver is down, the proxy answers the sender.
          expect([502, 503]).toContain((await ask({ method: 'GET' })).status);
          receiver = await restart();
        }
        await afterMore(200);
        sending = false;
        await Promise.all(senders);
        const expected = Array.from({ length: next }, (_, i) => `ack-${i + 1}`);
        const stored = await storedAckIds(behind);
        expect(stored.length).toBe(next);
        expect(new Set(stored)).toEqual(new Set(expected));
      }, 60_000);
    },
  );
}
