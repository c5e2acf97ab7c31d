/** `earshot backup`: writes a backup to a folder while the receiver runs; lists the backups in a folder. */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineCommand, withParts } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson, writeOut } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import type { BackupRun } from '../../core/terms/ports.ts';
import * as report from '../../core/terms/report.ts';
import { counted, sizeText } from '../../core/terms/text.ts';
import { tablesOf } from '../../store/tables.ts';
import { backupsIn, madeText } from './backup-folder.ts';
import { makeBackup } from './make-backup.ts';

export const backupCommand = defineCommand('backup', {
  description: 'Back up the log and the secrets to a new folder, also while the receiver runs.',
  flags: (command, io) =>
    command
      .argument('[folder]', 'folder for backups (default: EARSHOT_BACKUP_DIR)')
      .addOption(jsonOption())
      .addCommand(listCommand(io)),
  help: `The backup is the new folder earshot-<time> with all notifications acknowledged before the start of
the command, the endpoint credentials and the keys of the certificate: protect it like this machine.
It does not contain .env and earshot.config.ts. The command prints the path of the backup.

Fields of --json: path, bytes, and those of manifest.json in the backup.

Examples:
  $ earshot backup                       back up to EARSHOT_BACKUP_DIR
  $ earshot backup /mnt/backups          back up to another folder, created if missing
  $ earshot backup list /mnt/backups     list the backups in a folder`,
  run: runBackup,
});

const listCommand = defineCommand('list', {
  description: 'List the backups in a folder, the newest first.',
  flags: (command) =>
    command
      .argument('[folder]', 'folder with backups (default: EARSHOT_BACKUP_DIR)')
      .addOption(jsonOption()),
  help: `Reads only manifests: to check a backup, run \`earshot restore --check BACKUP\`. Fields of --json:
path, and bytes and those of manifest.json, or fault if the backup is incomplete or damaged.

Examples:
  $ earshot backup list                         list the backups in EARSHOT_BACKUP_DIR
  $ earshot backup list /mnt/backups            list the backups in another folder
  $ earshot backup list /mnt/backups --json     print JSON`,
  run: listBackups,
});

function folderOf(io: Io, named: string | undefined): string {
  const folder = named === undefined ? loadConfig(io, ['backup']).backup.folder : resolve(named);
  if (folder !== null) return folder;
  const advice = 'Specify the folder, for example `earshot backup /mnt/backups`.';
  throw new AppError('usage', 'EARSHOT_BACKUP_DIR is not set.', { advice });
}

async function runBackup(io: Io & { version: string }, { json }: { json?: true }, named?: string) {
  const { version, nowUs, signal } = io;
  const [place, folder] = [loadConfig(io, ['data']), folderOf(io, named)];
  const recordRun = (run: BackupRun) => record(io, run);
  const tables = tablesOf(io.features);
  const made = await makeBackup({
    ...{ place, tables, folder, version, nowUs, signal },
    record: recordRun,
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

async function listBackups(io: Io, { json }: { json?: true }, named?: string): Promise<void> {
  const folder = folderOf(io, named);
  const listed = existsSync(folder) ? backupsIn(folder) : [];
  if (json) return printJson(io.stdout, listed, 'line');
  const none = report.empty(`No backups in ${folder}.`);
  const blocks = [listed.length === 0 ? none : report.table('Backups', columns, listed)];
  await printReport(io, { title: 'Backups', blocks });
}

type Listed = ReturnType<typeof backupsIn>[number];

const columns = [
  { title: 'made (UTC)', value: (one: Listed) => ('fault' in one ? null : madeText(one)) },
  {
    ...{ title: 'notifications', isNumber: true },
    value: (one: Listed) => ('fault' in one ? null : one.notifications),
  },
  {
    ...{ title: 'size', isNumber: true },
    value: (one: Listed) => ('fault' in one ? null : report.size(one.bytes)),
  },
  {
    ...{ title: 'path', isWhole: true },
    value: (one: Listed) => ('fault' in one ? one.fault : one.path),
  },
];
