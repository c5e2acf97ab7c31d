/** The demo's world: a receiver and a sandbox on loopback, in a temporary folder. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/sandbox-options.ts';
import { createClosers } from '../closers.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { type RunningReceiver, serve } from '../serve.ts';

export interface DemoWorld {
  dataDir: string;
  /** Where the sandbox pushes to. */
  endpoint: string;
  receiver: RunningReceiver;
  /** Starts publishing. Called once. */
  publish(options: DemoPublishing): Promise<Sandbox>;
  /** Stops everything and removes the folder. */
  close(): Promise<void>;
}

export type DemoPublishing = Pick<
  SandboxOptions,
  'count' | 'recordsFile' | 'ratePerSecond' | 'modifiedShare' | 'deletedShare' | 'faults' | 'seed'
>;

/** Shorter than the real service's, so that a loss shows within seconds. */
const retryDelaysMs: [number, number, number] = [100, 200, 400];

export async function openDemoWorld(io: Io): Promise<DemoWorld> {
  const closers = createClosers();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'earshot-demo-'));
    closers.add(() => rm(folder, { recursive: true, force: true }));
    const now = () => io.nowUs() / 1000;
    const authority = await createCertificateAuthority({ now });
    const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
    const files = { cert: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
    await writeFile(files.cert, certificate.certificatePem);
    await writeFile(files.key, certificate.keyPem, { mode: 0o600 });
    const credentials = { username: 'demo', password: io.newId() };
    const dataDir = join(folder, 'data');
    const receiver = await serve(
      {
        listen: { host: '127.0.0.1', port: 0 },
        publicUrl: undefined,
        dataDir,
        credentials: [credentials],
        credentialsSource: 'variables',
        certificateFiles: files,
        logLevel: 'warn',
      },
      createLogger(io, 'warn'),
      io,
    );
    closers.add(() => receiver.close());
    const endpoint = `${receiver.url}/notifications/demo`;
    return {
      dataDir,
      endpoint,
      receiver,
      publish: async (options) => {
        const sandbox = await startSandbox({
          ...options,
          ...credentials,
          endpoint,
          trustedCaPems: [authority.certificatePem],
          retryDelaysMs,
          now,
        });
        closers.add(() => sandbox.close());
        return sandbox;
      },
      close: closers.closeAll,
    };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}
