/** Carries out `earshot setup`: answers, `.env`, credentials, checks, receiver, registration. */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { newCredentials } from '../../admin/open-account.ts';
import { registeredSubscriptions } from '../../admin/operations.ts';
import { accountSections } from '../../admin/settings.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { painter, writeOut } from '../../core/cli/output.ts';
import { readFilter } from '../../core/cli/row-forms.ts';
import { checkConfig, loadConfig, setupFileName } from '../../core/config/config.ts';
import {
  readCredentialsFile,
  writeCredentialsFile,
} from '../../core/config/endpoint-credentials.ts';
import { problemsOf } from '../../core/config/load.ts';
import {
  loadSubscriptionsFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import { followLog } from '../../core/terms/streams.ts';
import {
  type DesiredSubscription,
  defaultSubscriptionName,
} from '../../core/terms/subscription.ts';
import { printable } from '../../core/terms/text.ts';
import { describeFilter } from '../../filter/describe.ts';
import {
  alreadyServed,
  findRunning,
  isSameListener,
  probeReceiver,
} from '../../receiver/running-receiver.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { start } from '../../receiver/start-command.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { runDoctor } from '../doctor/command.ts';
import { placeOf } from '../products/places/places.ts';
import { entitiesOf } from '../subscriptions/filter-text.ts';
import { register } from '../subscriptions/register-command.ts';
import { describedTwice, type SubscriptionFlags } from '../subscriptions/register-filter.ts';
import {
  confirmAnswers,
  envChangeOf,
  openAnswers,
  type SetupState,
  storeAnswers,
} from './answers.ts';
import { type EnvChange, envTexts, ioWith, shownSettings, writeEnvFile } from './env-file.ts';
import { isChosen, type SetupFlags, subscriptionOf } from './questions.ts';

/** Input of the set-up after all questions. */
interface SetupPlan extends EnvChange {
  subscription: Pick<SubscriptionFlags, 'event' | 'subscription' | 'filter' | 'pull'>;
  /** Called when `.env` is written, before the checks and the receiver start. */
  onWritten: () => Promise<void>;
  flags: Pick<SetupFlags, 'yes' | 'dryRun' | 'stay'>;
  /** Version of earshot, for alerts and metrics. */
  version: string;
}

/** Maximum wait for the first certificate. Usually seconds; an order may be retried. */
const certificateTimeoutMs = 300_000;
const pollMs = 250;

const stopped =
  'The receiver has stopped; the subscription is still active in the catalogue. Start the receiver: `earshot start`, or as a service (docs/start.md). The catalogue retries a push three times. After the start, the receiver recovers lost notifications.';

const stoppedReading =
  'The receiver has stopped; the catalogue keeps the notifications. Start the receiver within three days: `earshot start`, or as a service (docs/start.md).';

/** Sets up a receiver in the working folder. An unfinished run is continued. */
export async function runSetup(
  io: Io,
  flags: SetupFlags,
  { version, command }: { version: string; command: Command },
): Promise<void> {
  const { texts } = flags;
  const file = await loadSubscriptionsFile(io);
  const isStated = isChosen(texts) || (texts.event ?? texts.subscription) !== undefined;
  if (file !== null && isStated)
    throw describedTwice(texts.subscription ?? defaultSubscriptionName);
  const context = { io, command };
  const known = file ?? registeredIn(io);
  const state = openAnswers(context, flags, {
    ...{ asksSubscription: file === null, pull: wayOf(known, io) },
  });
  if (file === null && known.length > 0 && !state.continues) {
    const names = known.map(({ name }) => name).join(', ');
    report(io, `already registered: ${names}. To start the receiver: \`earshot start\`.`);
  }
  const planOf = (): SetupPlan => {
    const isPull = state.answers.pull === 'pull';
    const chosen = file === null ? subscriptionOf(state.answers, context) : {};
    return {
      ...envChangeOf(io, state, flags),
      ...{ subscription: { ...chosen, ...(isPull && { pull: true }) }, flags, version },
      onWritten: async () => {
        [state.isInEnv, state.mayChange] = [true, true];
        await storeAnswers(state);
      },
    };
  };
  try {
    let plan: SetupPlan | null = null;
    await confirmAnswers(context, state, flags, async () => {
      plan = planOf();
      await showPlan(io, plan);
    });
    await install(io, plan ?? planOf());
  } catch (error) {
    throw await unfinished(error, state, flags);
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
async function unfinished(error: unknown, state: SetupState, flags: SetupFlags): Promise<unknown> {
  if (!(error instanceof AppError) || flags.dryRun || !existsSync(state.path)) return error;
  const { variable, failed = [] } = error.facts as { variable?: string; failed?: string[] };
  const names = [...failed.flatMap((check) => variablesOf[check] ?? []), variable];
  const problems = isAppError(error, 'configuration') ? problemsOf(error) : [];
  const all = [...state.failed, ...names, ...problems.map((one) => one.variable)];
  state.failed = [...new Set(all.filter((name) => typeof name === 'string'))];
  await storeAnswers(state);
  const command = `earshot setup${flags.yes ? ' --yes' : ''}${flags.stay ? '' : ' --no-stay'}`;
  const { message, advice = '' } = error;
  return error.with({
    message: error.code === 'cancelled' ? 'Stopped before the registration.' : message,
    advice: `${advice} Your answers are stored. To continue: \`${command}\`.`.trim(),
  });
}

/** Checks the plan, prints it unless the user has confirmed it, and carries it out. With --dry-run, only prints it. */
async function install(io: Io, plan: SetupPlan): Promise<void> {
  const { folder, settings, subscription, flags } = plan;
  const own = { ...ioWith(io, settings), workingDir: folder };
  // The section `acme` exists only with the feature `certificate`.
  const acme = own.env.EARSHOT_TLS === 'acme' ? (['acme', 'listen'] as string[] as 'listen'[]) : [];
  const { dataDir } = loadConfig(own, ['data', ...accountSections, ...acme]);
  const running = flags.dryRun || subscription.pull ? null : await findRunning(dataDir);
  if (running !== null && !isSameListener(running, loadConfig(own, ['health']).health.listen)) {
    throw alreadyServed(dataDir, running);
  }
  const isShown = flags.yes || flags.dryRun;
  if (isShown) await showPlan(io, plan);
  if (flags.dryRun) return;
  report(io, `${await writeEnvFile(io, plan, !isShown)}: ${join(folder, '.env')}`);
  const hasEndpoint = !subscription.pull || Boolean(settings.EARSHOT_PUBLIC_URL);
  if (hasEndpoint) await createCredentials(own, dataDir);
  await plan.onWritten();
  report(io, 'running the checks that do not need a receiver:');
  await runDoctor(own, { beforeStart: true, hasEndpoint }).catch(refuseToStart);
  await receiveAndRegister(own, plan, dataDir);
}

/** Prints the content of `.env` and the steps. Throws `usage` if the catalogue would reject the filter. */
async function showPlan(io: Io, plan: SetupPlan): Promise<void> {
  const { dropped, settings, flags, subscription } = plan;
  const { path, before } = envTexts(io, plan);
  const subject = subjectText(plan, io);
  const start = ['start the receiver', flags.stay ? 'receive until Ctrl-C' : 'stop the receiver'];
  const steps = [
    'run the checks of earshot doctor that need no receiver',
    ...(subscription.pull
      ? [`register ${subject}`, ...(flags.stay ? start : [])]
      : [start[0], `register ${subject}`, start[1]]),
  ];
  const lines = [
    `${path} (${before === null ? 'new' : 'exists; other lines stay unchanged'}; readable only by its owner):`,
    ...shownSettings(settings, io).map((line) => `  ${printable(line)}`),
    ...(dropped.length === 0 ? [] : [`Removed: ${dropped.join(', ')}`]),
    'Then:',
    ...steps.map((step, i) => `  ${i + 1}. ${step}`),
  ];
  await writeOut(flags.dryRun ? io.stdout : io.stderr, `${lines.join('\n')}\n`);
}

/** Describes the subscription; its filter in English, with the place of its area. */
function subjectText({ subscription: own }: SetupPlan, io: Io): string {
  const { event = ['created'], subscription = defaultSubscriptionName, filter, pull } = own;
  if (filter === undefined && own.subscription === undefined)
    return `the subscriptions of ${subscriptionsFileName}`;
  if (filter === undefined) return `subscription "${subscription}" as last registered`;
  const [tree = null] = entitiesOf(event).map((entity) => readFilter(filter, entity, io));
  const lines = tree === null ? ['all products'] : describeFilter(tree);
  const terms = tree?.node === 'and' ? tree.terms : [tree];
  const area = terms.find((one) => one?.node === 'intersects');
  const place = area?.node === 'intersects' ? placeOf(area.geometry) : null;
  if (place !== null) lines.push(`the area is in: ${place}`);
  const queue = pull ? ', with a queue' : '';
  return `subscription "${subscription}" (${event.join(', ')}${queue}):${lines.map((line) => `\n       ${printable(line)}`).join('')}`;
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

/**
 * Registers a push subscription only when the receiver answers: notifications would be lost. Registers a pull subscription
 * first: the catalogue keeps its notifications in a queue.
 */
async function receiveAndRegister(io: Io, plan: SetupPlan, dataDir: string): Promise<void> {
  const { flags, version } = plan;
  const pull = plan.subscription.pull === true;
  const isRunning = pull
    ? (await findRunning(dataDir)) !== null
    : (await probeReceiver(loadConfig(io, ['health']).health, io.signal)).state === 'accepting';
  if (pull || isRunning) await registerNow(io, plan, dataDir);
  if (isRunning)
    return report(io, 'registered; the receiver is running. If settings have changed, restart it.');
  if (pull && !flags.stay) return report(io, 'registered. To read the queue: `earshot start`.');
  const done = new AbortController();
  const signal = AbortSignal.any([io.signal, done.signal]);
  let watching: Promise<void> = Promise.resolve();
  await start({ ...io, signal }, version, async (receiver) => {
    if (!pull) await untilReady(io);
    const afterPosition = await receiver.store.lastPosition();
    if (!pull) await registerNow(io, plan, dataDir);
    if (!flags.stay) return done.abort('registered');
    report(io, 'registered. The receiver runs until Ctrl-C. Waiting for the first notification');
    watching = announceFirst(receiver, { ...io, signal }, afterPosition);
  });
  await watching;
  report(io, pull ? stoppedReading : stopped);
}

/** Registers; the set-up is then complete. */
async function registerNow(
  io: Io,
  { subscription, flags }: SetupPlan,
  dataDir: string,
): Promise<void> {
  const { pull, ...described } = subscription;
  const isInFile = (await loadSubscriptionsFile(io)) !== null;
  await register(io, {
    ...{ ...described, ...(pull && !isInFile && { pull }) },
    ...{ yes: true, asksAgain: !flags.yes, isShown: subscription.filter !== undefined },
  });
  rmSync(join(dataDir, setupFileName), { force: true });
}

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
