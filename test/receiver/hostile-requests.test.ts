/** Invalid or unusual HTTP requests: none is stored by mistake, the next valid one is accepted. */
import { describe, expect } from 'vitest';
import {
  answersTo,
  basic,
  expectStillAcceptsNotifications,
  goodNotification,
  openConnection,
  type RequestParts,
  refusedShapes,
  requestBytes,
} from './raw-client.ts';
import { it, type TestReceiver } from './running-receiver.ts';

const auth = `Authorization: ${basic()}`;

/** Returns the statuses for a notification in such a request, until the connection is closed. */
async function statusesOf(receiver: TestReceiver, parts: RequestParts = {}): Promise<number[]> {
  const { body } = goodNotification();
  const headers = { Connection: 'close', ...parts.headers };
  const answers = await answersTo(receiver, requestBytes({ body, ...parts, headers }));
  return answers.map(({ status }) => status);
}

const lines = (...parts: string[]) => `${parts.join('\r\n')}\r\n\r\n`;

describe('an invalid HTTP request', () => {
  it('is refused with 4xx, closed, and none of its content is stored', async ({ receiver }) => {
    for (const [name, shape] of Object.entries(refusedShapes)) {
      const answers = await answersTo(receiver, shape(goodNotification().body));
      const statuses = answers.map((answer) => answer.status);
      expect([name, statuses]).toEqual([
        name,
        [expect.toSatisfy((status: number) => status >= 400 && status < 500)],
      ]);
    }
    expect((await receiver.store.counts()).notifications).toBe(0);
    await expectStillAcceptsNotifications(receiver);
  });

  it('with more than 16 KiB of headers is answered 431, for one huge header or for many', async ({
    receiver,
  }) => {
    const floods = [
      { 'X-Huge': 'x'.repeat(17 * 1024) },
      { Authorization: basic('u', 'x'.repeat(20_000)) },
      Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`X-${i}`, 'y'])),
    ];
    for (const headers of floods) {
      expect(await statusesOf(receiver, { method: 'GET', headers })).toEqual([431]);
    }
    await expectStillAcceptsNotifications(receiver);
  });

  it('with hundreds of small headers is answered normally', async ({ receiver }) => {
    const headers = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`X${i}`, 'y']));
    expect(await statusesOf(receiver, { headers })).toEqual([200]);
  });
});

describe('a request target of another form', () => {
  it('is served by its path', async ({ receiver }) => {
    for (const scheme of ['https://localhost', 'http://other.example']) {
      const path = `${scheme}/notifications/s1`;
      expect(await statusesOf(receiver, { path })).toEqual([200]);
      expect(await statusesOf(receiver, { path, authorization: null })).toEqual([401]);
    }
  });

  it('for a tunnel closes the connection', async ({ receiver }) => {
    const tunnel = lines('CONNECT example.org:443 HTTP/1.1', 'Host: h', auth);
    const answers = await answersTo(receiver, tunnel);
    expect(answers.filter((answer) => answer.status < 400)).toEqual([]);
    await expectStillAcceptsNotifications(receiver);
  });
});

describe('a Host', () => {
  it.for([
    ['of another name is served normally', 200, ['localhost:1', 'EXAMPLE.org.', '[::1]:8443']],
    [
      'of another address, or none, is served normally',
      200,
      ['203.0.113.9', 'a_b.example:443', ''],
    ],
    ['that is not a name is refused', 400, ['a b', 'h@x', 'h:99999', '[::1', 'h/x', '\xe4']],
  ] as const)('%s', async ([_title, status, hosts], { receiver }) => {
    for (const Host of hosts) {
      const statuses = await statusesOf(receiver, { headers: { Host } });
      expect({ Host, statuses }).toEqual({ Host, statuses: [status] });
    }
    const stored = status === 200 ? hosts.length : 0;
    expect((await receiver.store.counts()).notifications).toBe(stored);
    await expectStillAcceptsNotifications(receiver);
  });
});

describe('several hosts', () => {
  it.for([
    ['in two headers', 'POST /notifications HTTP/1.1', ['Host: localhost', 'Host: localhost']],
    ['of two names', 'POST /notifications HTTP/1.1', ['Host: localhost', 'Host: other.example']],
    ['of two cases', 'POST /notifications HTTP/1.1', ['HOST: other.example', 'host: localhost']],
    ['after an empty one', 'POST /notifications HTTP/1.1', ['Host:', 'Host: localhost']],
    ['in a list', 'POST /notifications HTTP/1.1', ['Host: localhost,other.example']],
    ['next to a whole URL', 'POST http://localhost/notifications HTTP/1.1', ['Host: a', 'Host: b']],
    ['of HTTP/1.0', 'POST /notifications HTTP/1.0', ['Host: a', 'Host: b']],
  ] as const)(
    '%s are refused, and the connection closed',
    async ([_title, first, hosts], { receiver }) => {
      const { body } = goodNotification();
      const head = lines(first, ...hosts, auth, `Content-Length: ${body.length}`);
      const answers = await answersTo(receiver, head + body);
      expect(answers).toMatchObject([{ status: 400, headers: { connection: 'close' } }]);
      expect((await receiver.store.counts()).notifications).toBe(0);
    },
  );
});

describe('another version or negotiation', () => {
  it.for([
    ['HTTP/1.0', ['Host: h']],
    ['HTTP/1.0 without a Host', []],
  ] as const)('%s is answered and closed', async ([_title, host], { receiver }) => {
    const { body } = goodNotification();
    const head = ['POST /notifications HTTP/1.0', ...host, auth, `Content-Length: ${body.length}`];
    const answers = await answersTo(receiver, lines(...head) + body);
    expect(answers).toMatchObject([{ status: 200, body: '{"status":"stored"}' }]);
  });

  it('a sender that waits for 100 Continue receives it', async ({ receiver }) => {
    const connection = await openConnection(receiver);
    const { body } = goodNotification();
    const request = requestBytes({ body, headers: { Expect: '100-continue' } });
    connection.send(request.subarray(0, request.length - body.length));
    expect((await connection.answer()).status).toBe(100);
    connection.send(body);
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"status":"stored"}' });
  });

  it('an unknown expectation, or an offer to upgrade, is ignored', async ({ receiver }) => {
    for (const headers of [
      { Expect: 'miracles' },
      { Upgrade: 'h2c', Connection: 'Upgrade, close' },
      { Upgrade: 'websocket', Connection: 'Upgrade, close' },
    ]) {
      expect(await statusesOf(receiver, { headers })).toEqual([200]);
    }
    await expectStillAcceptsNotifications(receiver);
  });
});
