/** A sandbox and a receiver on one simulated clock, with real sockets, files, commands and receiver outages. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createEndpoint } from '../../bench/servers.ts';
import { loadAccountConfig } from '../../src/admin/settings.ts';
import { needsEndpoint } from '../../src/admin/subscription-ways.ts';
import { loadConfig, loadServed } from '../../src/core/config/config.ts';
import type { Logger } from '../../src/core/terms/ports.ts';
import { createReconcileRounds } from '../../src/features/coverage/job.ts';
import { reconcileSections } from '../../src/features/coverage/settings.ts';
import { maintenanceRound } from '../../src/features/subscriptions/job.ts';
import { type RunningReceiver, serve } from '../../src/receiver/serve.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/settings.ts';
import { type Ended, runCommand, testIo } from '../helpers/fake-io.ts';

export const account = { username: 'me@example.org', password: 'the-password-of-the-account' };

export interface MonthContext {
  dataDir: string;
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
  /** Runs a comparison, as `start` does. Rejects when it failed. */
  compare(): Promise<void>;
  /** Times of completed comparisons, ms since 1970. */
  rounds: readonly number[];
  /** Runs a round of maintenance, as `start` does. */
  maintain(): Promise<void>;
  /** Runs a command; `send` replaces its `fetch`. */
  command(argv: readonly string[], send?: typeof fetch): Promise<Ended>;
  /** Registers the subscriptions of a configuration file. Rejects when the command fails. */
  register(subscriptions: object, send?: typeof fetch): Promise<void>;
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
  const endpoint = hasEndpoint ? await createEndpoint(folder) : null;
  const authorityFile = join(folder, 'authority.pem');
  if (endpoint !== null) writeFileSync(authorityFile, endpoint.authorityPem);
  const sandbox = await startSandbox({
    ...{ account, seed, now: () => startMs, count: 0 },
    trustedCaPems: endpoint === null ? [] : [endpoint.authorityPem],
    ...options.sandbox,
  });
  const env: Record<string, string> = {
    ...(endpoint !== null && {
      EARSHOT_TLS_CERT: endpoint.certificateFile,
      EARSHOT_TLS_KEY: endpoint.keyFile,
      EARSHOT_PROBE_CA: authorityFile,
    }),
    EARSHOT_DATA_DIR: join(folder, 'data'),
    EARSHOT_LISTEN: '127.0.0.1:0',
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    // Rate limiting of catalogue requests is measured elsewhere.
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '600000',
  };
  const context = createContext({ sandbox, env, folder, seed });
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

/** State while the receiver runs. */
interface Served {
  receiver: RunningReceiver;
  compare: ReturnType<typeof createReconcileRounds>;
  sinceUs: number;
  stopping: AbortController;
}

interface ContextDeps {
  sandbox: Sandbox;
  env: Record<string, string>;
  folder: string;
  seed: number;
}

function createContext({ sandbox, env, folder, seed }: ContextDeps): MonthContext {
  const problems: string[] = [];
  const rounds: number[] = [];
  const keep = (fields: object, message: string) =>
    void problems.push(`${message} ${JSON.stringify(fields)}`);
  const drop = () => undefined;
  const log: Logger = { debug: drop, info: drop, warn: keep, error: keep };
  const nowUs = () => Math.trunc(sandbox.clock.now()) * 1_000;
  // The real network, and the simulated clock.
  const io = testIo({ env, nowUs, workingDir: folder, random: createRandom(seed).next });
  let served: Served | null = null;
  const up = () => {
    if (served === null) throw new Error('The receiver is closed.');
    return served;
  };
  const recordUptime = () => {
    const { receiver, sinceUs: fromUs } = up();
    return receiver.store.completeness.recordUptime({ fromUs, toUs: nowUs() });
  };
  const shut = async () => {
    await recordUptime();
    const { receiver, stopping } = up();
    served = null;
    stopping.abort();
    await receiver.close();
  };
  const command: MonthContext['command'] = (argv, send = fetch) =>
    runCommand(argv, { env, fetch: send, nowUs, workingDir: folder });
  return {
    ...{ dataDir: join(folder, 'data'), sandbox, problems, rounds, recordUptime, shut, command },
    nowMs: sandbox.clock.now,
    receiver: () => served?.receiver ?? null,
    open: async () => {
      const hasEndpoint = await needsEndpoint(io);
      const receiver = await serve(loadServed(io, 'start', { hasEndpoint }), log, io);
      if (receiver.url !== null) {
        const { port } = new URL(receiver.url);
        env.EARSHOT_LISTEN = `127.0.0.1:${port}`;
        env.EARSHOT_PUBLIC_URL = `https://localhost:${port}`;
      }
      const { store, products } = receiver;
      const stopping = new AbortController();
      const config = loadConfig(io, reconcileSections);
      const compare = createReconcileRounds({ store, products, log }, config, io, stopping.signal);
      served = { receiver, compare, sinceUs: nowUs(), stopping };
      await recordUptime();
    },
    compare: async () => {
      const { receiver, compare } = up();
      const { store, products } = receiver;
      // The product index has had simulated but no real time to catch up.
      const lastPosition = await store.lastPosition();
      while ((await products.indexedPosition()) < lastPosition) await delay(5);
      if ((await compare()) !== 'all') throw new Error(problems.slice(-3).join('; '));
      rounds.push(Math.trunc(sandbox.clock.now()));
    },
    maintain: async () => {
      const config = loadAccountConfig(io, { publicUrl: true });
      await maintenanceRound(config, up().receiver.store, io);
    },
    register: async (subscriptions, send) => {
      const text = `export default ${JSON.stringify({ subscriptions })};\n`;
      writeFileSync(join(folder, 'earshot.config.ts'), text);
      const { code, err } = await command(['register', '--yes'], send);
      if (code !== 0) throw new Error(`register failed: ${err}`);
    },
    close: async () => {
      if (served !== null) await shut();
      await sandbox.close();
    },
  };
}
