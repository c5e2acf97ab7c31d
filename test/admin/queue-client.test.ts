/** The client of the queues: bytes of each entry, requests, results of each answer, and errors. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createPullQueue } from '../../src/admin/queue-client.ts';
import { catalogue } from '../../src/admin/subscription-client.ts';
import { createOutboundClient } from '../../src/core/http/outbound-client.ts';
import { errorText } from '../../src/core/terms/app-error.ts';
import { type Answer, startServer } from '../core/http/answering-server.ts';
import { errorOf, id, listedTokens, notFound } from './catalogue-stand-in.ts';

/** Starts a catalogue with these answers, and opens a client as the program does. */
async function startQueue(answers: Answer[], attemptTimeoutMs = 5_000) {
  const { url, requests } = await startServer(answers);
  const { tokens, refused } = listedTokens();
  const send = createOutboundClient({
    ...{ ...catalogue, fetch, random: () => 0, retries: 0 },
    timing: { attemptTimeoutMs },
  });
  const queue = createPullQueue({ catalogueUrl: url, tokens, send });
  const read = (entriesMax = 20) => queue.read({ id, entriesMax });
  const acknowledge = (ackId = 'an-ack-id') => queue.acknowledge({ id, ackId });
  return { read, acknowledge, requests, refused };
}

/** Answers with exactly these bytes. */
const exactly = (...parts: (string | Uint8Array)[]): Answer => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return (response) => void response.writeHead(200).end(body);
};

/** Reads a page with these bytes. */
async function readOf(...parts: (string | Uint8Array)[]) {
  const { read } = await startQueue([exactly(...parts)]);
  return (await read()).entries;
}

const textOf = ({ bytes }: { bytes: Uint8Array }) => Buffer.from(bytes).toString('latin1');

const noonUs = Date.UTC(2026, 4, 1, 12) * 1e3;
const entry = { AckId: 'MTcx', NotificationDate: '2026-05-01T12:00:00.000Z', ProductId: 'p' };

describe('a request', () => {
  it('to read has the number of entries, and no body', async () => {
    const { read, requests } = await startQueue([{ body: [] }]);
    expect((await read(7)).entries).toEqual([]);
    const [{ method, path, headers, body } = {}] = requests;
    expect([method, path, body]).toEqual(['GET', `/odata/v1/Subscriptions(${id})/Read?$top=7`, '']);
    expect(headers?.authorization).toBe('Bearer first-token');
  });

  it.each([
    ['a+b/c=', 'a%2Bb%2Fc%3D'],
    ['\ud800', '%EF%BF%BD'],
  ])('to acknowledge encodes the AckId %s', async (ackId, encoded) => {
    const { acknowledge, requests } = await startQueue([{ body: {} }]);
    await acknowledge(ackId);
    const [{ method, path, body } = {}] = requests;
    expect([method, body]).toEqual(['POST', '']);
    expect(path).toBe(`/odata/v1/Subscriptions(${id})/Ack?$ackid=${encoded}`);
  });

  it('is sent once when the answer does not arrive', async () => {
    const { read, acknowledge, requests } = await startQueue(['cut', 'hang', { status: 503 }], 200);
    for (const call of [() => read(), () => acknowledge(), () => acknowledge(), () => read()]) {
      expect((await errorOf(call())).code).toBe('unavailable');
    }
    expect(requests).toHaveLength(4);
  });
});

describe('a page', () => {
  it('has the bytes of each entry, unchanged, its AckId and date, and the headers', async () => {
    const first = '{ "AckId" : "a=", "NotificationDate":"2026-05-01T12:00:00.000Z", "n": 1.0e1 }';
    const { read } = await startQueue([
      (response) =>
        void response
          .writeHead(200, { 'X-Request-Id': 'r-1' })
          .end(` [ ${first} ,\n{"AckId":"b"}] `),
    ]);
    const { entries, headers } = await read();
    expect(entries.map(textOf)).toEqual([first, '{"AckId":"b"}']);
    expect(entries[0]).toMatchObject({ ackId: 'a=', notificationUs: noonUs });
    expect(entries[1]).toMatchObject({ ackId: 'b', notificationUs: null });
    expect(headers[headers.indexOf('x-request-id') + 1]).toBe('r-1');
  });

  it.each<[field: object, read: object]>([
    [{ AckId: 1_710_756_706_532 }, { ackId: '1710756706532' }],
    [{ AckId: '  spaces stay ' }, { ackId: '  spaces stay ' }],
    ...['', 1.5, null, ['a'], undefined].map((AckId): [object, object] => [
      { AckId },
      { ackId: null },
    ]),
    ...['yesterday', 1_777_636_800, undefined].map((NotificationDate): [object, object] => [
      { NotificationDate },
      { notificationUs: null },
    ]),
  ])('with %j has %j', async (field, read) => {
    expect(await readOf(JSON.stringify([{ ...entry, ...field }]))).toMatchObject([read]);
  });

  it.each<[body: string, texts: string[], ackIds: (string | null)[]]>([
    [`\ufeff[${JSON.stringify(entry)}]`, [JSON.stringify(entry)], ['MTcx']],
    ['[null, 7, "text", [1]]', ['null', '7', '"text"', '[1]'], [null, null, null, null]],
  ])('of the form %s has the bytes of each entry', async (body, texts, ackIds) => {
    const entries = await readOf(body);
    expect(entries.map(textOf)).toEqual(texts);
    expect(entries.map(({ ackId }) => ackId)).toEqual(ackIds);
  });

  it('keeps invalid UTF-8 inside a string byte for byte', async () => {
    const odd = Buffer.concat([
      Buffer.from('{"AckId":"a","Name":"'),
      Buffer.from([0xff, 0xc3, 0x5d, 0x22, 0x7d]),
    ]);
    const [first, second] = await readOf('[', odd, ',{"AckId":"b"}]');
    expect(Buffer.from(first?.bytes ?? []).equals(odd)).toBe(true);
    expect([first?.ackId, second?.ackId]).toEqual(['a', 'b']);
  });
});

const documented = join(
  import.meta.dirname,
  '../../../shared/fixtures/notifications/pull-read-after-3-days.json',
);

it.skipIf(!existsSync(documented))(
  'the documented read after three days (in ../shared/fixtures) has two entries without a record',
  async () => {
    const whole = readFileSync(documented, 'utf8');
    const entries = await readOf(whole);
    const parsed: { AckId: string }[] = JSON.parse(whole);
    expect(entries.map(({ ackId }) => ackId)).toEqual(parsed.map(({ AckId }) => AckId));
    expect(entries[0]?.notificationUs).toBe(Date.UTC(2024, 2, 13, 13, 39, 59) * 1e3);
    for (const one of entries) expect(whole).toContain(textOf(one));
  },
);

it.each<[Answer, (number | null)[]]>([
  [{ body: { AckMessagesNum: 3, CurrentQueueLength: 0, MaxQueueLength: 9 } }, [0, 9]],
  [{ body: { CurrentQueueLength: -1, MaxQueueLength: '9' } }, [null, null]],
  [{ body: { CurrentQueueLength: 7 } }, [7, null]],
  ...[{ status: 204 }, { body: '<html>' }, { body: [] }, { body: 'null' }, { body: '{' }].map(
    (answer): [Answer, null[]] => [answer, [null, null]],
  ),
])('an acknowledgement with the answer %j has its counts', async (answer, counts) => {
  const { acknowledge } = await startQueue([answer]);
  const [length, lengthMax] = counts;
  expect(await acknowledge()).toEqual({ length, lengthMax });
});

describe('an error', () => {
  const calls = ['read', 'acknowledge'] as const;

  it.each(calls)('of %s says that the subscription is unknown, or when to repeat', async (call) => {
    const unknown = await errorOf((await startQueue([notFound]))[call]());
    expect(unknown.code).toBe('not_found');
    expect(errorText(unknown)).toContain(`queue of subscription ${id}`);
    for (const [headers, retryAfterMs] of [
      [{ 'Retry-After': '17' }, 17_000],
      [{}, null],
    ] as const) {
      const { requests, ...limited } = await startQueue([{ status: 429, headers }]);
      const facts = { status: 429, retryAfterMs };
      expect(await errorOf(limited[call]())).toMatchObject({ code: 'too_many', facts });
      expect(requests).toHaveLength(1);
    }
  });

  it.each<[string, Answer, code?: string]>([
    ['no body', { status: 204 }],
    ['null', { body: 'null' }],
    ['far too many items', { body: `[${'{},'.repeat(20_000)}{}]` }],
    ['JSON that is cut off', { body: '[{"AckId":"a"}' }],
    ['the status 302', { status: 302 }],
    ['the status 400', { status: 400 }, 'invalid'],
  ])('of a read with %s is reported', async (_title, answer, code = 'unavailable') => {
    const { read } = await startQueue([answer]);
    const error = await errorOf(read());
    expect(error.code).toBe(code);
    expect(errorText(error)).toContain(`the queue of subscription ${id}`);
  });
});
