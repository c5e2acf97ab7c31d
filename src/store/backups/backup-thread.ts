/** The backup thread: copies the store while intake continues, and checks the copy. */
import { createHash, type Hash } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  createReadStream,
  fdatasyncSync,
  openSync,
  statSync,
} from 'node:fs';
import { setImmediate as otherWork } from 'node:timers/promises';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { fileVersion, openForCopying } from '../engine/database.ts';
import { type DataPlace, requireFreeSpace } from '../engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../engine/serve-thread.ts';
import { lastPosition } from '../log/queries.ts';
import {
  addContents,
  type BackupDescription,
  type BackupFile,
  sealOf,
  tableNames,
} from './backup-format.ts';
import { type BackupProgress, cancelled, diskError } from './backup-target.ts';

export interface CopyRequest {
  /** Path of an existing, empty file. */
  file: string;
  about: Pick<BackupDescription, 'madeAtUs' | 'version'>;
  files: readonly BackupFile[];
}

/** Content of a copy. */
export type Copied = Pick<BackupDescription, 'lastPosition' | 'notifications'>;

const operations = {
  /** Copies the store to the file, and checks the copy. */
  copy: async (place: DataPlace, { file, about, files }: CopyRequest): Promise<Copied> => {
    job = createJob(place);
    try {
      const { tables, version, ...copied } = await copyStore(place, file, job);
      complete(file, { ...about, ...copied }, files);
      await checkCopy(file, { tables, version }, job);
      await seal(file, job);
      return copied;
    } catch (error) {
      throw diskError(error, file);
    } finally {
      job = undefined;
    }
  },
  progress: (): BackupProgress | null => job?.progress ?? null,
  stop: (): void => job?.stop(),
};
export type BackupOperations = typeof operations;

let job: Job | undefined;

export default serveThread((place) => {
  lowerPriority();
  return { operations, context: () => place, close: () => undefined };
});

/** Duration of work between two pauses. */
const turnMs = 50;

/** The copy in progress. */
interface Job {
  progress: BackupProgress;
  /** Throws `cancelled` after `stop`, and `unavailable` when intake needs the disk space. */
  check(): void;
  /** After each turn, lets the thread read its messages, and runs `check`. */
  pause(): Promise<void>;
  stop(): void;
}

function createJob(place: DataPlace): Job {
  let isStopped = false;
  let beganMs = performance.now();
  const check = () => {
    if (isStopped) throw cancelled();
    requireFreeSpace(place, 'Backup');
  };
  return {
    progress: { phase: 'copying', done: 0, total: null },
    check,
    pause: async () => {
      if (performance.now() - beganMs < turnMs) return;
      await otherWork();
      check();
      beganMs = performance.now();
    },
    stop: () => {
      isStopped = true;
    },
  };
}

/** Copies the store, and digests its tables in the same transaction, so that both see the same state. */
async function copyStore(place: DataPlace, file: string, job: Job) {
  const source = openForCopying(place.dataDir);
  try {
    source.exec('BEGIN');
    const position = lastPosition(source);
    await copyPages(source, file, job);
    const tables = await digestTables(source, tableNames(source), job);
    const notifications = tables.find(({ name }) => name === 'notification')?.rows ?? 0;
    return { lastPosition: position, notifications, tables, version: fileVersion(source) };
  } finally {
    endSnapshot(source);
    source.close();
  }
}

/** Pages per step: 1 MiB. */
const stepPages = 64;
/**
 * Number of steps between two syncs to disk. Without them, the system would write everything at once, which would delay
 * a commit of the intake by half a second or more (decision 29).
 */
const stepsPerSync = 16;

/**
 * Copies the connection's snapshot into an empty file. The connection must have an open read transaction: otherwise
 * SQLite's backup would restart with each commit of others, and never end under load.
 */
async function copyPages(source: Database, file: string, job: Job): Promise<void> {
  const descriptor = openSync(file, 'r+');
  let steps = 0;
  const progress = (pages: { totalPages: number; remainingPages: number }) => {
    const { totalPages: total, remainingPages } = pages;
    job.check();
    job.progress = { phase: 'copying', done: total - remainingPages, total };
    steps += 1;
    if (steps % stepsPerSync === 0) fdatasyncSync(descriptor);
    return stepPages;
  };
  try {
    await source.backup(file, { progress });
  } finally {
    closeSync(descriptor);
  }
}

/** Pages of the write-ahead log that are left to the writer's next checkpoint. */
const leftPagesMax = 1_000;

/**
 * Ends the transaction, and runs the checkpoint that it has blocked. Otherwise the writer's next commit would run it,
 * and block intake for seconds.
 */
function endSnapshot(source: Database): void {
  try {
    if (source.inTransaction) source.exec('ROLLBACK');
    for (let done = 0; ; ) {
      // SQLite returns the number of checkpointed pages.
      const [row] = source.pragma('wal_checkpoint(PASSIVE)') as { checkpointed: number }[];
      const checkpointed = row?.checkpointed ?? 0;
      if (checkpointed - done < leftPagesMax) return;
      done = checkpointed;
    }
  } catch {
    // The writer's next checkpoint does the rest.
  }
}

function complete(file: string, about: BackupDescription, files: readonly BackupFile[]): void {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    // No files next to it. A power failure only loses the unfinished file.
    database.pragma('journal_mode = MEMORY');
    database.transaction(() => addContents(database, about, files)).immediate();
  } finally {
    database.close();
  }
}

/**
 * Throws `unavailable` if a table differs from the store's, or the structure is damaged; then the store is damaged too.
 * The structure check is one call into SQLite, which ends early only if the file is truncated meanwhile.
 */
async function checkCopy(
  file: string,
  { version, tables }: { version: number; tables: readonly TableDigest[] },
  job: Job,
): Promise<void> {
  const database = new Sqlite(file, { readonly: true, fileMustExist: true });
  try {
    const names = tables.map(({ name }) => name);
    const found = await digestTables(database, names, job);
    const differing = names.filter((_, i) => tables[i]?.digest !== found[i]?.digest);
    if (differing.length > 0) throw badCopy(`Tables differ: ${differing.join(', ')}.`);
    if (fileVersion(database) !== version) throw badCopy('The schema version differs.');
    job.progress = { phase: 'checking', done: 0, total: null };
    await job.pause();
    const structure = String(database.pragma('quick_check(1)', { simple: true }));
    job.check();
    if (structure !== 'ok') throw badCopy(`The database in the copy is damaged: ${structure}.`);
  } catch (error) {
    if (isAppError(error)) throw error;
    throw badCopy(
      error instanceof Error ? `The copy cannot be read: ${error.message}.` : String(error),
    );
  } finally {
    database.close();
  }
}

function badCopy(reason: string): AppError {
  return new AppError(
    'unavailable',
    `The copy of the log failed the check and was discarded. ${reason} Check the system log, the disk of the backup and the disk of the data directory. If this happens again, the notification log is damaged.`,
  );
}

interface TableDigest {
  name: string;
  rows: number;
  /** SHA-256 of all values, row by row in the order of the table's key. */
  digest: string;
}

/** Longer values are hashed without copying. */
const shortBytesMax = 64;
const textLengthMax = 64 * 2 ** 10;
/** Reading the clock for each row would take as long as the row. */
const rowsPerTurn = 64;

/** Counts and digests the rows of tables, to compare two copies. */
async function digestTables(
  database: Database,
  names: readonly string[],
  job: Job,
): Promise<TableDigest[]> {
  job.progress = { phase: 'comparing', done: 0, total: null };
  const digests: TableDigest[] = [];
  for (const name of names) digests.push(await digestTable(database, name, job));
  return digests;
}

async function digestTable(database: Database, name: string, job: Job): Promise<TableDigest> {
  // Without an index, a table is read in the order of its key.
  const read = database.prepare<[], unknown[]>(`SELECT * FROM "${name}" NOT INDEXED`).raw();
  const hash = createHash('sha256');
  let text = '';
  let rows = 0;
  for (const row of read.iterate()) {
    rows += 1;
    job.progress.done += 1;
    for (const value of row) text = addValue(hash, text, value);
    if (text.length > textLengthMax) {
      hash.update(text);
      text = '';
    }
    if (rows % rowsPerTurn === 0) await job.pause();
  }
  return { name, rows, digest: hash.update(text).digest('hex') };
}

/** Adds a value with its type and length, so that different rows have different texts. */
function addValue(hash: Hash, text: string, value: unknown): string {
  if (typeof value === 'string') return `${text}s${value.length}:${value}`;
  if (!Buffer.isBuffer(value)) return `${text}${value};`;
  const begun = `${text}b${value.length}:`;
  if (value.length <= shortBytesMax) return begun + value.toString('latin1');
  hash.update(begun).update(value);
  return '';
}

/** Appends the seal to a closed database; on disk when it resolves. */
async function seal(file: string, job: Job): Promise<void> {
  const hash = createHash('sha256');
  const total = statSync(file).size;
  job.progress = { phase: 'sealing', done: 0, total };
  for await (const chunk of createReadStream(file, { highWaterMark: 2 ** 20 })) {
    hash.update(chunk);
    job.progress.done += chunk.length;
    await job.pause();
  }
  job.check();
  appendFileSync(file, sealOf(hash.digest('hex')), { flush: true });
}
