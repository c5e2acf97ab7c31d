/** The flags that several commands take: each is defined here once, with its help text. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { AppError } from '../domain/app-error.ts';
import { parseDate } from '../domain/dates.ts';
import type { Io } from './io.ts';

/** What the action of a command with `--json` gets, whichever of the two flags was given. */
export interface OutputFlags<Form extends string> {
  output: Form;
  json?: true;
}

/** `-o, --output`; the first form is the default. */
function outputOption(forms: readonly string[]): Option {
  return new Option('-o, --output <form>', `form of the output (default: ${forms[0]})`).choices(
    forms,
  );
}

/** `-n, --limit`. `note` says what applies without the flag, where that is no fixed number. */
export function limitOption({ of = 'rows', note = '' } = {}): Option {
  const text = `maximum number of ${of}${note === '' ? '' : ` (${note})`}`;
  return new Option(`-n, --limit <${of}>`, text).argParser(wholeNumber(1));
}

/** `--since`. `of` says what the time belongs to ("received", "published"), `note` what applies without the flag. */
export function sinceOption<Time>(parse: (text: string) => Time, of: string, note = ''): Option {
  const when = 'from this time on: 90m, 24h or 7d (that long ago), or a date (UTC)';
  const text = `${of} ${when}${note === '' ? '' : `; default ${note}`}`;
  return new Option('--since <time>', text).argParser(parse);
}

/** `--until`. */
export function untilOption<Time>(parse: (text: string) => Time, of: string): Option {
  return new Option('--until <time>', `${of} before this time`).argParser(parse);
}

/** Adds `--since` and `--until`. */
export function addSpan<Time>(
  command: Command,
  parse: (text: string) => Time,
  of: string,
  note?: string,
): Command {
  return command.addOption(sinceOption(parse, of, note)).addOption(untilOption(parse, of));
}

/** Adds `-o, --output` with these forms, and `--json`. */
export function addOutputForms(command: Command, forms: readonly string[]): Command {
  return command.addOption(outputOption(forms)).option('--json', 'short for --output json');
}

/** Adds `--columns` and `--wide`. */
export function addTableFlags(command: Command): Command {
  return command
    .option('--columns <names>', 'columns of table and csv, with commas between them')
    .option('--wide', 'print whole names, and all columns of the table, on any terminal');
}

/** Throws `usage` where `--until` does not lie after `--since`. */
export function refuseEmptySpan(command: Command): void {
  const { since, until } = command.opts<Record<'since' | 'until', unknown>>();
  if (typeof since !== 'number' || typeof until !== 'number' || since < until) return;
  const show = (us: number) => new Date(us / 1000).toISOString();
  throw new AppError(
    'usage',
    `--until (${show(until)}) is not after --since (${show(since)}): nothing could match.`,
    { advice: 'Exchange them, or leave one out.' },
  );
}

/** `--yes`. */
export function yesOption(): Option {
  return new Option('--yes', 'do not ask for confirmation');
}

/** Keeps an earlier name of a flag working, without showing it: the action gets the value under the name of today. */
export function addHiddenAlias<Value>(
  command: Command,
  flags: string,
  { of, parse }: { of: string; parse: (text: string) => Value },
): Command {
  const alias = new Option(flags).argParser(parse).hideHelp();
  return command.addOption(alias).on(`option:${alias.name()}`, () => {
    command.setOptionValueWithSource(of, command.getOptionValue(alias.attributeName()), 'cli');
  });
}

/**
 * Adds what belongs to every command: `--data-dir`, `-o, --output` next to `--json`, and that no option is given twice
 * with different values.
 */
export function addCommonFlags(command: Command): void {
  if (!readsNoData.includes(pathOf(command))) {
    command.option('--data-dir <folder>', 'the data directory (EARSHOT_DATA_DIR)', folder);
  }
  addOutput(command);
  for (const option of command.options) refuseRepetition(command, option);
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

/** Options that collect their values, whose parser takes the previous ones, are given as often as needed. */
function refuseRepetition(command: Command, option: Option): void {
  // The parser of a list of choices takes two parameters, too.
  const collects = option.argChoices === undefined && (option.parseArg?.length ?? 0) > 1;
  if (option.variadic || collects) return;
  let first: string | null | undefined;
  command.on(`option:${option.name()}`, (text: string | null) => {
    if (first !== undefined && text !== first) {
      const code = 'commander.conflictingOption';
      const values = `with '${first}' and '${text}'`;
      command.error(`error: option '${option.flags}' was given twice, ${values}. Use one.`, {
        code,
      });
    }
    first = text;
  });
}

/** Commands that never open the data directory. */
const readsNoData: readonly string[] = ['demo', 'sandbox', 'filter check', 'completion'];

/** The words that call a command, without the program's name. */
function pathOf(command: Command): string {
  const { parent } = command;
  if (parent === null) return '';
  return `${pathOf(parent)} ${command.name()}`.trim();
}

/** Both flags hold the chosen form, so that an action may read either. */
function unifyOutput(command: Command, forms: readonly string[] = []): void {
  const { output, json } = command.opts<{ output?: string; json?: true }>();
  const form = output ?? (json ? 'json' : forms[0]);
  command.setOptionValue('output', form);
  command.setOptionValue('json', form === 'json' ? true : undefined);
}

/** The folder of `--data-dir`, given to a command or to one above it. */
export function dataDirOf(command: Command | null): string | undefined {
  if (command === null) return undefined;
  return command.getOptionValue('dataDir') ?? dataDirOf(command.parent);
}

/** Parser of a folder's path. */
export function folder(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Use the path of a folder.');
  return text;
}

/** A parser for whole numbers from `min` on. */
export function wholeNumber(min = 0): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < min) {
      throw new InvalidArgumentError(`Use a whole number from ${min} on.`);
    }
    return value;
  };
}

/** A number above 0, such as a rate. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value)) {
    throw new InvalidArgumentError('Use a number above 0.');
  }
  return value;
}

const unitsUs: Readonly<Record<string, number>> = {
  s: 1e6,
  m: 60e6,
  h: 3_600e6,
  d: 86_400e6,
  w: 604_800e6,
};

/** The length of `90s`, `90m`, `24h`, `7d` or `2w` in µs; null for any other text. */
export function lengthOfTimeUs(text: string): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text) ?? [];
  return amount === undefined ? null : Math.round(Number(amount) * (unitsUs[unit] ?? 0));
}

/** `24h`, `90m`, `7d` before now, or an ISO 8601 date or time (UTC unless it names a zone), in µs. */
export function parseTimeArgument(text: string, nowUs: number): number {
  const backUs = lengthOfTimeUs(text);
  if (backUs !== null) return nowUs - backUs;
  const date = parseDate(text);
  if (date === null) {
    throw new InvalidArgumentError(
      'Use 90m, 24h, 7d or a date such as 2026-11-20 or 2026-11-20T06:00:00Z.',
    );
  }
  return date.us;
}

/** A time of the command line with the words it was given in. */
export interface TimeArgument {
  us: number;
  words: string;
  /** The moment that it was counted back from. */
  readAtUs: number;
}

type Clock = Readonly<{ nowUs: () => number }>;

/** A parser for commander; `now` is the moment at which it is called. */
export function readTime({ nowUs }: Clock): (text: string) => number {
  return (text) => parseTimeArgument(text, nowUs());
}

/** The same, with the words and the moment. */
export function readTimeArgument({ nowUs }: Clock): (text: string) => TimeArgument {
  return (words) => {
    const readAtUs = nowUs();
    return { us: parseTimeArgument(words, readAtUs), words, readAtUs };
  };
}

/**
 * The time between two flags, up to now, from `backUs` before now (default: the beginning). Throws `usage` with the
 * message for an empty one.
 */
export function readWindow(
  { since, until }: { since?: TimeArgument; until?: TimeArgument },
  io: Clock,
  { backUs = Number.POSITIVE_INFINITY, message = emptyWindow } = {},
): { fromUs: number; toUs: number; nowUs: number } {
  // By the moment at which the words were read: 0h would else be some milliseconds.
  const nowUs = since?.readAtUs ?? io.nowUs();
  const fromUs = since?.us ?? nowUs - backUs;
  const toUs = Math.min(until?.us ?? nowUs, nowUs);
  if (fromUs < toUs) return { fromUs, toUs, nowUs };
  throw new AppError('usage', message);
}

const emptyWindow = 'The window is empty: --since must lie before --until, and before now (UTC).';

/**
 * Resolves when the user agrees, or has said `--yes`. Throws `usage` when there is no terminal to ask
 * on, `cancelled` when the answer is anything but yes.
 */
export async function confirm(
  io: Pick<Io, 'ask'>,
  question: string,
  { yes }: { yes?: boolean | undefined },
): Promise<void> {
  if (yes) return;
  const answer = await io.ask(`${question} [y/N] `);
  if (answer === null) {
    throw new AppError('usage', 'There is no terminal to ask on, so nothing was changed.', {
      advice: 'Add --yes to do it without a question.',
    });
  }
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new AppError('cancelled', 'Nothing was changed.');
}
