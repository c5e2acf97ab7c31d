/** `earshot backup`: a copy of all that earshot keeps in one file, made while it serves. */
import { Command } from 'commander';
import type { BackupFlags } from '../backup/backup-command.ts';
import type { Io } from '../io.ts';

export function backupCommand(io: Io): Command {
  return new Command('backup')
    .description('Copy the log and the secrets into one file, while the receiver serves.')
    .option(
      '--to <path>',
      'a folder, created if missing, for earshot-<time>.db; or a file such as mine.db',
    )
    .option('--force', 'replace a file of that name')
    .option('--without-secrets', 'leave out endpoint credentials, certificate and their keys')
    .option('--json', 'as JSON: file bytes notifications lastPosition files startedAt endedAt')
    .addHelpText(
      'after',
      `
All that was answered before it begins is in it. It has its name only when it is complete, was
opened, and held every row against the log; until then it is called ….part. With EARSHOT_BACKUP_DIR
the receiver makes backups by itself, and --to may be left out. \`earshot restore\` makes a data
directory of one. docs/keeping.md says more.

A path without an extension, or with a slash at its end, is a folder. Any other is a file, whose
folder must exist.

It holds the endpoint credentials and the keys of the certificate, so that it alone is enough: keep
it as safe as the machine. The index of products is not in it, as it is made again from the log;
nor are .env and earshot.config.ts, which do not lie in the data directory.

Prints the path of the file. Fields of --json: file, bytes, notifications, lastPosition (of the
log), files (those of the data directory that it holds), startedAt, endedAt.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot backup --to /mnt/backups
  $ earshot backup --to /mnt/backups/before-the-upgrade.db
  $ earshot backup list /mnt/backups`,
    )
    .action(async (flags: BackupFlags, command: Command) => {
      const { runBackup } = await import('../backup/backup-command.ts');
      await runBackup(io, { ...flags, version: command.parent?.version() ?? 'unknown' });
    })
    .addCommand(listCommand(io));
}

function listCommand(io: Io): Command {
  return new Command('list')
    .description('List the backups in a folder, newest first.')
    .argument('[folder]', 'EARSHOT_BACKUP_DIR unless named')
    .option('--json', 'as JSON: file madeAt notifications lastPosition bytes version fault')
    .addHelpText(
      'after',
      `
Looks at the beginning of each file only: \`earshot restore --check FILE\` reads all of one.

Fields of --json, an array: file, madeAt, notifications, lastPosition (of the log), bytes, version
(of the earshot that made it), fault (why it cannot be used, else null; then the others are null).

Example:
  $ earshot backup list /mnt/backups`,
    )
    .action(async (folder: string | undefined, flags: { json?: true }) => {
      const { listBackups } = await import('../backup/list-backups.ts');
      await listBackups(io, folder, flags);
    });
}
