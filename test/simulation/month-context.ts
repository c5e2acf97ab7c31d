/** A sandbox and a receiver on one simulated clock, with real sockets, files, commands and receiver outages. */

import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createEndpoint } from '../../bench/servers.ts';
import { loadAccountConfig } from '../../src/admin/settings.ts';
import { needsEndpoint } from '../../src/admin/subscription-ways.ts';
import { app } from '../../src/app.ts';
import type { Io } from '../../src/core/cli/io.ts';
import { loadConfig, loadServed } from '../../src/core/config/config.ts';
import type { Logger } from '../../src/core/terms/ports.ts';
import { createReconcileRounds } from '../../src/features/coverage/job.ts';
import { reconcileSections } from '../../src/features/coverage/settings.ts';
import { maintenanceRound } from '../../src/features/subscriptions/job.ts';
import { type RunningReceiver, serve } from '../../src/receiver/serve.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { type Ended, runCommand } from '../helpers/fake-io.ts';
import { settings } from '../helpers/settings.ts';

export const account = { username: 'me@example.org', password: 'the-password-of-the-account' };

export interface MonthContext {
  dataDir: string;
  /** Holds `earshot.config.ts`. */
  folder: string;
  sandbox: Sandbox;
  nowMs(): number;
  /** Null while the receiver is closed. */
  receiver(): RunningReceiver | null;
  /** Starts the receiver, always on the same port; without a listener if all subscriptions are pull. */
  open(): Promise<void>;
  /** Stops the receiver. */
  shut(): Promise<void>;
  /** Records the heartbeat, as `start` does each minute. */
  recordUptime(): Promise<void>;
  /** Runs a comparison, as `start` does; false when it failed. */
  compare(): Promise<boolean>;
  /** Times of completed comparisons, ms since 1970. */
  rounds: readonly number[];
  /** Runs a round of maintenance, as `start` does. */
  maintain(): Promise<void>;
  /** Runs a command; `send` replaces its `fetch`. */
  command(argv: readonly string[], send?: typeof fetch): Promise<Ended>;
  /** Warnings and errors of the receiver. */
  problems: readonly string[];
  close(): Promise<void>;
}

interface MonthContextOptions {
  folder: string;
  seed: number;
  startMs: number;
  sandbox?: Partial<SandboxOptions>;
  /** False: the receiver has no certificate and no credentials, and is not started yet. */
  hasEndpoint?: boolean;
}

/** Starts the sandbox and the receiver. The clock stands still unless the sandbox advances it. */
export async function openMonthContext(options: MonthContextOptions): Promise<MonthContext> {
  const { folder, seed, startMs, hasEndpoint = true } = options;
  const dataDir = join(folder, 'data');
  const endpoint = hasEndpoint ? await createMonthEndpoint(folder) : null;
  const sandbox = await startSandbox({
    ...{ account, seed, now: () => startMs, count: 0 },
    trustedCaPems: endpoint === null ? [] : [endpoint.authorityPem],
    ...options.sandbox,
  });
  const env: Record<string, string> = {
    ...endpoint?.env,
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_LISTEN: '127.0.0.1:0',
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    // Rate limiting of catalogue requests is measured elsewhere.
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '600000',
  };
  const nowUs = () => Math.trunc(sandbox.clock.now()) * 1_000;
  const io = createIo({ env, folder, seed, nowUs });
  const context = createContext({ sandbox, env, io, dataDir, folder });
  if (!hasEndpoint) return context;
  try {
    const created = await context.command(['credentials', 'create']);
    if (created.code !== 0) throw new Error(created.err);
    await context.open();
  } catch (error) {
    await context.close();
    throw error;
  }
  return context;
}

async function createMonthEndpoint(folder: string) {
  const { authorityPem, certificateFile, keyFile } = await createEndpoint(folder);
  const authorityFile = join(folder, 'authority.pem');
  writeFileSync(authorityFile, authorityPem);
  const env = {
    EARSHOT_TLS_CERT: certificateFile,
    EARSHOT_TLS_KEY: keyFile,
    EARSHOT_PROBE_CA: authorityFile,
  };
  return { authorityPem, env };
}

interface ContextDeps extends Pick<MonthContext, 'sandbox' | 'dataDir' | 'folder'> {
  env: Record<string, string>;
  io: Io;
}

/** State while the receiver runs. */
interface Served {
  receiver: RunningReceiver;
  compare: ReturnType<typeof createReconcileRounds>;
  sinceUs: number;
  stopping: AbortController;
}

function createContext({ sandbox, env, io, dataDir, folder }: ContextDeps): MonthContext {
  const problems: string[] = [];
  const rounds: number[] = [];
  const log = problemLog(problems);
  let served: Served | null = null;
  const up = () => {
    if (served === null) throw new Error('The receiver is closed.');
    return served;
  };
  const recordUptime = () => {
    const { receiver, sinceUs: fromUs } = up();
    return receiver.store.completeness.recordUptime({ fromUs, toUs: io.nowUs() });
  };
  const shut = async () => {
    await recordUptime();
    const { receiver, stopping } = up();
    served = null;
    stopping.abort();
    await receiver.close();
  };
  return {
    ...{ dataDir, folder, sandbox, problems, rounds, recordUptime, shut },
    nowMs: sandbox.clock.now,
    receiver: () => served?.receiver ?? null,
    open: async () => {
      const hasEndpoint = await needsEndpoint({ ...io, env });
      const receiver = await serve(loadServed({ ...io, env }, 'serve', { hasEndpoint }), log, io);
      if (receiver.url !== null) {
        const { port } = new URL(receiver.url);
        env.EARSHOT_LISTEN = `127.0.0.1:${port}`;
        env.EARSHOT_PUBLIC_URL = `https://localhost:${port}`;
      }
      const { store, products } = receiver;
      const stopping = new AbortController();
      const config = loadConfig({ ...io, env }, reconcileSections);
      const compare = createReconcileRounds({ store, products, log }, config, io, stopping.signal);
      served = { receiver, compare, sinceUs: io.nowUs(), stopping };
      await recordUptime();
    },
    compare: async () => {
      const { receiver, compare } = up();
      await waitForIndex(receiver);
      const isDone = (await compare()) === 'all';
      if (isDone) rounds.push(Math.trunc(sandbox.clock.now()));
      return isDone;
    },
    maintain: async () => {
      const config = loadAccountConfig({ ...io, env }, { publicUrl: true });
      await maintenanceRound(config, up().receiver.store, io);
    },
    command: (argv, send = fetch) =>
      runCommand(argv, { env, fetch: send, nowUs: io.nowUs, workingDir: folder }),
    close: async () => {
      if (served !== null) await shut();
      await sandbox.close();
    },
  };
}

/** Waits for the product index, which has had simulated but no real time to catch up. */
async function waitForIndex({ store, products }: RunningReceiver): Promise<void> {
  const lastPosition = await store.lastPosition();
  while ((await products.indexedPosition()) < lastPosition) await delay(5);
}

function problemLog(problems: string[]): Logger {
  const keep = (fields: object, message: string) =>
    void problems.push(`${message} ${JSON.stringify(fields)}`);
  const drop = () => undefined;
  return { debug: drop, info: drop, warn: keep, error: keep };
}

/** Creates the receiver's IO: the real network, and the simulated clock. */
function createIo(own: {
  env: Record<string, string>;
  folder: string;
  seed: number;
  nowUs: () => number;
}): Io {
  const nowhere = { write: () => true, once: () => undefined };
  return {
    ...{ stdout: nowhere, stderr: nowhere, env: own.env, nowUs: own.nowUs },
    settings,
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
    features: app,
  };
}
