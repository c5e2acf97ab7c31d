import { describe, expect } from 'vitest';
import {
  basic,
  exchange,
  expectStillAcceptsNotifications,
  goodNotification,
  openConnection,
  type RequestParts,
  requestBytes,
} from './raw-client.ts';
import { type Endpoint, goodPair, it, startReceiver } from './running-receiver.ts';

const { username, password } = goodPair;

const good = basic();

const base64Of = (text: string) => Buffer.from(text).toString('base64');

const wrongAuthorizations: Record<string, string | null> = {
  none: null,
  'an empty header': '',
  'the scheme alone': 'Basic',
  'another scheme': `Bearer ${base64Of(`${username}:${password}`)}`,
  'a longer scheme': `Basics ${base64Of(`${username}:${password}`)}`,
  'plain text': `Basic ${username}:${password}`,
  'base64 that ends early': `${good.slice(0, -3)}=`,
  'base64 with a blank inside': `Basic ${base64Of(`${username}:${password}`).replace(/(....)/, '$1 ')}`,
  'base64 with trailing characters': `${good}, ${good}`,
  'no colon': `Basic ${base64Of(username + password)}`,
  'a wrong user': basic('somebody', password),
  'a wrong password': basic(username, 'open barley'),
  'user and password swapped': basic(password, username),
  'a truncated password': basic(username, password.slice(0, -1)),
  'a zero byte after the password': basic(username, `${password}\0`),
  'another case of the user': basic(username.toUpperCase(), password),
  'an empty user': basic('', password),
  'a header of 10 kB': basic(username, 'x'.repeat(7_500)),
  'bytes that are not text': `Basic ${Buffer.from([0xff, 0xfe, 0x3a, 0x80]).toString('base64')}`,
};

async function statusOf(endpoint: Endpoint, authorization: string): Promise<number> {
  return (await exchange(endpoint, { method: 'GET', authorization })).status;
}

describe('wrong or missing credentials', () => {
  it('all get the same response: 401, the challenge, and nothing written', async ({ receiver }) => {
    // A cached valid header must not admit another one.
    expect(await statusOf(receiver, good)).toBe(200);
    const shapes = new Set<string>();
    for (const [name, authorization] of Object.entries(wrongAuthorizations)) {
      for (const method of ['GET', 'POST']) {
        const { body } = goodNotification();
        const { status, headers, ...rest } = await exchange(receiver, {
          method,
          authorization,
          body,
        });
        expect([name, status]).toEqual([name, 401]);
        expect(headers['www-authenticate']).toBe('Basic realm="earshot", charset="UTF-8"');
        const { requestId, ...problem } = JSON.parse(rest.body);
        expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
        const { date, ...otherHeaders } = headers;
        expect(date).toBeDefined();
        shapes.add(JSON.stringify([otherHeaders, problem]));
      }
    }
    expect([...shapes]).toHaveLength(1);
    const counts = { notifications: 0, duplicates: 0, quarantined: 0 };
    expect(await receiver.store.counts()).toEqual(counts);
    await expectStillAcceptsNotifications(receiver);
  });

  it('are logged with address and request id, without anything that was sent', async ({
    receiver,
  }) => {
    const authorization = basic('intruder', 'hunter2');
    const { requestId } = JSON.parse((await exchange(receiver, { authorization })).body);
    expect(receiver.log).toEqual([
      {
        level: 'warn',
        fields: { requestId, address: '127.0.0.1', listener: 'public' },
        message: 'login failed',
      },
    ]);
  });

  it('are neither logged nor counted for a GET without a login, such as a probe', async ({
    receiver,
  }) => {
    const ask = () => exchange(receiver, { method: 'GET', authorization: null });
    for (let i = 0; i < 120; i += 1) expect((await ask()).status).toBe(401);
    expect(receiver.log).toEqual([]);
  });

  it('are checked by the first Authorization header when there are two', async ({ receiver }) => {
    const twice = (first: string, second: string): RequestParts => ({
      method: 'GET',
      authorization: null,
      headers: { Authorization: first, authorization: second },
    });
    expect((await exchange(receiver, twice(good, basic('x', 'y')))).status).toBe(200);
    expect((await exchange(receiver, twice(basic('x', 'y'), good))).status).toBe(401);
  });
});

describe('right credentials', () => {
  it('are accepted in any case of the scheme, after several blanks, without padding', async ({
    receiver,
  }) => {
    const encoded = good.slice('Basic '.length);
    expect(encoded).toMatch(/=$/);
    for (const header of [
      `basic ${encoded}`,
      `BASIC ${encoded}`,
      `bAsIc     ${encoded}`,
      `  Basic ${encoded}  `,
      `Basic ${encoded.replaceAll('=', '')}`,
    ]) {
      expect([header, await statusOf(receiver, header)]).toEqual([header, 200]);
    }
  });

  const umlauts = { username: 'küste', password: 'größe:£' };
  const beyond = { username, password: '\u0161\u20ac' };
  it('have any password, outside ASCII in UTF-8 or ISO 8859-1, and never halves of two pairs', async () => {
    const passwords = [':a::b:', ' ', 'words '.repeat(100)];
    const plain = passwords.map((password, i) => ({ username: `user-${i}`, password }));
    const receiver = await startReceiver([...plain, umlauts, beyond]);
    const latin = basic(umlauts.username, umlauts.password, 'latin1');
    for (const pair of [...plain, umlauts, beyond])
      expect(await statusOf(receiver, basic(pair.username, pair.password))).toBe(200);
    expect(await statusOf(receiver, latin)).toBe(200);
    for (const [name, word] of [
      ['user-0', ':a::b'],
      ['user-0', ' '],
      ['kuste', 'grosse:£'],
      // The low bytes of the letters.
      [username, '\x61\xac'],
    ] as const)
      expect([word, await statusOf(receiver, basic(name, word, 'latin1'))]).toEqual([word, 401]);
  });
});

describe('failed logins beyond a hundred a minute from one address', () => {
  async function failures(endpoint: Endpoint, count: number, from: string): Promise<number[]> {
    const connection = await openConnection(endpoint, { localAddress: from });
    const statuses: number[] = [];
    for (let i = 0; i < count; i += 1) {
      connection.send(requestBytes({ method: 'GET', authorization: basic('x', `${i}`) }));
      statuses.push((await connection.answer()).status);
    }
    return statuses;
  }

  it('are answered 429 with Retry-After until the minute has passed; right ones never are', async ({
    receiver,
  }) => {
    expect(new Set(await failures(receiver, 100, '127.0.0.1'))).toEqual(new Set([401]));
    expect(await failures(receiver, 3, '127.0.0.1')).toEqual([429, 429, 429]);
    const refused = await exchange(receiver, { authorization: null });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429, title: 'Too many requests' });
    await expectStillAcceptsNotifications(receiver);
    expect(await failures(receiver, 1, '127.0.0.1')).toEqual([429]);
    receiver.clock.us += 60_000_000;
    expect(await failures(receiver, 1, '127.0.0.1')).toEqual([401]);
  });

  // Only Linux accepts every address of 127.0.0.0/8 without configuration.
  it.runIf(process.platform === 'linux')(
    'do not affect other addresses, and cause eleven log lines: the last one reports 429',
    async ({ receiver }) => {
      await failures(receiver, 120, '127.0.0.1');
      expect(await failures(receiver, 1, '127.0.0.2')).toEqual([401]);
      const lines = receiver.log.map(({ fields, message }) => ({ ...fields, message }));
      expect(lines).toHaveLength(10 + 1 + 1);
      expect(lines[10]).toMatchObject({
        address: '127.0.0.1',
        message: expect.stringMatching(/too many failed logins/),
      });
    },
  );
});

/** Guesses as a client of a proxy that appends its address; returns the statuses. */
async function guesses(receiver: Endpoint, client: string, count: number): Promise<number[]> {
  const connection = await openConnection(receiver);
  const answers: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const headers = { 'X-Forwarded-For': `198.51.100.${i % 250}, ${client}:4711` };
    connection.send(requestBytes({ method: 'GET', authorization: basic('x', `${i}`), headers }));
    answers.push((await connection.answer()).status);
  }
  return answers;
}

it('failed logins through a proxy count for each client separately when the proxy is trusted, whatever the client claims', async () => {
  const receiver = await startReceiver(undefined, { trustedProxies: ['127.0.0.1'] });
  const guessed = await guesses(receiver, '203.0.113.2', 103);
  expect(new Set(guessed.slice(0, 100))).toEqual(new Set([401]));
  expect(guessed.slice(100)).toEqual([429, 429, 429]);
  expect(await guesses(receiver, '203.0.113.3', 1)).toEqual([401]);
  await expectStillAcceptsNotifications(receiver);
  const addresses = receiver.log
    .filter(({ message }) => message === 'login failed')
    .map(({ fields }) => ('address' in fields ? fields.address : null));
  expect(addresses).toEqual([...Array(10).fill('203.0.113.2'), '203.0.113.3']);
});
