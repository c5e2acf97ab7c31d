/** A demo: a receiver and a sandbox catalogue on loopback, in a temporary folder, with registered subscriptions. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyDesired, readPlan } from '../../admin/apply.ts';
import { createAccountContext, newCredentials } from '../../admin/open-account.ts';
import { loadAccountConfig } from '../../admin/settings.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { nameCalledIn, painter } from '../../core/cli/output.ts';
import { writeOwnerOnly } from '../../core/host/files.ts';
import type { Closers } from '../../core/host/job.ts';
import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { start } from '../../receiver/start-command.ts';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { demoFaults, demoProject, noFaults, type SandboxOptions } from '../../sandbox/settings.ts';
import type { Store } from '../../store/store.ts';
import { ioWith, mergeEnvFile, type Settings } from '../setup/env-file.ts';
import { planText } from '../subscriptions/register-command.ts';
import { simulatedPast, storePast, withStore } from './past.ts';

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

/** Requests a summary for each product, without a limit of the budget. */
const summarySettings = {
  EARSHOT_SUMMARY: 'each',
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: '1000000',
  EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
};

/** A page is read twice, so that the counts have duplicates. No fault loses an entry. */
const queueService: SandboxOptions['service'] = {
  retryAfterSeconds: 1,
  nextQueueCalls: {
    rateLimited: 1,
    serverError: 1,
    brokenJson: 1,
    ackAnswerLost: 1,
    doubleRead: 1,
  },
};

/** Starts the demo, and publishing. `closers` stop everything and remove the folder. */
export async function openDemo(
  io: Io,
  flags: DemoFlags,
  { version, closers }: { version: string; closers: Closers },
): Promise<DemoContext> {
  const { once, pull, records } = flags;
  const how = { isPull: pull === true, closers };
  const opened = await openSandbox(io, publishing(io, flags), how);
  const { folder, sandbox } = opened;
  const settings = { ...opened.settings, ...summarySettings };
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
  const served = ioWith(own, { ...settings, EARSHOT_LOG_LEVEL: 'error' });
  const receiver = await startReceiver(served, { version, closers }, async ({ store }) => {
    if (!pull) await register(store);
  });
  // The first run of the worker determines which notifications get a summary.
  const hasSummaries = io.features.some(({ productTexts }) => productTexts);
  const isStarted = async () => (await receiver.store.cursor('summaries')) !== null;
  while (hasSummaries && !io.signal.aborted && !(await isStarted())) {
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
  const endpoint = isPull ? null : await openEndpoint(folder, now);
  const account = { username: 'demo', password: io.newSecret() };
  const sandbox = await startSandbox({
    ...publishing,
    ...{ account, now, trustedCaPems: endpoint === null ? [] : [endpoint.authorityPem] },
    // Shorter than those of the real service, so that losses appear within seconds.
    retryDelaysMs: [100, 200, 400],
  });
  closers.add(() => sandbox.close());
  sandbox.pause();
  const pair = newCredentials(io);
  const settings = {
    ...endpoint?.settings,
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${await anyPort()}`,
    EARSHOT_DATA_DIR: join(folder, 'data'),
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    EARSHOT_ENDPOINT_USERNAME: pair.username,
    EARSHOT_ENDPOINT_PASSWORD: pair.password,
    // A sandbox on this machine needs no rate limit.
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '6000',
    EARSHOT_PULL_REQUESTS_PER_MINUTE: '6000',
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: demoProject.models[0],
  };
  return { folder, settings, sandbox };
}

/** Returns a port of loopback that no program uses. */
async function anyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Returns the settings of a public listener on this machine, with a certificate of a new authority in the folder. The key
 * of the authority is not stored.
 */
async function openEndpoint(folder: string, now: () => number) {
  const authority = await createCertificateAuthority({ now });
  const { certificatePem, keyPem } = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  const [cert, key, ca] = [file('certificate.pem'), file('key.pem'), file('authority.pem')];
  await writeFile(cert, certificatePem);
  await writeFile(key, keyPem, { mode: 0o600 });
  await writeFile(ca, authority.certificatePem);
  const port = await anyPort();
  const settings = {
    EARSHOT_PUBLIC_URL: `https://localhost:${port}`,
    EARSHOT_LISTEN: `127.0.0.1:${port}`,
    EARSHOT_TLS: 'files',
    EARSHOT_TLS_CERT: cert,
    EARSHOT_TLS_KEY: key,
    EARSHOT_PROBE_CA: ca,
  };
  return { authorityPem: authority.certificatePem, settings };
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

/** Name of the first subscription, in the path of the endpoint. */
export const demoName = 'demo';

/** Flags of `query` that select the same products as the filter. */
export const demoQueryFlags = '--collection SENTINEL-2 --bbox=-180,20,180,60';

/**
 * From 20 to 60 degrees north, all around the globe: the simulated satellites follow realistic orbits, so
 * a single country may get no product for hours.
 */
export const demoFilter =
  "Collection/Name eq 'SENTINEL-2' and OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-180 20,180 20,180 60,-180 60,-180 20))')";

/** The counting form has every product; the interactive form has those of the filter, and their changes. */
function demoSubscriptions({ once, pull }: DemoFlags): DesiredSubscription[] {
  const common = { name: demoName, type: pull ? 'pull' : 'push', status: 'running' } as const;
  if (once) return [{ ...common, events: ['created'], filter: '' }];
  const filtered = { ...common, filter: demoFilter };
  return [
    { ...filtered, events: ['created', 'modified'] },
    // The catalogue documents deletions in a subscription of their own (facts, catalogue 1.3).
    { ...filtered, name: 'demo-deletions', events: ['deleted'] },
  ];
}

/** Registers as `earshot register` does; prints the plan if it is `shown`. `io` has the settings. */
async function registerDemo(
  io: Io,
  store: Store,
  desired: readonly DesiredSubscription[],
  { shown }: { shown: boolean },
): Promise<void> {
  const publicUrl = desired.some(({ type }) => type === 'push');
  const config = loadAccountConfig(io, { publicUrl });
  const account = createAccountContext(config, store, io);
  if (shown) {
    const plan = await readPlan({ desired }, account);
    const text = planText(plan, account.limits, painter(io, io.stdout));
    io.stdout.write(`Plan of \`earshot register\`:\n\n${text}\n`);
  }
  await applyDesired({ desired }, account, { actor: 'register' });
}
