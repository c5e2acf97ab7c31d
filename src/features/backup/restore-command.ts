/** `earshot restore`: restores a data directory from a backup, or checks a backup. */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { defineCommand } from '../../core/cli/command.ts';
import { confirm, jsonOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { syncFolder } from '../../core/host/files.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { counted } from '../../core/terms/text.ts';
import {
  createDirectory,
  type Database,
  databaseFileName,
  openSqlite,
  restoringFolderName,
} from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { sqliteCode } from '../../store/engine/sqlite-error.ts';
import type { TablesSlot } from '../../store/tables.ts';
import { tablesOf } from '../../store/tables.ts';
import { type Backup, checkBackup, compactTime, diskError, readBackup } from './backup-folder.ts';

export const restoreCommand = defineCommand('restore', {
  description: 'Restore a data directory from a backup, or check a backup.',
  flags: (command) =>
    command
      .argument('<backup>', 'folder of the backup')
      .option(
        '--check',
        'exit with code 3 if there is a problem (the backup is damaged; --check restores nothing)',
      )
      .addOption(yesOption())
      .addOption(jsonOption()),
  help: `Stop the receiver first: a data directory in use is refused. The command copies and checks the
backup, and moves the old contents of the data directory to its subfolder before-restore-<time>.
Nothing is deleted. After an interruption, run the command again.

Then start the receiver, which fetches newer notifications of the last 30 days. If the backup is
older, also run \`earshot reconcile --since\`. The sinks get the fetched notifications again.

Fields of --json: path, bytes, and those of manifest.json in the backup. Without --check, also
dataDir and movedTo, the folder with the old contents; null without old contents.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 damaged backup (--check).

Examples:
  $ earshot restore --check /mnt/backups/earshot-20261121T120000Z     check
  $ earshot restore /mnt/backups/earshot-20261121T120000Z             restore
  $ earshot restore /mnt/backups/earshot-20261121T120000Z --data-dir /tmp/copy    as a copy`,
  run: runRestore,
});

type RestoreFlags = { [Name in 'check' | 'yes' | 'json']?: true };

async function runRestore(io: Io, flags: RestoreFlags, path = ''): Promise<void> {
  if (flags.check) return check(io, resolve(path), flags);
  const { dataDir } = loadConfig(io, ['data']);
  const backup = readBackup(resolve(path));
  refuseInUse(dataDir);
  const tables = tablesOf(io.features);
  const aside = join(dataDir, `before-restore-${compactTime(io.nowUs())}`);
  const old = oldContents(dataDir, backup);
  if (old.length > 0) {
    io.stderr.write(`${dataDir} contains ${old.join(', ')}, to be moved to ${aside}.\n`);
    await confirm(io, `Restore ${contentText(backup)}?`, flags);
  }
  await restoreBackup(backup, { dataDir, tables, aside, signal: io.signal });
  const movedTo = old.length > 0 ? aside : null;
  if (flags.json) return printJson(io.stdout, { ...backup, dataDir, movedTo }, 'line');
  io.stderr.write(`${dataDir}: ${contentText(backup)}.
Next: start the receiver, then run \`earshot doctor\`. Newer notifications of the last 30 days are fetched automatically.
Without a shared log, fetch all newer notifications: \`earshot reconcile --since ${backup.madeAt.slice(0, 19)}Z\`
`);
}

/** Rejects with `differences` if the backup is damaged. */
async function check(io: Io, path: string, { json }: RestoreFlags): Promise<void> {
  try {
    const backup = readBackup(path);
    await checkBackup(backup, { tables: tablesOf(io.features), signal: io.signal });
    if (json) await printJson(io.stdout, backup, 'line');
    else io.stderr.write(`${path}: ${contentText(backup)}. The backup is intact.\n`);
  } catch (error) {
    if (isAppError(error, 'invalid')) throw error.with({ code: 'differences', cause: error });
    throw diskError(error, path);
  }
}

function contentText(backup: Backup): string {
  return `${counted(backup.notifications, 'notification')} as of ${backup.madeAt.slice(0, 16).replace('T', ' ')} (UTC)`;
}

export interface RestoreOptions {
  dataDir: string;
  tables: readonly TablesSlot[];
  /** New folder in the data directory for its old contents, if any. */
  aside: string;
  signal?: AbortSignal;
}

/**
 * Resolves when the restored directory is on disk. Rejects as `checkBackup` does, with `conflict` while the directory is
 * in use, and with `unavailable` if the disk fails or is full. The directory is then unchanged; after an interruption
 * while files are moved, no program opens it until the restore is repeated.
 */
export async function restoreBackup(backup: Backup, options: RestoreOptions): Promise<void> {
  const { dataDir, tables, signal } = options;
  createDirectory(dataDir);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  const staging = join(dataDir, restoringFolderName);
  let isMoving = false;
  try {
    rmSync(staging, { recursive: true, force: true });
    await checkBackup(backup, { tables, to: staging, signal });
    for (const { path } of backup.files) await syncFolder(dirname(join(staging, path)));
    refuseInUse(dataDir);
    isMoving = true;
    await moveFiles(staging, oldContents(dataDir, backup), options);
  } catch (error) {
    if (!isMoving) rmSync(staging, { recursive: true, force: true });
    throw diskError(error, dataDir);
  } finally {
    release();
  }
}

/** The database is moved out first and in last: meanwhile, no program opens the directory. */
async function moveFiles(
  staging: string,
  old: readonly string[],
  { dataDir, aside }: RestoreOptions,
): Promise<void> {
  if (old.length > 0) mkdirSync(aside, { mode: 0o700 });
  for (const name of databaseFirst(old)) renameSync(join(dataDir, name), join(aside, name));
  for (const name of databaseFirst(readdirSync(staging)).toReversed()) {
    renameSync(join(staging, name), join(dataDir, name));
  }
  if (old.length > 0) await syncFolder(aside);
  await syncFolder(dataDir);
  rmSync(staging, { recursive: true });
}

function databaseFirst(names: readonly string[]): string[] {
  const isLast = (name: string) => Number(!name.startsWith(databaseFileName));
  return names.toSorted((a, b) => isLast(a) - isLast(b));
}

/** Matches the log, the index, and the files that SQLite adds. */
const databases = /^(earshot|products-\d+|products\.building)\.db(-wal|-shm|-journal)?$/;

/** Returns the names in the data directory that the backup replaces. */
function oldContents(dataDir: string, { files }: Backup): string[] {
  if (statSync(dataDir, { throwIfNoEntry: false }) === undefined) return [];
  const replaced = new Set(files.map(({ path }) => path.split('/')[0]));
  return readdirSync(dataDir).filter((name) => databases.test(name) || replaced.has(name));
}

/**
 * Throws `conflict` while any program has the log open. Tests that with an exclusive lock on the file, which also works
 * for a damaged file.
 */
function refuseInUse(dataDir: string): void {
  let database: Database | undefined;
  try {
    database = openSqlite(join(dataDir, databaseFileName), { fileMustExist: true, timeout: 0 });
    database.pragma('locking_mode = EXCLUSIVE');
    database.prepare('SELECT 1 FROM sqlite_schema').get();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_BUSY') return;
    const advice = 'Stop the receiver (`systemctl stop earshot`), then run the command again.';
    throw new AppError('conflict', `${dataDir} is in use by another program.`, { advice });
  } finally {
    database?.close();
  }
}
