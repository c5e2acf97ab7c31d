/** The writing connection: opened when needed, closed and opened anew after a failure of the file. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { busyTimeoutMs, inodesOf, openForWriting } from './database.ts';
import { needsReopening } from './sqlite-error.ts';

export interface WriterConnection {
  /** Runs one transaction; it is on disk when this returns. Any failure leaves the file as it was. */
  transact<T>(work: (database: Database) => T): T;
  /** Looks at the file without holding anybody up. */
  read<T>(work: (database: Database) => T): T;
  /** Takes the write-ahead log into the file, and cuts both, without waiting for anybody who reads. */
  checkpoint(): void;
  /**
   * Takes what was committed into the file when the write-ahead log, or the memory of it, was removed: a kill would lose
   * it. For times without a transaction; the next transaction fails, and opens the files again. Never throws.
   */
  saveRemovedLog(): void;
  close(): void;
}

interface OpenFile {
  database: Database;
  inodes: ReturnType<typeof inodesOf>;
}

export function createWriterConnection(dataDir: string): WriterConnection {
  let open: OpenFile | undefined;

  function ensureOpen() {
    requireOwnFiles();
    if (open === undefined) {
      const database = openForWriting(dataDir);
      open = { database, inodes: inodesOf(database.name) };
      // Readers of this process share the memory of the log with us, also one that was removed: they reopen soon.
      if (open.inodes.shm === -1) {
        close();
        throw unavailable(memoryInUse);
      }
    }
    return open;
  }

  /**
   * Fails once after a file was moved or deleted under us: its commits would go where nobody finds them again. Without
   * the database the next delivery starts a new file. Without its write-ahead log or the memory of it, which is the
   * index to that, what was committed goes into the database first, as long as we still have them open.
   */
  function requireOwnFiles() {
    const lost = open === undefined ? null : lostFile(open);
    if (open === undefined || lost === null) return;
    if (lost === 'database' || takeLog(open.database)) close();
    throw unavailable(lost === 'database' ? databaseGone : logGone);
  }

  function saveRemovedLog() {
    try {
      if (open !== undefined && lostFile(open) === 'log') takeLog(open.database);
    } catch {
      // The next transaction fails for the same reason, and reports it.
    }
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
      const result = closingOnFailure(() => database.transaction(() => work(database)).immediate());
      // Before anybody is answered: the files may have gone during the commit.
      requireOwnFiles();
      return result;
    },
    read: (work) => {
      const { database } = ensureOpen();
      return closingOnFailure(() => work(database));
    },
    checkpoint: () => checkpoint(ensureOpen().database),
    saveRemovedLog,
    close,
  };
}

/** What was moved or deleted since the files were opened; null when nothing was. */
function lostFile({ database, inodes }: OpenFile): 'database' | 'log' | null {
  const now = inodesOf(database.name);
  if (now.database !== inodes.database) return 'database';
  return now.wal === inodes.wal && now.shm === inodes.shm ? null : 'log';
}

/** Takes the whole write-ahead log into the file; false when a reader was in the way. */
function takeLog(database: Database): boolean {
  const [taken] = database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
  return taken?.busy === 0;
}

/** Cutting takes the writers' lock, and would wait for readers with it: who is in the way is left alone. */
function checkpoint(database: Database): void {
  database.pragma('wal_checkpoint(PASSIVE)');
  database.pragma('busy_timeout = 0');
  try {
    database.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    database.pragma(`busy_timeout = ${busyTimeoutMs}`);
  }
}

/** Why a commit is refused after a file was moved or deleted under us. */
const databaseGone =
  'The database file was moved or deleted while earshot ran. Put it back and restart, or a new one is started.';

const logGone =
  'The file earshot.db-wal or earshot.db-shm was moved or deleted while earshot ran. What was committed is in earshot.db. Intake resumes when the files are open again; leave them to earshot.';

const memoryInUse =
  'The file earshot.db-shm was removed, and is still open elsewhere in earshot. Intake resumes when it is closed.';

function unavailable(message: string): AppError {
  return new AppError('unavailable', message);
}
