/** A sandbox and a receiver on one simulated clock, with real sockets, files and commands. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { createEndpoint } from '../../bench/servers.ts';
import { loadConfig, loadServed } from '../../src/core/config/config.ts';
import { notificationDelayUs } from '../../src/core/terms/subscription.ts';
import { createReconcileRounds } from '../../src/features/coverage/job.ts';
import { reconcileSections } from '../../src/features/coverage/settings.ts';
import { type RunningReceiver, serve } from '../../src/receiver/serve.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/settings.ts';
import { runCommand, testIo } from '../helpers/fake-io.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import type { SubscriptionPeriod } from './log-events.ts';

/** Hours between two comparisons. */
const roundHours = 4;

const account = { username: 'me@example.org', password: 'the-password-of-the-account' };

/** Definition of a subscription, as in `earshot.config.ts`. */
type Definition = Pick<SubscriptionPeriod, 'events' | 'filter'>;

/** Starts the sandbox and the receiver, both closed with the test. Only the sandbox advances the clock. */
export async function openHistory(seed: number, options: Partial<SandboxOptions>) {
  const folder = temporaryDirectory();
  const endpoint = await createEndpoint(folder);
  const authorityFile = join(folder, 'authority.pem');
  writeFileSync(authorityFile, endpoint.authorityPem);
  const startMs = Date.UTC(2026, 4, 1);
  const sandbox = await startSandbox({
    ...{ account, seed, now: () => startMs, count: 0, trustedCaPems: [endpoint.authorityPem] },
    ...options,
  });
  const dataDir = join(folder, 'data');
  const env: Record<string, string> = {
    EARSHOT_TLS_CERT: endpoint.certificateFile,
    EARSHOT_TLS_KEY: endpoint.keyFile,
    EARSHOT_PROBE_CA: authorityFile,
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
  const nowMs = sandbox.clock.now;
  const nowUs = () => Math.trunc(nowMs()) * 1_000;
  const io = testIo({ env, nowUs, workingDir: folder, random: createRandom(seed).next });
  const { log, at } = recordingLog();
  const command = (argv: readonly string[], send = fetch) =>
    runCommand(argv, { env, fetch: send, nowUs, workingDir: folder });
  const succeed = async (argv: readonly string[], send?: typeof fetch) => {
    const { code, err } = await command(argv, send);
    if (code !== 0) throw new Error(`${argv.join(' ')} failed: ${err}`);
  };

  let served: { receiver: RunningReceiver; next: () => Promise<unknown>; end: () => void } | null =
    null;
  const rounds: number[] = [];
  const up = () => {
    if (served === null) throw new Error('The receiver is closed.');
    return served;
  };
  const shut = async () => {
    const { receiver, end } = up();
    served = null;
    end();
    await receiver.close();
  };
  /** Starts the receiver, always on the same port. */
  const open = async () => {
    const receiver = await serve(loadServed(io, true), log, io);
    const { port } = new URL(receiver.url ?? '');
    env.EARSHOT_LISTEN = `127.0.0.1:${port}`;
    env.EARSHOT_PUBLIC_URL = `https://localhost:${port}`;
    const { store, products } = receiver;
    const stopping = new AbortController();
    const config = loadConfig(io, reconcileSections);
    const next = createReconcileRounds({ store, products, log }, config, io, stopping.signal);
    served = { receiver, next, end: () => stopping.abort() };
  };
  /** Runs a comparison, as `start` does. */
  const compare = async () => {
    const { receiver, next } = up();
    const { store, products } = receiver;
    // The product index has had simulated but no real time to catch up.
    const lastPosition = await store.lastPosition();
    while ((await products.indexedPosition()) < lastPosition) await delay(5);
    if ((await next()) !== 'all') throw new Error(JSON.stringify(at('error').slice(-3)));
    rounds.push(Math.trunc(nowMs()));
  };

  const ids = new Map<string, Set<string>>();
  const periods: SubscriptionPeriod[] = [];
  /** Registers the subscriptions of a configuration file, and notes their ids and periods. */
  const register = async (subscriptions: Record<string, Definition>, send?: typeof fetch) => {
    const text = `export default ${JSON.stringify({ subscriptions })};\n`;
    writeFileSync(join(folder, 'earshot.config.ts'), text);
    await succeed(['register', '--yes'], send);
    for (const { endpoint, id } of sandbox.subscriptions()) {
      const name = endpoint?.split('/').at(-1) ?? '';
      ids.set(name, (ids.get(name) ?? new Set()).add(id));
    }
    for (const [subscription, { events, filter }] of Object.entries(subscriptions)) {
      const last = periods.findLast((one) => one.subscription === subscription);
      if (last?.filter === filter) continue;
      if (last !== undefined) last.toUs = nowUs();
      // What was published shortly before the registration is pushed after it.
      const fromUs = last === undefined ? nowUs() - notificationDelayUs : nowUs();
      periods.push({ subscription, events, filter, fromUs, toUs: Number.POSITIVE_INFINITY });
    }
  };
  let hour = 0;
  /** Passes hours with this number of products each, and compares regularly while the receiver runs. */
  const passHours = async (count: number, products: number) => {
    for (let i = 0; i < count; i += 1) {
      await sandbox.pass({ durationMs: 3_600_000, products });
      hour += 1;
      if (served !== null && hour % roundHours === 0) await compare();
    }
  };

  onTestFinished(async () => {
    if (served !== null) await shut();
    await sandbox.close();
  });
  await succeed(['credentials', 'create']);
  await open();
  return {
    ...{ dataDir, sandbox, nowMs, command, succeed, shut, open, compare, register, passHours },
    ...{ rounds, periods, store: () => up().receiver.store },
    idsOf: (subscription: string) => ids.get(subscription) ?? new Set<string>(),
  };
}
