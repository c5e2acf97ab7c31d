/** Makes a backup: a folder that gets its name when it is complete, checked and on disk. */

import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  createOwnerOnly,
  makeDirectory,
  readOwnerOnly,
  syncFolder,
  writeOwnerOnly,
} from '../../core/host/files.ts';
import { moduleFile, type Remote } from '../../core/host/rpc.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { BackupRun } from '../../core/terms/ports.ts';
import { sizeText } from '../../core/terms/text.ts';
import { databaseFileName, requireDatabase } from '../../store/engine/database.ts';
import { type DataPlace, diskSize } from '../../store/engine/disk-limit.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { withThread } from '../../store/engine/thread.ts';
import { type TablesSlot, tableFiles } from '../../store/tables.ts';
import {
  type Backup,
  backupFormat,
  backupsIn,
  cancelled,
  compactTime,
  diskError,
  manifestName,
  partEnding,
  readBackup,
  secretPaths,
  sumOf,
} from './backup-folder.ts';
import type { BackupOperations } from './backup-thread.ts';

export interface BackupOptions extends DataPlace {
  tables: readonly TablesSlot[];
  /** Absolute path of the folder for backups; created if it is missing. */
  folder: string;
  /** Version of earshot. */
  version: string;
  nowUs: () => number;
  /** Records the result; not of wrong usage, conflicts and cancellation. Must not reject. */
  record: (run: BackupRun) => Promise<void>;
  signal?: AbortSignal;
}

/**
 * The backup contains all that was committed before the call. Rejects with `configuration` or `usage` for an unsuitable
 * folder, `conflict` while another program makes a backup, `unavailable` if the disk or the store fails, and `cancelled`
 * when the signal is aborted; then removes what it wrote.
 */
export async function makeBackup(options: BackupOptions): Promise<Backup> {
  const { folder, nowUs, record } = options;
  const startedAtUs = nowUs();
  const file = join(folder, `earshot-${compactTime(startedAtUs)}`);
  const noteEnd = (bytes: number | null, lastPosition: number | null, error: string | null) =>
    record({ file, startedAtUs, endedAtUs: nowUs(), bytes, lastPosition, error });
  try {
    const backup = await writeBackup(file, formatDateUs(startedAtUs), options);
    await noteEnd(backup.bytes, backup.lastPosition, null);
    return backup;
  } catch (cause) {
    const error = diskError(cause, file);
    const code = isAppError(error) ? error.code : 'internal';
    const reason = code === 'internal' ? 'Internal error.' : errorText(error);
    if (!['usage', 'conflict', 'cancelled'].includes(code)) await noteEnd(null, null, reason);
    throw error;
  }
}

async function writeBackup(path: string, madeAt: string, options: BackupOptions): Promise<Backup> {
  const { dataDir, folder, signal } = options;
  const part = `${path}${partEnding}`;
  requireDatabase(dataDir);
  refuseDataDir(dataDir, folder);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  try {
    prepare(dataDir, folder);
    if (existsSync(path)) throw new AppError('conflict', `${path} already exists.`);
    mkdirSync(part, { mode: 0o700 });
    const open = `The file system of ${part} has no owner-only files. Specify another folder.`;
    if ((statSync(part).mode & 0o077) !== 0) throw new AppError('configuration', open);
    await writeFiles(part, madeAt, options);
    if (signal?.aborted) throw cancelled();
    renameSync(part, path);
    await syncFolder(folder);
    return readBackup(path);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    throw error;
  } finally {
    release();
  }
}

function refuseDataDir(dataDir: string, folder: string): void {
  let existing = folder;
  while (!existsSync(existing)) existing = dirname(existing);
  if (!`${realpathSync(existing)}/`.startsWith(`${realpathSync(dataDir)}/`)) return;
  throw new AppError('usage', `${folder} is in the data directory. Specify another folder.`);
}

/** Creates the folder, and makes space in it. The thread, too, checks the disk of the data directory. */
function prepare(dataDir: string, folder: string): void {
  makeDirectory(folder);
  const incomplete = backupsIn(folder).filter((path) => path.endsWith(partEnding));
  for (const path of incomplete) rmSync(path, { recursive: true });
  const neededBytes = statSync(join(dataDir, databaseFileName)).size;
  const freeBytes = diskSize(folder)?.freeBytes ?? 0;
  if (freeBytes >= neededBytes) return;
  const sizes = `${sizeText(freeBytes)} free, ${sizeText(neededBytes)} needed`;
  throw new AppError('unavailable', `${folder} has not enough free space: ${sizes}.`);
}

/** The manifest is written last, after all other files are on disk. */
async function writeFiles(part: string, madeAt: string, options: BackupOptions): Promise<void> {
  const { dataDir, diskReserveBytes, tables, version, signal } = options;
  const files = [];
  for (const path of secretPaths) {
    const secret = readOwnerOnly(join(dataDir, path));
    if (secret === null) continue;
    await writeOwnerOnly(join(part, path), secret);
    files.push(await sumOf(part, path));
  }
  const database = join(part, databaseFileName);
  createOwnerOnly(database);
  // SQLite's check is one call, which ends early only if the file is truncated meanwhile.
  const stop = () => void truncate(database).catch(() => undefined);
  signal?.addEventListener('abort', stop, { once: true });
  const copy = (thread: Remote<BackupOperations>) => thread.copy(database);
  const { content, sum } = await withThread(
    moduleFile('./backup-thread', import.meta.url),
    { dataDir, diskReserveBytes, tables: tableFiles(tables) },
    copy,
    signal,
  );
  const about = { format: backupFormat, madeAt, version, ...content, files: [...files, sum] };
  await writeOwnerOnly(join(part, manifestName), `${JSON.stringify(about, null, 2)}\n`);
}
