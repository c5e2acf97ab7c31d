/** Requests that are no proper HTTP, or odd HTTP: none is stored by mistake, the next good one is taken. */
import { describe, expect } from 'vitest';
import {
  answersTo,
  basic,
  expectStillTakesNotifications,
  goodNotification,
  openConnection,
  refusedShapes,
  requestBytes,
} from './raw-client.ts';
import { it, startReceiver } from './running-receiver.ts';

const auth = `Authorization: ${basic()}`;

const lines = (...parts: string[]) => `${parts.join('\r\n')}\r\n\r\n`;

describe('a request that is no proper HTTP', () => {
  it('is refused with 4xx, closed, and nothing that it carries is stored', async ({ receiver }) => {
    for (const [name, shape] of Object.entries(refusedShapes)) {
      const answers = await answersTo(receiver, shape(goodNotification().body));
      const statuses = answers.map((answer) => answer.status);
      expect([name, statuses]).toEqual([
        name,
        [expect.toSatisfy((status: number) => status >= 400 && status < 500)],
      ]);
    }
    expect((await receiver.store.counts()).notifications).toBe(0);
    await expectStillTakesNotifications(receiver);
  });

  it('with more headers than 16 KiB is answered 431, whether one is huge or all are many', async ({
    receiver,
  }) => {
    const floods = [
      { 'X-Huge': 'x'.repeat(17 * 1024) },
      { Authorization: basic('u', 'x'.repeat(20_000)) },
      Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`X-${i}`, 'y'])),
    ];
    for (const headers of floods) {
      const [answer, ...others] = await answersTo(
        receiver,
        requestBytes({ method: 'GET', headers }),
      );
      expect(answer?.status).toBe(431);
      expect(others).toEqual([]);
    }
    await expectStillTakesNotifications(receiver);
  });

  it('with hundreds of small headers is answered as any other', async ({ receiver }) => {
    const headers = Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`X${i}`, 'y']));
    const { body } = goodNotification();
    const connection = await openConnection(receiver);
    connection.send(requestBytes({ body, headers }));
    expect((await connection.answer()).status).toBe(200);
  });
});

describe('a target of another form', () => {
  it.each(['https://localhost/notifications/s1', 'http://other.example/notifications/s1'])(
    '(%s) is served by its path',
    async (path) => {
      const receiver = await startReceiver();
      const headers = { Connection: 'close' };
      const { body } = goodNotification();
      const answers = await answersTo(receiver, requestBytes({ path, headers, body }));
      expect(answers.map((answer) => answer.status)).toEqual([200]);
      const stranger = { path, headers, body, authorization: null };
      const refused = await answersTo(receiver, requestBytes(stranger));
      expect(refused.map((answer) => answer.status)).toEqual([401]);
    },
  );

  it('for a tunnel is hung up on', async ({ receiver }) => {
    const tunnel = lines('CONNECT example.org:443 HTTP/1.1', 'Host: h', auth);
    const answers = await answersTo(receiver, tunnel);
    expect(answers.filter((answer) => answer.status < 400)).toEqual([]);
    await expectStillTakesNotifications(receiver);
  });

  it('under any Host is served alike', async ({ receiver }) => {
    const hosts = ['localhost:1', 'EXAMPLE.org.', '[::1]:8443', '203.0.113.9', 'a_b.example:443'];
    for (const Host of hosts) {
      const { body } = goodNotification();
      const headers = { Host, Connection: 'close' };
      const answers = await answersTo(receiver, requestBytes({ headers, body }));
      expect([Host, ...answers.map((answer) => answer.status)]).toEqual([Host, 200]);
    }
  });
});

describe('a Host', () => {
  it('that is empty, or absent as HTTP/1.0 allows, does not keep a notification out', async ({
    receiver,
  }) => {
    const empty = { headers: { Host: '', Connection: 'close' }, body: goodNotification().body };
    const { body } = goodNotification();
    const old =
      lines('POST /notifications HTTP/1.0', auth, `Content-Length: ${body.length}`) + body;
    const answers = [
      ...(await answersTo(receiver, requestBytes(empty))),
      ...(await answersTo(receiver, old)),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
  });

  it('that is no name is refused, and nothing is stored', async ({ receiver }) => {
    for (const Host of ['a b', 'h@x', 'h:99999', '[::1', 'h/x', '\xe4']) {
      const { body } = goodNotification();
      const headers = { Host, Connection: 'close' };
      const answers = await answersTo(receiver, requestBytes({ headers, body }));
      expect([Host, ...answers.map((answer) => answer.status)]).toEqual([Host, 400]);
    }
    expect((await receiver.store.counts()).notifications).toBe(0);
    await expectStillTakesNotifications(receiver);
  });
});

describe('another version or negotiation', () => {
  it('HTTP/1.0 is answered and closed', async ({ receiver }) => {
    const { body } = goodNotification();
    const head = [
      'POST /notifications HTTP/1.0',
      'Host: h',
      auth,
      `Content-Length: ${body.length}`,
    ];
    const answers = await answersTo(receiver, lines(...head) + body);
    expect(answers).toMatchObject([{ status: 200, body: '{"status":"stored"}' }]);
  });

  it('a sender that waits for 100 Continue is told to go on', async ({ receiver }) => {
    const connection = await openConnection(receiver);
    const { body } = goodNotification();
    const request = requestBytes({ body, headers: { Expect: '100-continue' } });
    connection.send(request.subarray(0, request.length - body.length));
    expect((await connection.answer()).status).toBe(100);
    connection.send(body);
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"status":"stored"}' });
  });

  it('an expectation that nobody knows is passed over', async ({ receiver }) => {
    const headers = { Expect: 'miracles', Connection: 'close' };
    const { body } = goodNotification();
    const answers = await answersTo(receiver, requestBytes({ body, headers }));
    expect(answers.map((answer) => answer.status)).toEqual([200]);
    await expectStillTakesNotifications(receiver);
  });

  it('an offer to upgrade is ignored', async ({ receiver }) => {
    for (const Upgrade of ['h2c', 'websocket']) {
      const headers = { Upgrade, Connection: 'Upgrade, close' };
      const { body } = goodNotification();
      const answers = await answersTo(receiver, requestBytes({ body, headers }));
      expect(answers.map((answer) => answer.status)).toEqual([200]);
    }
  });
});
