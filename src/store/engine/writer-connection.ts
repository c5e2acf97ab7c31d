/** The writing connection: opened on first use, reopened after a failure of the file. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../core/terms/app-error.ts';
import { busyTimeoutMs, inodesOf, openForWriting, prepared } from './database.ts';
import { createDiskLimit, type DataPlace } from './disk-limit.ts';
import { needsReopening } from './sqlite-error.ts';

export interface WriterConnection {
  /** Runs one transaction, which is on disk on return. A failure leaves the file unchanged. */
  transact<T>(work: (database: Database) => T): T;
  /** Reads from the file without a lock that blocks other programs. */
  read<T>(work: (database: Database) => T): T;
  /** Runs a checkpoint and truncates the write-ahead log, without waiting for readers. */
  checkpoint(): void;
  /** Does the same if the file is open, and ignores failures. */
  tryCheckpoint(): void;
  /**
   * Returns true if another connection has committed since the last call, or if that is unknown. Runs a checkpoint when
   * the write-ahead log or its shared memory file was removed: otherwise a kill would lose the commits in it. Called
   * between transactions; the next one fails and reopens the files. Never throws.
   */
  checkFiles(): boolean;
  close(): void;
}

/** The writing connection of a thread, and its limit of the disk. */
export interface Writer {
  place: DataPlace;
  connection: WriterConnection;
  /** Throws `unavailable` while less than the disk reserve is free. */
  requireSpace: () => void;
}

/** Interval of the check for commits of others and for removed files. */
const checkMs = 1_000;

/** Creates the writer of a thread. `onOtherCommits` is called at most a second after commits of others. */
export function createWriter(
  place: DataPlace,
  use?: 'own' | 'node',
  onOtherCommits?: () => void,
): Writer {
  const connection = createWriterConnection(place, use);
  setInterval(() => {
    if (connection.checkFiles()) onOtherCommits?.();
  }, checkMs).unref();
  return { place, connection, requireSpace: createDiskLimit(place, connection.tryCheckpoint) };
}

interface OpenFile {
  database: Database;
  /** Changed by commits of other connections. */
  version?: unknown;
  inodes: ReturnType<typeof inodesOf>;
}

/**
 * `node`: a power failure may lose the last commits, which the shared log contains. `own`: refuses a log that belongs to
 * a shared log, also when it joins one later.
 */
export function createWriterConnection(
  place: DataPlace,
  use: 'own' | 'node' = 'own',
): WriterConnection {
  let open: OpenFile | undefined;
  function ensureOpen() {
    requireOwnFiles();
    if (open === undefined) {
      const database = openForWriting(place);
      if (use === 'node') database.pragma('synchronous = NORMAL');
      open = { database, inodes: inodesOf(database.name) };
      // Readers of this process may still share a removed shared memory file with us; they reopen soon.
      if (open.inodes.shm === -1) {
        close();
        throw unavailable(sharedMemoryInUse);
      }
    }
    return open;
  }

  /**
   * Throws once after an open file was moved or deleted: further commits would be lost. When the database
   * is gone, the next delivery creates a new file. When the write-ahead log or its shared memory file (the
   * index of the log) is gone, the commits are first written to the database from the open files.
   */
  function requireOwnFiles() {
    const lost = open === undefined ? null : lostFile(open);
    if (open === undefined || lost === null) return;
    if (lost === 'database' || checkpointAll(open.database)) close();
    throw unavailable(lost === 'database' ? databaseRemoved : logRemoved);
  }

  function close() {
    const closing = open;
    open = undefined;
    closing?.database.close();
  }

  function closingOnFailure<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (needsReopening(error)) close();
      throw error;
    }
  }

  return {
    transact: (work) => {
      const { database } = ensureOpen();
      const result = closingOnFailure(() =>
        database
          .transaction(() => {
            if (use === 'own') refuseSharedLog(database);
            return work(database);
          })
          .immediate(),
      );
      // Before the answer: the files may have been removed during the commit.
      requireOwnFiles();
      return result;
    },
    read: (work) => {
      const { database } = ensureOpen();
      return closingOnFailure(() => work(database));
    },
    checkpoint: () => checkpoint(ensureOpen().database),
    tryCheckpoint: () => {
      try {
        if (open !== undefined) checkpoint(open.database);
      } catch {
        // The disk is full, or another process checkpoints: the caller retries.
      }
    },
    checkFiles: () => open === undefined || checkFiles(open),
    close,
  };
}

function refuseSharedLog(database: Database): void {
  if (prepared(database, 'SELECT 1 FROM shared_log').get() === undefined) return;
  throw new AppError('unavailable', 'This data directory belongs to a shared log.', {
    advice:
      'Set EARSHOT_LOG_URL to its database, and restart the receiver. To leave the shared log, run `earshot admin log copy sqlite`.',
  });
}

/** Returns the file that was moved or deleted since the files were opened; null when none was. */
function lostFile({ database, inodes }: OpenFile): 'database' | 'log' | null {
  const now = inodesOf(database.name);
  if (now.database !== inodes.database) return 'database';
  return now.wal === inodes.wal && now.shm === inodes.shm ? null : 'log';
}

function checkFiles(file: OpenFile): boolean {
  const known = file.version;
  try {
    if (lostFile(file) === 'log') checkpointAll(file.database);
    file.version = file.database.pragma('data_version', { simple: true });
  } catch {
    // The next transaction fails for the same reason, and reports it.
    return true;
  }
  return file.version !== known;
}

/** Writes the whole write-ahead log to the database; returns false when a reader blocked it. */
function checkpointAll(database: Database): boolean {
  const [result] = database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
  return result?.busy === 0;
}

function checkpoint(database: Database): void {
  database.pragma('wal_checkpoint(PASSIVE)');
  truncateLog(database);
}

/** Truncates the log without a busy timeout: it would hold the writer lock while it waits for readers. */
export function truncateLog(database: Database): void {
  database.pragma('busy_timeout = 0');
  try {
    database.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    database.pragma(`busy_timeout = ${busyTimeoutMs}`);
  }
}

/** Reasons for refusing a commit after an open file was moved or deleted. */
const databaseRemoved =
  'The database file was moved or deleted while earshot was running. Move it back and restart earshot; otherwise earshot creates a new one.';

const logRemoved =
  'The file earshot.db-wal or earshot.db-shm was moved or deleted while earshot was running. Notifications stored so far are in earshot.db. Intake resumes automatically. Do not remove files of earshot.';

const sharedMemoryInUse =
  'The file earshot.db-shm was removed while another part of earshot still has it open. Intake resumes automatically when that part closes the file.';

function unavailable(message: string): AppError {
  return new AppError('unavailable', message);
}
