/** Another certificate while the listener runs. */
import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { expect, it } from 'vitest';
import type { Intake } from '../../src/domain/ports.ts';
import { openConnection, requestBytes } from '../receiver/raw-client.ts';
import { createKeyPair, startReceiverWith } from '../receiver/running-receiver.ts';

const willing: Intake = {
  accept: () => Promise.resolve({ outcome: 'stored', stored: 1, duplicates: 0 }),
  checkWritable: () => Promise.resolve(),
};

const fingerprintOf = (socket: TLSSocket) => socket.getPeerX509Certificate()?.fingerprint256;
const probe = requestBytes({ method: 'GET' });

it('is shown to new connections, while open ones keep theirs and go on working', async () => {
  const stub = await startReceiverWith(willing);
  const open = await openConnection(stub);
  const { caPem, keyPair } = await createKeyPair();
  stub.listener.setKeyPair(keyPair);

  const fresh = await openConnection({ port: stub.port, caPem });
  expect(fingerprintOf(fresh.socket)).toBe(new X509Certificate(keyPair.cert).fingerprint256);
  fresh.send(probe);
  expect((await fresh.answer()).status).toBe(200);
  await expect(openConnection(stub)).rejects.toThrow(/certificate/);

  open.send(probe);
  expect((await open.answer()).status).toBe(200);
});

it('is shown to a client that would resume its earlier session', async () => {
  const stub = await startReceiverWith(willing);
  const before = await openConnection(stub);
  const session = new Promise<Buffer>((resolve) => before.socket.once('session', resolve));
  before.send(probe);
  await before.answer();
  const { caPem, keyPair } = await createKeyPair();
  stub.listener.setKeyPair(keyPair);
  const after = await openConnection({ port: stub.port, caPem }, { session: await session });
  expect(after.socket.isSessionReused()).toBe(false);
  expect(fingerprintOf(after.socket)).toBe(new X509Certificate(keyPair.cert).fingerprint256);
});

it('does not loosen what the listener asks of a handshake', async () => {
  const stub = await startReceiverWith(willing);
  const { caPem, keyPair } = await createKeyPair();
  stub.listener.setKeyPair(keyPair);
  const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const;
  const endpoint = { port: stub.port, caPem };
  await expect(openConnection(endpoint, old)).rejects.toMatchObject({
    code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
  });
  const offered = ['h2', 'http/1.1'];
  const connection = await openConnection(endpoint, { ALPNProtocols: offered });
  expect(connection.socket.alpnProtocol).toBe('http/1.1');
});

it('that is broken changes nothing', async () => {
  const stub = await startReceiverWith(willing);
  const { keyPair } = await createKeyPair();
  const other = await createKeyPair();
  const mixed = { cert: keyPair.cert, key: other.keyPair.key };
  expect(() => stub.listener.setKeyPair(mixed)).toThrow();
  const connection = await openConnection(stub);
  connection.send(probe);
  expect((await connection.answer()).status).toBe(200);
});
