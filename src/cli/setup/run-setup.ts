/** Carries out `earshot setup`: answers, `.env`, credentials, checks, receiver, registration. */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { accountSections, checkConfig, dataSections, loadConfig } from '../../config/config.ts';
import { readCredentialsFile, writeCredentialsFile } from '../../config/endpoint-credentials.ts';
import { problemsOf } from '../../config/load.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import { followLog } from '../../domain/streams.ts';
import { type DesiredSubscription, defaultSubscriptionName } from '../../domain/subscription.ts';
import { printable } from '../../domain/text.ts';
import { describeFilter } from '../../filter/describe.ts';
import { placeOf } from '../../places/places.ts';
import { registeredSubscriptions } from '../../store/account.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { newCredentials } from '../account.ts';
import { runDoctor } from '../commands/doctor.ts';
import { register } from '../commands/register.ts';
import { start } from '../commands/start.ts';
import { entitiesOf, readFilter } from '../filter-text.ts';
import { type Io, pause } from '../io.ts';
import { painter, writeOut } from '../output.ts';
import { conditionFlagsOf, describedTwice, filterOfFlags } from '../register-filter.ts';
import { findRunning, probeReceiver } from '../running-receiver.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { isTrial } from '../trial-folder.ts';
import {
  confirmAnswers,
  envChangeOf,
  openAnswers,
  requireNoOther,
  type SetupState,
  setupFileName,
  storeAnswers,
} from './answers.ts';
import { type EnvChange, envTexts, ioWith, shownSettings, writeEnvFile } from './env-file.ts';
import {
  type AskContext,
  isChosen,
  type SetupFlags,
  silenced,
  subscriptionOf,
} from './questions.ts';

/** Input of the set-up after all questions. */
export interface SetupPlan extends EnvChange {
  /** Printed when the receiver has stopped. */
  farewell: string;
  /** Called with the settings before the checks and the receiver start. */
  prepare?: ((io: Io) => Promise<void>) | undefined;
  /** Called after the first notification. */
  welcome?: () => void;
  /** Flags of the command, and those of the subscription. */
  flags: Omit<SetupFlags, 'texts'>;
  /** Version of earshot, for alerts and metrics. */
  version: string;
}

/** Maximum wait for the first certificate. Usually seconds; an order may be retried. */
const certificateTimeoutMs = 300_000;
const pollMs = 250;

const stopped =
  'The receiver has stopped; the subscription is still active in the catalogue. Start the receiver: `earshot start`, or as a service (docs/start.md). The catalogue retries a push three times. After the start, the receiver recovers lost notifications.';

/** Sets up a receiver in the working folder. An unfinished run is continued. */
export async function runSetup(
  io: Io,
  flags: SetupFlags,
  { version, command }: { version: string; command: Command },
): Promise<void> {
  const { texts, ...own } = flags;
  if (isTrial(io.workingDir)) {
    throw new AppError('conflict', `${io.workingDir} is the folder of a trial.`, {
      advice:
        'Set up the receiver in another folder. To continue the trial: `earshot setup --sandbox`.',
    });
  }
  const file = await loadSubscriptionsFile(io.workingDir);
  const isStated = isChosen(texts) || (texts.event ?? texts.subscription) !== undefined;
  if (file !== null && isStated)
    throw describedTwice(texts.subscription ?? defaultSubscriptionName);
  const context = { io, command };
  const asksSubscription = file === null;
  const known = file ?? registeredIn(io);
  const state = openAnswers(context, flags, { asksSubscription, pull: wayOf(known, io) });
  if (asksSubscription && known.length > 0 && !state.continues) {
    const names = known.map(({ name }) => name).join(', ');
    report(io, `already registered: ${names}. To start the receiver: \`earshot start\`.`);
  }
  const planOf = (): SetupPlan => {
    const { yes, force, dryRun, odata, stay } = own;
    const chosen = asksSubscription ? subscriptionOf(state.answers, context) : {};
    const all = { ...{ yes, force, dryRun, odata, stay }, ...chosen };
    const pull = state.answers.pull === 'pull' ? ({ pull: true } as const) : {};
    const change = envChangeOf(io, state, flags);
    const farewell = pull.pull ? stoppedReading : stopped;
    return { ...change, farewell, flags: { ...all, ...pull } as SetupFlags, version };
  };
  try {
    await confirmAnswers(context, state, flags, () => showPlan(io, planOf(), stepsText));
    if (!flags.dryRun) await storeAnswers(context, state, flags);
    await install(io, { ...planOf(), mayChange: true });
  } catch (error) {
    throw await unfinished(error, context, state, flags);
  }
}

function registeredIn(io: Io): readonly DesiredSubscription[] {
  const { dataDir } = checkConfig(io, ['dataDir']).config;
  return dataDir === undefined ? [] : registeredSubscriptions(dataDir);
}

/** Returns the answer about pull that the known subscriptions imply. */
function wayOf(known: readonly DesiredSubscription[], io: Io): string | undefined {
  if (known.length === 0) return undefined;
  const { publicUrl } = checkConfig(io, ['publicUrl']).config;
  const isPull = publicUrl === undefined && known.every(({ type }) => type === 'pull');
  return isPull ? 'pull' : 'push';
}

/** Variables of the answers that a failed check of the doctor puts in question. */
const variablesOf: Readonly<Record<string, readonly string[]>> = {
  login: ['EARSHOT_ACCOUNT_USERNAME', 'EARSHOT_ACCOUNT_PASSWORD', 'EARSHOT_ACCOUNT_TOTP'],
  'public URL': ['EARSHOT_PUBLIC_URL'],
  'public address': ['EARSHOT_PUBLIC_URL'],
  certificate: ['EARSHOT_TLS_CERT', 'EARSHOT_TLS_KEY'],
};

/** Adds how to continue to an error. The answers that caused it are asked again. */
async function unfinished(
  error: unknown,
  context: AskContext,
  state: SetupState,
  flags: SetupFlags,
): Promise<unknown> {
  if (!(error instanceof AppError) || flags.dryRun || !existsSync(state.path)) return error;
  const { variable, failed = [] } = error.facts as { variable?: string; failed?: string[] };
  const names = [...failed.flatMap((check) => variablesOf[check] ?? []), variable];
  const problems = isAppError(error, 'configuration') ? problemsOf(error) : [];
  const all = [...state.failed, ...names, ...problems.map((one) => one.variable)];
  state.failed = [...new Set(all.filter((name) => typeof name === 'string'))];
  await storeAnswers(context, state, flags);
  const command = `earshot setup${flags.yes ? ' --yes' : ''}${flags.stay ? '' : ' --no-stay'}`;
  const { message, advice = '' } = error;
  return error.with({
    message: error.code === 'cancelled' ? 'Stopped before the registration.' : message,
    advice: `${advice} Your answers are stored. To continue: \`${command}\`.`.trim(),
  });
}

/** Checks the plan, prints it, and carries it out. With --dry-run, only prints it. */
export async function install(io: Io, plan: SetupPlan): Promise<void> {
  const { folder, settings, flags } = plan;
  const own = { ...ioWith(io, settings), workingDir: folder };
  const acme = own.env.EARSHOT_TLS === 'acme' ? (['acme', 'listen'] as const) : [];
  const { dataDir } = loadConfig(own, [...dataSections, ...accountSections, ...acme]);
  if (!flags.dryRun && !flags.pull) await requireNoOther(own, dataDir);
  if (flags.yes || flags.dryRun) await showPlan(io, plan, planText);
  if (flags.dryRun) return;
  report(io, `${await writeEnvFile(io, plan)}: ${join(folder, '.env')}`);
  const hasEndpoint = !flags.pull || Boolean(settings.EARSHOT_PUBLIC_URL);
  if (hasEndpoint) await createCredentials(own, dataDir);
  await plan.prepare?.(own);
  report(io, 'running the checks that do not need a receiver:');
  await runDoctor(own, { beforeStart: true, hasEndpoint }).catch(refuseToStart);
  await (flags.pull ? registerAndRead(own, plan) : receiveAndRegister(own, plan));
}

/** Prints a plan; its filter in English. Throws `usage` if the catalogue would reject the filter. */
async function showPlan(
  io: Io,
  plan: SetupPlan,
  textOf: (plan: SetupPlan, subject: string, io: Io) => string,
): Promise<void> {
  const { flags } = plan;
  const { event = ['created'], subscription = defaultSubscriptionName } = flags;
  // Warnings were printed with the answers, or are printed with the registration.
  const { io: silent } = silenced(io);
  const filter = filterOfFlags(flags, silent);
  const trees = entitiesOf(event).map((entity) => readFilter(filter ?? '', entity, silent));
  const tree = trees[0] ?? null;
  const lines = tree === null ? ['all products'] : describeFilter(tree);
  const area = (tree?.node === 'and' ? tree.terms : [tree]).find(
    (one) => one?.node === 'intersects',
  );
  const place = area?.node === 'intersects' ? placeOf(area.geometry) : null;
  if (place !== null) lines.push(`the area is in: ${place}`);
  const odata = flags.odata && tree !== null ? [`$filter: ${filter}`] : [];
  const subject =
    filter !== undefined
      ? `subscription "${subscription}" (${event.join(', ')}${flags.pull ? ', with a queue' : ''}):\n${[...lines, ...odata].map((line) => `       ${printable(line)}`).join('\n')}`
      : flags.subscription === undefined
        ? `the subscriptions of ${subscriptionsFileName}`
        : `subscription "${subscription}" as last registered`;
  await writeOut(flags.dryRun ? io.stdout : io.stderr, textOf(plan, subject, io));
}

/** Returns the content of `.env`, with secrets masked, and the steps. */
function planText(plan: SetupPlan, subject: string, io: Io): string {
  const { dropped, settings } = plan;
  const { path, before } = envTexts(io, plan);
  const removed = dropped.length === 0 ? '' : `Removed: ${dropped.join(', ')}\n`;
  return `${path} (${before === null ? 'new' : 'exists; other lines stay unchanged'}; readable only by its owner):

${shownSettings(settings)
  .map((line) => `  ${printable(line)}\n`)
  .join('')}
${removed}${stepsText(plan, subject)}`;
}

function stepsText({ flags, settings }: SetupPlan, subject: string): string {
  const end = flags.stay ? 'receive until Ctrl-C' : 'stop the receiver';
  const steps = [
    ...(flags.pull
      ? []
      : [
          `create endpoint credentials in ${printable(settings.EARSHOT_DATA_DIR ?? './data')}, if there are none`,
        ]),
    'run the checks of earshot doctor that need no receiver',
    ...(flags.pull
      ? [`register ${subject}`, ...(flags.stay ? ['start the receiver', end] : [])]
      : ['start the receiver', `register ${subject}`, end]),
  ];
  return `Then:\n${steps.map((step, i) => `  ${i + 1}. ${step}\n`).join('')}`;
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
  if (!(cause instanceof AppError) || cause.facts.failed === undefined) throw cause;
  throw new AppError(cause.code, `${errorText(cause)} Nothing was registered.`, {
    advice: 'Fix the failed checks.',
    facts: cause.facts,
    cause,
  });
}

/** Registers only when the receiver answers: without a receiver, notifications would be lost. */
async function receiveAndRegister(
  io: Io,
  { flags, version, farewell, welcome }: SetupPlan,
): Promise<void> {
  const registration = registrationOf(flags);
  const isRunning =
    (await probeReceiver(loadConfig(io, ['health']).health, io.signal)).state === 'accepting';
  if (isRunning) {
    report(io, 'a receiver with these credentials is already running; registering');
    await registerNow(io, registration);
    report(io, 'done. If settings have changed, restart the receiver.');
    return;
  }
  const done = new AbortController();
  const signal = AbortSignal.any([io.signal, done.signal]);
  let watching: Promise<void> = Promise.resolve();
  await start({ ...io, signal }, version, async (receiver) => {
    await untilReady(io);
    const afterPosition = await receiver.store.lastPosition();
    await registerNow(io, registration);
    if (!flags.stay) return done.abort('registered');
    report(io, 'registered. The receiver runs until Ctrl-C. Waiting for the first notification');
    watching = announceFirst(receiver, { ...io, signal }, afterPosition, welcome);
  });
  await watching;
  report(io, farewell);
}

/** Registers; the set-up is then complete. */
async function registerNow(io: Io, flags: Parameters<typeof register>[1]): Promise<void> {
  const isShown = Object.keys(conditionFlagsOf(flags)).length > 0;
  await register(io, { ...flags, isShown });
  rmSync(join(loadConfig(io, ['dataDir']).dataDir, setupFileName), { force: true });
}

/** Flags of the registration, for `earshot register`. */
function registrationOf(flags: SetupPlan['flags']) {
  const { event, subscription } = flags;
  return {
    ...(event === undefined ? {} : { event }),
    ...(subscription === undefined ? {} : { subscription }),
    ...conditionFlagsOf(flags),
    ...{ yes: true as const, asksAgain: !flags.yes },
  };
}

/** Registers first: the catalogue keeps the notifications in a queue until a receiver reads them. */
async function registerAndRead(
  io: Io,
  { flags, version, farewell, welcome }: SetupPlan,
): Promise<void> {
  const { dataDir } = loadConfig(io, dataSections);
  const isInFile = (await loadSubscriptionsFile(io.workingDir)) !== null;
  await registerNow(io, {
    ...registrationOf(flags),
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
    watching = announceFirst(receiver, io, afterPosition, welcome);
  });
  await watching;
  report(io, farewell);
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
  welcome?: () => void,
): Promise<void> {
  const wait = () => pause(pollMs, io.signal);
  for await (const row of followLog({ log: store, afterPosition, wait, signal: io.signal })) {
    report(io, `first notification stored: ${row.event} ${row.productName ?? row.productId}`);
    return welcome?.();
  }
}

/** Prints a step of the set-up. */
function report(io: Pick<Io, 'env' | 'stderr'>, text: string): void {
  io.stderr.write(`${painter(io, io.stderr)('bold', 'setup:')} ${printable(text)}\n`);
}
