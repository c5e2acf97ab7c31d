/** The answers of `earshot setup`: read, asked, stored at once, shown and corrected. */
import { dirname, join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { loadConfig } from '../../config/config.ts';
import { variables } from '../../config/variables.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { jsonOf, printable } from '../../domain/text.ts';
import { readOwnerOnly, writeOwnerOnly } from '../../host/files.ts';
import type { Io } from '../io.ts';
import { alreadyServed, findRunning, isSameListener } from '../running-receiver.ts';
import { type EnvChange, ioWith, mask, secretNames, writeEnvFile } from './env-file.ts';
import {
  type Answers,
  type AskContext,
  askQuestion,
  askUntil,
  isChosen,
  isYes,
  optionOf,
  type Question,
  questions,
  type SetupFlags,
  takeFlags,
} from './questions.ts';

/** Name of the file in the data directory with the answers that `.env` has no place for. */
export const setupFileName = 'setup.json';

export interface SetupState {
  answers: Answers;
  /** Variables whose answers failed a check: they are asked again. */
  failed: readonly string[];
  /** False if `earshot.config.ts` defines the subscriptions. */
  asksSubscription: boolean;
  /** True if this run continues an unfinished one. */
  continues: boolean;
  /** True if `.env` may be changed without a prompt. */
  mayChange: boolean;
  /** Path of the file with the answers. */
  path: string;
}

const isSetting = (name: string) => name.startsWith('EARSHOT_');

/** Reads the answers: those of variables and of an unfinished run, replaced by flags. */
export function openAnswers(
  context: AskContext,
  flags: SetupFlags,
  { asksSubscription, pull }: Pick<SetupState, 'asksSubscription'> & { pull: string | undefined },
): SetupState {
  const { env, workingDir } = context.io;
  const isSet = ([name, value]: [string, unknown]) => isSetting(name) && value !== undefined;
  const answers = Object.fromEntries(Object.entries(env).filter(isSet)) as Answers;
  const dataDir = env.EARSHOT_DATA_DIR || variables.EARSHOT_DATA_DIR.default;
  const path = join(resolve(workingDir, dataDir), setupFileName);
  const stored = jsonOf(readOwnerOnly(path) ?? '') as
    | Pick<SetupState, 'answers' | 'failed'>
    | undefined;
  Object.assign(answers, stored?.answers);
  takeFlags(flags.texts, answers, context);
  if (pull !== undefined) answers.pull ??= pull;
  const continues = stored !== undefined;
  const mayChange = continues || (flags.force === true && flags.yes === true);
  return { answers, failed: stored?.failed ?? [], asksSubscription, continues, mayChange, path };
}

/** Returns the content of `.env` that the answers describe. */
export function envChangeOf(
  { env, workingDir: folder }: AskContext['io'],
  { answers, mayChange }: SetupState,
  { yes }: SetupFlags,
): EnvChange {
  if (answers.EARSHOT_TLS !== 'files') {
    delete answers.EARSHOT_TLS_CERT;
    delete answers.EARSHOT_TLS_KEY;
  }
  const settings = Object.fromEntries(Object.entries(answers).filter(([name]) => isSetting(name)));
  const dropped = Object.keys(env).filter((name) => isSetting(name) && !(name in settings));
  const header = 'Written by `earshot setup`. All variables: docs/reference/configuration.md.';
  return { folder, settings, dropped, header, mayChange, yes };
}

/** Throws `conflict` if a receiver with another address uses the data directory. */
export async function requireNoOther(io: Io, dataDir: string): Promise<void> {
  const running = await findRunning(dataDir);
  if (running === null || isSameListener(running, loadConfig(io, ['health']).health.listen)) return;
  throw alreadyServed(dataDir, running);
}

/** Stores the answers: settings in `.env`, the others in the data directory. */
export async function storeAnswers(
  { io }: AskContext,
  state: SetupState,
  flags: SetupFlags,
): Promise<void> {
  const change = envChangeOf(io, state, flags);
  const { pull, EARSHOT_LISTEN: listen } = state.answers;
  if (pull === 'push' && listen)
    await requireNoOther(ioWith(io, change.settings), dirname(state.path));
  await writeEnvFile(io, change);
  state.mayChange = true;
  const others = Object.entries(state.answers).filter(([name]) => !isSetting(name));
  const stored = { answers: Object.fromEntries(others), failed: state.failed };
  await writeOwnerOnly(state.path, `${JSON.stringify(stored)}\n`);
}

const applies = ({ part, when }: Question, { answers, asksSubscription }: SetupState) =>
  when?.(answers) !== false &&
  (part !== 'endpoint' || answers.pull !== 'pull') &&
  (part !== 'subscription' || asksSubscription);

function isAnswered({ name, optional }: Question, { answers }: SetupState): boolean {
  const value = answers[`${name}_FILE`] ?? answers[name];
  return value !== undefined && (value !== '' || optional === true);
}

/** Asks what is missing or has failed, and stores each answer. Without a terminal, returns the missing flags. */
async function completeAnswers(
  context: AskContext,
  state: SetupState,
  flags: SetupFlags,
): Promise<string[]> {
  const { answers } = state;
  const missing: string[] = [];
  const isGiven = isChosen(flags.texts);
  for (const question of questions) {
    const { name, part, flagOnly, optional } = question;
    const hasFailed = state.failed.includes(name);
    if (!applies(question, state) || (flagOnly && !hasFailed)) continue;
    if (isAnswered(question, state) && !hasFailed) continue;
    const initial = question.fallback?.(answers) ?? (optional ? '' : undefined);
    const isTaken =
      part === 'subscription' ? isGiven || (flags.yes && name !== 'collection') : flags.yes;
    if (isTaken && !hasFailed && initial !== undefined) {
      answers[name] = initial;
      continue;
    }
    const answer = await askQuestion(question, answers, context);
    const isNeeded = name === 'collection' && !isChosen(answers);
    if (answer === 'missing' || (answer === 'default' && isNeeded))
      missing.push(flagLine(question, context));
    if (answer !== 'answered') continue;
    state.failed = state.failed.filter((one) => one !== name);
    if (!flags.dryRun) await storeAnswers(context, state, flags);
  }
  if (!state.asksSubscription || isChosen(answers) || missing.length > 0) return missing;
  if (await askUntil(context.io, everyProduct, { read: isYes })) answers.filter = '';
  else delete answers.collection;
  return completeAnswers(context, state, flags);
}

const everyProduct =
  'This selects every product of the catalogue, tens of thousands a day. Continue? (y/n)';

function flagLine(question: Question, context: AskContext): string {
  const { flags, description } = optionOf(question, context);
  const more = question.name === 'collection' ? ' (or another filter flag, or --filter)' : '';
  return `${flags}  ${description}${more}`;
}

/**
 * Completes the answers, and shows them until the user confirms them. `showPlan` throws if they do not fit together. With
 * --yes or --dry-run, asks only for what is missing.
 */
export async function confirmAnswers(
  context: AskContext,
  state: SetupState,
  flags: SetupFlags,
  showPlan: () => Promise<void>,
): Promise<void> {
  const { io } = context;
  const isOpen = (one: Question) =>
    applies(one, state) && (!isAnswered(one, state) || state.failed.includes(one.name));
  if (state.continues && questions.some(isOpen)) {
    io.stderr.write(`Answers of the unfinished set-up:\n${table(state, context).text}`);
  }
  for (;;) {
    const missing = await completeAnswers(context, state, flags);
    if (missing.length > 0) throw incomplete(missing, flags);
    if (flags.yes || flags.dryRun) return;
    const { rows, text } = table(state, context);
    io.stderr.write(`\nYour answers:\n${text}\n`);
    const fault = await showPlan().then(() => null, errorText);
    if (fault !== null) io.stderr.write(`${fault}\n`);
    const question = await askUntil(
      io,
      'Enter to continue, or the number of an answer to change it',
      {
        read: (number) => {
          if (number === '' && fault === null) return undefined;
          const row = rows[Number(number) - 1];
          if (row !== undefined && number !== '') return row;
          throw new InvalidArgumentError(`Use a number from 1 to ${rows.length}.`);
        },
      },
    );
    if (question === null) throw incomplete([], flags);
    if (question === undefined) return;
    await askQuestion(question, state.answers, context);
    await storeAnswers(context, state, flags);
  }
}

function incomplete(missing: readonly string[], { yes, dryRun }: SetupFlags): AppError {
  const details = [...missing];
  if (!yes && !dryRun) details.push('--yes  write .env and register without confirmation');
  return new AppError(
    'usage',
    'Some answers are missing, and there is no terminal for questions. Nothing was changed.',
    { advice: 'Add these flags, or set the variables.', details },
  );
}

/** Returns the answered questions, and a numbered line for each; secrets are masked. */
function table(state: SetupState, context: AskContext): { rows: Question[]; text: string } {
  const { answers } = state;
  const rows = questions.filter((one) => applies(one, state) && isAnswered(one, state));
  const lines = rows.map((question, i) => {
    const { name } = question;
    const isSecret = secretNames.has(name) && answers[name];
    const flag = name === 'pull' ? 'pull or push' : optionOf(question, context).name();
    const label = (isSecret ? flag.replace('-file', '') : flag).replaceAll('-', ' ');
    const value = isSecret ? mask : answers[name] || answers[`${name}_FILE`] || 'none';
    return `${String(i + 1).padStart(4)}  ${label.padEnd(22)}  ${printable(value)}\n`;
  });
  return { rows, text: lines.join('') };
}
