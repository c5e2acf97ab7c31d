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
import { alreadyServed, askReceiver, findRunning, isSameListener } from '../running-receiver.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { ioWith, mergeEnvFile, type Settings, shownSettings } from './env-file.ts';
import { askFilter, askSettings, isChosen, type ReadFlag, type SetupFlags } from './questions.ts';

/** What a set-up works with once all answers are there. */
export interface SetupPlan {
  /** Where `.env` is written; commands are to be run there. */
  folder: string;
  settings: Settings;
  /** Names that are removed from an existing `.env`. */
  dropped: readonly string[];
  header: string;
  /** The last words, when the receiver has stopped. */
  farewell: string;
  flags: SetupFlags;
  /** The program's own, for alerts and metrics. */
  version: string;
}

/** A certificate authority takes seconds as a rule; a first order may be repeated. */
const certificateTimeoutMs = 300_000;
const pollMs = 250;

const stopped =
  'The receiver has stopped; the subscription keeps running at the catalogue. Start the receiver now: `earshot start`, or as a service (docs/start.md). The catalogue repeats a notification three times only; what is lost until then, the receiver fetches from the catalogue when it runs again.';

/** Sets up a receiver in the working folder. */
export async function runSetup(
  io: Io,
  flags: SetupFlags,
  { version, readFlag }: { version: string; readFlag: ReadFlag },
): Promise<void> {
  const isNamed = (await loadSubscriptionsFile(io.workingDir)) !== null;
  const isStated = isChosen(flags) || (flags.event ?? flags.subscription) !== undefined;
  if (isNamed && isStated) throw describedTwice();
  const isSet = ([name, value]: [string, string | undefined]) =>
    name.startsWith('EARSHOT_') && value !== undefined && value !== '';
  const before = Object.fromEntries(Object.entries(io.env).filter(isSet)) as Record<string, string>;
  const settings = { ...before };
  const missing = await askSettings(io, flags, settings);
  if (!isNamed && !isChosen(flags)) missing.push(...(await askFilter(io, flags, readFlag)));
  if (!flags.yes && !flags.dryRun && missing.length > 0)
    missing.push('--yes  write .env and register without a question');
  if (missing.length > 0) {
    throw new AppError(
      'usage',
      'There is no terminal to ask on, and some answers are missing, so nothing was changed.',
      { advice: 'Add these flags, or set the variables.', details: missing },
    );
  }
  const dropped = Object.keys(before).filter((name) => !(name in settings));
  const header = 'Written by `earshot setup`. All variables: docs/reference/configuration.md.';
  const plan = { folder: io.workingDir, settings, dropped, header, farewell: stopped };
  await install(io, { ...plan, flags, version });
}

/** Checks the plan, shows it, and carries it out. With --dry-run it ends when it was shown. */
export async function install(io: Io, plan: SetupPlan): Promise<void> {
  const { folder, settings, dropped, header, flags } = plan;
  const own = { ...ioWith(io, settings), workingDir: folder };
  const acme = own.env.EARSHOT_TLS === 'acme' ? (['acme', 'listen'] as const) : [];
  const { dataDir } = loadConfig(own, [...dataSections, ...accountSections, ...acme]);
  const filter = checkedFilter(own, flags);
  if (!flags.dryRun) await refuseSecond(own, dataDir);
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
  tell(io, `${before === text ? 'unchanged' : 'written'}: ${path}`);
  await createCredentials(own, dataDir);
  tell(io, 'checking what can be checked before the start:');
  await runDoctor(own, { beforeStart: true }).catch(refuseToStart);
  await receiveAndRegister(own, plan);
}

/** Throws `conflict` where a receiver with another address serves the data directory. */
async function refuseSecond(io: Io, dataDir: string): Promise<void> {
  const running = await findRunning(dataDir);
  if (running === null || isSameListener(running, loadConfig(io, ['health']).health.listen)) return;
  throw alreadyServed(dataDir, running);
}

/** Throws `usage` for a filter that the catalogue would refuse, before anything is written. */
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
    /** Undefined where a file names the subscriptions. */
    filter: string | undefined;
  },
): string {
  const { path, before, dataDir, filter } = facts;
  const { event = ['created'], subscription = defaultSubscriptionName } = flags;
  const removed = dropped.length === 0 ? '' : `Removed from it: ${dropped.join(', ')}\n`;
  const what =
    filter !== undefined
      ? `subscription "${subscription}" (${event.join(', ')}), filter: ${printable(filter || 'none')}`
      : flags.subscription === undefined
        ? `the subscriptions of ${subscriptionsFileName}`
        : `subscription "${subscription}" as it was registered last`;
  return `${path} (${before === null ? 'new' : 'exists; its other lines stay'}; readable by its owner alone):

${shownSettings(settings)
  .map((line) => `  ${printable(line)}\n`)
  .join('')}
${removed}Then:
  1. create endpoint credentials in ${printable(dataDir)}, unless there are some
  2. run the doctor's checks that need no receiver
  3. start the receiver
  4. register ${what}
  5. ${flags.stay ? 'receive until Ctrl-C' : 'stop the receiver'}
`;
}

/** An existing file is changed with --force, or after a yes. */
async function confirmChange(io: Io, path: string, { force, yes }: SetupFlags): Promise<void> {
  if (force && yes) return;
  if (yes) {
    throw new AppError('conflict', `${path} exists and would be changed, so nothing was done.`, {
      advice: 'Add --force to change it; lines of other names stay.',
    });
  }
  await confirm(io, `Change the existing ${path}, and continue?`, {});
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
  tell(io, `endpoint credentials created in ${dataDir}`);
}

function refuseToStart(cause: unknown): never {
  if (!(cause instanceof AppError) || cause.code !== 'unavailable') throw cause;
  throw new AppError('unavailable', `${errorText(cause)} Nothing was registered.`, {
    advice: 'Fix what failed, and run `earshot setup` again: it reads the answers from .env.',
    cause,
  });
}

/** Registers when the receiver answers, as a subscription without one loses its notifications. */
async function receiveAndRegister(io: Io, { flags, version, farewell }: SetupPlan): Promise<void> {
  const { event, subscription } = flags;
  const wanted = {
    ...(event === undefined ? {} : { event }),
    ...(subscription === undefined ? {} : { subscription }),
    ...conditionFlagsOf(flags),
    yes: true as const,
  };
  const isRunning =
    (await askReceiver(loadConfig(io, ['health']).health, io.signal)).state === 'takes';
  if (isRunning) {
    tell(io, 'a receiver with these credentials is running already; registering');
    await register(io, wanted);
    tell(io, 'If its settings have changed, restart the receiver.');
    return;
  }
  const done = new AbortController();
  const signal = AbortSignal.any([io.signal, done.signal]);
  let watching: Promise<void> = Promise.resolve();
  await start({ ...io, signal }, version, async (receiver) => {
    await untilTakes(io);
    const afterPosition = await receiver.store.lastPosition();
    await register(io, wanted);
    if (!flags.stay) return done.abort('registered');
    tell(io, 'registered. The receiver runs until Ctrl-C; waiting for the first notification');
    watching = announceFirst(receiver, { ...io, signal }, afterPosition);
  });
  await watching;
  tell(io, farewell);
}

/** Resolves when the receiver can take a notification: with a first certificate, that may take minutes. */
async function untilTakes(io: Io): Promise<void> {
  const config = loadConfig(io, ['health']).health;
  for (let waitedMs = 0; waitedMs < certificateTimeoutMs; waitedMs += pollMs) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Stopped. Nothing was registered.');
    if ((await askReceiver(config, io.signal)).state === 'takes') return;
    await pause(pollMs, io.signal);
  }
  throw new AppError(
    'unavailable',
    'The receiver has no certificate after 5 minutes, so nothing was registered.',
    { advice: 'The log above has the reason; `earshot certificate test` finds out more.' },
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
    tell(io, `first notification stored: ${row.event} ${row.productName ?? row.productId}`);
    return;
  }
}

/** A step of the way, for people. */
function tell(io: Pick<Io, 'env' | 'stderr'>, text: string): void {
  io.stderr.write(`${painter(io, io.stderr)('bold', 'setup:')} ${printable(text)}\n`);
}
