/** Restores a data directory from a backup. Checks the backup before it changes the directory. */
import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/text.ts';
import { syncFolder, writeOwnerOnly } from '../../host/files.ts';
import { createDirectory, databaseFileName, restoringFolderName } from '../engine/database.ts';
import { diskSize } from '../engine/disk-limit.ts';
import { createAcquireLock } from '../engine/locks.ts';
import { sqliteCode } from '../engine/sqlite-error.ts';
import { dropContents, type InspectedBackup, inspectBackup, type Sealed } from './backup-format.ts';
import { type BackupProgress, type BackupWatch, cancelled, diskError } from './backup-target.ts';

export interface RestoreOptions extends BackupWatch {
  /** Absolute path of the backup. */
  file: string;
  dataDir: string;
  /** Returns true for the path of a file that a backup may contain. */
  mayContain: (path: string) => boolean;
  /** New folder in the data directory for its old contents, if any. */
  aside: string;
}

/**
 * Resolves when the restored directory is on disk. Rejects as `inspectBackup` does, with `invalid` for a changed backup,
 * `conflict` while the directory is in use, `unavailable` if the disk fails or is full, and `cancelled` when the signal is
 * aborted; then the directory is unchanged.
 */
export async function restoreBackup(options: RestoreOptions): Promise<InspectedBackup> {
  const { file, dataDir, aside } = options;
  const backup = inspectBackup(file, options.mayContain);
  createDirectory(dataDir);
  refuseInUse(dataDir);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  // An interrupted restore starts again.
  const staging = join(dataDir, restoringFolderName);
  try {
    rmSync(staging, { recursive: true, force: true });
    requireSpace(dataDir, backup.bytes);
    mkdirSync(staging, { mode: 0o700 });
    await build(staging, backup, options);
    refuseInUse(dataDir);
    const paths = backup.files.map(({ path }) => path);
    moveAside(dataDir, oldContents(dataDir, paths), aside);
    moveIn(staging, options);
    await syncFolder(dataDir);
    return backup;
  } catch (error) {
    throw diskError(error, dataDir);
  } finally {
    rmSync(staging, { recursive: true, force: true });
    release();
  }
}

function requireSpace(folder: string, bytes: number): void {
  const free = diskSize(folder)?.freeBytes ?? 0;
  if (free >= bytes) return;
  throw new AppError(
    'unavailable',
    `${folder} has not enough free space for the backup: ${sizeText(free)} free, ${sizeText(bytes)} needed. Free some space.`,
  );
}

async function build(
  staging: string,
  backup: InspectedBackup,
  { file, onProgress, signal }: RestoreOptions,
): Promise<void> {
  const watch = { onProgress, signal };
  const database = join(staging, databaseFileName);
  await copySealed(file, database, backup, watch);
  // Verifies the copy on disk, which is the one that will be used.
  await verifySealed(database, backup, watch);
  for (const { path, bytes } of backup.files) await writeOwnerOnly(join(staging, path), bytes);
  becomeStore(database);
  if (signal?.aborted) throw cancelled();
}

function becomeStore(file: string): void {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    database.pragma('synchronous = FULL');
    database.pragma('fullfsync = ON');
    database.transaction(() => dropContents(database)).immediate();
    database.pragma('journal_mode = WAL');
  } finally {
    database.close();
  }
}

/** Moves the restored files in, the log last: without it, no program opens the directory as a store. */
function moveIn(staging: string, { dataDir, aside }: RestoreOptions): void {
  const names = readdirSync(staging).filter((name) => name !== databaseFileName);
  for (const name of [...names, databaseFileName]) {
    if (existsSync(join(dataDir, name))) {
      throw new AppError(
        'conflict',
        `During the restore, another program created ${join(dataDir, name)}. The previous files are in ${aside}. Stop the receiver, then run this command again.`,
      );
    }
    renameSync(join(staging, name), join(dataDir, name));
  }
}

interface OldEntry {
  name: string;
  stats: Stats;
}

/** Matches the log, the index, and the files that SQLite adds. */
const databases = /^(earshot|products-\d+|products\.building)\.db(-wal|-shm|-journal)?$/;

/** Returns the entries that a backup with these files replaces. A backup without secrets keeps existing secrets. */
export function oldContents(dataDir: string, paths: readonly string[]): OldEntry[] {
  const replaced = new Set(paths.map((path) => path.split('/')[0]));
  return namesIn(dataDir)
    .filter((name) => databases.test(name) || replaced.has(name))
    .map((name) => ({ name, stats: statSync(join(dataDir, name)) }));
}

function namesIn(folder: string): string[] {
  return statSync(folder, { throwIfNoEntry: false }) === undefined
    ? []
    : readdirSync(folder).toSorted();
}

/**
 * Throws `conflict` while any program has the log open. Tests that with an exclusive lock on the file, which also works
 * for a damaged file.
 */
export function refuseInUse(dataDir: string): void {
  const file = join(dataDir, databaseFileName);
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return;
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { fileMustExist: true, timeout: 0 });
    database.pragma('locking_mode = EXCLUSIVE');
    database.prepare('SELECT 1 FROM sqlite_schema').get();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_BUSY') return;
    throw new AppError(
      'conflict',
      `${dataDir} is in use by a receiver or another command of earshot. Stop that program (for example: \`systemctl stop earshot\`), then run this command again.`,
    );
  } finally {
    database?.close();
  }
}

/** Moves the entries into a folder of the data directory; deletes nothing. */
function moveAside(dataDir: string, entries: readonly OldEntry[], folder: string): void {
  if (entries.length === 0) return;
  mkdirSync(folder, { mode: 0o700 });
  // The log last: until then, the folder is still a data directory.
  const log = (name: string) => Number(name.startsWith(databaseFileName));
  for (const { name } of entries.toSorted((a, b) => log(a.name) - log(b.name))) {
    renameSync(join(dataDir, name), join(folder, name));
  }
}

/** Rejects with `invalid` if the content differs from its digest, and `cancelled` when the signal is aborted. */
export async function verifySealed(
  file: string,
  sealed: Sealed,
  watch: BackupWatch,
): Promise<void> {
  try {
    for await (const _chunk of readSealed(file, sealed, watch, 'verifying'));
  } catch (error) {
    throw diskError(error, file);
  }
}

/** Copies the content to a new owner-only file; on disk when it resolves. Rejects as `verifySealed` does. */
async function copySealed(
  file: string,
  to: string,
  sealed: Sealed,
  watch: BackupWatch,
): Promise<void> {
  try {
    const target = createWriteStream(to, { mode: 0o600, flags: 'wx', flush: true });
    await pipeline(readSealed(file, sealed, watch, 'copying'), target);
  } catch (error) {
    throw diskError(error, to);
  }
}

async function* readSealed(
  file: string,
  { sealedBytes: total, digest }: Sealed,
  { onProgress, signal }: BackupWatch,
  phase: BackupProgress['phase'],
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let done = 0;
  const chunks: AsyncIterable<Buffer> = createReadStream(file, {
    end: total - 1,
    highWaterMark: 2 ** 20,
  });
  for await (const chunk of chunks) {
    if (signal?.aborted) throw cancelled();
    hash.update(chunk);
    done += chunk.length;
    onProgress?.({ phase, done, total });
    yield chunk;
  }
  if (hash.digest('hex') === digest) return;
  throw new AppError(
    'invalid',
    `The backup ${file} is damaged: the content has changed since the backup was created. Copy the file again, or use another backup.`,
  );
}
