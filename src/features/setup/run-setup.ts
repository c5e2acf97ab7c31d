/** Carries out `earshot setup`: answers, `.env`, credentials, checks, receiver, registration. */

import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import { createCredentials } from '../../admin/open-account.ts';
import { accountSections, needsEndpoint } from '../../admin/settings.ts';
import { registeredSubscriptions } from '../../admin/sql.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { painter, writeOut } from '../../core/cli/output.ts';
import { readFilter } from '../../core/cli/row-forms.ts';
import { checkConfig, loadConfig } from '../../core/config/config.ts';
import {
  loadSubscriptionsFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import { followLog } from '../../core/terms/ports.ts';
import {
  type DesiredSubscription,
  defaultSubscriptionName,
} from '../../core/terms/subscription.ts';
import { printable } from '../../core/terms/text.ts';
import { describeFilter } from '../../filter/describe.ts';
import {
  alreadyServed,
  findRunning,
  type RunningNote,
  refusalOf,
} from '../../receiver/running-receiver.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { start } from '../../receiver/start-command.ts';
import { runDoctor } from '../doctor/command.ts';
import { entitiesOf } from '../subscriptions/filter-command.ts';
import { register } from '../subscriptions/register-command.ts';
import { describedTwice, type SubscriptionFlags } from '../subscriptions/register-filter.ts';
import { type EnvChange, envTexts, ioWith, shownSettings, writeEnvFile } from './env-file.ts';
import {
  type Answers,
  type AskContext,
  askQuestion,
  isChosen,
  isSetting,
  type Question,
  questions,
  type SetupFlags,
  subscriptionOf,
  takeFlags,
  usageOf,
} from './questions.ts';

/** Input of the set-up after all questions. */
interface SetupPlan extends EnvChange {
  subscription: Pick<SubscriptionFlags, 'event' | 'subscription' | 'filter' | 'pull'>;
  flags: Pick<SetupFlags, 'yes' | 'dryRun' | 'stay' | 'force'>;
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

/** Sets up a receiver in the working folder. On a terminal, asks again after each failure before the start. */
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
  if (file === null && known.length > 0) {
    const names = known.map(({ name }) => name).join(', ');
    report(io, `already registered: ${names}. To start the receiver: \`earshot start\`.`);
  }
  const answers = Object.fromEntries(
    Object.entries(io.env).filter(([name]) => isSetting(name)),
  ) as Answers;
  takeFlags(texts, answers);
  const way = wayOf(known, io);
  if (way !== undefined) answers.pull ??= way;
  const planOf = (): SetupPlan => {
    const chosen = file === null ? subscriptionOf(answers, context) : {};
    const subscription = { ...chosen, ...(answers.pull === 'pull' && { pull: true as const }) };
    return { ...envChangeOf(io, answers), subscription, flags, version };
  };
  const asks = !flags.yes && !flags.dryRun;
  const ask = async (question: string): Promise<string> => {
    const answer = await io.ask(question);
    if (answer === null) throw incomplete([], flags);
    return answer.trim();
  };
  let ready: { own: Io; plan: SetupPlan };
  for (let isFirst = true; ; isFirst = false) {
    await completeAnswers(context, answers, flags, { asksSubscription: file === null, isFirst });
    try {
      const plan = planOf();
      await showPlan(io, plan);
      if (flags.dryRun) return;
      if (asks && !/^(y(es)?)?$/i.test(await ask(confirmation))) continue;
      ready = { own: await prepare(io, plan), plan };
      break;
    } catch (error) {
      if (!asks || !isAppError(error) || error.code === 'cancelled') throw error;
      await ask(`${[errorText(error), ...error.details].join('\n')} Enter to change answers: `);
    }
  }
  await receiveAndRegister(ready.own, ready.plan);
}

const confirmation = 'Enter to continue, or n to change answers: ';

const applies = ({ part, when }: Question, answers: Answers, asksSubscription: boolean) =>
  when?.(answers) !== false &&
  (part !== 'endpoint' || answers.pull !== 'pull') &&
  (part !== 'subscription' || asksSubscription);

/**
 * Asks all questions, with the present answers as defaults. The first time, takes the defaults with --yes, and for what
 * flags describe. Throws `usage` with what is missing if there is no terminal.
 */
async function completeAnswers(
  context: AskContext,
  answers: Answers,
  flags: SetupFlags,
  { asksSubscription, isFirst }: { asksSubscription: boolean; isFirst: boolean },
): Promise<void> {
  const missing: Question[] = [];
  const { yes = false, texts } = flags;
  const isGiven = isChosen(texts);
  for (const question of questions) {
    const { name, part, flagOnly, optional, fallback } = question;
    if (!applies(question, answers, asksSubscription) || (flagOnly && !answers[name])) continue;
    const present = answers[`${name}_FILE`] ?? answers[name];
    const initial = present || (fallback?.(answers) ?? (optional ? '' : undefined));
    const isOfFlags = part === 'subscription' ? isGiven : name === 'pull' && texts.pull;
    const takesDefault = isFirst && (isOfFlags || (yes && name !== 'collection') || flagOnly);
    if (!takesDefault || initial === undefined) {
      if (!(await askQuestion(question, answers, context))) missing.push(question);
    } else if (present === undefined) answers[name] = initial;
  }
  while (asksSubscription && !isChosen(answers)) {
    const answer = await context.io.ask(everyProduct);
    const collection: Question = { name: 'collection', part: 'subscription', optional: true };
    if (/^y(es)?$/i.test(answer?.trim() ?? '')) answers.filter = '';
    else if (answer !== null) await askQuestion(collection, answers, context);
    else {
      missing.push(collection);
      break;
    }
  }
  if (missing.length === 0) return;
  throw incomplete(
    missing.map((question) => usageOf(question, context)),
    flags,
  );
}

const everyProduct =
  'This selects every product of the catalogue, tens of thousands a day. Continue? [y/N]: ';

/** Returns the error of a run that cannot ask. */
function incomplete(missing: readonly string[], { yes, dryRun }: SetupFlags): AppError {
  const details = [...missing];
  if (!yes && !dryRun) details.push('--yes  write .env and register without confirmation');
  return new AppError(
    'usage',
    'Some answers are missing, and there is no terminal for questions. Nothing was changed.',
    { advice: 'Set the variables, and add the flags.', details },
  );
}

/** Returns the content of `.env` that the answers describe. */
function envChangeOf({ env, workingDir: folder }: Io, answers: Answers): EnvChange {
  if (answers.EARSHOT_TLS !== 'files') {
    delete answers.EARSHOT_TLS_CERT;
    delete answers.EARSHOT_TLS_KEY;
  }
  const settings = Object.fromEntries(Object.entries(answers).filter(([name]) => isSetting(name)));
  const dropped = Object.keys(env).filter((name) => isSetting(name) && !(name in settings));
  return { folder, settings, dropped };
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

/** Writes `.env` and credentials, and runs the checks. Returns the io with the settings. */
async function prepare(io: Io, plan: SetupPlan): Promise<Io> {
  const { folder, settings, subscription, flags } = plan;
  const own = { ...ioWith(io, settings), workingDir: folder };
  // The section `acme` exists only with the feature `certificate`.
  const acme = own.env.EARSHOT_TLS === 'acme' ? (['acme', 'listen'] as string[] as 'listen'[]) : [];
  const config = loadConfig(own, [...accountSections, ...acme]);
  const { dataDir } = config;
  const running = subscription.pull ? null : await findRunning(dataDir);
  const isOther =
    running === 'unknown' ||
    !isDeepStrictEqual(running?.listen, loadConfig(own, ['listen']).listen);
  if (running !== null && isOther) throw alreadyServed(dataDir, running);
  report(io, await writeEnvFile(io, plan, flags.force === true || !flags.yes));
  if (
    needsEndpoint(own) &&
    config.endpoint.source === 'none' &&
    (await createCredentials(config, own))
  )
    report(io, `endpoint credentials created in ${dataDir}`);
  report(io, 'running the checks that do not need a receiver:');
  await runDoctor(own, { beforeStart: true });
  return own;
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

/** Describes the subscription; its filter in English. */
function subjectText({ subscription: own }: SetupPlan, io: Io): string {
  const { event = ['created'], subscription = defaultSubscriptionName, filter, pull } = own;
  if (filter === undefined && own.subscription === undefined)
    return `the subscriptions of ${subscriptionsFileName}`;
  if (filter === undefined) return `subscription "${subscription}" as last registered`;
  const [tree = null] = entitiesOf(event).map((entity) => readFilter(filter, entity, io));
  const lines = tree === null ? ['all products'] : describeFilter(tree);
  const queue = pull ? ', with a queue' : '';
  return `subscription "${subscription}" (${event.join(', ')}${queue}):${lines.map((line) => `\n       ${printable(line)}`).join('')}`;
}

/**
 * Registers a push subscription only when the receiver answers: notifications would be lost. Registers a pull subscription
 * first: the catalogue keeps its notifications in a queue.
 */
async function receiveAndRegister(io: Io, plan: SetupPlan): Promise<void> {
  const { flags, version } = plan;
  const { dataDir } = loadConfig(io, ['data']);
  const pull = plan.subscription.pull === true;
  const running = await findRunning(dataDir);
  const isRunning = running !== null && (pull || (await isAccepting(running, io)));
  if (pull || isRunning) await registerNow(io, plan);
  if (isRunning)
    return report(io, 'registered; the receiver is running. If settings have changed, restart it.');
  if (pull && !flags.stay) return report(io, 'registered. To read the queue: `earshot start`.');
  const done = new AbortController();
  const signal = AbortSignal.any([io.signal, done.signal]);
  let watching: Promise<void> = Promise.resolve();
  await start({ ...io, signal }, version, async (receiver) => {
    if (!pull) await untilReady(receiver, io);
    const afterPosition = await receiver.store.lastPosition();
    if (!pull) await registerNow(io, plan);
    if (!flags.stay) return done.abort('registered');
    report(io, 'registered. The receiver runs until Ctrl-C. Waiting for the first notification');
    watching = announceFirst(receiver, { ...io, signal }, afterPosition);
  });
  await watching;
  report(io, pull ? stoppedReading : stopped);
}

async function registerNow(io: Io, { subscription, flags }: SetupPlan): Promise<void> {
  const { pull, ...described } = subscription;
  const isInFile = (await loadSubscriptionsFile(io)) !== null;
  await register(io, {
    ...{ ...described, ...(pull && !isInFile && { pull }) },
    ...{ yes: true, asksAgain: !flags.yes },
  });
}

async function isAccepting(running: RunningNote | 'unknown', io: Io): Promise<boolean> {
  return running !== 'unknown' && (await refusalOf(running.consoleUrl, io)) === null;
}

/** Resolves when the receiver accepts notifications. Ordering the first certificate may take minutes. */
async function untilReady({ statusSources }: RunningReceiver, { signal }: Io): Promise<void> {
  for (let waitedMs = 0; waitedMs < certificateTimeoutMs; waitedMs += pollMs) {
    if (signal.aborted) throw new AppError('cancelled', 'Stopped. Nothing was registered.');
    const state = await statusSources.receiver();
    if (state?.refusing === null) return;
    await pause(pollMs, signal);
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
