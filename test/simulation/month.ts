/**
 * A sandbox and a receiver on one simulated clock, with real sockets, files and commands: a month of hours, with
 * receiver outages, pauses and a replacement at seeded times.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { createEndpoint } from '../../bench/servers.ts';
import { loadAccountConfig } from '../../src/admin/settings.ts';
import { loadConfig, loadServed } from '../../src/core/config/config.ts';
import { notificationDelayUs } from '../../src/core/terms/subscription.ts';
import { createReconcileRounds } from '../../src/features/coverage/job.ts';
import { reconcileSections } from '../../src/features/coverage/settings.ts';
import { maintenanceRound } from '../../src/features/subscriptions/job.ts';
import { type RunningReceiver, serve } from '../../src/receiver/serve.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/settings.ts';
import { runCommand, testIo } from '../helpers/fake-io.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import type { SubscriptionPeriod } from './month-results.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** Time without a notification after which the catalogue pauses a subscription (specification, Limits). */
const inactivityMs = 60 * dayMs;
/** Hours between two comparisons. */
const roundHours = 4;
/** Maximum number of changes that the sandbox plans ahead; without new products, each is one step. */
const plannedStepsMax = 60;

const account = { username: 'me@example.org', password: 'the-password-of-the-account' };

/** Definition of a subscription, as in `earshot.config.ts`. */
type Definition = Pick<SubscriptionPeriod, 'events' | 'filter'>;
type Month = Awaited<ReturnType<typeof openMonth>>;

/** Starts the sandbox and the receiver, both closed with the test. Only the sandbox advances the clock. */
export async function openMonth(folder: string, seed: number, options: Partial<SandboxOptions>) {
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

  let served: { receiver: RunningReceiver; sinceUs: number; stopping: AbortController } | null;
  let compareNow: ReturnType<typeof createReconcileRounds>;
  const rounds: number[] = [];
  const up = () => {
    if (served === null) throw new Error('The receiver is closed.');
    return served;
  };
  /** Records the heartbeat, as `start` does each minute. */
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
  /** Starts the receiver, always on the same port. */
  const open = async () => {
    const receiver = await serve(loadServed(io, true), log, io);
    const { port } = new URL(receiver.url ?? '');
    env.EARSHOT_LISTEN = `127.0.0.1:${port}`;
    env.EARSHOT_PUBLIC_URL = `https://localhost:${port}`;
    const { store, products } = receiver;
    const stopping = new AbortController();
    const config = loadConfig(io, reconcileSections);
    compareNow = createReconcileRounds({ store, products, log }, config, io, stopping.signal);
    served = { receiver, sinceUs: nowUs(), stopping };
    await recordUptime();
  };
  /** Runs a comparison, as `start` does. */
  const compare = async () => {
    const { store, products } = up().receiver;
    // The product index has had simulated but no real time to catch up.
    const lastPosition = await store.lastPosition();
    while ((await products.indexedPosition()) < lastPosition) await delay(5);
    if ((await compareNow()) !== 'all') throw new Error(JSON.stringify(at('error').slice(-3)));
    rounds.push(Math.trunc(nowMs()));
  };
  const maintain = () =>
    maintenanceRound(loadAccountConfig(io, { publicUrl: true }), up().receiver.store, io);

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

  served = null;
  onTestFinished(async () => {
    if (served !== null) await shut();
    await sandbox.close();
  });
  await succeed(['credentials', 'create']);
  await open();
  return {
    ...{ dataDir, sandbox, nowMs, command, succeed, recordUptime, shut, open, compare, maintain },
    ...{
      register,
      rounds,
      periods,
      isOpen: () => served !== null,
      store: () => up().receiver.store,
    },
    idsOf: (subscription: string) => ids.get(subscription) ?? new Set<string>(),
  };
}

/** Creates functions that simulate hours, with heartbeats and regular comparisons. */
function createHours(month: Month, productsPerDay: number) {
  const { sandbox, isOpen, recordUptime, compare, nowMs } = month;
  const perHour = Math.max(1, Math.round(productsPerDay / 21));
  let sinceRound = 0;
  // Each product has its own time: without AckIds, two changes of the same time could not be distinguished.
  const publish = (durationMs: number, products: number) => sandbox.pass({ durationMs, products });
  const afterHour = async () => {
    if (!isOpen()) return;
    await recordUptime();
    sinceRound = (sinceRound + 1) % roundHours;
    if (sinceRound === 0) await compare();
  };
  const pass = async (hours: number, isQuiet = false) => {
    for (let i = 0; i < hours; i += 1) {
      // At night nothing is published, so that some hours are quiet.
      const isNight = new Date(nowMs()).getUTCHours() < 3;
      await publish(hourMs, isQuiet || isNight ? 0 : perHour);
      await afterHour();
    }
  };
  /** An hour with the planned changes, then hours without events; compares at the end. */
  const calm = async (hours: number) => {
    await sandbox.pass({ durationMs: hourMs, products: 0, steps: plannedStepsMax });
    await afterHour();
    await pass(hours, true);
    await compare();
  };
  return { perHour, publish, pass, calm };
}

/** Returns a definition of the subscription `acquisitions`. */
const acquisitionsOf = (...missions: string[]): Definition => ({
  events: ['created', 'modified'],
  filter: missions.map((name) => `Collection/Name eq '${name}'`).join(' or '),
});

/**
 * Simulates the month. The catalogue pauses the subscription `deletions` after the first days, after sixty days
 * without notifications; maintenance finds that a day later. The last 26 hours are without events, so that
 * delayed records are shown and compared twice. Returns the start and the end, ms.
 */
export async function simulateMonth(
  month: Month,
  { seed, days, productsPerDay }: { seed: number; days: number; productsPerDay: number },
) {
  const { nowMs, sandbox, register } = month;
  const hours = createHours(month, productsPerDay);
  // Deletions are registered long before, so that the sixty days end within the month.
  const silentUntil = new Date(nowMs() + inactivityMs).toISOString();
  const deletions: Definition = {
    events: ['deleted'],
    filter: `DeletionDate ge ${silentUntil}`,
  };
  await register({ deletions });
  sandbox.clock.advance(inactivityMs - Math.floor(days / 10) * dayMs);
  await month.recordUptime();
  const fromMs = nowMs();
  await register({ acquisitions: acquisitionsOf('SENTINEL-1', 'SENTINEL-2'), deletions });
  const replace = (send: typeof fetch) =>
    register({ acquisitions: acquisitionsOf('SENTINEL-2', 'SENTINEL-3'), deletions }, send);
  const incidents = incidentsOf(month, hours, { seed, days, replace });
  for (let hour = 0; hour < days * 24; ) {
    const spent = (await incidents.get(hour)?.()) ?? 0;
    if (spent === 0) await hours.pass(1);
    hour += Math.max(1, spent);
  }
  await hours.calm(26);
  return { fromMs, toMs: nowMs() };
}

/** Returns the incidents by the hour at which they begin; each returns how many hours it took, or 0. */
function incidentsOf(
  { shut, open, compare, maintain, succeed, sandbox }: Month,
  { pass, publish, perHour }: ReturnType<typeof createHours>,
  options: { seed: number; days: number; replace: (send: typeof fetch) => Promise<void> },
): Map<number, () => Promise<number>> {
  const { seed, days, replace } = options;
  const random = createRandom(seed);
  const day = (share: number) => Math.floor(share * days) * 24 + random.integer(3, 9);
  const whileStopped = async (during: () => Promise<unknown>, hours: number) => {
    await shut();
    await during();
    await open();
    await compare();
    return hours;
  };
  const outage = (hours: number) => () => whileStopped(() => pass(hours), hours);
  const minutes = () => whileStopped(() => publish(7 * minuteMs, Math.ceil((perHour * 7) / 60)), 0);
  /** A person pauses the subscription, and resumes it. */
  const pause = async () => {
    await succeed(['subscriptions', 'pause', 'acquisitions']);
    await pass(20);
    await succeed(['subscriptions', 'resume', 'acquisitions']);
    return 20;
  };
  /** Only two subscriptions may run: for eight minutes, neither the old nor the new one runs. */
  const replacement = async () => {
    let isPast = false;
    const isRunning = () =>
      sandbox
        .subscriptions()
        .some((one) => one.status === 'running' && one.endpoint?.endsWith('/acquisitions'));
    await replace(async (...request) => {
      if (!isPast && !isRunning()) {
        isPast = true;
        await publish(8 * minuteMs, 8);
      }
      return fetch(...request);
    });
    if (!isPast) throw new Error('The replacement left no gap.');
    return 0;
  };
  return new Map([
    [day(0.06), minutes],
    // The day after the pause by the catalogue.
    [(Math.floor(days / 10) + 1) * 24, () => maintain().then(() => 0)],
    [day(0.24), outage(3)],
    [day(0.34), pause],
    [day(0.48), replacement],
    [day(0.6), outage(Math.round(Math.min(2.5, days / 8) * 24))],
    [day(0.83), minutes],
  ]);
}
