/** The commands of a simulated month: their world, and the certificate that they and the receiver use. */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../src/cli/io.ts';
import { run } from '../src/cli/run.ts';
import type { createCertificateAuthority } from '../src/sandbox/certificate-authority.ts';
import { createRandom } from '../src/sandbox/random.ts';

/** How a command ended, and what it printed. */
export interface Ended {
  code: number;
  out: string;
  err: string;
}

/** Runs a command line to its end, with what it prints kept. */
export async function runCommand(argv: readonly string[], io: Io): Promise<Ended> {
  const texts = { out: '', err: '' };
  const into = (name: 'out' | 'err') => ({
    write: (chunk: string | Uint8Array) => {
      texts[name] += Buffer.from(chunk).toString();
      return true;
    },
    once: () => undefined,
  });
  const code = await run(argv, { ...io, stdout: into('out'), stderr: into('err') }, '0.0.0');
  return { code, ...texts };
}

/** What commands and receiver may touch: the real network, and a clock of the world's own. */
export function createMonthIo(own: {
  env: Record<string, string>;
  folder: string;
  seed: number;
  nowUs: () => number;
}): Io {
  const nowhere = { write: () => true, once: () => undefined };
  return {
    ...{ stdout: nowhere, stderr: nowhere, env: own.env, nowUs: own.nowUs },
    readFile: (path) => readFileSync(path, 'utf8'),
    newId: randomUUID,
    newSecret: () => randomBytes(32).toString('base64url'),
    random: createRandom(own.seed).next,
    fetch,
    localAddresses: () => ['127.0.0.1', '::1'],
    pid: process.pid,
    workingDir: own.folder,
    ask: async () => null,
    signal: new AbortController().signal,
    exit: () => undefined,
  };
}

/** Writes a certificate for the receiver; returns the variables that name its files. */
export async function writeCertificate(
  folder: string,
  authority: Awaited<ReturnType<typeof createCertificateAuthority>>,
) {
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  writeFileSync(file('cert.pem'), certificate.certificatePem);
  writeFileSync(file('key.pem'), certificate.keyPem, { mode: 0o600 });
  writeFileSync(file('authority.pem'), authority.certificatePem);
  return {
    EARSHOT_TLS_CERT: file('cert.pem'),
    EARSHOT_TLS_KEY: file('key.pem'),
    EARSHOT_PROBE_CA: file('authority.pem'),
  };
}
