/** Settings of the demo: a certificate for this machine, free ports, and the addresses of the sandbox. */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { demoProject } from '../../sandbox/settings.ts';

/** Returns a port of loopback that no program uses. */
export async function anyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

interface DemoCertificate {
  /** Root certificate for the sandbox to trust. */
  authorityPem: string;
  files: { cert: string; key: string; ca: string };
}

/**
 * Creates a certificate for this machine, issued by a new authority, and writes the files into the folder. The key of the
 * authority is not stored.
 */
export async function createDemoCertificate(
  folder: string,
  now: () => number,
): Promise<DemoCertificate> {
  const authority = await createCertificateAuthority({ now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  const files = { cert: file('certificate.pem'), key: file('key.pem'), ca: file('authority.pem') };
  await writeFile(files.cert, certificate.certificatePem);
  await writeFile(files.key, certificate.keyPem, { mode: 0o600 });
  await writeFile(files.ca, authority.certificatePem);
  return { authorityPem: authority.certificatePem, files };
}

/** Returns the variables for receiver and commands. */
export function demoSettings(demo: {
  dataDir: string;
  /** Null without a public listener. */
  files: DemoCertificate['files'] | null;
  sandbox: Pick<Sandbox, 'catalogueUrl' | 'tokenUrl' | 'inferenceUrl'>;
  account: { username: string; password: string };
  publicUrl: string | null;
  /** `host:port`. */
  listen: string;
  consoleListen: string;
}): Record<string, string> {
  const { dataDir, files, sandbox, account, publicUrl, listen, consoleListen } = demo;
  return {
    ...(publicUrl === null ? {} : { EARSHOT_PUBLIC_URL: publicUrl, EARSHOT_LISTEN: listen }),
    EARSHOT_CONSOLE_LISTEN: consoleListen,
    EARSHOT_DATA_DIR: dataDir,
    ...(files === null
      ? {}
      : {
          EARSHOT_TLS: 'files',
          EARSHOT_TLS_CERT: files.cert,
          EARSHOT_TLS_KEY: files.key,
          EARSHOT_PROBE_CA: files.ca,
        }),
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    // A sandbox on this machine needs no rate limit.
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '6000',
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: demoProject.models[0] ?? '',
  };
}
