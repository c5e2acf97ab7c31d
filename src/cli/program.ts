/** The command line: every command with its options, as one commander program. */
import { Command } from 'commander';
import type { Io } from './io.ts';

/** In the order of the help text. */
const loaders = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand,
  setup: async () => (await import('./commands/setup.ts')).setupCommand,
  start: async () => (await import('./commands/start.ts')).startCommand,
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
  $ earshot reconcile --from 10d       fetch what no push told of
  $ earshot backup --to /mnt/backups   all of it in one file, while it serves

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 differences found (--check).
Data goes to standard output, everything else to standard error.`,
    );
  const [name = ''] = argv;
  const wanted = Object.hasOwn(loaders, name) ? [name] : Object.keys(loaders);
  for (const one of wanted) program.addCommand((await loaders[one as Name]())(io));
  for (const command of withChildren(program)) {
    command
      .exitOverride()
      // `query drift --json`: an option after a subcommand is the subcommand's.
      .enablePositionalOptions()
      .showHelpAfterError(`(${fullName(command)} --help shows what it takes)`)
      .configureOutput({
        writeOut: (text) => void io.stdout.write(text),
        writeErr: (text) => void io.stderr.write(text),
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
