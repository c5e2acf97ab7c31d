/** The answers of `earshot setup`: read, asked, stored at once, and confirmed. */

import { join, resolve } from 'node:path';
import { setupFileName } from '../../core/config/config.ts';
import { variables } from '../../core/config/variables.ts';
import { readOwnerOnly, writeOwnerOnly } from '../../core/host/files.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import { jsonOf } from '../../core/terms/text.ts';
import type { EnvChange } from './env-file.ts';
import {
  type Answers,
  type AskContext,
  askQuestion,
  flagOf,
  isChosen,
  isSetting,
  type Question,
  questions,
  type SetupFlags,
  takeFlags,
} from './questions.ts';

export interface SetupState {
  answers: Answers;
  /** Variables whose answers failed a check: they are asked again. */
  failed: readonly string[];
  /** True once an unfinished run has written `.env`: it may be changed again. */
  mayChange: boolean;
  /** True while `.env` has the current settings: they are not stored a second time. */
  isInEnv: boolean;
  /** False if `earshot.config.ts` defines the subscriptions. */
  asksSubscription: boolean;
  /** True if this run continues an unfinished one. */
  continues: boolean;
  /** Path of the file with the answers. */
  path: string;
}

type Stored = Pick<SetupState, 'answers' | 'failed' | 'mayChange'>;

/** Reads the answers: those of variables and of an unfinished run, replaced by flags. */
export function openAnswers(
  context: AskContext,
  flags: SetupFlags,
  { asksSubscription, pull }: Pick<SetupState, 'asksSubscription'> & { pull: string | undefined },
): SetupState {
  const { env, workingDir } = context.io;
  const set = Object.entries(env).filter(([name, value]) => isSetting(name) && value !== undefined);
  const dataDir = env.EARSHOT_DATA_DIR || variables.EARSHOT_DATA_DIR.default;
  const path = join(resolve(workingDir, dataDir), setupFileName);
  const stored = jsonOf(readOwnerOnly(path) ?? '') as Stored | undefined;
  const answers = { ...Object.fromEntries(set), ...stored?.answers } as Answers;
  takeFlags(flags.texts, answers, context);
  if (pull !== undefined) answers.pull ??= pull;
  const { failed = [], mayChange = false } = stored ?? {};
  const continues = stored !== undefined;
  return { answers, failed, mayChange, isInEnv: false, asksSubscription, continues, path };
}

/** Returns the content of `.env` that the answers describe. */
export function envChangeOf(
  { env, workingDir: folder }: AskContext['io'],
  { answers, mayChange }: SetupState,
  { force }: SetupFlags,
): EnvChange {
  if (answers.EARSHOT_TLS !== 'files') {
    delete answers.EARSHOT_TLS_CERT;
    delete answers.EARSHOT_TLS_KEY;
  }
  const settings = Object.fromEntries(Object.entries(answers).filter(([name]) => isSetting(name)));
  const dropped = Object.keys(env).filter((name) => isSetting(name) && !(name in settings));
  const header = 'Written by `earshot setup`. All variables: docs/reference/configuration.md.';
  return { folder, settings, dropped, header, mayChange: mayChange || force === true };
}

/** Stores the answers that `.env` does not have, readable by their owner only. */
export async function storeAnswers(state: SetupState): Promise<void> {
  const { answers: all, failed, mayChange, isInEnv, path } = state;
  const entries = Object.entries(all).filter(([name]) => !isInEnv || !isSetting(name));
  const stored: Stored = { answers: Object.fromEntries(entries), failed, mayChange };
  await writeOwnerOnly(path, `${JSON.stringify(stored)}\n`);
}

const applies = ({ part, when }: Question, { answers, asksSubscription }: SetupState) =>
  when?.(answers) !== false &&
  (part !== 'endpoint' || answers.pull !== 'pull') &&
  (part !== 'subscription' || asksSubscription);

function isAnswered({ name, optional }: Question, { answers, failed }: SetupState): boolean {
  const value = answers[`${name}_FILE`] ?? answers[name];
  return !failed.includes(name) && value !== undefined && (value !== '' || optional === true);
}

/**
 * Asks what is missing or has failed, or `all` questions, and stores each answer. Takes defaults with --yes, and for a
 * subscription that flags describe. Without a terminal, returns the missing flags.
 */
async function completeAnswers(
  context: AskContext,
  state: SetupState,
  flags: SetupFlags,
  all: boolean,
): Promise<string[]> {
  const { answers } = state;
  const missing: Question[] = [];
  const isGiven = isChosen(flags.texts);
  for (const question of questions) {
    const { name, part, flagOnly, optional, fallback } = question;
    if (!applies(question, state) || (!all && isAnswered(question, state))) continue;
    const hasFailed = state.failed.includes(name);
    if (flagOnly && !hasFailed && !answers[name]) continue;
    const initial = fallback?.(answers) ?? (optional ? '' : undefined);
    const takesDefault =
      part === 'subscription' ? isGiven || (flags.yes && name !== 'collection') : flags.yes;
    if (takesDefault && !all && !hasFailed && initial !== undefined) {
      answers[name] = initial;
      continue;
    }
    const answer = await askQuestion(question, answers, context);
    if (answer === 'missing') missing.push(question);
    if (answer !== 'answered') continue;
    state.failed = state.failed.filter((one) => one !== name);
    state.isInEnv = false;
    if (!flags.dryRun) await storeAnswers(state);
  }
  if (state.asksSubscription && !isChosen(answers)) {
    const answer = await context.io.ask(everyProduct);
    if (/^y(es)?$/i.test(answer?.trim() ?? '')) answers.filter = '';
    else delete answers.collection;
    if (answer !== null) return completeAnswers(context, state, flags, false);
    missing.push({ name: 'collection' });
  }
  return missing.map((question) => {
    const more = question.name === 'collection' ? ' (or another filter flag, or --filter)' : '';
    const { flags: usage, description } = flagOf(question, context);
    return `${usage}  ${description}${more}`;
  });
}

const everyProduct =
  'This selects every product of the catalogue, tens of thousands a day. Continue? [y/N]: ';

/**
 * Completes the answers, and asks again until the user confirms the plan. `showPlan` throws if the answers do not fit
 * together. With --yes or --dry-run, asks only for what is missing.
 */
export async function confirmAnswers(
  context: AskContext,
  state: SetupState,
  flags: SetupFlags,
  showPlan: () => Promise<void>,
): Promise<void> {
  const { io } = context;
  for (let all = false; ; all = true) {
    const missing = await completeAnswers(context, state, flags, all);
    if (missing.length > 0) throw incomplete(missing, flags);
    if (flags.yes || flags.dryRun) return;
    const fault = await showPlan().then(() => null, errorText);
    const question = 'Enter to continue, or n to change answers: ';
    const answer = await io.ask(fault === null ? question : `${fault} Enter to change answers: `);
    if (answer === null) throw incomplete([], flags);
    if (fault === null && /^(y(es)?)?$/i.test(answer.trim())) return;
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
