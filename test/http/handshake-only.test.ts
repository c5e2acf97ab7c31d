/** Handshakes that prove a name beside those that carry requests (RFC 8737). */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type KeyPair, startListener } from '../../src/http/listener.ts';
import { createKeyPair } from '../receiver/running-receiver.ts';

const acme = 'acme-tls/1';
const main = (await createKeyPair()).keyPair;
const proof = (await createKeyPair()).keyPair;
const fingerprintOf = ({ cert }: KeyPair) => new X509Certificate(cert).fingerprint256;

async function startDoor(
  options: { keyPair?: KeyPair | null; pending?: () => KeyPair | null } = {},
) {
  const requests: string[] = [];
  const listener = await startListener({
    fetch: (request) => {
      requests.push(request.method);
      return new Response('here');
    },
    listen: { host: '127.0.0.1', port: 0 },
    listenVariable: 'EARSHOT_LISTEN',
    keyPair: options.keyPair === undefined ? main : options.keyPair,
    handshakeOnly: { protocol: acme, keyPair: options.pending ?? (() => proof) },
  });
  onTestFinished(() => listener.close(0));
  return { listener, requests, port: listener.address.port };
}

function begin(port: number, options: ConnectionOptions = {}): TLSSocket {
  const address = { host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false };
  const socket = connect({ ...address, ...options });
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Shakes hands; rejects when that fails. */
async function shake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = begin(port, options);
  await once(socket, 'secureConnect');
  return socket;
}

const shownTo = async (port: number, options?: ConnectionOptions) => {
  const socket = await shake(port, options);
  return { by: socket.alpnProtocol, shown: socket.getPeerX509Certificate()?.fingerprint256 };
};

const get = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

/** All that comes back on a connection until it is closed. */
async function answerTo(socket: TLSSocket, bytes: string): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  // A reset is one of the ways in which it is closed.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes);
  await closed;
  return text;
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('over %s', (version) => {
  const only = { minVersion: version, maxVersion: version };

  it('a handshake for the proof is shown the proof, every other one the certificate', async () => {
    const { port } = await startDoor();
    const proofShown = { by: acme, shown: fingerprintOf(proof) };
    const mainShown = fingerprintOf(main);
    expect(await shownTo(port, { ...only, ALPNProtocols: [acme] })).toEqual(proofShown);
    expect(await shownTo(port, { ...only, ALPNProtocols: ['http/1.1'] })).toEqual({
      by: 'http/1.1',
      shown: mainShown,
    });
    expect(await shownTo(port, { ...only, ALPNProtocols: ['h2', 'http/1.1'] })).toEqual({
      by: 'http/1.1',
      shown: mainShown,
    });
    expect(await shownTo(port, { ...only, ALPNProtocols: ['http/1.0'] })).toEqual({
      by: 'http/1.0',
      shown: mainShown,
    });
    expect(await shownTo(port, only)).toEqual({ by: false, shown: mainShown });
    expect(await shownTo(port, { ...only, ALPNProtocols: ['http/1.1', acme] })).toEqual(proofShown);
  });

  it('without a proof to show, the handshake is refused, and others go on', async () => {
    const { port } = await startDoor({ pending: () => null });
    await expect(shake(port, { ...only, ALPNProtocols: [acme] })).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
    });
    await expect(shownTo(port, only)).resolves.toMatchObject({ shown: fingerprintOf(main) });
  });

  it('a connection for the proof is closed, and carries no request', async () => {
    const { port, requests } = await startDoor();
    const socket = await shake(port, { ...only, ALPNProtocols: [acme] });
    expect(await answerTo(socket, get)).toBe('');
    // One that does not wait for the end of the handshake.
    const hasty = begin(port, { ...only, ALPNProtocols: [acme] });
    expect(await answerTo(hasty, get)).toBe('');
    // A request of another connection, which came later, has been heard by now.
    expect(await answerTo(await shake(port, only), get)).toContain('here');
    expect(requests).toEqual(['GET']);
  });
});

it('before there is a certificate the proof is shown, and every other handshake fails', async () => {
  const { port, listener } = await startDoor({ keyPair: null });
  const asked = { ALPNProtocols: [acme] };
  expect(await shownTo(port, asked)).toEqual({ by: acme, shown: fingerprintOf(proof) });
  await expect(shake(port)).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_/) });
  await expect(shake(port, { ALPNProtocols: ['http/1.1'] })).rejects.toThrow();

  listener.setKeyPair(main);
  expect(await shownTo(port)).toMatchObject({ shown: fingerprintOf(main) });
  expect(await shownTo(port, asked)).toEqual({ by: acme, shown: fingerprintOf(proof) });
  expect(await answerTo(await shake(port), get)).toContain('here');
});

it('a session of a proof cannot be taken up to carry a request', async () => {
  const { port, requests } = await startDoor();
  const options = { maxVersion: 'TLSv1.2', ALPNProtocols: [acme] } as const;
  const session = (await shake(port, options)).getSession();
  if (session === undefined) throw new Error('There is no session.');
  // Shorter than a first handshake: the request comes together with its end.
  for (let times = 0; times < 20; times += 1) {
    expect(await answerTo(begin(port, { ...options, session }), get)).toBe('');
  }
  expect(requests).toEqual([]);
});

it.each([
  [
    'throws',
    () => {
      throw new Error('The file is damaged.');
    },
  ],
  ['is no certificate', () => ({ cert: 'damaged', key: 'damaged' })],
  ['does not fit together', () => ({ cert: main.cert, key: proof.key })],
])('a proof that %s costs its own handshake alone', async (_title, pending) => {
  const { port } = await startDoor({ pending });
  await expect(shake(port, { ALPNProtocols: [acme] })).rejects.toThrow();
  expect(await answerTo(await shake(port), get)).toContain('here');
});

it('a thousand of them leave the listener as it was', async () => {
  const { port, requests } = await startDoor();
  for (let batch = 0; batch < 20; batch += 1) {
    const sockets = await Promise.all(
      Array.from({ length: 50 }, () => shake(port, { ALPNProtocols: [acme] })),
    );
    for (const socket of sockets) socket.destroy();
  }
  expect(await answerTo(await shake(port), get)).toContain('here');
  expect(requests).toEqual(['GET']);
}, 60_000);
