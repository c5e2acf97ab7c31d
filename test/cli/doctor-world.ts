/** All that the doctor looks at, on loopback: a receiver over HTTPS, and the sandbox as catalogue. */
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { serve } from '../../src/cli/start/serve.ts';
import { loadConfig, serveSections } from '../../src/config/config.ts';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runCommand } from './fake-io.ts';

export const secrets = { endpoint: 'endpoint-secret', account: 'account-secret' };

const nowUs = () => Date.now() * 1000;
const silent = () => undefined;

/** What `earshot doctor --json` prints of one finding. */
export interface PrintedFinding {
  check: string;
  state: 'pass' | 'warn' | 'fail' | 'skipped';
  message: string;
  advice: string | null;
}

export interface DoctorWorld {
  dataDir: string;
  env: Record<string, string>;
  sandbox: Sandbox;
  /** Warnings and errors of the receiver. */
  receiverLog: string[];
  stopReceiver(): Promise<void>;
  /** Runs a command in this world. */
  earshot(argv: string[], env?: Record<string, string>): ReturnType<typeof runCommand>;
  /** Runs the doctor; gives its findings. */
  doctor(env?: Record<string, string>): Promise<{ code: number; findings: PrintedFinding[] }>;
}

/** Everything is closed when the test has finished. */
export async function openDoctorWorld(): Promise<DoctorWorld> {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  const authority = await createCertificateAuthority({ now: Date.now });
  const issued = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const env: Record<string, string> = {
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_LISTEN: '127.0.0.1:0',
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_TLS_CERT: file('certificate.pem', issued.certificatePem),
    EARSHOT_TLS_KEY: file('key.pem', issued.keyPem),
    EARSHOT_PROBE_CA: file('authority.pem', authority.certificatePem),
    EARSHOT_ENDPOINT_USERNAME: 'catalogue',
    EARSHOT_ENDPOINT_PASSWORD: secrets.endpoint,
    EARSHOT_ACCOUNT_USERNAME: 'me',
    EARSHOT_ACCOUNT_PASSWORD: secrets.account,
  };
  const readFile = () => '';
  const receiverLog: string[] = [];
  const note = (_: object, message: string) => void receiverLog.push(message);
  const log = { debug: silent, info: silent, warn: note, error: note };
  const config = loadConfig({ env, readFile }, serveSections);
  const receiver = await serve(config, log, { nowUs, newId: () => 'an-id', random: Math.random });
  onTestFinished(() => receiver.close());
  const account = { username: 'me', password: secrets.account };
  const sandbox = await startSandbox({
    now: Date.now,
    account,
    trustedCaPems: [authority.certificatePem],
  });
  onTestFinished(() => sandbox.close());
  env.EARSHOT_PUBLIC_URL = `https://localhost:${new URL(receiver.url).port}`;
  env.EARSHOT_CATALOGUE_URL = sandbox.catalogueUrl;
  env.EARSHOT_TOKEN_URL = sandbox.tokenUrl;
  // The program itself sets a mask that makes every file its owner's alone; a test must not.
  for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o600);
  const earshot = (argv: string[], changed: Record<string, string> = {}) =>
    runCommand(argv, { env: { ...env, ...changed }, nowUs, workingDir: folder });
  return {
    dataDir,
    env,
    sandbox,
    receiverLog,
    stopReceiver: receiver.close,
    earshot,
    doctor: async (changed) => {
      const { code, out } = await earshot(['doctor', '--json'], changed);
      return { code, findings: JSON.parse(out) };
    },
  };
}
