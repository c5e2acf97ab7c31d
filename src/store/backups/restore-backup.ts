/** Makes a data directory of a backup: checked before anything of the old one is touched. */
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
  /** True for the path of a file that a backup may contain. */
  isKept: (path: string) => boolean;
  /** Where the old contents go, if there are any: a folder in the data directory that is not there yet. */
  aside: string;
}

/**
 * Resolves when the directory is that of the backup, and on disk. Rejects as `inspectBackup` does, with `invalid` for a
 * backup that is not as it was made, `conflict` while the directory is in use, `unavailable` where the disk fails or has
 * no room, `cancelled` when the signal is aborted; then the directory is as it was.
 */
export async function restoreBackup(options: RestoreOptions): Promise<InspectedBackup> {
  const { file, dataDir, aside } = options;
  const backup = inspectBackup(file, options.isKept);
  createDirectory(dataDir);
  refuseInUse(dataDir);
  const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
  // An interrupted one is begun again.
  const staging = join(dataDir, restoringFolderName);
  try {
    rmSync(staging, { recursive: true, force: true });
    requireRoom(dataDir, backup.bytes);
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

function requireRoom(folder: string, bytes: number): void {
  const free = diskSize(folder)?.freeBytes ?? 0;
  if (free >= bytes) return;
  throw new AppError(
    'unavailable',
    `${folder} has no room for the backup: ${sizeText(free)} are free, and it takes ${sizeText(bytes)}. Free some space there.`,
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
  // Once more from the disk: what will be used is what counts.
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

/** The log comes last: what is there before is no store that anybody would open. */
function moveIn(staging: string, { dataDir, aside }: RestoreOptions): void {
  const names = readdirSync(staging).filter((name) => name !== databaseFileName);
  for (const name of [...names, databaseFileName]) {
    if (existsSync(join(dataDir, name))) {
      throw new AppError(
        'conflict',
        `A program has made ${join(dataDir, name)} meanwhile; the old contents are in ${aside}. Stop the receiver, then run this again.`,
      );
    }
    renameSync(join(staging, name), join(dataDir, name));
  }
}

interface OldEntry {
  name: string;
  stats: Stats;
}

/** The log and the index with the files that SQLite adds. */
const databases = /^(earshot|products-\d+|products\.building)\.db(-wal|-shm|-journal)?$/;

/** What a backup with these files takes the place of, by name; a backup without secrets leaves those that are there. */
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
 * Throws `conflict` while any program has the log open. Each that has holds a lock on the file, which this asks for
 * alone: one that is damaged gives it, too.
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
      `${dataDir} is in use: a receiver or a command of earshot has its log open. Stop it (such as with \`systemctl stop earshot\`), then run this again.`,
    );
  } finally {
    database?.close();
  }
}

/** Nothing is deleted: it all goes into a folder within. */
function moveAside(dataDir: string, entries: readonly OldEntry[], folder: string): void {
  if (entries.length === 0) return;
  mkdirSync(folder, { mode: 0o700 });
  // The log goes last: until then, what is there still is a data directory.
  const log = (name: string) => Number(name.startsWith(databaseFileName));
  for (const { name } of entries.toSorted((a, b) => log(a.name) - log(b.name))) {
    renameSync(join(dataDir, name), join(folder, name));
  }
}

/** Rejects with `invalid` where a file does not begin with these bytes, and `cancelled` when the signal is aborted. */
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

/** Copies them into a new file, owner-only and on disk when it resolves. Rejects in the same way. */
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
    `${file} is damaged: it is not what it was when it was made. Copy it here once more, or use another backup.`,
  );
}
