/** `earshot backup`: writes a backup to one file while the receiver runs. */

import { readdirSync, statSync } from 'node:fs';
import { extname, join, resolve, sep } from 'node:path';
import { type Config, dataSections, loadConfig } from '../../config/config.ts';
import { AppError, errorCodeOf, errorText } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import type { BackupRun } from '../../domain/ports.ts';
import { sizeText } from '../../domain/text.ts';
import { type InspectedBackup, inspectBackup } from '../../store/backups/backup-format.ts';
import {
  backupName,
  createBackupProgress,
  isKeptFile,
  makeRecordedBackup,
  type RecordedBackup,
} from '../backup-files.ts';
import { defineCommand, withParts } from '../command.ts';
import { jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, isoTime, printJson, printTable, writeOut } from '../output.ts';

export const backupCommand = defineCommand('backup', {
  description: 'Back up the log and the secrets to one file, also while the receiver runs.',
  flags: (command, io) =>
    command
      .option('--to <path>', 'folder or file of the backup (default: EARSHOT_BACKUP_DIR)')
      .option('--force', 'force the action (replace an existing file)')
      .option('--without-secrets', 'leave out endpoint credentials, certificate and keys')
      .addOption(jsonOption())
      .addCommand(listCommand(io)),
  help: `The backup contains all notifications that were acknowledged before the start of the command. The
name of the file ends in .part until every row has been compared with the log. If EARSHOT_BACKUP_DIR
is set, then the receiver also creates backups automatically.

--to: a path with an extension, such as mine.db, is a file. The folder of the file must exist. Any
other path is a folder, which is created if missing.

The backup contains the endpoint credentials and the keys of the certificate. Protect the backup
like this machine. The backup does not contain .env, earshot.config.ts or the product index. The
product index is rebuilt from the log. To restore a backup, run \`earshot restore\`.

The command prints the path of the backup. Fields of --json: file, bytes, notifications,
lastPosition, files, startedAt, endedAt. files lists the secret files in the backup.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot backup --to /mnt/backups                 name the file after the current time
  $ earshot backup --to /mnt/before-upgrade.db       write this file
  $ earshot backup list /mnt/backups                 list the backups in a folder`,
  run: runBackup,
});

const listCommand = defineCommand('list', {
  description: 'List the backups in a folder, the newest first.',
  flags: (command) =>
    command
      .argument('[folder]', 'folder with backups (default: EARSHOT_BACKUP_DIR)')
      .addOption(jsonOption()),
  help: `The command reads only the header of each file. To verify a whole file, run
\`earshot restore --check FILE\`.

Fields of --json: file, madeAt, notifications, lastPosition, bytes, version, fault. If the file is
not usable, then fault is the reason, and all fields except file and fault are null.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot backup list                         list the backups in EARSHOT_BACKUP_DIR
  $ earshot backup list /mnt/backups --json     print JSON
  $ earshot backup list /mnt/backups            list the backups in another folder`,
  run: listBackups,
});

interface BackupFlags {
  to?: string;
  force?: true;
  withoutSecrets?: true;
  json?: true;
}

async function runBackup(io: Io & { version: string }, flags: BackupFlags): Promise<void> {
  const config = loadConfig(io, [...dataSections, 'backup']);
  const progress = createBackupProgress(io);
  const made = await makeRecordedBackup(
    {
      place: config,
      ...targetOf(flags, config, io),
      replace: flags.force === true,
      version: io.version,
      withSecrets: flags.withoutSecrets !== true,
      onProgress: progress.show,
      signal: io.signal,
    },
    { nowUs: io.nowUs, record: (run) => record(io, run) },
  ).finally(progress.done);
  await print(io, made, flags);
}

/** Path of the backup file. In a folder, the file is named after the time. */
function targetOf(
  { to }: BackupFlags,
  { backup: { folder } }: Pick<Config, 'backup'>,
  { nowUs }: Io,
): { file: string; createsFolder: boolean } {
  const path = to === undefined ? folder : resolve(to);
  if (path === null) {
    throw new AppError('usage', 'The target of the backup is missing.', {
      advice: 'Add --to FOLDER or --to FILE, or set EARSHOT_BACKUP_DIR.',
    });
  }
  const isFolder =
    to === undefined ||
    to.endsWith(sep) ||
    extname(path) === '' ||
    statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return { file: isFolder ? join(path, backupName(nowUs())) : path, createsFolder: isFolder };
}

/** Records the backup for `earshot status`. A failure is only a warning: the backup itself is complete. */
async function record(io: Io, run: BackupRun): Promise<void> {
  try {
    // Opening for reading refuses a database of an older version, whose receiver may still run.
    await withParts(io, ['reader'], ({ reader }) => reader.lastPosition());
    await withParts(io, ['store'], ({ store }) => store.backups.recordBackup(run));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'configuration') return;
    io.stderr.write(
      `\`earshot status\` does not show this backup, because its result was not stored: ${errorText(error)}\n`,
    );
  }
}

async function print(io: Io, made: RecordedBackup, { json }: BackupFlags): Promise<void> {
  const { run, bytes, notifications, lastPosition, files } = made;
  const { file, startedAtUs, endedAtUs } = run;
  if (json) {
    const shown = { file, bytes, notifications, lastPosition, files };
    const times = { startedAt: formatDateUs(startedAtUs), endedAt: formatDateUs(endedAtUs) };
    return printJson(io.stdout, { ...shown, ...times }, 'line');
  }
  const secrets =
    files.length === 0
      ? 'The backup contains no secrets.'
      : 'The backup contains secrets: protect it as you protect this machine.';
  io.stderr.write(
    `${notifications} notifications, ${sizeText(bytes)}, verified against the log. ${secrets}\n`,
  );
  await writeOut(io.stdout, `${file}\n`);
}

const unknownFields = {
  madeAtUs: null,
  notifications: null,
  lastPosition: null,
  bytes: null,
  version: null,
};

/** A file of the folder. Without a usable backup, only the fault is known. */
type Listed = { file: string; fault: string | null } & {
  [Key in keyof typeof unknownFields]: InspectedBackup[Key] | null;
};

async function listBackups(io: Io, { json }: { json?: true }, named?: string): Promise<void> {
  const folder = named === undefined ? loadConfig(io, ['backup']).backup.folder : resolve(named);
  if (folder === null) {
    throw new AppError('usage', 'The folder is missing: EARSHOT_BACKUP_DIR is not set.', {
      advice: 'Specify the folder: `earshot backup list /mnt/backups`.',
    });
  }
  const listed = databasesIn(folder)
    .map((name) => inspected(join(folder, name)))
    .toSorted((a, b) => (b.madeAtUs ?? 0) - (a.madeAtUs ?? 0));
  if (json) {
    const rows = listed.map(({ madeAtUs, ...one }) => ({ ...one, madeAt: isoTime(madeAtUs) }));
    return printJson(io.stdout, rows, 'line');
  }
  await printTable(io.stdout, columns, listed);
  if (listed.length === 0) io.stderr.write(`No backups in ${folder}.\n`);
}

const columns: readonly Column<Listed>[] = [
  {
    title: 'made (UTC)',
    value: ({ madeAtUs }) => (madeAtUs === null ? '' : shortDateUs(madeAtUs)),
  },
  {
    title: 'notifications',
    value: ({ notifications }) => `${notifications ?? ''}`,
    align: 'right',
  },
  { title: 'size', value: ({ bytes }) => (bytes === null ? '' : sizeText(bytes)), align: 'right' },
  // The last column, never shortened, so that the path can be copied.
  { title: 'file', value: ({ file, fault }) => fault ?? file, whole: true },
];

function databasesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(
      (name) => name.endsWith('.db') && statSync(join(folder, name)).isFile(),
    );
  } catch (cause) {
    throw new AppError('usage', `${folder} cannot be listed (${errorCodeOf(cause)}).`, { cause });
  }
}

function inspected(file: string): Listed {
  try {
    const { madeAtUs, notifications, lastPosition, bytes, version } = inspectBackup(
      file,
      isKeptFile,
    );
    return { file, madeAtUs, notifications, lastPosition, bytes, version, fault: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { file, ...unknownFields, fault: errorText(error) };
  }
}
