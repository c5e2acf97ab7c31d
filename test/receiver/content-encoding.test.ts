/** Bodies with a Content-Encoding: read as what they hold, kept as they came. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { bodyBytesMax } from '../../src/http/request-body.ts';
import { expectStillTakesNotifications, goodNotification } from './good-notification.ts';
import { exchange } from './raw-client.ts';
import { collect, startReceiver, type TestReceiver } from './running-receiver.ts';

function send(receiver: TestReceiver, encoding: string, body: Uint8Array) {
  return exchange(receiver, { body, headers: { 'Content-Encoding': encoding } });
}

it('are stored in each known encoding, alone or one over the other, and found again', async () => {
  const receiver = await startReceiver();
  const { store } = receiver;
  const encodings: [string, (bytes: Uint8Array) => Uint8Array, string | null][] = [
    ['gzip', gzipSync, 'gzip'],
    ['X-GZIP', gzipSync, 'x-gzip'],
    ['deflate', deflateSync, 'deflate'],
    ['deflate', deflateRawSync, 'deflate'],
    ['br', brotliCompressSync, 'br'],
    ['deflate, gzip', (bytes) => gzipSync(deflateSync(bytes)), 'deflate, gzip'],
    ['identity , gzip', gzipSync, 'gzip'],
    ['identity', (bytes) => bytes, null],
  ];
  for (const [header, encode, noted] of encodings) {
    const { ackId, body } = goodNotification({ paddingBytes: 50_000 });
    const sent = encode(Buffer.from(body));
    expect(await send(receiver, header, sent)).toMatchObject({
      status: 200,
      body: '{"status":"stored"}',
    });
    expect((await exchange(receiver, { body })).body).toBe('{"status":"duplicate"}');
    const [row] = await collect(store.find({ ackId }));
    const position = row?.position ?? 0;
    expect(Buffer.from(await store.body(position)).toString()).toBe(body);
    const { bytes, encoding } = await store.original(position);
    expect({ header, encoding }).toEqual({ header, encoding: noted });
    expect(Buffer.from(bytes).equals(sent)).toBe(true);
  }
  expect(await store.heldCount()).toBe(0);
});

it('in an unknown encoding are answered 415 with the known ones, and quarantined', async () => {
  const receiver = await startReceiver();
  const { body } = goodNotification();
  for (const encoding of [
    'zstd',
    'constructor',
    '__proto__',
    'gzip, compress',
    'gzip, gzip, gzip, gzip',
  ]) {
    const answer = await send(receiver, encoding, Buffer.from(body));
    expect(answer.status).toBe(415);
    expect(answer.headers['accept-encoding']).toBe('gzip, deflate, br');
  }
  const entries = await collect(receiver.store.quarantined({ released: false }));
  expect(entries.map(({ reason }) => reason)).toEqual(Array(5).fill('unsupported-encoding'));
  const entry = await receiver.store.quarantineEntry(entries[0]?.id ?? 0);
  expect(Buffer.from(entry.body).toString()).toBe(body);
});

it('that are damaged are answered 400, and quarantined with their bytes', async () => {
  const receiver = await startReceiver();
  const whole = gzipSync(goodNotification().body);
  for (const [encoding, body] of [
    ['gzip', whole.subarray(0, -12)],
    ['br', whole],
    ['deflate', Buffer.from('no deflate')],
    ['gzip', Buffer.alloc(0)],
  ] as const) {
    expect({ encoding, status: (await send(receiver, encoding, body)).status }).toEqual({
      encoding,
      status: 400,
    });
  }
  const entries = await collect(receiver.store.quarantined({ released: false }));
  expect(entries.map(({ reason }) => reason)).toEqual(Array(4).fill('undecodable-body'));
  const { body } = await receiver.store.quarantineEntry(entries[3]?.id ?? 0);
  expect(whole.subarray(0, -12).equals(body)).toBe(true);
  expect(await receiver.store.retry(entries[3]?.id ?? 0, 1)).toMatchObject({ outcome: 'rejected' });
});

it('that become larger than the limit are answered 413, and the next is taken', async () => {
  const receiver = await startReceiver();
  const spaces = (bytes: number) => Buffer.alloc(bytes, ' ');
  const bombs: [string, Uint8Array][] = [
    ['gzip', gzipSync(spaces(bodyBytesMax + 1))],
    ['br', brotliCompressSync(spaces(50 * bodyBytesMax))],
    ['gzip, gzip', gzipSync(gzipSync(spaces(50 * bodyBytesMax)))],
  ];
  for (const [encoding, body] of bombs) {
    expect((await send(receiver, encoding, body)).status).toBe(413);
  }
  expect((await send(receiver, 'gzip', gzipSync(spaces(bodyBytesMax)))).status).toBe(400);
  expect(await receiver.store.heldCount()).toBe(1);
  await expectStillTakesNotifications(receiver);
});
