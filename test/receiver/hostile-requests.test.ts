/** Invalid or unusual HTTP requests: none is stored by mistake, the next valid one is accepted. */
import { describe, expect } from 'vitest';
import { refusedRequests } from '../attack/refused-requests.ts';
import {
  answersTo,
  basic,
  expectStillAcceptsNotifications,
  goodNotification,
  openConnection,
  requestBytes,
} from './raw-client.ts';
import { it, type TestReceiver } from './running-receiver.ts';

/** A head of these lines, with the right credentials. */
function head(...headers: string[]): string {
  return [
    'POST /notifications HTTP/1.1',
    'Host: h',
    `Authorization: ${basic()}`,
    ...headers,
    '',
    '',
  ].join('\r\n');
}

/** Returns the statuses for a notification in such a request, until the connection is closed. */
async function statusesOf(receiver: TestReceiver, sent: Record<string, string>, path?: string) {
  const { body } = goodNotification();
  const headers = { Connection: 'close', ...sent };
  const request = requestBytes({ body, headers, ...(path === undefined ? {} : { path }) });
  return (await answersTo(receiver, request)).map(({ status }) => status);
}

it('an invalid request is refused with 4xx, closed, and none of its content is stored', async ({
  receiver,
}) => {
  for (const request of refusedRequests(head, goodNotification().body)) {
    const answers = await answersTo(receiver, request);
    const families = answers.map(({ status }) => Math.floor(status / 100));
    expect({ request, families }).toEqual({ request, families: [4] });
  }
  const tunnel = head('').replace(/^.*/, 'CONNECT example.org:443 HTTP/1.1');
  expect((await answersTo(receiver, tunnel)).filter(({ status }) => status < 400)).toEqual([]);
  expect((await receiver.store.counts()).notifications).toBe(0);
  await expectStillAcceptsNotifications(receiver);
});

it('more than 16 KiB of headers are answered 431, hundreds of small ones normally', async ({
  receiver,
}) => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`X${i}`, 'y']));
  const login = { Authorization: basic('u', 'x'.repeat(20_000)) };
  for (const headers of [{ 'X-Huge': 'x'.repeat(17 * 1024) }, login, many(5_000)])
    expect(await statusesOf(receiver, headers)).toEqual([431]);
  expect(await statusesOf(receiver, many(600))).toEqual([200]);
});

describe('a Host', () => {
  it.for([
    [200, ['localhost:1', 'EXAMPLE.org.', '[::1]:8443', '203.0.113.9', 'a_b.example:443', '']],
    [400, ['a b', 'h@x', 'h:99999', '[::1', 'h/x', '\xe4']],
  ] as const)('is answered %i: %j', async ([status, hosts], { receiver }) => {
    for (const Host of hosts) {
      const statuses = await statusesOf(receiver, { Host });
      expect({ Host, statuses }).toEqual({ Host, statuses: [status] });
    }
    const stored = status === 200 ? hosts.length : 0;
    expect((await receiver.store.counts()).notifications).toBe(stored);
  });

  it.for([
    ['POST /notifications HTTP/1.1', 'Host: localhost', 'Host: localhost'],
    ['POST /notifications HTTP/1.1', 'HOST: other.example', 'host: localhost'],
    ['POST /notifications HTTP/1.1', 'Host:', 'Host: localhost'],
    ['POST /notifications HTTP/1.1', 'Host: localhost,other.example'],
    ['POST http://localhost/notifications HTTP/1.1', 'Host: a', 'Host: b'],
    ['POST /notifications HTTP/1.0', 'Host: a', 'Host: b'],
  ])('among several is refused, and the connection closed: %j', async (lines, { receiver }) => {
    const { body } = goodNotification();
    const request = head(`Content-Length: ${body.length}`).split('\r\n').slice(2);
    const answers = await answersTo(receiver, [...lines, ...request].join('\r\n') + body);
    expect(answers).toMatchObject([{ status: 400, headers: { connection: 'close' } }]);
    expect((await receiver.store.counts()).notifications).toBe(0);
  });
});

it('a sender that waits for 100 Continue receives it; other offers are ignored', async ({
  receiver,
}) => {
  const connection = await openConnection(receiver);
  const { body } = goodNotification();
  const request = requestBytes({ body, headers: { Expect: '100-continue' } });
  connection.send(request.subarray(0, request.length - body.length));
  expect((await connection.answer()).status).toBe(100);
  connection.send(body);
  expect(await connection.answer()).toMatchObject({ status: 200, body: '{"status":"stored"}' });
  const upgrade = { Connection: 'Upgrade, close' };
  for (const headers of [
    { Expect: 'miracles' },
    { ...upgrade, Upgrade: 'h2c' },
    { ...upgrade, Upgrade: 'websocket' },
  ])
    expect(await statusesOf(receiver, headers)).toEqual([200]);
});
