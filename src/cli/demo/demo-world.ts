/** The demo's world: a receiver and a sandbox catalogue on loopback, in a temporary folder. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CompleteAccountConfig } from '../../config/account-config.ts';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/sandbox-options.ts';
import { createClosers } from '../closers.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { newCredentials } from '../new-credentials.ts';
import { type RunningReceiver, serve } from '../serve.ts';
import { startDemoSummaries } from './demo-summaries.ts';

export interface DemoWorld {
  dataDir: string;
  receiver: RunningReceiver;
  /** Publishes when it is resumed. */
  sandbox: Sandbox;
  /** The account at the sandbox's catalogue, and the endpoint to be registered there. */
  config: CompleteAccountConfig;
  /** Stops everything and removes the folder. */
  close(): Promise<void>;
}

export type DemoPublishing = Pick<
  SandboxOptions,
  'count' | 'recordsFile' | 'ratePerSecond' | 'modifiedShare' | 'deletedShare' | 'faults' | 'seed'
>;

/** Shorter than the real service's, so that a loss shows within seconds. */
const retryDelaysMs: [number, number, number] = [100, 200, 400];

export async function openDemoWorld(io: Io, publishing: DemoPublishing): Promise<DemoWorld> {
  const closers = createClosers();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'earshot-demo-'));
    closers.add(() => rm(folder, { recursive: true, force: true }));
    const now = () => io.nowUs() / 1000;
    const { files, authorityPem } = await makeCertificate(folder, now);
    const pair = newCredentials(io);
    const account = { username: 'demo', password: io.newSecret() };
    const sandbox = await startSandbox({
      ...publishing,
      account,
      trustedCaPems: [authorityPem],
      retryDelaysMs,
      now,
    });
    sandbox.pause();
    closers.add(() => sandbox.close());
    const { catalogueUrl } = sandbox;
    const receiver = await startReceiver(io, { folder, catalogueUrl }, files, pair);
    closers.add(() => receiver.close());
    const dataDir = join(folder, 'data');
    const summaries = await startDemoSummaries(io, receiver, sandbox, dataDir);
    closers.add(() => summaries.stop());
    const config: CompleteAccountConfig = {
      dataDir,
      publicUrl: receiver.url,
      catalogueUrl,
      account: {
        kind: 'password',
        tokenUrl: sandbox.tokenUrl,
        clientId: 'cdse-public',
        totp: undefined,
        ...account,
      },
      limits: { runningMax: 2, totalMax: 10 },
      probeCa: files.ca,
      endpoint: { source: 'variables', pairs: [pair] },
    };
    return { dataDir, receiver, sandbox, config, close: closers.closeAll };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

async function makeCertificate(folder: string, now: () => number) {
  const authority = await createCertificateAuthority({ now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  const files = { cert: file('certificate.pem'), key: file('key.pem'), ca: file('authority.pem') };
  await writeFile(files.cert, certificate.certificatePem);
  await writeFile(files.key, certificate.keyPem, { mode: 0o600 });
  await writeFile(files.ca, authority.certificatePem);
  return { files, authorityPem: authority.certificatePem };
}

function startReceiver(
  io: Io,
  { folder, catalogueUrl }: { folder: string; catalogueUrl: string },
  certificateFiles: { cert: string; key: string },
  pair: { username: string; password: string },
): Promise<RunningReceiver> {
  return serve(
    {
      listen: { host: '127.0.0.1', port: 0 },
      publicUrl: undefined,
      dataDir: join(folder, 'data'),
      credentials: [pair],
      credentialsSource: 'variables',
      tls: { kind: 'files', ...certificateFiles },
      trustedProxies: [],
      console: { listen: { host: '127.0.0.1', port: 0 }, password: undefined, catalogueUrl },
      index: true,
      logLevel: 'warn',
    },
    createLogger(io, 'warn'),
    io,
  );
}
