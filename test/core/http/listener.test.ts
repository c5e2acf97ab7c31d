/** The listener: limits for hostile clients, TLS, and replacement of its certificate. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type KeyPair,
  type ListenerOptions,
  startListener,
} from '../../../src/core/http/listener.ts';
import { createKeyPair } from '../../helpers/key-pair.ts';

const { keyPair: main, caPem } = await createKeyPair();
const { keyPair: other, caPem: otherCaPem } = await createKeyPair();
const acme = 'acme-tls/1';

async function start(options: Partial<ListenerOptions> = {}) {
  /** Paths that the app received. */
  const requested: string[] = [];
  const listener = await startListener({
    fetch: (request) => {
      requested.push(new URL(request.url).pathname);
      return new Response('here');
    },
    listen: { host: '127.0.0.1', port: 0 },
    listenVariable: 'EARSHOT_LISTEN',
    ...options,
  });
  onTestFinished(() => listener.close(0));
  return { listener, port: listener.address.port, requested };
}

/** Opens a connection; destroyed when the test has finished. */
function kept<Any extends Socket>(socket: Any): Any {
  onTestFinished(() => void socket.destroy());
  return socket;
}

async function open(port: number): Promise<Socket> {
  const socket = kept(connect(port, '127.0.0.1')).on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

function begin(port: number, options: ConnectionOptions = {}): TLSSocket {
  const address = { host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false };
  return kept(tlsConnect({ ...address, ...options }));
}

/** Completes the handshake; rejects when it fails. */
async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = begin(port, options);
  await once(socket, 'secureConnect');
  return socket;
}

/** Resolves in either case. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()));
}

/** Sends bytes; returns everything received until the connection is closed or reset. */
async function answerTo(socket: Socket, bytes = ''): Promise<string> {
  let answer = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    answer += part;
  });
  socket.on('error', () => undefined);
  const end = closed(socket);
  if (bytes !== '') socket.write(bytes);
  await end;
  return answer;
}

const get = 'GET /x HTTP/1.1\r\nHost: h\r\n\r\n';
const lastGet = get.replace('Host', 'Connection: close\r\nHost');
const statusesIn = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, one]) => one);

/** An app that responds when it is released. */
function blockingApp() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const requested: string[] = [];
  const answer = async (request: Request) => {
    requested.push(request.url);
    await released;
    return new Response('late');
  };
  return { fetch: answer, requested, release };
}

it('requests in one packet are parsed up to the maximum queue, and the connection is closed', async () => {
  const { fetch, requested, release } = blockingApp();
  const { port } = await start({ fetch });
  await answerTo(await open(port), get.repeat(2_000));
  release();
  expect(requested).toHaveLength(20);
});

// More than the kernel buffers for a connection.
const large = 'x'.repeat(32 * 2 ** 20);

it('a response that the client does not read is dropped after a timeout, with its connection', async () => {
  const limits = { answerTimeoutMs: 300 };
  const { port } = await start({ fetch: () => new Response(large), limits });
  const socket = await open(port);
  socket.pause().write(get);
  // A client that does not read sees no end, but may not write any more.
  const timer = setInterval(() => socket.write('\r\n'), 50);
  onTestFinished(() => clearInterval(timer));
  await closed(socket);
});

it.each([
  ['handshake', { handshakeTimeoutMs: 300 }, '', []],
  ['next request', { keepAliveTimeoutMs: 300 }, get, ['200']],
])('a connection without a %s is closed after a timeout', async (name, limits, sent, statuses) => {
  const keyPair = name === 'handshake' ? { keyPair: main } : {};
  const { port } = await start({ limits, ...keyPair });
  expect(statusesIn(await answerTo(await open(port), sent))).toEqual(statuses);
});

describe('an unreadable request', () => {
  it('is answered once, without information about the server', async () => {
    const { port, requested } = await start();
    expect(await answerTo(await open(port), 'GET / HTTP/9.9\r\nHost: h\r\n\r\n')).toBe(
      'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    );
    expect(requested).toEqual([]);
  });

  it('is answered once without Host, with bytes after it', async () => {
    const { port } = await start();
    const bytes = 'GET / HTTP/1.1\r\nConnection: close\r\n\r\nnonsense\r\n\r\n';
    expect(statusesIn(await answerTo(await open(port), bytes))).toEqual(['400']);
  });

  it('does not remove the response to the request before it', async () => {
    const { fetch, release } = blockingApp();
    const { port } = await start({ fetch });
    const answer = answerTo(await open(port), `${get}nonsense\r\n\r\n`);
    release();
    expect(statusesIn(await answer)).toEqual(['200']);
  });

  it.each([
    ['too slow', 'GET / HTTP/1.1\r\n', '408'],
    ['too long', `GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, '431'],
  ])('is answered as %s', async (_title, bytes, status) => {
    const { port } = await start({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 300 } });
    expect(statusesIn(await answerTo(await open(port), bytes))).toEqual([status]);
  });
});

it('every response restricts browsers, and reveals no software', async () => {
  const { port } = await start();
  const answer = await fetch(`http://127.0.0.1:${port}/x`);
  expect(Object.fromEntries(answer.headers)).toEqual({
    'cache-control': 'no-store',
    connection: 'keep-alive',
    'content-length': '4',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'content-type': 'text/plain; charset=UTF-8',
    date: expect.any(String),
    'keep-alive': 'timeout=60',
    'x-content-type-options': 'nosniff',
  });
});

describe.each([
  ['from the start', false],
  ['after a renewal', true],
])('TLS, %s', (_name, isRenewed) => {
  const tls12 = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;

  const startTls = async () => {
    const { listener, port } = await start({ keyPair: isRenewed ? null : main });
    if (isRenewed) listener.setKeyPair(main);
    return port;
  };

  it('negotiates modern ciphers in our order, and modern groups, and refuses others', async () => {
    const port = await startTls();
    const kinds = ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'];
    const suites = kinds.map((kind) => `ECDHE-ECDSA-${kind}`);
    const cipherFor = async (ciphers: string) =>
      (await handshake(port, { ...tls12, ciphers })).getCipher().name;
    for (const suite of suites) expect(await cipherFor(suite)).toBe(suite);
    expect(await cipherFor(suites.toReversed().join(':'))).toBe(suites[0]);
    for (const ecdhCurve of ['X25519', 'prime256v1', 'secp384r1'])
      expect((await handshake(port, { ecdhCurve })).getProtocol()).toBe('TLSv1.3');
    const old = ['ECDHE-ECDSA-AES128-SHA', 'AES128-GCM-SHA256', 'DHE-RSA-AES128-GCM-SHA256'];
    for (const options of [
      ...old.map((cipher) => ({ ...tls12, ciphers: `${cipher}@SECLEVEL=0` })),
      ...['secp521r1', 'X448', 'ffdhe3072'].map((ecdhCurve) => ({ ecdhCurve })),
    ])
      await expect(handshake(port, options), JSON.stringify(options)).rejects.toThrow();
  });

  it('refuses renegotiation by the client', async () => {
    const socket = await handshake(await startTls(), tls12);
    const error = await new Promise<Error | null>((resolve) => {
      socket.once('error', resolve);
      socket.renegotiate({ rejectUnauthorized: false }, resolve);
    });
    expect(String(error)).toMatch(/no.?renegotiation/i);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('resumes no session of %s', async (version) => {
    const port = await startTls();
    const options = { minVersion: version, maxVersion: version };
    const first = await handshake(port, options);
    const [session] = version === 'TLSv1.3' ? await once(first, 'session') : [first.getSession()];
    first.destroy();
    const second = await handshake(port, { ...options, session });
    expect(second.isSessionReused()).toBe(false);
  });

  it.each([
    [['http/1.0'], 'http/1.0'],
    [['http/1.0', 'http/1.1'], 'http/1.1'],
    [['h2', 'http/1.0'], 'http/1.0'],
  ])('gives a client that offers %j by ALPN %s, and a response', async (offered, chosen) => {
    const socket = await handshake(await startTls(), { ALPNProtocols: offered });
    expect(socket.alpnProtocol).toBe(chosen);
    socket.write('GET / HTTP/1.0\r\n\r\n');
    expect(await text(socket)).toContain('here');
  });
});

const fingerprintOf = ({ cert }: KeyPair) => new X509Certificate(cert).fingerprint256;

/** Returns the certificate of a handshake, and its protocol. */
async function certificateFor(port: number, options?: ConnectionOptions) {
  const socket = await handshake(port, options);
  return { by: socket.alpnProtocol, shown: socket.getPeerX509Certificate()?.fingerprint256 };
}

describe('a replaced certificate', () => {
  const trusting = (ca: string) => ({ ca, rejectUnauthorized: true });
  const renewed = async () => {
    const { listener, port } = await start({ keyPair: main });
    return { port, renew: () => listener.setKeyPair(other), listener };
  };

  it('is used for new connections, while open ones continue with theirs', async () => {
    const { port, renew } = await renewed();
    const earlier = await handshake(port, trusting(caPem));
    renew();
    expect(await certificateFor(port, trusting(otherCaPem))).toMatchObject({
      shown: fingerprintOf(other),
    });
    expect(await answerTo(await handshake(port), lastGet)).toContain('here');
    await expect(handshake(port, trusting(caPem))).rejects.toThrow(/certificate/);
    expect(await answerTo(earlier, lastGet)).toContain('here');
  });

  it('that is invalid changes nothing', async () => {
    const { port, listener } = await renewed();
    expect(() => listener.setKeyPair({ cert: main.cert, key: other.key })).toThrow();
    expect(await answerTo(await handshake(port, trusting(caPem)), lastGet)).toContain('here');
  });
});

/** A listener that uses the other certificate in handshakes for the proof of a name (RFC 8737). */
function startProving(options: { keyPair?: KeyPair | null; pending?: () => KeyPair | null } = {}) {
  const { keyPair = main, pending = () => other } = options;
  return start({ keyPair, handshakeOnly: { protocol: acme, keyPair: pending } });
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('over %s', (version) => {
  const only = { minVersion: version, maxVersion: version };

  it('a handshake for the proof gets the proof, every other one the certificate', async () => {
    const { port } = await startProving();
    const proof = { by: acme, shown: fingerprintOf(other) };
    const by = (protocol: string | false) => ({ by: protocol, shown: fingerprintOf(main) });
    for (const [offered, expected] of [
      [[acme], proof],
      [['http/1.1', acme], proof],
      [['http/1.1'], by('http/1.1')],
      [['h2', 'http/1.1'], by('http/1.1')],
      [['http/1.0'], by('http/1.0')],
    ] as const) {
      expect(await certificateFor(port, { ...only, ALPNProtocols: [...offered] })).toEqual(
        expected,
      );
    }
    expect(await certificateFor(port, only)).toEqual(by(false));
  });

  it('without a proof, the handshake is refused, and others continue', async () => {
    const { port } = await startProving({ pending: () => null });
    await expect(handshake(port, { ...only, ALPNProtocols: [acme] })).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
    });
    expect(await certificateFor(port, only)).toMatchObject({ shown: fingerprintOf(main) });
  });

  it('a connection for the proof is closed, and carries no request', async () => {
    const { port, requested } = await startProving();
    const proving = { ...only, ALPNProtocols: [acme] };
    expect(await answerTo(await handshake(port, proving), lastGet)).toBe('');
    // A client that does not wait for the end of the handshake.
    expect(await answerTo(begin(port, proving), lastGet)).toBe('');
    // A later request on another connection has been received by now.
    expect(await answerTo(await handshake(port, only), lastGet)).toContain('here');
    expect(requested).toEqual(['/x']);
  });
});

describe('a proof of a name', () => {
  const proving = { ALPNProtocols: [acme] };

  it('is used before there is a certificate, and every other handshake fails', async () => {
    const { port, listener } = await startProving({ keyPair: null });
    const proof = { by: acme, shown: fingerprintOf(other) };
    expect(await certificateFor(port, proving)).toEqual(proof);
    await expect(handshake(port)).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_/) });
    await expect(handshake(port, { ALPNProtocols: ['http/1.1'] })).rejects.toThrow();
    listener.setKeyPair(main);
    expect(await certificateFor(port)).toMatchObject({ shown: fingerprintOf(main) });
    expect(await certificateFor(port, proving)).toEqual(proof);
    expect(await answerTo(await handshake(port), lastGet)).toContain('here');
  });
});
