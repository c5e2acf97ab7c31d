/** The command line: every command with its options, as one commander program. */
import { Command } from 'commander';
import { likelyNames } from '../domain/text.ts';
import { asCalled } from './called-as.ts';
import { addCommonFlags, dataDirOf, refuseEmptySpan } from './flags.ts';
import type { Io } from './io.ts';

/** In the order of the help text. */
const loaders = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand,
  setup: async () => (await import('./commands/setup.ts')).setupCommand,
  start: async () => (await import('./commands/start.ts')).startCommand,
  config: async () => (await import('./commands/config.ts')).configCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  health: async () => (await import('./commands/health.ts')).healthCommand,
  register: async () => (await import('./commands/register.ts')).registerCommand,
  maintain: async () => (await import('./commands/maintain.ts')).maintainCommand,
  subscriptions: async () => (await import('./commands/subscriptions.ts')).subscriptionsCommand,
  credentials: async () => (await import('./commands/credentials.ts')).credentialsCommand,
  certificate: async () => (await import('./commands/certificate.ts')).certificateCommand,
  query: async () => (await import('./commands/query.ts')).queryCommand,
  filter: async () => (await import('./commands/filter.ts')).filterCommand,
  summarize: async () => (await import('./commands/summarize.ts')).summarizeCommand,
  tail: async () => (await import('./commands/tail.ts')).tailCommand,
  coverage: async () => (await import('./commands/coverage.ts')).coverageCommand,
  reconcile: async () => (await import('./commands/reconcile.ts')).reconcileCommand,
  alerts: async () => (await import('./commands/alerts.ts')).alertsCommand,
  sinks: async () => (await import('./commands/sinks.ts')).sinksCommand,
  replay: async () => (await import('./commands/replay.ts')).replayCommand,
  quarantine: async () => (await import('./commands/quarantine.ts')).quarantineCommand,
  backup: async () => (await import('./commands/backup.ts')).backupCommand,
  restore: async () => (await import('./commands/restore.ts')).restoreCommand,
  prune: async () => (await import('./commands/prune.ts')).pruneCommand,
  compact: async () => (await import('./commands/compact.ts')).compactCommand,
  index: async () => (await import('./commands/index.ts')).indexCommand,
  import: async () => (await import('./commands/import.ts')).importCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  sandbox: async () => (await import('./commands/sandbox.ts')).sandboxCommand,
} as const satisfies Record<string, () => Promise<(io: Io) => Command>>;
type Name = keyof typeof loaders;

/**
 * Builds the program; nothing runs before it is told to parse. Where the first word of the command line names a
 * command, it is loaded alone: a start takes half the time.
 */
export async function createProgram(
  io: Io,
  version: string,
  argv: readonly string[] = [],
): Promise<Command> {
  const program = new Command('earshot')
    .description('Receives the push notifications of the Copernicus catalogue and keeps every one.')
    .version(version)
    .addHelpText(
      'after',
      `
Examples:
  $ earshot demo                       see it work, without any account
  $ earshot setup                      from nothing to a registered subscription
  $ earshot doctor                     what is missing, from configuration to delivery
  $ earshot start                      serve the endpoint (see docs/configuration.md)
  $ earshot status                     whether all is well, and what to do when it is not
  $ earshot register --dry-run         what the catalogue account lacks
  $ earshot query --since 24h          what arrived since yesterday
  $ earshot query products --tile 31UFR --cloud-below 20
  $ earshot filter check "…"           before a subscription is spent on it
  $ earshot summarize --each --since 2h    in plain words, by a language model
  $ earshot tail --event deleted       follow deletions as they arrive
  $ earshot coverage                   whether anything is missing, hour by hour
  $ earshot reconcile --since 10d      fetch what no push brought
  $ earshot backup --to /mnt/backups   all of it in one file, while it serves

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 differences found (--check).
Data goes to standard output, everything else to standard error.`,
    );
  const [name = ''] = argv[0] === '--data-dir' ? argv.slice(2) : argv;
  // A completion script is about all of them.
  const isAlone = Object.hasOwn(loaders, name) && name !== 'completion';
  const isVersion = name === '--version' || name === '-V';
  const wanted = isAlone ? [name] : isVersion ? [] : Object.keys(loaders);
  const env = { ...io.env };
  for (const one of wanted) program.addCommand((await loaders[one as Name]())({ ...io, env }));
  program.hook('preAction', (_, action) => {
    refuseSurplusWord(action);
    refuseEmptySpan(action);
    const dataDir = dataDirOf(action);
    if (dataDir !== undefined) env.EARSHOT_DATA_DIR = dataDir;
  });
  for (const command of withChildren(program)) {
    addCommonFlags(command);
    command
      .showSuggestionAfterError(false) // Ours knows beginnings, too: withSuggestion.
      .allowExcessArguments() // They are checked with a suggestion: refuseSurplusWord.
      .exitOverride()
      // `query drift --json`: an option after a subcommand is the subcommand's.
      .enablePositionalOptions()
      .showHelpAfterError(`(\`${fullName(command)} --help\` shows what it takes)`)
      .configureOutput({
        writeOut: (text) => void io.stdout.write(asCalled(text, io)),
        writeErr: (text) => void io.stderr.write(withSuggestion(text, command)),
        getOutHelpWidth: () => Math.min(io.stdout.columns ?? 100, 100),
        getErrHelpWidth: () => Math.min(io.stderr.columns ?? 100, 100),
      });
  }
  return program;
}

/** A command and all below it, parents first. */
export function withChildren(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withChildren)];
}

/** The words that call a command, such as `earshot quarantine list`. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

/** A word that no argument takes is a slip of a subcommand's name, where the command or its group has some. */
function refuseSurplusWord(command: Command): void {
  const { args, registeredArguments: taken, parent } = command;
  const word = args[taken.length];
  if (word === undefined || taken.at(-1)?.variadic === true) return;
  // `earshot sinks lst` runs the group's own list, which was not named.
  const group = parent !== null && parent.args[0] !== command.name() ? parent : command;
  const code = 'commander.unknownCommand';
  if (group.commands.length > 0) group.error(`error: unknown command '${word}'`, { code });
  // A shell has parted an expression in several words.
  const quotes =
    taken[0]?.name() === 'expression'
      ? ` A text with blanks stands in quotes: "${args.join(' ')}"`
      : '';
  command.error(
    `error: too many arguments: ${command.name()} takes ${taken.length || 'none'}, not '${word}'.${quotes}`,
    { code: 'commander.excessArguments' },
  );
}

/** Adds the names that may have been meant to an error about an unknown one: those it begins, else the nearest. */
function withSuggestion(text: string, command: Command): string {
  const [, kind, word = ''] =
    /^error: unknown (option|command) '([^'=]+)[^']*'\n$/.exec(text) ?? [];
  if (kind === undefined) return text;
  const help = command.createHelp();
  const names =
    kind === 'option'
      ? help.visibleOptions(command).flatMap(({ long }) => long ?? [])
      : help.visibleCommands(command).map((one) => one.name());
  const near = likelyNames(word, names);
  if (near.length === 0) return text;
  return `${text}(Did you mean ${near.length > 1 ? 'one of ' : ''}${near.join(', ')}?)\n`;
}
