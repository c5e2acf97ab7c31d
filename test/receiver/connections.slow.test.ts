/** Several requests on one connection, and connections that end inside a request. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished } from 'vitest';
import { startListener } from '../../src/core/http/listener.ts';
import {
  answersTo,
  basic,
  type Connection,
  exchange,
  expectStillAcceptsNotifications,
  goodNotification,
  openConnection,
  openTcp,
  type RequestParts,
  requestBytes,
} from './raw-client.ts';
import { it, startReceiver, type TestReceiver } from './running-receiver.ts';

const good = (): RequestParts => ({ body: goodNotification().body });

async function storedCount(receiver: TestReceiver): Promise<number> {
  return (await receiver.store.counts()).notifications;
}

function errorsOf(receiver: TestReceiver) {
  return receiver.log.filter(({ level }) => level === 'error');
}

describe('pipelined requests on one connection', () => {
  it.each<[string, RequestParts, number]>([
    ['an empty array', { body: '[]' }, 400],
    ['wrong credentials', { ...good(), authorization: basic('x', 'y') }, 401],
    ['another path', { ...good(), path: '/elsewhere' }, 404],
    ['another method', { ...good(), method: 'PUT' }, 405],
    ['a body over the limit', { body: 'x'.repeat(3 * 2 ** 20) }, 413],
    ['a notification', good(), 200],
  ])('are answered in order after %s', async (_name, first, status) => {
    const receiver = await startReceiver();
    const row = [first, good(), { method: 'GET' }, { ...good(), headers: { Connection: 'close' } }];
    const answers = await answersTo(receiver, Buffer.concat(row.map(requestBytes)));
    expect(answers.map((answer) => answer.status)).toEqual([status, 200, 200, 200]);
    expect(await storedCount(receiver)).toBe(status === 200 ? 3 : 2);
  });

  it('end with the bytes beyond the announced length', async ({ receiver }) => {
    const { body } = goodNotification();
    const request = requestBytes({ body, headers: { 'Content-Length': `${body.length - 1}` } });
    const answers = await answersTo(receiver, request);
    // The single brace may be refused before the body in front of it, one byte short, is stored.
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([400]));
    const counts = { notifications: 0, duplicates: 0, quarantined: 1 };
    await expect.poll(() => receiver.store.counts()).toEqual(counts);
  });
});

describe('a sender that disconnects', () => {
  const disconnects: Record<string, (connection: Connection, tcp: Socket) => void> = {
    'closes its side': ({ socket }) => socket.end(),
    closes: ({ socket }) => socket.destroy(),
    'resets the connection': (_connection, tcp) => tcp.resetAndDestroy(),
  };
  it.each(Object.entries(disconnects))(
    '(%s) in the middle of the body leaves no data',
    async (_name, go) => {
      const receiver = await startReceiver();
      const tcp = await openTcp(receiver);
      const connection = await openConnection(receiver, { socket: tcp });
      connection.send(requestBytes({ body: 'x' }));
      expect((await connection.answer()).status).toBe(400);
      const half = requestBytes(good()).subarray(0, -10);
      await new Promise((resolve) => connection.socket.write(half, resolve));
      go(connection, tcp);
      await connection.closed;
      await expectStillAcceptsNotifications(receiver);
      const counts = { notifications: 1, duplicates: 0, quarantined: 1 };
      expect(await receiver.store.counts()).toEqual(counts);
      expect(errorsOf(receiver)).toEqual([]);
    },
  );

  it('right after the last byte is stored at most once, and may repeat the request', async ({
    receiver,
  }) => {
    const notifications = Array.from({ length: 50 }, () => goodNotification());
    const sendAndDisconnect = async ({ body }: { body: string }) => {
      const connection = await openConnection(receiver);
      await new Promise((resolve) => connection.socket.write(requestBytes({ body }), resolve));
      connection.socket.destroy();
      await connection.closed;
    };
    await Promise.all(notifications.map(sendAndDisconnect));
    for (const { body } of notifications) {
      expect((await exchange(receiver, { body })).status).toBe(200);
    }
    expect(await storedCount(receiver)).toBe(50);
    expect(errorsOf(receiver)).toEqual([]);
  });
});

describe('a sender that closes its side after its requests', () => {
  it('gets the response to each over TLS, and the connection is closed', async ({ receiver }) => {
    const { socket, answer, closed } = await openConnection(receiver);
    socket.end(Buffer.concat([requestBytes(good()), requestBytes(good())]));
    expect([(await answer()).status, (await answer()).status]).toEqual([200, 200]);
    await closed;
    expect(await storedCount(receiver)).toBe(2);
  });

  it('gets the response over HTTP, however long it takes, and the connection is closed', async () => {
    const requestReceived = Promise.withResolvers<void>();
    const ready = Promise.withResolvers<Response>();
    const listener = await startListener({
      fetch: () => {
        requestReceived.resolve();
        return ready.promise;
      },
      listen: { host: '127.0.0.1', port: 0 },
      listenVariable: 'EARSHOT_LISTEN',
      answersHalfClosed: true,
    });
    onTestFinished(() => listener.close(0));
    const socket = connect({ port: listener.address.port, allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.end('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await requestReceived.promise;
    // A later connection has been served, so the FIN of the first one was read.
    await text(connect({ port: listener.address.port }).end());
    ready.resolve(new Response('here'));
    expect(await text(socket)).toContain('here');
  });

  it('and sends nothing else is closed at once, also during a handshake', async ({ receiver }) => {
    const { socket, closed } = await openConnection(receiver);
    const beganMs = performance.now();
    socket.end();
    await closed;
    const tcp = await openTcp(receiver);
    tcp.end(Buffer.from([22, 3, 1])).resume();
    await once(tcp, 'close');
    // A handshake times out after ten seconds.
    expect(performance.now() - beganMs).toBeLessThan(9_000);
  });
});
