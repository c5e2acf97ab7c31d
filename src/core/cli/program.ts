/** The command line: every command with its options, as one commander program. */
import { Command } from 'commander';
import { likelyNames, printable } from '../terms/text.ts';
import { asCalled } from './called-as.ts';
import { addCommonFlags, dataDirOf, refuseEmptySpan } from './flags.ts';
import type { Io } from './io.ts';

/** Commands by group, in the order of the help text; each loads its code when it is used. */
export const groups = {
  run: {
    setup: async () => (await import('../../features/setup/command.ts')).setupCommand,
    start: async () => (await import('../../features/start/command.ts')).startCommand,
  },
  look: {
    status: async () => (await import('../../features/status/command.ts')).statusCommand,
    query: async () => (await import('../../features/notifications/command.ts')).queryCommand,
    tail: async () => (await import('../../features/notifications/tail-command.ts')).tailCommand,
    coverage: async () => (await import('../../features/coverage/command.ts')).coverageCommand,
    alerts: async () => (await import('../../features/alerts/command.ts')).alertsCommand,
    summarize: async () => (await import('../../features/summary/command.ts')).summarizeCommand,
  },
  subscribe: {
    register: async () =>
      (await import('../../features/subscriptions/register-command.ts')).registerCommand,
    subscriptions: async () =>
      (await import('../../features/subscriptions/command.ts')).subscriptionsCommand,
    maintain: async () =>
      (await import('../../features/subscriptions/maintain-command.ts')).maintainCommand,
    filter: async () =>
      (await import('../../features/subscriptions/filter-command.ts')).filterCommand,
    credentials: async () =>
      (await import('../../features/credentials/command.ts')).credentialsCommand,
    certificate: async () =>
      (await import('../../features/certificate/command.ts')).certificateCommand,
  },
  repair: {
    doctor: async () => (await import('../../features/doctor/command.ts')).doctorCommand,
    reconcile: async () =>
      (await import('../../features/coverage/reconcile-command.ts')).reconcileCommand,
    quarantine: async () =>
      (await import('../../features/quarantine/command.ts')).quarantineCommand,
    sinks: async () => (await import('../../features/sinks/command.ts')).sinksCommand,
  },
  data: {
    backup: async () => (await import('../../features/backup/command.ts')).backupCommand,
    restore: async () => (await import('../../features/backup/restore-command.ts')).restoreCommand,
    prune: async () => (await import('../../features/pruning/command.ts')).pruneCommand,
    admin: async () => (await import('./commands/admin.ts')).adminCommand,
  },
  try: {
    demo: async () => (await import('../../features/demo/command.ts')).demoCommand,
    sandbox: async () => (await import('../../features/demo/sandbox-command.ts')).sandboxCommand,
  },
} as const satisfies Record<string, Record<string, () => Promise<(io: Io) => Command>>>;

const loaders: Record<string, () => Promise<(io: Io) => Command>> = Object.assign(
  {},
  ...Object.values(groups),
);

/** The help of the program: 24 lines of at most 80 columns, so that it fits on one screen. */
const overview = `Usage: earshot <command> [flags]

Receives and stores the push notifications of the Copernicus catalogue.

Common commands:
  demo       run a simulated catalogue and a receiver; no account is needed
  setup      ask for the settings, start the receiver, register a subscription
  start      run the receiver
  status     show the state of all parts on one screen
  query      search the received notifications and products
  doctor     check settings, network, certificate, account and delivery

All commands by group:
${Object.entries(groups)
  .map(([group, commands]) => `  ${group.padEnd(10)} ${Object.keys(commands).join('  ')}\n`)
  .join('')}
Flags: --data-dir <folder> (EARSHOT_DATA_DIR), -V or --version, -h or --help
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 problem found

Flags and examples of a command: \`earshot <command> --help\`
`;

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
    .configureHelp({ formatHelp: () => overview });
  // Shared by all commands, and completed before one runs.
  const own = { ...io };
  for (const name of namesToLoad(argv)) {
    const load = loaders[name];
    if (load !== undefined) program.addCommand((await load())(own));
  }
  program.hook('preAction', async (_, action) => {
    refuseSurplusWord(action);
    refuseEmptySpan(action);
    const dataDir = dataDirOf(action);
    if (dataDir !== undefined) own.env = { ...own.env, EARSHOT_DATA_DIR: dataDir };
    else if (['status', 'doctor'].includes(action.name()))
      await (await import('../../features/setup/folder-note.ts')).printFolderNote(own);
  });
  for (const command of withChildren(program)) {
    addCommonFlags(command);
    command
      .showSuggestionAfterError(false) // withSuggestion also knows beginnings of names.
      .allowExcessArguments() // refuseSurplusWord checks them and suggests a name.
      .exitOverride()
      // In `query drift --json`, the option belongs to the subcommand.
      .enablePositionalOptions()
      .showHelpAfterError(`(For flags and examples: \`${fullName(command)} --help\`)`)
      .configureOutput({
        writeOut: (text) => void io.stdout.write(asCalled(text, io)),
        // Messages of commander quote arguments.
        writeErr: (text) =>
          void io.stderr.write(withSuggestion(text, command).split('\n').map(printable).join('\n')),
        getOutHelpWidth: () => Math.min(io.stdout.columns ?? 100, 100),
        getErrHelpWidth: () => Math.min(io.stderr.columns ?? 100, 100),
      });
  }
  return program;
}

/** Returns every name for an unknown word, too: its error suggests the nearest one. */
function namesToLoad(argv: readonly string[] | undefined): readonly string[] {
  const all = Object.keys(loaders);
  if (argv === undefined) return all;
  const [name, second] = argv[0] === '--data-dir' ? argv.slice(2) : argv;
  if (argv.length === 0 || /^(--help|-h|--version|-V)$/.test(name ?? '')) return [];
  // The completion script lists all of them.
  const isCompletion = name === 'admin' && second === 'completion';
  return name !== undefined && !isCompletion && all.includes(name) ? [name] : all;
}

/** Returns a command and all below it, parents first. */
export function withChildren(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withChildren)];
}

/** Returns the words that call a command, such as `earshot quarantine list`. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

/** Refuses a word that no argument takes. In a group it is reported as an unknown subcommand. */
function refuseSurplusWord(command: Command): void {
  const { args, registeredArguments: taken, parent } = command;
  const word = args[taken.length];
  if (word === undefined || taken.at(-1)?.variadic === true) return;
  // `earshot sinks lst` runs the group's own list, which was not named.
  const group = parent !== null && parent.args[0] !== command.name() ? parent : command;
  const code = 'commander.unknownCommand';
  if (group.commands.length > 0) group.error(`error: unknown command '${word}'`, { code });
  // Without quotes, the shell splits an expression into several words.
  const quotes =
    taken[0]?.name() === 'expression'
      ? ` Put an expression with spaces in quotes: "${args.join(' ')}"`
      : '';
  command.error(
    `error: too many arguments: ${command.name()} takes ${taken.length || 'none'}, but got '${word}'.${quotes}`,
    { code: 'commander.excessArguments' },
  );
}

/** Returns the words that call a subcommand of this name, such as `query products`. */
function subcommandsNamed(word: string, command: Command): string[] {
  const below = command.commands.flatMap((one) => withChildren(one).slice(1));
  const names = likelyNames(word, [...new Set(below.map((one) => one.name()))]).slice(0, 1);
  const found = below.filter((one) => names.includes(one.name()));
  return found.map((one) => fullName(one).slice(fullName(command).length + 1));
}

/** Adds suggestions to an error about an unknown name: names that begin with it, otherwise the nearest. */
function withSuggestion(text: string, command: Command): string {
  const [, kind, word = ''] =
    /^error: unknown (option|command) '([^'=]+)[^']*'\n$/.exec(text) ?? [];
  if (kind === undefined) return text;
  const help = command.createHelp();
  const names =
    kind === 'option'
      ? help.visibleOptions(command).flatMap(({ long }) => long ?? [])
      : help.visibleCommands(command).map((one) => one.name());
  const own = likelyNames(word, names);
  const near = own.length > 0 || kind === 'option' ? own : subcommandsNamed(word, command);
  if (near.length === 0) return text;
  return `${text}(Did you mean ${near.length > 1 ? 'one of ' : ''}${near.join(', ')}?)\n`;
}
