/** The thread for backups: copies the store while intake continues, and checks the copy. */
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
  type BackupAbout,
  type KeptFile,
  sealOf,
  tableNames,
} from './backup-format.ts';
import { type BackupProgress, cancelled, diskError } from './backup-target.ts';

export interface CopyRequest {
  /** The file, which is there and empty. */
  file: string;
  /** What is known of the backup before it is made. */
  about: Pick<BackupAbout, 'madeAtUs' | 'version'>;
  files: readonly KeptFile[];
}

/** What a copy holds. */
export type Copied = Pick<BackupAbout, 'lastPosition' | 'notifications'>;

const operations = {
  /** Copies the store into the file, and checks the copy. */
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

serveThread((place) => {
  lowerPriority();
  return { operations, context: () => place, close: () => undefined };
});

/** Duration of work between two pauses. */
const turnMs = 50;

/** The copy in progress. */
interface Job {
  progress: BackupProgress;
  /** Throws `cancelled` once it was stopped, and `unavailable` when intake needs the disk space. */
  check(): void;
  /** The same, and now and then lets the thread read its messages. */
  pause(): Promise<void>;
  stop(): void;
}

function createJob(place: DataPlace): Job {
  let isStopped = false;
  let beganMs = performance.now();
  const check = () => {
    if (isStopped) throw cancelled();
    requireFreeSpace(place, 'A backup');
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

/** Copies, and counts what was copied in the store itself: one transaction, so both see the same. */
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

/** Pages of one step: 1 MiB. */
const stepPages = 64;
/**
 * Steps after which the copied pages are written to the disk. Were it left to the system, all of it would come at
 * once, and a commit of the intake that meets it waits for half a second and more (decision 29).
 */
const stepsPerSync = 16;

/**
 * Copies what the connection sees into an empty file. The connection is in a transaction that has read: otherwise
 * SQLite's own copying would begin again with each commit of others, and under load never end.
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

/** Pages of the write-ahead log that the writer's own next commit may move. */
const leftPagesMax = 1_000;

/**
 * What was committed meanwhile lies in the write-ahead log, as our transaction needed the file as it was. The
 * writer's next commit would move all of that into the file, and stand still for seconds; here nobody waits for it.
 */
function endSnapshot(source: Database): void {
  try {
    if (source.inTransaction) source.exec('ROLLBACK');
    for (let done = 0; ; ) {
      // SQLite's own shape: how many pages of the log are in the file now.
      const [row] = source.pragma('wal_checkpoint(PASSIVE)') as { checkpointed: number }[];
      const checkpointed = row?.checkpointed ?? 0;
      if (checkpointed - done < leftPagesMax) return;
      done = checkpointed;
    }
  } catch {
    // The writer moves what is left.
  }
}

function complete(file: string, about: BackupAbout, files: readonly KeptFile[]): void {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    // One file without others next to it. What is lost with a power cut has no name yet.
    database.pragma('journal_mode = MEMORY');
    database.transaction(() => addContents(database, about, files)).immediate();
  } finally {
    database.close();
  }
}

/**
 * Throws `unavailable` where a table differs from the store's, or the structure is damaged, which the store's then is as
 * well. The check of the structure is one call into SQLite: it ends early only when the file is cut short under it.
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
    if (differing.length > 0) throw unsound(`It differs from the log in ${differing.join(', ')}.`);
    if (fileVersion(database) !== version) throw unsound('It is of another version.');
    job.progress = { phase: 'checking', done: 0, total: null };
    await job.pause();
    const structure = String(database.pragma('quick_check(1)', { simple: true }));
    job.check();
    if (structure !== 'ok') throw unsound(`The structure of the database is damaged: ${structure}`);
  } catch (error) {
    if (isAppError(error)) throw error;
    throw unsound(error instanceof Error ? `It cannot be read: ${error.message}.` : String(error));
  } finally {
    database.close();
  }
}

function unsound(reason: string): AppError {
  return new AppError(
    'unavailable',
    `The copy is not sound, and was not kept. ${reason} Look at both disks and at the system log; where this comes again, the log itself is damaged.`,
  );
}

interface TableDigest {
  name: string;
  rows: number;
  /** SHA-256 of all values, row by row in the order of the table's key. */
  digest: string;
}

/** Longer values are hashed where they lie. */
const shortBytesMax = 64;
const textLengthMax = 64 * 2 ** 10;
/** Reading a clock for each would cost as much as the row. */
const rowsPerTurn = 64;

/** Counts the rows of tables, and digests each: two copies are compared by that. */
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

/** Each value has its kind and length in front, so that no two rows make the same text. */
function addValue(hash: Hash, text: string, value: unknown): string {
  if (typeof value === 'string') return `${text}s${value.length}:${value}`;
  if (!Buffer.isBuffer(value)) return `${text}${value};`;
  const begun = `${text}b${value.length}:`;
  if (value.length <= shortBytesMax) return begun + value.toString('latin1');
  hash.update(begun).update(value);
  return '';
}

/** Adds the seal to a database that is closed; on disk when it resolves. */
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
