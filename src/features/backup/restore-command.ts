/** `earshot restore`: restores a data directory from a backup, or checks a backup. */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { defineCommand } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { makeDirectory, syncFolder } from '../../core/host/files.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { counted } from '../../core/terms/text.ts';
import {
  createDirectory,
  databaseFileName,
  restoringFolderName,
} from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { TablesSlot } from '../../store/tables.ts';
import { tablesOf } from '../../store/tables.ts';
import { type Backup, checkBackup, diskError, readBackup } from './backup-folder.ts';

export const restoreCommand = defineCommand('restore', {
  description: 'Restore a data directory from a backup, or check a backup.',
  flags: (command) =>
    command
      .argument('<backup>', 'folder of the backup')
      .option(
        '--check',
        'exit with code 3 if there is a problem (the backup is damaged; --check restores nothing)',
      )
      .addOption(jsonOption()),
  help: `The command copies and checks the backup. A data directory that has a log is refused: first stop the
receiver, and move the files that the message names to another folder. After an interruption, run
the command again.

Then start the receiver, which fetches newer notifications of the last 30 days. If the backup is
older, also run \`earshot reconcile --since\`. The sinks get the fetched notifications again.

Fields of --json: path, bytes, and those of manifest.json in the backup. Without --check, also
dataDir.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 damaged backup (--check).

Examples:
  $ earshot restore --check /mnt/backups/earshot-20261121T120000Z     check
  $ earshot restore /mnt/backups/earshot-20261121T120000Z             restore
  $ earshot restore /mnt/backups/earshot-20261121T120000Z --data-dir /tmp/copy    as a copy`,
  run: runRestore,
});

type RestoreFlags = { [Name in 'check' | 'json']?: true };

async function runRestore(io: Io, flags: RestoreFlags, path = ''): Promise<void> {
  if (flags.check) return check(io, resolve(path), flags);
  const { dataDir } = loadConfig(io, ['data']);
  const backup = readBackup(resolve(path));
  const tables = tablesOf(io.features);
  await restoreBackup(backup, { dataDir, tables, signal: io.signal });
  if (flags.json) return printJson(io.stdout, { ...backup, dataDir }, 'line');
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
  signal?: AbortSignal;
}

/**
 * Resolves when the restored directory is on disk. Rejects as `checkBackup` does, with `conflict` for a directory with
 * other data, and with `unavailable` if the disk fails or is full. The directory is then unchanged; after an interruption
 * while files are moved, no program opens it until the restore is repeated.
 */
export async function restoreBackup(backup: Backup, options: RestoreOptions): Promise<void> {
  const { dataDir, tables, signal } = options;
  createDirectory(dataDir);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  const staging = join(dataDir, restoringFolderName);
  // Exists from the first moved file until the restore is complete, also if a repetition fails.
  const marker = join(staging, 'moving');
  let isMoving = existsSync(marker) && !existsSync(join(dataDir, databaseFileName));
  try {
    // From now on, no program creates a log in the directory.
    makeDirectory(staging);
    if (!isMoving) refuseOtherData(dataDir, backup);
    for (const name of readdirSync(staging).map((one) => join(staging, one))) {
      if (name !== marker || !isMoving) rmSync(name, { recursive: true });
    }
    await checkBackup(backup, { tables, to: staging, signal });
    if (!isMoving) {
      refuseOtherData(dataDir, backup);
      isMoving = true;
      writeFileSync(marker, '');
      await syncFolder(staging);
    }
    await moveFiles(staging, dataDir, backup);
  } catch (error) {
    if (!isMoving) rmSync(staging, { recursive: true, force: true });
    throw diskError(error, dataDir);
  } finally {
    release();
  }
}

/** The database is last: before, no program opens the directory. */
async function moveFiles(staging: string, dataDir: string, { files }: Backup): Promise<void> {
  const isLast = ({ path }: { path: string }) => Number(path === databaseFileName);
  for (const { path } of files.toSorted((a, b) => isLast(a) - isLast(b))) {
    const to = join(dataDir, path);
    makeDirectory(dirname(to));
    renameSync(join(staging, path), to);
    await syncFolder(dirname(to));
  }
  await syncFolder(dataDir);
  rmSync(staging, { recursive: true });
}

/** Matches the log, the index, and the files that SQLite adds. */
const databases = /^(earshot|products-\d+)\.db(-wal|-shm|-journal|-damaged)?$/;

/** Throws `conflict` for a directory with a log or with files that the backup would replace. */
function refuseOtherData(dataDir: string, { files }: Backup): void {
  const replaced = new Set(files.map(({ path }) => path.split('/')[0]));
  const found = readdirSync(dataDir).filter((name) => databases.test(name) || replaced.has(name));
  if (found.length === 0) return;
  throw new AppError('conflict', `${dataDir} already contains ${found.join(', ')}.`, {
    advice:
      'Stop the receiver (`systemctl stop earshot`), move these files to another folder, and run the command again.',
  });
}
