/** The listener for http-01: answers challenges in all valid forms of a request, and nothing else. */

import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, vi } from 'vitest';
import {
  type ChallengeListener,
  createChallengeListener,
  openChallengeFolder,
  startChallengeListener,
} from '../../../src/tls/acme/challenge.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { hasPebble, type Pebble } from '../../helpers/pebble.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createClock, it, minuteUs, openProgram } from './pebble-context.ts';
import { servedSerial, startReceiver, untilSaved } from './receiver-context.ts';

const token = 'LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0';

const text = `${token}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`;

const path = `/.well-known/acme-challenge/${token}`;

async function startListener() {
  const dataDir = temporaryDirectory();
  const challenges = openChallengeFolder(dataDir);
  writeFileSync(join(dataDir, 'secret'), 'a secret');
  mkdirSync(join(dataDir, 'acme'));
  writeFileSync(join(dataDir, 'acme', 'certificate'), 'a secret key');
  await challenges.put(token, text);
  await challenges.putAlpn({ cert: 'a certificate', key: 'a secret key' });
  const listen = { host: '127.0.0.1', port: 0 };
  const listener = await startChallengeListener({ listen, challenges });
  onTestFinished(() => listener.close(0));
  return { challenges, port: listener.address.port };
}

/** Sends bytes and returns everything received until the connection is closed. */
async function answerTo(port: number, bytes: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port });
  onTestFinished(() => void socket.destroy());
  let answer = '';
  socket.setEncoding('latin1').on('data', (part: string) => {
    answer += part;
  });
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes, 'latin1');
  await closed;
  return answer;
}

const request = (
  target: string,
  { method = 'GET', version = '1.1', headers = 'Host: a\r\n' } = {},
) => `${method} ${target} HTTP/${version}\r\n${headers}Connection: close\r\n\r\n`;

const bodyOf = (answer: string) => answer.split('\r\n\r\n').slice(1).join('\r\n\r\n');

describe('a challenge that is expected', () => {
  it.each([
    ['requested as in RFC 8555', request(path)],
    ['over HTTP/1.0', request(path, { version: '1.0' })],
    ['over HTTP/1.0 without a Host', request(path, { version: '1.0', headers: '' })],
    ['with the whole URL', request(`http://earshot.example.org${path}`)],
    ['with a query', request(`${path}?a=1`)],
  ])('is answered with its text, %s', async (_title, bytes) => {
    const { port } = await startListener();
    const answer = await answerTo(port, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/content-type: application\/octet-stream/i);
    expect(bodyOf(answer)).toBe(text);
  });

  it('is answered to HEAD without its text', async () => {
    const { port } = await startListener();
    const answer = await answerTo(port, request(path, { method: 'HEAD' }));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodyOf(answer)).toBe('');
  });

  it('is answered for each of several pipelined requests', async () => {
    const { port } = await startListener();
    const three = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(2) + request(path);
    expect((await answerTo(port, three)).split(text)).toHaveLength(4);
  });

  it('is not answered after its removal', async () => {
    const { port, challenges } = await startListener();
    await challenges.clear();
    expect(await answerTo(port, request(path))).toMatch(/^HTTP\/1\.1 404 /);
    // Removing nothing is not an error.
    await challenges.clear();
  });

  it('of a probe stays when those of an authority are removed', async () => {
    const { port, challenges } = await startListener();
    await challenges.putProbe('a-probe', 'probe answer');
    await challenges.clear();
    const probe = () => answerTo(port, request(path.replace(token, 'a-probe')));
    expect(await probe()).toMatch(/probe answer$/);
    await challenges.removeProbe('a-probe');
    expect(await probe()).toMatch(/^HTTP\/1\.1 404 /);
    await challenges.removeProbe('a-probe');
  });
});

describe('the listener does not answer', () => {
  const under = '/.well-known/acme-challenge/';

  it.each([
    '/',
    '/.well-known/acme-challenge',
    under,
    `${under}${token}/`,
    `${under}${token}x`,
    `${under}${token.toLowerCase()}`,
    `${under}../${token}`,
    `/${path}`,
    `/.WELL-KNOWN/acme-challenge/${token}`,
    `${under}tls-alpn-01.json`,
    `${under}../certificate`,
    `${under}..%2fcertificate`,
    `${under}%2e%2e%2fcertificate`,
    `${under}%2e%2e/%2e%2e/secret`,
    `${under}..\\..\\secret`,
    `${under}..%5c..%5csecret`,
    `${under}....//secret`,
    `${under}${token}%00`,
    `${under}%00`,
    `${under}.`,
    `${under}%`,
    `${under}${'a'.repeat(201)}`,
    '*',
    '/etc/passwd',
    'http://169.254.169.254/latest/meta-data',
    '/notifications',
  ])('%s', async (target) => {
    const { port } = await startListener();
    const answer = await answerTo(port, request(target));
    expect(answer).toMatch(/^HTTP\/1\.1 40[04] /);
    expect(answer).not.toMatch(/secret|thumbprint|key/);
  });

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND'])(
    '%s of a challenge',
    async (method) => {
      const { port } = await startListener();
      const answer = await answerTo(port, request(path, { method }));
      expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(answer).not.toContain(text);
    },
  );

  it.each([
    ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n'],
    ['a request without Host', `GET ${path} HTTP/1.1\r\nConnection: close\r\n\r\n`],
    ['bytes that are not HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['headers without end', `GET ${path} HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(40_000)}`],
    [
      'two lengths',
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    ],
  ])('%s', async (_title, bytes) => {
    const { port } = await startListener();
    expect(await answerTo(port, bytes)).not.toContain(text);
    expect(await answerTo(port, request(path))).toContain(text);
  });
});

it('two hundred idle connections do not block other clients', async () => {
  const { port } = await startListener();
  const sockets = Array.from({ length: 200 }, () => connect({ host: '127.0.0.1', port }));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const socket of sockets) socket.on('error', () => undefined);
  await Promise.all(sockets.map((socket) => new Promise((done) => socket.once('connect', done))));
  expect(await answerTo(port, request(path))).toContain(text);
});

describe('the folder of answers', () => {
  it('returns the pair for handshakes until it is cleared', async () => {
    const { challenges } = await startListener();
    expect(challenges.alpnAnswer()).toEqual({ cert: 'a certificate', key: 'a secret key' });
    await challenges.clear();
    expect(challenges.alpnAnswer()).toBeNull();
  });

  it.each(['', '..', '../x', 'a/b', 'a\\b', 'a.b', 'ä', 'a\n', 'a'.repeat(201)])(
    'refuses an answer for the token %j',
    async (bad) => {
      const { challenges } = await startListener();
      await expect(challenges.put(bad, text)).rejects.toMatchObject({ type: 'malformedAnswer' });
      await expect(challenges.removeProbe(bad)).rejects.toMatchObject({ type: 'malformedAnswer' });
      expect(challenges.answer(bad)).toBeNull();
    },
  );
});

const soon = { timeout: 10_000, interval: 10 };

const host = '127.0.0.1';

function listenerOf(pebble: Pick<Pebble, 'ports'>): ChallengeListener {
  const listener = createChallengeListener(
    { host, port: pebble.ports.http },
    { fetch, newId: randomUUID },
  );
  onTestFinished(() => listener.close());
  return listener;
}

/** Opens a process with the given or a new data directory; its orders open this listener. */
function openWithListener(pebble: Pebble, listener: ChallengeListener, dataDir?: string) {
  const openListener: ChallengeListener['open'] = (challenges) => listener.open(challenges);
  return openProgram(pebble, { openListener, ...(dataDir === undefined ? {} : { dataDir }) });
}

async function takePort(port: number, answer: RequestListener): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

describe.skipIf(!hasPebble)('a command that orders a certificate (needs pebble)', () => {
  it('next to a receiver lets the receiver answer, and leaves its port open', async ({
    pebble,
  }) => {
    const receiver = await startReceiver(pebble);
    await untilSaved(receiver);
    const first = await servedSerial(receiver.port);
    const listener = listenerOf(pebble);
    const { check, path } = openWithListener(pebble, listener, receiver.dataDir);
    const renewed = async () => expect((await check('anyway')).outcome).toBe('renewed');
    // The receiver may have the lock at this moment, to request renewal information.
    await vi.waitFor(renewed, soon);
    await listener.close();
    expect(await isOpen(pebble.ports.http)).toBe(true);
    await vi.waitFor(async () => expect(await servedSerial(receiver.port)).not.toBe(first), soon);
    expect(existsSync(path('challenges'))).toBe(false);
  });

  it('without a receiver answers the challenge and then closes the port', async ({ pebble }) => {
    const listener = listenerOf(pebble);
    expect((await openWithListener(pebble, listener).check()).outcome).toBe('renewed');
    expect(await isOpen(pebble.ports.http)).toBe(true);
    await listener.close();
    expect(await isOpen(pebble.ports.http)).toBe(false);
  });

  it('next to a receiver with another data directory reports that the port is in use', async ({
    pebble,
    requests,
  }) => {
    await untilSaved(await startReceiver(pebble));
    const orders = requests.orders();
    const unrelated = openWithListener(pebble, listenerOf(pebble));
    expect(await unrelated.fail()).toContain('Set EARSHOT_ACME_HTTP_LISTEN to another address');
    expect(requests.orders()).toBe(orders);
  });
});

describe.skipIf(!hasPebble)('a receiver whose port for challenges is in use (needs pebble)', () => {
  it('obtains its certificate as soon as the port is free', async ({ pebble }) => {
    const other = createChallengeListener({ host, port: pebble.ports.http }, null);
    await other.open(openProgram(pebble).context.challenges);
    const { port, clock, lines } = await startReceiver(pebble);
    const reports = () => lines.filter(({ reason }) => reason?.startsWith('Cannot listen on'));
    await vi.waitFor(() => expect(reports().length).toBeGreaterThanOrEqual(2), soon);
    await other.close();
    clock.advance(minuteUs);
    await vi.waitFor(async () => expect(await servedSerial(port)).not.toBeNull(), soon);
  });

  it('logs that once in many checks, even in addition to another failure', async ({ pebble }) => {
    await pebble.setAddress('127.0.0.2');
    const failed = openProgram(pebble);
    await failed.fail();
    const { dataDir } = failed;
    // The listener of the process above uses the port.
    const real = createClock(failed.clock.nowUs());
    let checks = 0;
    const nowUs = () => {
      checks += 1;
      return real.nowUs();
    };
    const { lines, port } = await startReceiver(pebble, { dataDir, clock: { ...real, nowUs } });
    await vi.waitFor(() => expect(checks).toBeGreaterThan(200), soon);
    expect(await servedSerial(port)).toBeNull();
    const reasons = lines.flatMap(({ reason }) => reason ?? []);
    expect(reasons.toSorted()).toEqual([
      expect.stringContaining('Cannot listen on'),
      expect.stringContaining('port 80 of'),
    ]);
  });
});

describe('the listener of a port in use', () => {
  /** Answers that differ from those of a receiver with this data directory. */
  const foreignServers: [string, RequestListener][] = [
    ['answers with 404', (_, outgoing) => void outgoing.writeHead(404).end()],
    ['answers with another text', (_, outgoing) => void outgoing.end('It works!')],
    ['echoes the token', ({ url = '' }, outgoing) => void outgoing.end(url.split('/').at(-1))],
    [
      'redirects the request',
      ({ url }, outgoing) =>
        void outgoing.writeHead(302, { location: `http://${host}${url}` }).end(),
    ],
  ];

  it.each(foreignServers)('reports a server that %s as another program', async (_, answer) => {
    const port = await freePort();
    await takePort(port, answer);
    const { context, dataDir } = openProgram(standIn(port));
    const listener = listenerOf(standIn(port));
    await expect(listener.open(context.challenges)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(`Cannot listen on ${host}:${port}: another program uses`),
    });
    expect(readdirSync(dataDir, { recursive: true }).map(String).filter(isProbeFile)).toEqual([]);
  });

  it('does not wait long for a silent server', async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { context } = openProgram(standIn(port));
    const opened = listenerOf(standIn(port)).open(context.challenges);
    await expect(opened).rejects.toMatchObject({ code: 'configuration' });
  });
});

const isProbeFile = (name: string) => name.includes('knock-');

/** Returns the parts of Pebble that a listener needs. */
function standIn(http: number): Pebble {
  const ports = { acme: 0, management: 0, dns: 0, dnsManagement: 0, http, tls: 0 };
  const never = () => Promise.reject(new Error('There is no authority.'));
  const directoryUrl = 'https://localhost:1/dir';
  return {
    directoryUrl,
    ports,
    caPem: '',
    readRoot: never,
    setAddress: never,
    stop: never,
    start: never,
  };
}
