/** Context of the demo: a receiver and a sandbox catalogue on loopback, in a temporary folder. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newCredentials } from '../../admin/open-account.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { nameCalledIn } from '../../core/cli/output.ts';
import { writeOwnerOnly } from '../../core/host/files.ts';
import type { Closers } from '../../core/host/job.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { start } from '../../receiver/start-command.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { demoFaults, noFaults, type SandboxOptions } from '../../sandbox/settings.ts';
import type { Store } from '../../store/store.ts';
import { ioWith, mergeEnvFile, type Settings } from '../setup/env-file.ts';
import { demoSubscriptions, registerDemo } from './account.ts';
import { simulatedPast, storePast, withStore } from './past.ts';
import { anyPort, createDemoCertificate, demoSettings } from './settings.ts';
import { summarySettings } from './summaries.ts';

export interface DemoFlags {
  once?: true;
  products?: number;
  records?: string;
  faults?: true;
  pull?: true;
  seed: number;
}

export interface DemoContext {
  /** Names commands for the folder of the demo, which has the settings. */
  io: Io;
  settings: Settings;
  /** Folder with the settings, for other commands. */
  folder: string;
  /** Numbers of notifications of the past day; null without a past. */
  past: Awaited<ReturnType<typeof storePast>> | null;
  receiver: RunningReceiver;
  sandbox: Sandbox;
  /** True once all products are published. */
  isPublished: () => boolean;
}

const onceProductsDefault = 200;

const onceRatePerSecond = 150;

/** Slow enough to read: about one product per second matches the filter. */
const livelyRatePerSecond = 8;

const pastProductsPerDay = 2_000;

const startPollMs = 50;

/** At least one page is read twice, so that the counts have duplicates. No fault loses an entry. */
const queueService: SandboxOptions['service'] = {
  queueFaults: {
    ...{ rateLimited: 0.05, serverError: 0.05, htmlPage: 0.02, connectionCut: 0.05 },
    ...{ brokenJson: 0.05, ackAnswerLost: 0.1, doubleRead: 0.1 },
  },
  ...{ retryAfterSeconds: 1, nextQueueCalls: { doubleRead: 1 } },
};

/** Starts the demo, and publishing. `closers` stop everything and remove the folder. */
export async function openDemo(
  io: Io,
  flags: DemoFlags,
  { version, closers }: { version: string; closers: Closers },
): Promise<DemoContext> {
  const { once, pull, records } = flags;
  const how = { isPull: pull === true, closers };
  const { folder, settings, sandbox } = await openSandbox(io, publishing(io, flags), how);
  const header = 'Settings of a running demo';
  await writeOwnerOnly(join(folder, '.env'), mergeEnvFile(null, settings, { header }));
  const env = { ...io.env, earshot_called_as: nameCalledIn(folder, io) };
  const own = { ...ioWith({ ...io, env }, settings), workingDir: folder };
  const desired = demoSubscriptions(flags);
  const hasPast = !once && records === undefined;
  const past = hasPast ? await withStore(own, (store) => storePast(own, store, desired)) : null;
  const register = (store: Store) => registerDemo(own, store, desired, { shown: !once });
  // The receiver reads the queues that are registered when it starts.
  if (pull) await withStore(own, register);
  const served = ioWith(own, { ...settings, ...summarySettings, EARSHOT_LOG_LEVEL: 'error' });
  const receiver = await startReceiver(served, { version, closers }, async ({ store }) => {
    if (!pull) await register(store);
  });
  // The first run of the worker determines which notifications get a summary.
  while ((await receiver.store.cursor('summaries')) === null && !io.signal.aborted) {
    await pause(startPollMs, io.signal);
  }
  let isPublished = false;
  const note = () => {
    isPublished = true;
  };
  sandbox.finished.then(note, note);
  sandbox.resume();
  const isDone = () => isPublished;
  return { io: { ...io, env }, settings, folder, past, receiver, sandbox, isPublished: isDone };
}

function publishing(io: Io, flags: DemoFlags): Partial<SandboxOptions> {
  const { once, products, records: recordsFile, faults, pull, seed } = flags;
  const count = products ?? (once && !recordsFile ? onceProductsDefault : undefined);
  return {
    ...{ seed, faults: faults ? demoFaults : noFaults },
    ...(faults && pull && { service: queueService }),
    ...(count !== undefined && { count }),
    ...(recordsFile !== undefined && { recordsFile }),
    // The interactive form shows all three events; the counting form counts products.
    ...(once
      ? { ratePerSecond: onceRatePerSecond }
      : { ratePerSecond: livelyRatePerSecond, modifiedShare: 0.2, deletedShare: 0.1 }),
    ...(!once && recordsFile === undefined && { past: simulatedPast(io, pastProductsPerDay) }),
  };
}

/** Starts a sandbox, paused, in a temporary folder. Resolves with the settings of a receiver of its account. */
async function openSandbox(
  io: Io,
  publishing: Partial<SandboxOptions>,
  { isPull, closers }: { isPull: boolean; closers: Closers },
) {
  const folder = await mkdtemp(join(tmpdir(), 'earshot-demo-'));
  closers.add(() => rm(folder, { recursive: true, force: true }));
  const now = () => io.nowUs() / 1_000;
  const certificate = isPull ? null : await createDemoCertificate(folder, now);
  const account = { username: 'demo', password: io.newSecret() };
  const sandbox = await startSandbox({
    ...publishing,
    ...{ account, now, trustedCaPems: certificate === null ? [] : [certificate.authorityPem] },
    // Shorter than those of the real service, so that losses appear within seconds.
    retryDelaysMs: [100, 200, 400],
  });
  closers.add(() => sandbox.close());
  sandbox.pause();
  const port = await anyPort();
  const pair = newCredentials(io);
  const settings = {
    ...demoSettings({
      ...{ dataDir: join(folder, 'data'), files: certificate?.files ?? null, sandbox, account },
      ...{ publicUrl: isPull ? null : `https://localhost:${port}`, listen: `127.0.0.1:${port}` },
      consoleListen: `127.0.0.1:${await anyPort()}`,
    }),
    EARSHOT_PULL_REQUESTS_PER_MINUTE: '6000',
    EARSHOT_ENDPOINT_USERNAME: pair.username,
    EARSHOT_ENDPOINT_PASSWORD: pair.password,
  };
  return { folder, settings, sandbox };
}

/** Starts the receiver as `earshot start` does. Resolves when `whenReady` has ended. */
async function startReceiver(
  io: Io,
  { version, closers }: { version: string; closers: Closers },
  whenReady: (receiver: RunningReceiver) => Promise<void>,
): Promise<RunningReceiver> {
  // Ctrl-C ends the demo first, which still reads the log.
  const stop = new AbortController();
  const ready = Promise.withResolvers<RunningReceiver>();
  const running = start({ ...io, signal: stop.signal }, version, async (receiver) => {
    await whenReady(receiver);
    ready.resolve(receiver);
  });
  running.catch(ready.reject);
  closers.add(async () => {
    stop.abort();
    await running;
  });
  return ready.promise;
}
