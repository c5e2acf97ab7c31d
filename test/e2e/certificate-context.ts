/** The real program that gets its certificate from Pebble, each of them a process on loopback. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { type Pebble, startPebble } from '../helpers/pebble.ts';
import { type SpawnedCommand, spawnCommand } from '../helpers/spawned-command.ts';
import { createReceiverContext, type SpawnedReceiver } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { type CertificateProxy, startCertificateProxy } from './certificate-proxy.ts';

export interface CertificateContext {
  pebble: Pebble;
  proxy: CertificateProxy;
  dataDir: string;
  /** PEM: root certificate of Pebble's certificates. */
  root: string;
  start(env?: Record<string, string>): Promise<SpawnedReceiver>;
  command(argv: readonly string[], env?: Record<string, string>): SpawnedCommand;
}

export interface CertificateContextOptions {
  challenge?: 'http-01' | 'tls-alpn-01';
  /** Parent folder of the data directory. */
  folder?: string;
  /** Pebble, if shared with other contexts; by default a new one. */
  pebble?: Pebble;
}

export async function openCertificateContext({
  challenge = 'http-01',
  folder = temporaryDirectory(),
  ...given
}: CertificateContextOptions = {}): Promise<CertificateContext> {
  const pebble = given.pebble ?? (await startPebble());
  const proxy = await startCertificateProxy(pebble);
  const context = await createReceiverContext(folder);
  const caFile = join(temporaryDirectory(), 'authority.pem');
  writeFileSync(caFile, proxy.caPem);
  const env = {
    EARSHOT_TLS: 'acme',
    EARSHOT_TLS_CERT: '',
    EARSHOT_TLS_KEY: '',
    EARSHOT_PUBLIC_URL: 'https://localhost',
    EARSHOT_ACME_DIRECTORY: proxy.directoryUrl,
    EARSHOT_ACME_CA: caFile,
    EARSHOT_ACME_AGREE: 'yes',
    EARSHOT_ACME_CHALLENGE: challenge,
    EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${pebble.ports.http}`,
    EARSHOT_LISTEN: `127.0.0.1:${challenge === 'tls-alpn-01' ? pebble.ports.tls : 0}`,
  };
  const { dataDir } = context;
  return {
    pebble,
    proxy,
    dataDir,
    root: await pebble.readRoot(),
    start: (more = {}) => context.start({ ...env, ...more }),
    command: (argv, more = {}) =>
      spawnCommand(argv, { env: { ...env, EARSHOT_DATA_DIR: dataDir, ...more }, cwd: folder }),
  };
}

/** Serial number of the certificate that a receiver serves; null unless the root verifies it. */
export function shownSerial(port: number, root: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca: root });
    socket.on('error', () => resolve(null));
    socket.on('secureConnect', () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
  });
}

/** Serial number of the certificate on disk; null when there is none. */
export function savedSerial(dataDir: string): string | null {
  try {
    const text = readFileSync(join(dataDir, 'acme', 'certificate.json'), 'utf8');
    const saved: unknown = JSON.parse(text);
    const chain = typeof saved === 'object' && saved !== null && 'chain' in saved && saved.chain;
    return new X509Certificate(String(chain)).serialNumber;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
