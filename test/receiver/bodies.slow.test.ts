/**
 * Bodies over the limit: the sender reads the response, the store is unchanged, the next body is
 * accepted.
 */

import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { bodyBytesMax } from '../../src/core/terms/ports.ts';
import {
  basic,
  type Connection,
  exchange,
  expectStillAcceptsNotifications,
  goodNotification,
  openConnection,
  requestBytes,
} from './raw-client.ts';
import { it } from './running-receiver.ts';
import { startProgram } from './started-program.ts';

const tenMegabytes = 10 * 2 ** 20;

/** Sends like a client that reads the response only after its complete body. */
async function sendThenRead(connection: Connection, ...parts: Uint8Array[]) {
  const { socket } = connection;
  for (const part of parts) {
    await new Promise<void>((resolve, reject) => {
      socket.write(part, (error) => (error ? reject(error) : resolve()));
    });
  }
  return connection.answer();
}

function chunked(bytesTotal: number, chunkBytes: number): Buffer {
  const chunk = Buffer.concat([
    Buffer.from(`${chunkBytes.toString(16)}\r\n`),
    Buffer.alloc(chunkBytes, 'x'),
    Buffer.from('\r\n'),
  ]);
  const chunks = Array.from({ length: Math.ceil(bytesTotal / chunkBytes) }, () => chunk);
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]);
}

function paddedTo(bytes: number): string {
  const { body } = goodNotification();
  return body + ' '.repeat(bytes - body.length);
}

const transferEncoding = { headers: { 'Transfer-Encoding': 'chunked' } };

describe('a body over the limit', () => {
  it('is answered 413 that the sender can read, and the connection stays usable', async ({
    receiver,
  }) => {
    const connection = await openConnection(receiver);
    const announced = (bytes: number) => [requestBytes({ body: 'x'.repeat(bytes) })];
    const inChunks = (...of: [bytesTotal: number, chunkBytes: number]) => [
      requestBytes(transferEncoding),
      chunked(...of),
    ];
    for (const parts of [
      announced(bodyBytesMax + 1),
      announced(tenMegabytes),
      inChunks(bodyBytesMax + 1, bodyBytesMax + 1),
      inChunks(tenMegabytes, 16_384),
      inChunks(bodyBytesMax + 5_000, 7),
    ]) {
      const answer = await sendThenRead(connection, ...parts);
      expect(JSON.parse(answer.body)).toMatchObject({ status: 413, title: 'Content too large' });
    }
    const counts = { notifications: 0, duplicates: 0, quarantined: 0 };
    expect(await receiver.store.counts()).toEqual(counts);
    const fields = expect.objectContaining({ status: 413 });
    expect(receiver.log).toContainEqual({ level: 'warn', message: 'request refused', fields });
    const { body } = goodNotification();
    expect((await sendThenRead(connection, requestBytes({ body }))).status).toBe(200);
  });

  it('that is refused for another reason gets that answer, which the sender can read', async ({
    receiver,
  }) => {
    const connection = await openConnection(receiver);
    for (const [status, parts] of [
      [401, { authorization: basic('x', 'y') }],
      [404, { path: '/elsewhere' }],
      [405, { method: 'PUT' }],
      [200, goodNotification()],
    ] as const) {
      const request = requestBytes({ body: 'x'.repeat(tenMegabytes), ...parts });
      expect((await sendThenRead(connection, request)).status).toBe(status);
    }
  });

  it('is discarded up to 64 MiB, and then the connection is closed', async ({ receiver }) => {
    const connection = await openConnection(receiver);
    connection.send(requestBytes(transferEncoding));
    const megabyte = chunked(2 ** 20, 2 ** 20).subarray(0, -'0\r\n\r\n'.length);
    let sentBytes = 0;
    const pump = () => {
      while (!connection.socket.destroyed && sentBytes < 256 * 2 ** 20) {
        sentBytes += 2 ** 20;
        if (!connection.socket.write(megabyte)) return;
      }
    };
    connection.socket.on('drain', pump);
    pump();
    expect((await connection.answer()).status).toBe(413);
    await connection.closed;
    expect(sentBytes).toBeLessThan(160 * 2 ** 20);
    await expectStillAcceptsNotifications(receiver);
  });
});

it('a body at the limit is stored, with an announced length or without', async ({ receiver }) => {
  const connection = await openConnection(receiver);
  const body = paddedTo(bodyBytesMax);
  const announced = await sendThenRead(connection, requestBytes({ body }));
  expect(announced).toMatchObject({ status: 200, body: '{"status":"stored"}' });
  const inOneChunk = Buffer.from(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  const again = await sendThenRead(connection, requestBytes(transferEncoding), inOneChunk);
  expect(again).toMatchObject({ status: 200, body: '{"status":"duplicate"}' });
});

it('many concurrent bodies have a total limit: beyond 64 MiB senders get 503, and all bodies are accepted later', async ({
  receiver,
}) => {
  const senders = 70;
  const connections = await Promise.all(
    Array.from({ length: senders }, () => openConnection(receiver)),
  );
  const bodies = connections.map(() => paddedTo(bodyBytesMax));
  // All but the last byte of each, so that all are received at the same time.
  const answers = connections.map((connection, i) => {
    connection.send(requestBytes({ body: bodies[i] ?? '' }).subarray(0, -1));
    return connection.answer();
  });
  const refused = await Promise.race(answers);
  expect(refused.status).toBe(503);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  for (const connection of connections) connection.send(' ');
  const statuses = (await Promise.all(answers)).map((answer) => answer.status);
  const stored = statuses.filter((status) => status === 200).length;
  expect(stored).toBeGreaterThan(0);
  expect(statuses.filter((status) => status === 503)).toHaveLength(senders - stored);
  expect((await receiver.store.counts()).notifications).toBe(stored);
  await expectStillAcceptsNotifications(receiver);
});

it('a body of a million chunks costs no more than a body in one chunk', async ({ skip }) => {
  const program = await startProgram();
  const before = await program.residentBytes();
  if (before === null) return skip('only Linux reports resident memory');
  const connection = await openConnection(program);
  const chunks = Buffer.from('1\r\n \r\n'.repeat(1_000_000));
  connection.send(requestBytes(transferEncoding));
  const sent = new Promise((resolve) => connection.socket.write(chunks, resolve));
  // Resident memory while the last chunk is missing.
  await sent;
  let largest = (await program.residentBytes()) ?? 0;
  connection.send('0\r\n\r\n');
  expect((await connection.answer()).status).toBe(400);
  largest = Math.max(largest, (await program.residentBytes()) ?? 0);
  expect(largest - before).toBeLessThan(200 * 2 ** 20);
}, 60_000);

it('with a Content-Encoding are answered 415 and quarantined unchanged with it; identity is none', async ({
  receiver,
}) => {
  const { store } = receiver;
  const send = (encoding: string, body: string | Uint8Array) =>
    exchange(receiver, { body, headers: { 'Content-Encoding': encoding } });
  const body = gzipSync(goodNotification().body);
  for (const encoding of ['GZIP', '__proto__', 'identity , br']) {
    const answer = await send(encoding, body);
    expect([answer.status, answer.headers['accept-encoding']]).toEqual([415, 'identity']);
  }
  const entry = await store.quarantineEntry(1);
  expect(entry.reason).toBe('unsupported-encoding');
  expect(body.equals(entry.body)).toBe(true);
  expect(entry.headers.join()).toContain('Content-Encoding,GZIP');
  for (const encoding of ['identity', ''])
    expect((await send(encoding, goodNotification().body)).status).toBe(200);
});
