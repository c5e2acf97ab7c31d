/** Requests in flight, and later ones, when the program is stopped. */
import { describe, expect, it } from 'vitest';
import { collect } from '../helpers/deliveries.ts';
import {
  type Connection,
  goodNotification,
  openConnection,
  openTcp,
  requestBytes,
} from './raw-client.ts';
import type { Endpoint } from './running-receiver.ts';
import { type StartedProgram, startProgram } from './started-program.ts';

/** Sends a request except its last byte; resolves when the receiver has read its head. */
async function beginRequest(endpoint: Endpoint, body: string): Promise<Connection> {
  const connection = await openConnection(endpoint);
  const request = requestBytes({ body, headers: { Expect: '100-continue' } });
  connection.send(request.subarray(0, -1));
  expect((await connection.answer()).status).toBe(100);
  return connection;
}

async function refusesNewConnections(endpoint: Endpoint): Promise<boolean> {
  try {
    (await openTcp(endpoint)).destroy();
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
  }
}

async function storedAckIds(program: StartedProgram): Promise<(string | null)[]> {
  const rows = await collect(program.openStore().find({}));
  return rows.map((row) => row.ackId);
}

describe('SIGTERM', () => {
  it('lets requests in flight finish, accepts no new connections, and exits with 0', async () => {
    const program = await startProgram();
    const notifications = Array.from({ length: 8 }, () => goodNotification());
    const begun = await Promise.all(notifications.map(({ body }) => beginRequest(program, body)));
    const idle = await openConnection(program);
    idle.send(requestBytes({ method: 'GET' }));
    expect((await idle.answer()).status).toBe(200);

    program.signal('SIGTERM');
    await expect.poll(() => refusesNewConnections(program)).toBe(true);
    await idle.closed;
    for (const connection of begun) connection.send('}');
    for (const connection of begun) {
      expect(await connection.answer()).toMatchObject({
        status: 200,
        body: '{"status":"stored"}',
      });
      await connection.closed;
    }
    expect(await program.exited).toBe(0);
    const sent = notifications.map(({ ackId }) => ackId);
    expect((await storedAckIds(program)).toSorted()).toEqual(sent.toSorted());
    expect(program.stderr()).not.toMatch(/"level":"error"|unhandled/i);
  });

  it('under load loses no acknowledged notification, and exits with 0', async () => {
    const program = await startProgram();
    const answered: string[] = [];
    const sender = async () => {
      const connection = await openConnection(program);
      for (;;) {
        const { ackId, body } = goodNotification();
        connection.send(requestBytes({ body }));
        const answer = await connection.answer().catch(() => null);
        if (answer === null) return;
        expect(answer.status).toBe(200);
        answered.push(ackId);
      }
    };
    const senders = Promise.all(Array.from({ length: 8 }, sender));
    await expect.poll(() => answered.length).toBeGreaterThan(200);
    program.signal('SIGTERM');
    await senders;
    expect(await program.exited).toBe(0);
    const stored = await storedAckIds(program);
    expect(new Set(stored).size).toBe(stored.length);
    expect(answered.filter((ackId) => !stored.includes(ackId))).toEqual([]);
    expect(program.stderr()).not.toMatch(/"level":"error"|unhandled/i);
  });

  it('is not delayed beyond its limit by connections that never finish', async () => {
    const program = await startProgram();
    const handshaking = await openTcp(program);
    const silent = await openConnection(program);
    const halfHead = await openConnection(program);
    halfHead.send('POST /notifications HTTP/1.1\r\nHost: h\r\n');
    const halfBody = await beginRequest(program, goodNotification().body);
    const startMs = performance.now();
    program.signal('SIGTERM');
    expect(await program.exited).toBe(0);
    expect(performance.now() - startMs).toBeLessThan(15_000);
    await Promise.all([silent, halfHead, halfBody].map((connection) => connection.closed));
    expect(handshaking.destroyed || handshaking.readableEnded).toBe(true);
    expect(await storedAckIds(program)).toEqual([]);
  });
});
