/** The command line: every command with its options, as one commander program. */
import { Command } from 'commander';
import { alertsCommand } from './commands/alerts.ts';
import { backupCommand } from './commands/backup.ts';
import { certificateCommand } from './commands/certificate.ts';
import { compactCommand } from './commands/compact.ts';
import { coverageCommand } from './commands/coverage.ts';
import { credentialsCommand } from './commands/credentials.ts';
import { demoCommand } from './commands/demo.ts';
import { doctorCommand } from './commands/doctor.ts';
import { filterCommand } from './commands/filter.ts';
import { healthCommand } from './commands/health.ts';
import { importCommand } from './commands/import.ts';
import { indexCommand } from './commands/index.ts';
import { maintainCommand } from './commands/maintain.ts';
import { pruneCommand } from './commands/prune.ts';
import { quarantineCommand } from './commands/quarantine.ts';
import { queryCommand } from './commands/query.ts';
import { reconcileCommand } from './commands/reconcile.ts';
import { registerCommand } from './commands/register.ts';
import { replayCommand } from './commands/replay.ts';
import { restoreCommand } from './commands/restore.ts';
import { sandboxCommand } from './commands/sandbox.ts';
import { sinksCommand } from './commands/sinks.ts';
import { startCommand } from './commands/start.ts';
import { statusCommand } from './commands/status.ts';
import { subscriptionsCommand } from './commands/subscriptions.ts';
import { summarizeCommand } from './commands/summarize.ts';
import { tailCommand } from './commands/tail.ts';
import type { Io } from './io.ts';

/** Builds the program; nothing runs before it is told to parse. */
export function createProgram(io: Io, version: string): Command {
  const program = new Command('earshot')
    .description('Receives the push notifications of the Copernicus catalogue and keeps every one.')
    .version(version)
    .addHelpText(
      'after',
      `
Examples:
  $ earshot demo                       see it work, without any account
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
  const commands = [
    demoCommand(io),
    startCommand(io),
    doctorCommand(io),
    statusCommand(io),
    healthCommand(io),
    registerCommand(io),
    maintainCommand(io),
    subscriptionsCommand(io),
    credentialsCommand(io),
    certificateCommand(io),
    queryCommand(io),
    filterCommand(io),
    summarizeCommand(io),
    tailCommand(io),
    coverageCommand(io),
    reconcileCommand(io),
    alertsCommand(io),
    sinksCommand(io),
    replayCommand(io),
    quarantineCommand(io),
    backupCommand(io),
    restoreCommand(io),
    pruneCommand(io),
    compactCommand(io),
    indexCommand(io),
    importCommand(io),
    sandboxCommand(io),
  ];
  for (const command of commands) program.addCommand(command);
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
