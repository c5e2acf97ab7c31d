/** Connections that never become a request: other protocols, old ones, silent ones, far too many. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { expectStillTakesNotifications, goodNotification } from './good-notification.ts';
import { openConnection, openTcp, requestBytes } from './raw-client.ts';
import { startReceiver, type TestReceiver } from './running-receiver.ts';

/** The first bytes of a greeting for TLS 1.2, as far as its length field. */
const helloStart = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

/** Writes to the bare port and waits until the receiver closes; what it said before that. */
async function rawTalk(receiver: TestReceiver, bytes: Uint8Array): Promise<Buffer> {
  const socket = await openTcp(receiver);
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  socket.write(bytes);
  await once(socket, 'close');
  return Buffer.concat(received);
}

describe('the port', () => {
  it.each([
    ['zeroes', Buffer.alloc(5_000)],
    ['bytes of every kind', Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 197) % 256))],
    ['a record of a wrong length', Buffer.concat([helloStart, Buffer.alloc(600, 0xff)])],
    ['a greeting of SSH', Buffer.from('SSH-2.0-OpenSSH_9.7\r\n')],
    ['an HTTP request without TLS', requestBytes(goodNotification())],
  ])('hangs up on %s without giving anything away', async (_name, bytes) => {
    const receiver = await startReceiver();
    const said = await rawTalk(receiver, bytes);
    // A TLS alert at most: one record of two bytes. Never an HTTP answer.
    expect(said.length).toBeLessThanOrEqual(7);
    expect((await receiver.store.counts()).notifications).toBe(0);
    expect(receiver.log.filter(({ level }) => level === 'error')).toEqual([]);
    await expectStillTakesNotifications(receiver);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('speaks %s', async (version) => {
    const receiver = await startReceiver();
    const only = { minVersion: version, maxVersion: version };
    const connection = await openConnection(receiver, only);
    expect(connection.socket.getProtocol()).toBe(version);
    connection.send(requestBytes(goodNotification()));
    expect((await connection.answer()).status).toBe(200);
  });

  it.each(['TLSv1', 'TLSv1.1'] as const)('refuses %s', async (version) => {
    const receiver = await startReceiver();
    const only = { minVersion: version, maxVersion: version, ciphers: 'ALL@SECLEVEL=0' };
    await expect(openConnection(receiver, only)).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    });
    await expectStillTakesNotifications(receiver);
  });

  it('refuses a client that wants HTTP/2 alone', async () => {
    const receiver = await startReceiver();
    const onlyHttp2 = { ALPNProtocols: ['h2'] };
    await expect(openConnection(receiver, onlyHttp2)).rejects.toThrow(/no application protocol/i);
    await expectStillTakesNotifications(receiver);
  });

  it('survives handshakes that are broken off at every stage', async () => {
    const receiver = await startReceiver();
    const going = Array.from({ length: 60 }, async (_, i) => {
      const socket = await openTcp(receiver);
      if (i % 3 > 0) socket.write(helloStart.subarray(0, 1 + (i % helloStart.length)));
      if (i % 2 === 0) socket.resetAndDestroy();
      else socket.end();
    });
    await Promise.all(going);
    await expectStillTakesNotifications(receiver);
    expect(receiver.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('1,500 silent connections', () => {
  async function openMany(receiver: TestReceiver, count: number): Promise<Socket[]> {
    const sockets: Socket[] = [];
    while (sockets.length < count) {
      const some = Array.from({ length: 100 }, () => openTcp(receiver));
      sockets.push(...(await Promise.all(some)));
    }
    return sockets;
  }

  it('are cut to a thousand, and keep neither a new sender nor a busy one out', async () => {
    const receiver = await startReceiver();
    const busy = await openConnection(receiver);
    const sockets: Socket[] = [];
    for (let round = 0; round < 5; round += 1) {
      const more = await openMany(receiver, 300);
      for (const socket of more) socket.write(helloStart);
      sockets.push(...more);
      busy.send(requestBytes(goodNotification()));
      expect((await busy.answer()).status).toBe(200);
      await expectStillTakesNotifications(receiver);
    }
    const open = () => sockets.filter((socket) => !socket.closed).length;
    await expect.poll(open, { timeout: 10_000 }).toBeLessThanOrEqual(1_000);
    expect(open()).toBeGreaterThan(900);
    expect((await receiver.store.counts()).notifications).toBe(10);
  });
});
