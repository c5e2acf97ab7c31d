/** `earshot backup`: a copy of all that earshot keeps in one file, made while it serves. */

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
import type { Io } from '../io.ts';
import { type Column, isoTime, printJson, printTable, writeOut } from '../output.ts';

export const backupCommand = defineCommand('backup', {
  description: 'Copy the log and the secrets into one file, while the receiver serves.',
  flags: (command, io) =>
    command
      .option(
        '--to <path>',
        'a folder, created if missing, for earshot-<time>.db; or a file such as mine.db',
      )
      .option('--force', 'replace a file of that name')
      .option('--without-secrets', 'leave out endpoint credentials, certificate and their keys')
      .option('--json', 'as JSON: file bytes notifications lastPosition files startedAt endedAt')
      .addCommand(listCommand(io)),
  help: `All that was answered before it begins is in it. It has its name only when it is complete, was
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
  run: runBackup,
});

const listCommand = defineCommand('list', {
  description: 'List the backups in a folder, newest first.',
  flags: (command) =>
    command
      .argument('[folder]', 'EARSHOT_BACKUP_DIR unless named')
      .option('--json', 'as JSON: file madeAt notifications lastPosition bytes version fault'),
  help: `Looks at the beginning of each file only: \`earshot restore --check FILE\` reads all of one.

Fields of --json, an array: file, madeAt, notifications, lastPosition (of the log), bytes, version
(of the earshot that made it), fault (why it cannot be used, else null; then the others are null).

Example:
  $ earshot backup list /mnt/backups`,
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
    { nowUs: io.nowUs, record: (run) => remember(io, run) },
  ).finally(progress.done);
  await tell(io, made, flags);
}

/** The file of the backup; in a folder, which is created, it gets its name from the time. */
function targetOf(
  { to }: BackupFlags,
  { backup: { folder } }: Pick<Config, 'backup'>,
  { nowUs }: Io,
): { file: string; createsFolder: boolean } {
  const path = to === undefined ? folder : resolve(to);
  if (path === null) {
    throw new AppError('usage', 'No place for the backup is named.', {
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

/** A backup is none the worse for not being remembered. */
async function remember(io: Io, run: BackupRun): Promise<void> {
  try {
    // A file of an older version stays as it is: its receiver may be running still.
    await withParts(io, ['reader'], ({ reader }) => reader.lastPosition());
    await withParts(io, ['store'], ({ store }) => store.backups.recordBackup(run));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'configuration') return;
    io.stderr.write(`This could not be remembered for \`earshot status\`: ${errorText(error)}\n`);
  }
}

async function tell(io: Io, made: RecordedBackup, { json }: BackupFlags): Promise<void> {
  const { run, bytes, notifications, lastPosition, files } = made;
  const { file, startedAtUs, endedAtUs } = run;
  if (json) {
    const shown = { file, bytes, notifications, lastPosition, files };
    const times = { startedAt: formatDateUs(startedAtUs), endedAt: formatDateUs(endedAtUs) };
    return printJson(io.stdout, { ...shown, ...times }, 'line');
  }
  const secrets =
    files.length === 0
      ? 'It holds no secrets.'
      : 'It holds secrets: keep it as safe as this machine.';
  io.stderr.write(
    `${notifications} notifications, ${sizeText(bytes)}, checked against the log. ${secrets}\n`,
  );
  await writeOut(io.stdout, `${file}\n`);
}

const nothingKnown = {
  madeAtUs: null,
  notifications: null,
  lastPosition: null,
  bytes: null,
  version: null,
};

/** A file of the folder; of an unusable one nothing but the fault is known. */
type Listed = { file: string; fault: string | null } & {
  [Key in keyof typeof nothingKnown]: InspectedBackup[Key] | null;
};

async function listBackups(io: Io, { json }: { json?: true }, named?: string): Promise<void> {
  const folder = named === undefined ? loadConfig(io, ['backup']).backup.folder : resolve(named);
  if (folder === null) {
    throw new AppError('usage', 'Which folder? EARSHOT_BACKUP_DIR is not set.', {
      advice: 'Name one, such as `earshot backup list /mnt/backups`.',
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
  if (listed.length === 0) io.stderr.write(`There are no backups in ${folder}.\n`);
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
  // The last column, and never cut: a path without its end is of no use.
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
    return { file, ...nothingKnown, fault: errorText(error) };
  }
}
