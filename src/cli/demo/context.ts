/** Context of the demo: a receiver and a sandbox catalogue on loopback, in a temporary folder. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CompleteAccountConfig } from '../../config/config.ts';
import { writeCredentialsFile } from '../../config/endpoint-credentials.ts';
import type { TlsConfig } from '../../config/tls.ts';
import { writeOwnerOnly } from '../../host/files.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/sandbox-options.ts';
import { newCredentials } from '../account.ts';
import { type Closers, createClosers } from '../closers.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { mergeEnvFile } from '../setup/env-file.ts';
import { createTrialCertificate, trialSettings } from '../setup/trial.ts';
import { startUptimeMarks } from '../start/marks.ts';
import { startPullIntake } from '../start/pull.ts';
import { type RunningReceiver, serve } from '../start/serve.ts';
import { serveWatchdog } from '../start/watchdog.ts';
import { startDemoSummaries } from './summaries.ts';

export interface DemoContext {
  /** True if the subscriptions are pull: there is no certificate, and no public listener. */
  isPull: boolean;
  dataDir: string;
  /** Variables with which all commands work on the demo's data, and a file with them for a shell. */
  settings: Readonly<Record<string, string>>;
  settingsFile: string;
  receiver: RunningReceiver;
  /** Paused until it is resumed. */
  sandbox: Sandbox;
  /** Account at the sandbox's catalogue, and endpoint to register there. */
  config: CompleteAccountConfig;
  /** Stops everything and removes the folder. */
  close(): Promise<void>;
}

export type DemoPublishing = Pick<
  SandboxOptions,
  'count' | 'recordsFile' | 'ratePerSecond' | 'modifiedShare' | 'deletedShare' | 'faults' | 'seed'
>;

/** Shorter than those of the real service, so that losses appear within seconds. */
export const retryDelaysMs: [number, number, number] = [100, 200, 400];

/** Faults of queues with the flag --faults: none loses an entry. */
const queueFaults = {
  ...{ rateLimited: 0.05, serverError: 0.05, htmlPage: 0.02, connectionCut: 0.05 },
  ...{ brokenJson: 0.05, ackAnswerLost: 0.1, doubleRead: 0.1 },
};

/** At least one page is read twice, so that the summary has duplicates. */
const queueService = {
  ...{ queueFaults, queueRetryAfterSeconds: 1 },
  nextQueueCalls: { doubleRead: 1 },
};

/** Without a limit, on one machine. */
const pullRequestsPerMinute = 6_000;

export async function openDemoContext(
  io: Io,
  publishing: DemoPublishing,
  { isPull, hasFaults }: { isPull: boolean; hasFaults: boolean },
): Promise<DemoContext> {
  const closers = createClosers();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'earshot-demo-'));
    closers.add(() => rm(folder, { recursive: true, force: true }));
    const now = () => io.nowUs() / 1000;
    const certificate = isPull ? null : await createTrialCertificate(folder, now);
    await certificate?.write();
    const pair = newCredentials(io);
    const account = { username: 'demo', password: io.newSecret() };
    const sandbox = await startSandbox({
      ...publishing,
      account,
      trustedCaPems: certificate === null ? [] : [certificate.authorityPem],
      service: isPull && hasFaults ? queueService : {},
      retryDelaysMs,
      now,
    });
    sandbox.pause();
    closers.add(() => sandbox.close());
    const { catalogueUrl } = sandbox;
    const files = certificate?.files ?? null;
    const receiver = await startReceiver(io, { folder, catalogueUrl }, files, pair);
    closers.add(() => receiver.close());
    const dataDir = join(folder, 'data');
    const settings = settingsOf({ dataDir, files, sandbox, account }, receiver);
    // For commands that log in to the endpoint.
    if (!isPull) await writeCredentialsFile(dataDir, [pair]);
    const settingsFile = join(folder, 'settings');
    const header = 'Settings of a running demo: set -a; . <this file>; set +a';
    await writeOwnerOnly(settingsFile, mergeEnvFile(null, settings, { header }));
    const summaries = await startDemoSummaries(io, receiver, sandbox);
    closers.add(() => summaries.stop());
    watchReceiver(io, receiver, { dataDir, files }, closers);
    const config: CompleteAccountConfig = {
      ...{ dataDir, sharedLog: null },
      publicUrl: receiver.url ?? undefined,
      catalogueUrl,
      account: {
        kind: 'password',
        tokenUrl: sandbox.tokenUrl,
        clientId: 'cdse-public',
        totp: undefined,
        ...account,
      },
      limits: { runningMax: 2, totalMax: 10 },
      probeCa: files?.ca,
      endpoint: { source: 'variables', pairs: [pair] },
      pullRequestsPerMinute,
    };
    if (isPull) readQueues(io, receiver, config, closers);
    const { closeAll: close } = closers;
    return { isPull, dataDir, settings, settingsFile, receiver, sandbox, config, close };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Reads the queues as a receiver with background jobs does. */
function readQueues(
  io: Io,
  receiver: RunningReceiver,
  config: CompleteAccountConfig,
  closers: Closers,
): void {
  const log = createLogger(io, 'error');
  const intake = startPullIntake({ ...receiver, log }, config, io);
  closers.add(() => intake.stop());
}

/** Starts the watchdog, so that alerts and status of the demo are complete. */
function watchReceiver(
  io: Io,
  receiver: RunningReceiver,
  { dataDir, files }: { dataDir: string; files: { cert: string; key: string } | null },
  closers: Closers,
): void {
  const log = createLogger(io, 'warn');
  const { completeness } = receiver.store;
  const uptime = startUptimeMarks({ completeness, nowUs: io.nowUs, log });
  closers.add(() => uptime.stop());
  const watched = {
    dataDir,
    tls: tlsOf(files),
    ...{ alertUrl: null, alertCommand: null, deliveryState: () => ({ names: [], fault: null }) },
    ...{ maintenance: false, reconcile: false, backupEveryHours: null },
  } as const;
  const watchdog = serveWatchdog(receiver, watched, log, io);
  closers.add(() => watchdog.stop());
}

function tlsOf(files: { cert: string; key: string } | null): TlsConfig {
  return files === null ? { kind: 'off' } : { kind: 'files', cert: files.cert, key: files.key };
}

function settingsOf(
  trial: Pick<Parameters<typeof trialSettings>[0], 'dataDir' | 'files' | 'sandbox' | 'account'>,
  { url, consoleUrl }: Pick<RunningReceiver, 'url' | 'consoleUrl'>,
): Record<string, string> {
  const hostOf = (text: string | null) => (text === null ? 'off' : new URL(text).host);
  const listen = hostOf(url);
  return {
    ...trialSettings({ ...trial, publicUrl: url, listen, consoleListen: hostOf(consoleUrl) }),
    // This receiver does not compare automatically.
    EARSHOT_RECONCILE: 'off',
    // A sandbox on this machine needs no rate limit.
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '6000',
  };
}

function startReceiver(
  io: Io,
  { folder, catalogueUrl }: { folder: string; catalogueUrl: string },
  certificateFiles: { cert: string; key: string } | null,
  pair: { username: string; password: string },
): Promise<RunningReceiver> {
  return serve(
    {
      listen: certificateFiles && { host: '127.0.0.1', port: 0 },
      publicUrl: undefined,
      dataDir: join(folder, 'data'),
      diskReserveBytes: undefined,
      sharedLog: null,
      credentials: { source: 'variables', pairs: [pair] },
      tls: tlsOf(certificateFiles),
      trustedProxies: [],
      console: { listen: { host: '127.0.0.1', port: 0 }, password: undefined, catalogueUrl },
      index: true,
      logLevel: 'warn',
    },
    createLogger(io, 'warn'),
    io,
  );
}
