/** `earshot backup`: writes a backup to a folder while the receiver runs. */
import { resolve } from 'node:path';
import { defineCommand, withParts } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson, writeOut } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { BackupRun } from '../../core/terms/ports.ts';
import { counted, sizeText } from '../../core/terms/text.ts';
import { tablesOf } from '../../store/tables.ts';
import { makeBackup } from './make-backup.ts';

export const backupCommand = defineCommand('backup', {
  description: 'Back up the log and the secrets to a new folder, also while the receiver runs.',
  flags: (command) =>
    command
      .argument('[folder]', 'folder for backups (default: EARSHOT_BACKUP_DIR)')
      .addOption(jsonOption()),
  help: `The backup is the new folder earshot-<time> with all notifications acknowledged before the start of
the command, the endpoint credentials and the keys of the certificate: protect it like this machine.
It does not contain .env and earshot.config.ts. The command prints the path of the backup.

Fields of --json: path, bytes, and those of manifest.json in the backup.

Examples:
  $ earshot backup                       back up to EARSHOT_BACKUP_DIR
  $ earshot backup /mnt/backups          back up to another folder, created if missing
  $ earshot backup --json                print JSON`,
  run: runBackup,
});

function folderOf(io: Io, named: string | undefined): string {
  const folder = named === undefined ? loadConfig(io, ['backup']).backup.folder : resolve(named);
  if (folder !== null) return folder;
  const advice = 'Specify the folder, for example `earshot backup /mnt/backups`.';
  throw new AppError('usage', 'EARSHOT_BACKUP_DIR is not set.', { advice });
}

async function runBackup(io: Io & { version: string }, { json }: { json?: true }, named?: string) {
  const { version, nowUs, signal } = io;
  const made = await makeBackup({
    ...loadConfig(io, ['data']),
    ...{ folder: folderOf(io, named), tables: tablesOf(io.features), version, nowUs, signal },
    record: (run) => record(io, run),
  });
  if (json) return printJson(io.stdout, made, 'line');
  const content = `${counted(made.notifications, 'notification')}, ${sizeText(made.bytes)}, checked.`;
  io.stderr.write(`${content} The backup contains secrets: protect it like this machine.\n`);
  await writeOut(io.stdout, `${made.path}\n`);
}

/** Records the backup for `earshot status`. A failure is only a warning: the backup itself is complete. */
async function record(io: Io, run: BackupRun): Promise<void> {
  try {
    // Opening for writing would create missing tables.
    await withParts(io, ['reader'], ({ reader }) => reader.lastPosition());
    await withParts(io, ['store'], ({ store }) => store.backups.recordBackup(run));
  } catch (error) {
    if (!isAppError(error)) throw error;
    io.stderr.write(`\`earshot status\` does not show this backup: ${errorText(error)}\n`);
  }
}
