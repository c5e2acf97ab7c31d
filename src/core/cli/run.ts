/** Runs one command line and returns its exit code. Tests call this instead of a process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { commandGroups, type Feature } from '../feature.ts';
import { AppError, type ErrorCode, errorText, isAppError } from '../terms/app-error.ts';
import { printable } from '../terms/text.ts';
import { addCommonFlags, dataDirOf, refuseEmptySpan } from './flags.ts';
import type { Io } from './io.ts';
import { asCalled, namingCommands, painter } from './output.ts';

/** Runs `argv` (without the program's name). Never throws: prints every failure to stderr. */
export async function run(argv: readonly string[], plain: Io, version: string): Promise<number> {
  const io = { ...plain, stderr: namingCommands(plain.stderr, plain) };
  try {
    const program = await createProgram(io, version, argv);
    if (argv.length === 0) {
      program.outputHelp({ error: true });
      return exitCodes.usage;
    }
    await program.parseAsync(argv, { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    // commander has already printed help, version and usage errors.
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    }
    io.stderr.write(explain(error));
    const note = overviews.includes(argv[0] ?? '') ? null : folderNote(io);
    if (note !== null && isAppError(error, 'configuration')) io.stderr.write(`${note}\n`);
    if (isSandboxRefusal(error)) return exitCodes.usage;
    return error instanceof AppError ? exitCodeOf(error.code) : exitCodes.failed;
  }
}

/** Commands that print first how to set up the folder. */
const overviews: readonly string[] = ['status', 'doctor'];

/** Returns how to set up the working folder: the wrong one is the most frequent cause of missing settings. */
function folderNote({ workingDir, env }: Io): string | null {
  const isSet = Object.keys(env).some((name) => name.startsWith('EARSHOT_'));
  const files = ['.env', 'earshot.config.ts', 'data'];
  if (isSet || files.some((file) => existsSync(join(workingDir, file)))) return null;
  return `The folder ${printable(workingDir)} is not set up. To set up a receiver: \`earshot setup\`. To try earshot without an account: \`earshot demo\`.`;
}

/** Recognizes invalid options of the sandbox by name, so that other commands do not load the sandbox. */
function isSandboxRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'SandboxConfigurationError';
}

function explain(error: unknown): string {
  if (error instanceof AppError && error.code !== 'internal') {
    // Details can have several lines, such as findings of a filter.
    const lines = error.details.map((detail) => detail.split('\n').map(printable));
    const details = lines.map((some) => `  - ${some.join('\n    ')}\n`);
    return `earshot: ${printable(errorText(error))}\n${details.join('')}`;
  }
  if (isSandboxRefusal(error)) return `earshot: ${printable(error.message)}\n`;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const cause = error instanceof Error && error.cause !== undefined ? `\n${error.cause}` : '';
  const lines = `${text}${cause}`.split('\n').map(printable);
  return `earshot: Internal error. Please report this error with the following text:\n${lines.join('\n')}\n`;
}

const exitCodes = {
  done: 0,
  failed: 1,
  /** Wrong usage or configuration: the same call can never work. */
  usage: 2,
  /** `--check` found differences. */
  differences: 3,
} as const;

export function exitCodeOf(code: ErrorCode): number {
  if (code === 'differences') return exitCodes.differences;
  const isUsage = ['usage', 'configuration', 'not_found'].includes(code);
  return isUsage ? exitCodes.usage : exitCodes.failed;
}

/** Returns the names of the commands by group. */
export function commandsByGroup(features: readonly Feature[]): Map<string, string[]> {
  const all = features.flatMap(({ commands = [] }) => commands);
  return new Map(
    commandGroups.map((group) => [
      group,
      all.filter(({ under }) => under === group).map(({ name }) => name),
    ]),
  );
}

/** Returns the help of the program: at most 80 columns, and short enough for one screen. */
function overviewOf(features: readonly Feature[]): string {
  const common = features.flatMap(({ commands = [] }) =>
    commands.flatMap(({ name, overview }) =>
      overview === undefined ? [] : [`  ${name.padEnd(10)} ${overview}\n`],
    ),
  );
  const groups = [...commandsByGroup(features)].map(
    ([group, names]) => `  ${group.padEnd(10)} ${names.join('  ')}\n`,
  );
  return `Usage: earshot <command> [flags]

Receives and stores the push notifications of the Copernicus catalogue.

Common commands:
${common.join('')}
All commands by group:
${groups.join('')}
Flags: --data-dir <folder> (EARSHOT_DATA_DIR), -V or --version, -h or --help
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 problem found

Flags and examples of a command: \`earshot <command> --help\`
`;
}

/**
 * Builds the program without running it. With `argv`, loads only the command that its first word names, and none for
 * the overview and the version: the start takes half the time. Without `argv`, loads every command.
 */
export async function createProgram(
  io: Io,
  version: string,
  argv?: readonly string[],
): Promise<Command> {
  const program = new Command('earshot')
    .description('Receives and stores the push notifications of the Copernicus catalogue.')
    .version(version)
    .configureHelp({ formatHelp: () => overviewOf(io.features) });
  // Shared by all commands, and completed before one runs.
  const own = { ...io };
  await addCommands(program, own, argv);
  program.hook('preAction', (_, action) => {
    refuseEmptySpan(action);
    const dataDir = dataDirOf(action);
    if (dataDir !== undefined) own.env = { ...own.env, EARSHOT_DATA_DIR: dataDir };
    else if (overviews.includes(action.name())) {
      const note = folderNote(own);
      if (note !== null) io.stderr.write(`${painter(io, io.stderr)('yellow', note)}\n`);
    }
  });
  for (const command of withChildren(program)) {
    addCommonFlags(command);
    command
      .exitOverride()
      // In `query drift --json`, the option belongs to the subcommand.
      .enablePositionalOptions()
      .showHelpAfterError(`(For flags and examples: \`${fullName(command)} --help\`)`)
      .configureOutput({
        writeOut: (text) => void io.stdout.write(asCalled(text, io)),
        // Messages of commander quote arguments.
        writeErr: (text) => void io.stderr.write(text.split('\n').map(printable).join('\n')),
        getOutHelpWidth: () => Math.min(io.stdout.columns ?? 100, 100),
        getErrHelpWidth: () => Math.min(io.stderr.columns ?? 100, 100),
      });
  }
  return program;
}

/** Adds every command for an unknown word, too: its error suggests the nearest name. */
async function addCommands(program: Command, io: Io, argv: readonly string[] | undefined) {
  const slots = io.features.flatMap(({ commands = [] }) => commands);
  const all = slots.filter(({ under }) => typeof under === 'string');
  const named = namesToLoad(
    all.map(({ name }) => name),
    argv,
  );
  if (named.length === 0) return;
  io.settings = await (await import('../config/config.ts')).loadSettings(io.features);
  for (const { name, load } of all) {
    if (!named.includes(name)) continue;
    const command = (await load())(io);
    for (const { under, load: loadChild } of slots) {
      if (typeof under === 'string' || under.command !== name) continue;
      command.addCommand((await loadChild())(io));
    }
    program.addCommand(command);
  }
}

function namesToLoad(
  all: readonly string[],
  argv: readonly string[] | undefined,
): readonly string[] {
  if (argv === undefined) return all;
  const [name] = argv[0] === '--data-dir' ? argv.slice(2) : argv;
  if (argv.length === 0 || /^(--help|-h|--version|-V)$/.test(name ?? '')) return [];
  return name !== undefined && all.includes(name) ? [name] : all;
}

/** Returns a command and all below it, parents first. */
export function withChildren(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withChildren)];
}

/** Returns the words that call a command, such as `earshot quarantine list`. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}
