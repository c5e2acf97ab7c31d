/** Flags shared by several commands, each with its help text. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { maximumAge } from '../config/variables.ts';
import { AppError } from '../terms/app-error.ts';
import { durationUs, parseDate } from '../terms/dates.ts';
import type { Io } from './io.ts';

/** Values of `--output` and `--json` in an action: both are set, whichever flag was given. */
export interface OutputFlags<Form extends string> {
  output: Form;
  json?: true;
}

/** `-o, --output`; the first format is the default. */
function outputOption(formats: readonly string[]): Option {
  const text = `output format (default: ${formats[0]})`;
  return new Option('-o, --output <format>', text).choices(formats);
}

/** `--json`; the field names are in the help text of the command. */
export function jsonOption(): Option {
  return new Option('--json', 'same as --output json');
}

/** `-n, --limit`. `note` is the default as text, if it is not a fixed number. */
export function limitOption({ note = '' } = {}): Option {
  const text = `maximum number of rows${note === '' ? '' : ` (default: ${note})`}`;
  return new Option('-n, --limit <rows>', text).argParser(wholeNumber(1));
}

/** `--before`, for lists by id, newest first. */
export function beforeOption(): Option {
  return new Option('--before <id>', 'only rows before this row (lower ids)').argParser(
    wholeNumber(1),
  );
}

/** Adds `--since` and `--until`. `of` names the time that is compared ("time of receipt"); `note` is the default as text. */
export function addSpan(command: Command, { nowUs }: Clock, of: string, note = ''): Command {
  const parse = (text: string) => parseTimeArgument(text, nowUs());
  const since = `start of the time range (${of}): UTC date, or 90m, 24h or 7d before now`;
  const initial = note === '' ? '' : ` (default: ${note})`;
  return command
    .option('--since <time>', `${since}${initial}`, parse)
    .option('--until <time>', 'end of the time range (exclusive)', parse);
}

/** Adds `-o, --output` with these formats, and `--json`. */
export function addOutputForms(command: Command, formats: readonly string[]): Command {
  return command.addOption(outputOption(formats)).addOption(jsonOption());
}

/** Adds `--columns` and `--wide`. */
export function addTableFlags(command: Command): Command {
  return command
    .option('--columns <names>', 'columns of a format such as table or csv (comma-separated)')
    .option('--wide', 'print full names and all columns, even on a narrow terminal');
}

/** `--max-age`. */
export function maxAgeOption(): Option {
  const text = 'maximum time from the end of sensing to publication, such as 30d or 36h';
  return new Option('--max-age <age>', text).argParser(parsedBy(maximumAge));
}

/** Help text of `--pull`. */
export const pullFlagText = 'read notifications from a queue (no public host needed)';

/** Help text of `--event`. */
export const eventFlagText = 'kind of event: created, modified or deleted (comma-separated)';

/** `--dry-run`. */
export function dryRunOption(): Option {
  return new Option('--dry-run', 'print a preview and change nothing');
}

/** Throws `usage` if `--until` is not after `--since`. */
export function refuseEmptySpan(command: Command): void {
  const { since, until } = command.opts<Record<'since' | 'until', unknown>>();
  if (typeof since !== 'number' || typeof until !== 'number' || since < until) return;
  const show = (us: number) => new Date(us / 1000).toISOString();
  throw new AppError('usage', `--until (${show(until)}) is not after --since (${show(since)}).`, {
    advice: 'Swap the two times, or omit one of the flags.',
  });
}

/** `--yes`. */
export function yesOption(): Option {
  return new Option('--yes', 'do not ask for confirmation');
}

/**
 * Adds the flags of every command: `--data-dir`, and `-o, --output` if there is `--json`.
 */
export function addCommonFlags(command: Command): void {
  if (!readsNoData.includes(pathOf(command))) {
    const text = 'data directory (default: EARSHOT_DATA_DIR, otherwise ./data)';
    command.option('--data-dir <folder>', text, folder);
  }
  addOutput(command);
}

function addOutput(command: Command): void {
  const json = command.options.find(({ long }) => long === '--json');
  if (json === undefined) return;
  json.conflicts('output');
  const own = command.options.find(({ long }) => long === '--output');
  const output = own ?? outputOption(['table', 'json']);
  if (own === undefined) command.addOption(output);
  command.hook('preAction', (self, action) => {
    if (self === action) unifyOutput(self, output.argChoices);
  });
}

/** Commands that never open the data directory. */
const readsNoData: readonly string[] = ['demo', 'sandbox', 'filter check'];

/** Names of a command and its parents, without the program's name. */
function pathOf(command: Command): string {
  const { parent } = command;
  if (parent === null) return '';
  return `${pathOf(parent)} ${command.name()}`.trim();
}

/** Sets both flags to the chosen format, so that an action can read either. */
function unifyOutput(command: Command, formats: readonly string[] = []): void {
  const { output, json } = command.opts<{ output?: string; json?: true }>();
  const format = output ?? (json ? 'json' : formats[0]);
  command.setOptionValue('output', format);
  command.setOptionValue('json', format === 'json' ? true : undefined);
}

/** Value of `--data-dir` of a command or the nearest parent that has one. */
export function dataDirOf(command: Command | null): string | undefined {
  if (command === null) return undefined;
  return command.getOptionValue('dataDir') ?? dataDirOf(command.parent);
}

/** Parses the path of a folder. */
export function folder(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Use the path of a folder.');
  return text;
}

/** Returns a parser for whole numbers of at least `min`. */
export function wholeNumber(min = 0): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < min) {
      throw new InvalidArgumentError(`Use a whole number, ${min} or more.`);
    }
    return value;
  };
}

/** Returns a parser for values of a setting. */
export function parsedBy(schema: z.ZodType<number, string>): (text: string) => number {
  return (text) => {
    const parsed = schema.safeParse(text);
    if (parsed.success) return parsed.data;
    throw new InvalidArgumentError(`It ${parsed.error.issues.map(({ message }) => message)[0]}.`);
  };
}

/** Parses a number above 0, such as a rate. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value)) {
    throw new InvalidArgumentError('Use a number above 0.');
  }
  return value;
}

/** Parses `24h`, `90m`, `7d` (before now) or an ISO 8601 date or time (UTC without a zone). Returns µs. */
function parseTimeArgument(text: string, nowUs: number): number {
  const backUs = durationUs(text);
  if (backUs !== null && backUs > 0) return nowUs - backUs;
  const date = parseDate(text);
  if (date === null) {
    throw new InvalidArgumentError(
      'Use 90m, 24h, 7d or a date such as 2026-11-20 or 2026-11-20T06:00:00Z.',
    );
  }
  return date.us;
}

type Clock = Readonly<{ nowUs: () => number }>;

/**
 * Returns the time range of two flags. It ends at the latest now; without `since` it starts `backUs` before now
 * (default: no start). Throws `usage` if the range is empty.
 */
export function readWindow(
  { since, until }: { since?: number; until?: number },
  io: Clock,
  { backUs = Number.POSITIVE_INFINITY } = {},
): { fromUs: number; toUs: number; nowUs: number } {
  const nowUs = io.nowUs();
  const fromUs = since ?? nowUs - backUs;
  const toUs = Math.min(until ?? nowUs, nowUs);
  if (fromUs < toUs) return { fromUs, toUs, nowUs };
  throw new AppError(
    'usage',
    'The time range is empty: --since must be before --until and before now (UTC).',
  );
}

/**
 * Asks for confirmation unless `yes` is set. Throws `usage` if there is no terminal, `cancelled` for any answer
 * other than yes.
 */
export async function confirm(
  io: Pick<Io, 'ask'>,
  question: string,
  { yes }: { yes?: boolean | undefined },
): Promise<void> {
  if (yes) return;
  const answer = await io.ask(`${question} [y/N] `);
  if (answer === null) {
    throw new AppError('usage', 'Confirmation needs a terminal. Nothing was changed.', {
      advice: 'Add --yes to skip the prompt.',
    });
  }
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new AppError('cancelled', 'Nothing was changed.');
}
