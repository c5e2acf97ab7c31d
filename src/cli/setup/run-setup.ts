/** Carries out `earshot setup`: answers, `.env`, credentials, checks, receiver, registration. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { accountSections, dataSections, loadConfig } from '../../config/config.ts';
import { readCredentialsFile, writeCredentialsFile } from '../../config/endpoint-credentials.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { followLog } from '../../domain/streams.ts';
import { defaultSubscriptionName } from '../../domain/subscription.ts';
import { printable } from '../../domain/text.ts';
import { writeOwnerOnly } from '../../host/files.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { newCredentials } from '../account.ts';
import { runDoctor } from '../commands/doctor.ts';
import { register } from '../commands/register.ts';
import { start } from '../commands/start.ts';
import { entitiesOf, readFilter } from '../filter-text.ts';
import { confirm } from '../flags.ts';
import { type Io, pause } from '../io.ts';
import { painter, writeOut } from '../output.ts';
import { conditionFlagsOf, describedTwice, filterOfFlags } from '../register-filter.ts';
import { alreadyServed, findRunning, isSameListener, probeReceiver } from '../running-receiver.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { needsEndpoint } from '../subscription-ways.ts';
import { ioWith, mergeEnvFile, type Settings, shownSettings } from './env-file.ts';
import { askFilter, askSettings, isChosen, type ReadFlag, type SetupFlags } from './questions.ts';

/** Input of the set-up after all questions. */
export interface SetupPlan {
  /** Folder of `.env`, in which commands are to be run. */
  folder: string;
  settings: Settings;
  /** Names that are removed from an existing `.env`. */
  dropped: readonly string[];
  header: string;
  /** Printed when the receiver has stopped. */
  farewell: string;
  /** Called with the settings before the checks and the receiver start. */
  prepare?: ((io: Io) => Promise<void>) | undefined;
  flags: SetupFlags;
  /** Version of earshot, for alerts and metrics. */
  version: string;
}

/** Maximum wait for the first certificate. Usually seconds; an order may be retried. */
const certificateTimeoutMs = 300_000;
const pollMs = 250;

const stopped =
  'The receiver has stopped; the subscription is still active in the catalogue. Start the receiver: `earshot start`, or as a service (docs/start.md). The catalogue retries a push three times. After the start, the receiver recovers lost notifications.';

/** Sets up a receiver in the working folder. */
export async function runSetup(
  io: Io,
  flags: SetupFlags,
  { version, readFlag }: { version: string; readFlag: ReadFlag },
): Promise<void> {
  const isNamed = (await loadSubscriptionsFile(io.workingDir)) !== null;
  const isStated = isChosen(flags) || (flags.event ?? flags.subscription) !== undefined;
  if (isNamed && isStated) throw describedTwice(flags.subscription ?? defaultSubscriptionName);
  const isSet = ([name, value]: [string, string | undefined]) =>
    name.startsWith('EARSHOT_') && value !== undefined && value !== '';
  const before = Object.fromEntries(Object.entries(io.env).filter(isSet)) as Record<string, string>;
  const settings = { ...before };
  if (!(await needsEndpoint(io))) flags.pull = true;
  const missing = await askSettings(io, flags, settings);
  if (!isNamed && !isChosen(flags)) missing.push(...(await askFilter(io, flags, readFlag)));
  if (!flags.yes && !flags.dryRun && missing.length > 0)
    missing.push('--yes  write .env and register without confirmation');
  if (missing.length > 0) {
    throw new AppError(
      'usage',
      'Some answers are missing, and there is no terminal for questions. Nothing was changed.',
      { advice: 'Add these flags, or set the variables.', details: missing },
    );
  }
  const dropped = Object.keys(before).filter((name) => !(name in settings));
  const header = 'Written by `earshot setup`. All variables: docs/reference/configuration.md.';
  const plan = { folder: io.workingDir, settings, dropped, header, farewell: stopped };
  await install(io, { ...plan, flags, version });
}

/** Checks the plan, prints it, and carries it out. With --dry-run, only prints it. */
export async function install(io: Io, plan: SetupPlan): Promise<void> {
  const { folder, settings, dropped, header, flags } = plan;
  const own = { ...ioWith(io, settings), workingDir: folder };
  const acme = own.env.EARSHOT_TLS === 'acme' ? (['acme', 'listen'] as const) : [];
  const { dataDir } = loadConfig(own, [...dataSections, ...accountSections, ...acme]);
  const filter = checkedFilter(own, flags);
  if (!flags.dryRun && !flags.pull) await requireNoOther(own, dataDir);
  const path = join(folder, '.env');
  const before = existsSync(path) ? io.readFile(path) : null;
  const text = mergeEnvFile(before, settings, { header, dropped });
  await writeOut(
    flags.dryRun ? io.stdout : io.stderr,
    planText(plan, { path, before, dataDir, filter }),
  );
  if (flags.dryRun) return;
  if (before !== null && before !== text) await confirmChange(io, path, flags);
  else await confirm(io, 'Continue?', flags);
  if (before !== text) await writeOwnerOnly(path, text);
  report(io, `${before === text ? 'unchanged' : 'written'}: ${path}`);
  const hasEndpoint = !flags.pull || settings.EARSHOT_PUBLIC_URL !== undefined;
  if (hasEndpoint) await createCredentials(own, dataDir);
  await plan.prepare?.(own);
  report(io, 'running the checks that do not need a receiver:');
  await runDoctor(own, { beforeStart: true, hasEndpoint }).catch(refuseToStart);
  await (flags.pull ? registerAndRead(own, plan) : receiveAndRegister(own, plan));
}

/** Throws `conflict` if a receiver with another address uses the data directory. */
async function requireNoOther(io: Io, dataDir: string): Promise<void> {
  const running = await findRunning(dataDir);
  if (running === null || isSameListener(running, loadConfig(io, ['health']).health.listen)) return;
  throw alreadyServed(dataDir, running);
}

/** Checks the filter before anything is written. Throws `usage` if the catalogue would reject it. */
function checkedFilter(io: Io, flags: SetupFlags): string | undefined {
  const filter = filterOfFlags(flags, io);
  if (filter === undefined) return undefined;
  for (const entity of entitiesOf(flags.event ?? ['created'])) readFilter(filter, entity, io);
  return filter;
}

function planText(
  { settings, dropped, flags }: SetupPlan,
  facts: {
    path: string;
    before: string | null;
    dataDir: string;
    /** Undefined if earshot.config.ts defines the subscriptions. */
    filter: string | undefined;
  },
): string {
  const { path, before, dataDir, filter } = facts;
  const { event = ['created'], subscription = defaultSubscriptionName } = flags;
  const removed = dropped.length === 0 ? '' : `Removed: ${dropped.join(', ')}\n`;
  const subject =
    filter !== undefined
      ? `subscription "${subscription}" (${event.join(', ')}), filter: ${printable(filter || 'none')}`
      : flags.subscription === undefined
        ? `the subscriptions of ${subscriptionsFileName}`
        : `subscription "${subscription}" as last registered`;
  const [registration, end] = [
    `register ${subject}`,
    flags.stay ? 'receive until Ctrl-C' : 'stop the receiver',
  ];
  const steps = [
    ...(flags.pull
      ? []
      : [`create endpoint credentials in ${printable(dataDir)}, if there are none`]),
    'run the checks of earshot doctor that need no receiver',
    ...(flags.pull
      ? [`${registration}, with a queue`, ...(flags.stay ? ['start the receiver', end] : [])]
      : ['start the receiver', registration, end]),
  ];
  return `${path} (${before === null ? 'new' : 'exists; other lines stay unchanged'}; readable only by its owner):

${shownSettings(settings)
  .map((line) => `  ${printable(line)}\n`)
  .join('')}
${removed}Then:
${steps.map((step, i) => `  ${i + 1}. ${step}\n`).join('')}`;
}

/** Confirms the change of an existing file, unless --force and --yes are set. */
async function confirmChange(io: Io, path: string, { force, yes }: SetupFlags): Promise<void> {
  if (force && yes) return;
  if (yes) {
    throw new AppError('conflict', `${path} exists and would be changed. Nothing was done.`, {
      advice: 'Add --force to change it. Lines of other variables stay unchanged.',
    });
  }
  await confirm(io, `Change the existing file ${path} and continue?`, {});
}

async function createCredentials(io: Io, dataDir: string): Promise<void> {
  const { EARSHOT_ENDPOINT_USERNAME: fromVariables } = io.env;
  if (fromVariables !== undefined || readCredentialsFile(dataDir) !== null) return;
  const release = await createAcquireLock(dataDir)('subscriptions', { waitMs: 10_000 });
  try {
    if (readCredentialsFile(dataDir) !== null) return;
    await writeCredentialsFile(dataDir, [newCredentials(io)]);
  } finally {
    release();
  }
  report(io, `endpoint credentials created in ${dataDir}`);
}

function refuseToStart(cause: unknown): never {
  if (!(cause instanceof AppError) || cause.code !== 'unavailable') throw cause;
  throw new AppError('unavailable', `${errorText(cause)} Nothing was registered.`, {
    advice: 'Fix the failed checks and run `earshot setup` again. It reads your answers from .env.',
    cause,
  });
}

/** Registers only when the receiver answers: without a receiver, notifications would be lost. */
async function receiveAndRegister(io: Io, { flags, version, farewell }: SetupPlan): Promise<void> {
  const registration = registrationOf(flags);
  const isRunning =
    (await probeReceiver(loadConfig(io, ['health']).health, io.signal)).state === 'accepting';
  if (isRunning) {
    report(io, 'a receiver with these credentials is already running; registering');
    await register(io, registration);
    report(io, 'done. If settings have changed, restart the receiver.');
    return;
  }
  const done = new AbortController();
  const signal = AbortSignal.any([io.signal, done.signal]);
  let watching: Promise<void> = Promise.resolve();
  await start({ ...io, signal }, version, async (receiver) => {
    await untilReady(io);
    const afterPosition = await receiver.store.lastPosition();
    await register(io, registration);
    if (!flags.stay) return done.abort('registered');
    report(io, 'registered. The receiver runs until Ctrl-C. Waiting for the first notification');
    watching = announceFirst(receiver, { ...io, signal }, afterPosition);
  });
  await watching;
  report(io, farewell);
}

/** Flags of the registration, for `earshot register`. */
function registrationOf(flags: SetupFlags) {
  const { event, subscription } = flags;
  return {
    ...(event === undefined ? {} : { event }),
    ...(subscription === undefined ? {} : { subscription }),
    ...conditionFlagsOf(flags),
    yes: true as const,
  };
}

/** Registers first: the catalogue keeps the notifications in a queue until a receiver reads them. */
async function registerAndRead(io: Io, { flags, version }: SetupPlan): Promise<void> {
  const { dataDir } = loadConfig(io, dataSections);
  const isInFile = (await loadSubscriptionsFile(io.workingDir)) !== null;
  await register(io, {
    ...{ ...registrationOf(flags), asksToAdopt: !flags.yes },
    ...(isInFile ? {} : { pull: true as const }),
  });
  if ((await findRunning(dataDir)) !== null) {
    return report(io, 'registered. The running receiver reads the queue.');
  }
  if (!flags.stay) return report(io, 'registered. To read the queue: `earshot start`.');
  let watching: Promise<void> = Promise.resolve();
  await start(io, version, async (receiver) => {
    const afterPosition = await receiver.store.lastPosition();
    report(io, 'registered. The receiver runs until Ctrl-C. Waiting for the first notification');
    watching = announceFirst(receiver, io, afterPosition);
  });
  await watching;
  report(io, stoppedReading);
}

const stoppedReading =
  'The receiver has stopped; the catalogue keeps the notifications. Start the receiver within three days: `earshot start`, or as a service (docs/start.md).';

/** Resolves when the receiver accepts notifications. Ordering the first certificate may take minutes. */
async function untilReady(io: Io): Promise<void> {
  const config = loadConfig(io, ['health']).health;
  for (let waitedMs = 0; waitedMs < certificateTimeoutMs; waitedMs += pollMs) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Stopped. Nothing was registered.');
    if ((await probeReceiver(config, io.signal)).state === 'accepting') return;
    await pause(pollMs, io.signal);
  }
  throw new AppError(
    'unavailable',
    'The receiver has no certificate after 5 minutes. Nothing was registered.',
    { advice: 'See the log above for the reason, and run `earshot certificate renew`.' },
  );
}

/** Reports the first notification that is stored. Ends with the signal. */
async function announceFirst(
  { store }: Pick<RunningReceiver, 'store'>,
  io: Io,
  afterPosition: number,
): Promise<void> {
  const wait = () => pause(pollMs, io.signal);
  for await (const row of followLog({ log: store, afterPosition, wait, signal: io.signal })) {
    report(io, `first notification stored: ${row.event} ${row.productName ?? row.productId}`);
    return;
  }
}

/** Prints a step of the set-up. */
function report(io: Pick<Io, 'env' | 'stderr'>, text: string): void {
  io.stderr.write(`${painter(io, io.stderr)('bold', 'setup:')} ${printable(text)}\n`);
}
