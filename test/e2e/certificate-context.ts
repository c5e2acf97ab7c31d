/** The real program that gets its certificate from Pebble, through a proxy in which a test can intervene. */
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import type { Pebble } from '../helpers/pebble.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { startWatchedProxy } from './watched-proxy.ts';

export type CertificateContext = Awaited<ReturnType<typeof openCertificateContext>>;

/** Opens a data directory and a proxy; several contexts can share one Pebble. */
export async function openCertificateContext(pebble: Pebble) {
  const folder = temporaryDirectory();
  const proxy = await startCertificateProxy(pebble);
  const context = await createReceiverContext(folder);
  const caFile = join(folder, 'authority.pem');
  writeFileSync(caFile, proxy.caPem);
  const env = {
    EARSHOT_TLS: 'acme',
    EARSHOT_TLS_CERT: '',
    EARSHOT_TLS_KEY: '',
    EARSHOT_PUBLIC_URL: 'https://localhost',
    EARSHOT_ACME_DIRECTORY: proxy.directoryUrl,
    EARSHOT_ACME_CA: caFile,
    EARSHOT_ACME_AGREE: 'yes',
    EARSHOT_ACME_CHALLENGE: 'http-01',
    EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${pebble.ports.http}`,
  };
  const { dataDir } = context;
  return {
    ...{ proxy, dataDir },
    /** PEM: root certificate of Pebble's certificates. */
    root: await pebble.readRoot(),
    start: (more: Record<string, string> = {}) => context.start({ ...env, ...more }),
  };
}

/** Pebble's names for the steps of an order, as in its URLs. */
export type AcmeStep = 'sign-me-up' | 'order-plz' | 'chalZ' | 'finalize-order' | 'certZ';

/** Pebble builds its URLs from the request's Host, so all requests of an order pass through this proxy. */
async function startCertificateProxy(pebble: Pebble) {
  const authority = await createCertificateAuthority({ now: Date.now });
  const { certificatePem, keyPem } = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const agent = new Agent({ keepAlive: true, ca: pebble.caPem });
  onTestFinished(() => agent.destroy());
  const pair = { cert: certificatePem, key: keyPem };
  const target = new URL(pebble.directoryUrl).origin;
  const { url, answered, watch } = await startWatchedProxy(target, { agent, ...pair });
  return {
    ...{ watch, directoryUrl: `${url}/dir` },
    /** PEM: root certificate of its HTTPS. */
    caPem: authority.certificatePem,
    /** Counts successful requests of a step: 201 for created objects, otherwise 200. */
    granted: (step: AcmeStep) => {
      const expected = step === 'sign-me-up' || step === 'order-plz' ? 201 : 200;
      const isSame = ({ path, status }: { path: string; status: number }) =>
        path.startsWith(`/${step}`) && status === expected;
      return answered.filter(isSame).length;
    },
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
  const file = join(dataDir, 'acme', 'certificate.json');
  if (!existsSync(file)) return null;
  return new X509Certificate(JSON.parse(readFileSync(file, 'utf8')).chain).serialNumber;
}
