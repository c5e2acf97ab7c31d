/** A receiver with something in every metric: registered at a sandbox, pushed to, with a sink, summaries and a backup. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { openStore } from '../../src/store/store.ts';
import type { Cleanup } from '../cleanup.ts';
import { freePort } from './free-port.ts';

const program = join(import.meta.dirname, '../../scripts/earshot.js');
const account = { username: 'sandbox', password: 'sandbox' };

const hourMs = 3_600_000;

/** In the folder: takes what it is given, and answers well. */
const config = `export default {
  sinks: { archive: { command: ['cat'], from: 'start' } },
  subscriptions: { demo: { events: ['created'] } },
};
`;

export interface MonitoredReceiver {
  /** Host and port of the private listener. */
  target: string;
  close(): Promise<void>;
}

/** Resolves when it is registered and products are published; some are sent twice, a few to nobody. */
export async function startMonitoredReceiver(
  folder: string,
  cleanup: Cleanup,
): Promise<MonitoredReceiver> {
  const [listenPort, consolePort] = [await freePort(), await freePort()];
  const authority = await createCertificateAuthority({ now: Date.now });
  const pair = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  writeFileSync(file('certificate.pem'), pair.certificatePem);
  writeFileSync(file('key.pem'), pair.keyPem, { mode: 0o600 });
  writeFileSync(file('authority.pem'), authority.certificatePem);
  writeFileSync(file('earshot.config.ts'), config);
  const sandbox = await startSandbox({
    account,
    trustedCaPems: [authority.certificatePem],
    ratePerSecond: 20,
    faults: { duplicate: 0.1 },
    past: { durationMs: 6 * hourMs, productsPerDay: 1_000 },
    retryDelaysMs: [100, 200, 400],
    now: Date.now,
  });
  const env = {
    PATH: process.env.PATH ?? '',
    EARSHOT_PUBLIC_URL: `https://localhost:${listenPort}`,
    EARSHOT_LISTEN: `127.0.0.1:${listenPort}`,
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}`,
    EARSHOT_DATA_DIR: file('data'),
    EARSHOT_TLS_CERT: file('certificate.pem'),
    EARSHOT_TLS_KEY: file('key.pem'),
    EARSHOT_PROBE_CA: file('authority.pem'),
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: 'sandbox-key',
    EARSHOT_INFERENCE_MODEL: 'openai/gpt-oss-120b',
    EARSHOT_SUMMARY: 'each',
  };
  const run = (...words: string[]) => {
    const child = spawn(process.execPath, [program, ...words], {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    cleanup.ownProcess(child);
    return child;
  };
  await ended(run('credentials', 'create'));
  await registerEarlier(file('data'));
  const receiver = run('start');
  await said(receiver, '"ready: notifications are taken"');
  await ended(run('register', '--yes'));
  await ended(run('reconcile', '--from', '5h'));
  await ended(run('backup', '--to', file('backup.db')));
  return {
    target: `127.0.0.1:${consolePort}`,
    close: async () => {
      const exit = once(receiver, 'exit');
      receiver.kill('SIGTERM');
      await exit;
      await sandbox.close();
    },
  };
}

/** Five hours ago, until now: an hour is compared when it has ended. */
async function registerEarlier(dataDir: string): Promise<void> {
  const nowUs = Date.now() * 1_000;
  const atUs = nowUs - 5 * hourMs * 1_000;
  const store = await openStore({ dataDir, nowUs: () => nowUs });
  const save = {
    ...{ name: 'demo', events: ['created'] as const, filter: '', status: 'running' as const },
    ...{ subscriptionId: null, unfinished: false, heldBy: null, reported: null },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs, pausedSeenAtUs: null },
    credentialsDigest: null,
  };
  await store.administration.commit({ save });
  const gone = { atUs: nowUs, subscription: 'demo', subscriptionId: null, reason: 'A new one.' };
  const history = [{ ...gone, action: 'deleted' as const, actor: 'subscriptions' as const }];
  await store.administration.commit({ forget: 'demo', history });
  await store.close();
}

/** Rejects with what it had to say when it fails. */
async function ended(child: ChildProcess): Promise<void> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${child.spawnargs.slice(2).join(' ')} failed: ${said}`);
}

function said(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = `${log}${text}`.slice(-20_000);
      if (log.includes(words)) resolve();
    });
    child.once('exit', () => reject(new Error(`The receiver ended: ${log}`)));
  });
}
