/** The flags that several commands take: each is defined here once, with its help text. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { AppError } from '../domain/app-error.ts';
import { wholeNumber } from './number-argument.ts';

/** What the action of a command with `--json` gets, whichever of the two flags was given. */
export interface OutputFlags<Form extends string> {
  output: Form;
  json?: true;
}

/** `-o, --output`; the first form is the default. */
export function outputOption(forms: readonly string[]): Option {
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
