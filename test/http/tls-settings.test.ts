/** What a client may agree on with us, before and after the certificate was changed. */
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type KeyPair, startListener } from '../../src/http/listener.ts';
import { createKeyPair } from '../receiver/running-receiver.ts';

let pair: KeyPair;
beforeAll(async () => {
  pair = (await createKeyPair()).keyPair;
});

async function start(isRenewed: boolean): Promise<number> {
  const listener = await startListener({
    fetch: () => new Response('here'),
    listen: { host: '127.0.0.1', port: 0 },
    listenVariable: 'EARSHOT_LISTEN',
    keyPair: isRenewed ? null : pair,
  });
  onTestFinished(() => listener.close(0));
  if (isRenewed) listener.setKeyPair(pair);
  return listener.address.port;
}

/** Rejects when no handshake comes about. */
async function shake(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

const tls12 = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;

describe.each([
  ['from the start', false],
  ['after a renewal', true],
])('%s', (_name, isRenewed) => {
  it.each([
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
  ])('TLS 1.2 goes with %s', async (ciphers) => {
    const socket = await shake(await start(isRenewed), { ...tls12, ciphers });
    expect(socket.getCipher().name).toBe(ciphers);
  });

  it.each([
    'ECDHE-ECDSA-AES128-SHA',
    'ECDHE-ECDSA-AES256-SHA384',
    'ECDHE-ECDSA-AES128-CCM',
    'ECDHE-ECDSA-ARIA128-GCM-SHA256',
    'AES128-GCM-SHA256',
    'DHE-RSA-AES128-GCM-SHA256',
  ])('TLS 1.2 does not go with %s', async (ciphers) => {
    const port = await start(isRenewed);
    await expect(shake(port, { ...tls12, ciphers: `${ciphers}@SECLEVEL=0` })).rejects.toThrow();
  });

  it('our order counts, not that of the client', async () => {
    const ciphers = 'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256';
    const socket = await shake(await start(isRenewed), { ...tls12, ciphers });
    expect(socket.getCipher().name).toBe('ECDHE-ECDSA-AES128-GCM-SHA256');
  });

  it.each(['X25519', 'prime256v1', 'secp384r1'])('keys are agreed on by %s', async (ecdhCurve) => {
    const socket = await shake(await start(isRenewed), { ecdhCurve });
    expect(socket.getProtocol()).toBe('TLSv1.3');
  });

  it.each(['secp521r1', 'X448', 'ffdhe3072'])('and not by %s', async (ecdhCurve) => {
    await expect(shake(await start(isRenewed), { ecdhCurve })).rejects.toThrow();
  });

  it('a client cannot begin a second handshake', async () => {
    const socket = await shake(await start(isRenewed), tls12);
    const error = await new Promise<Error | null>((resolve) => {
      socket.once('error', resolve);
      socket.renegotiate({ rejectUnauthorized: false }, resolve);
    });
    expect(String(error)).toMatch(/no.?renegotiation/i);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'no session of %s is taken up again',
    async (version) => {
      const port = await start(isRenewed);
      const options = { minVersion: version, maxVersion: version };
      const first = await shake(port, options);
      const [session] = version === 'TLSv1.3' ? await once(first, 'session') : [first.getSession()];
      first.destroy();
      const second = await shake(port, { ...options, session });
      expect(second.isSessionReused()).toBe(false);
    },
  );

  it.each([
    [['http/1.0'], 'http/1.0'],
    [['http/1.0', 'http/1.1'], 'http/1.1'],
    [['h2', 'http/1.0'], 'http/1.0'],
  ])('a client that offers %j by ALPN gets %s, and an answer', async (offered, chosen) => {
    const socket = await shake(await start(isRenewed), { ALPNProtocols: offered });
    expect(socket.alpnProtocol).toBe(chosen);
    socket.write('GET / HTTP/1.0\r\n\r\n');
    expect(await text(socket)).toContain('here');
  });
});
