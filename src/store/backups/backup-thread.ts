/** The backup thread: copies the database while intake continues, and checks the copy. */
import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError, errorText } from '../../domain/app-error.ts';
import { databaseFileName, openForCopying } from '../engine/database.ts';
import { type DataPlace, requireFreeSpace } from '../engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../engine/serve-thread.ts';
import {
  type Content,
  cancelled,
  contentOf,
  databaseFault,
  diskError,
  sumOf,
} from './backup-folder.ts';

interface Context {
  place: DataPlace;
  signal: AbortSignal;
}

const operations = {
  /** Copies the database to an empty file, and checks the copy. */
  copy: async ({ place, signal }: Context, file: string) => {
    const check = () => {
      if (signal.aborted) throw cancelled();
      requireFreeSpace(place, 'Backup');
    };
    try {
      const content = await copySnapshot(place.dataDir, file, check);
      const fault = copyFault(file) ?? databaseFault(file, content);
      check();
      if (fault !== null) throw badCopy(fault);
      return { content, sum: await sumOf(file, databaseFileName, check) };
    } catch (error) {
      throw diskError(error, file);
    }
  },
};
export type BackupOperations = typeof operations;

export default serveThread((place) => {
  lowerPriority();
  return { operations, context: ({ signal }) => ({ place, signal }), close: () => undefined };
});

/** Pages per step: 1 MiB. */
const stepPages = 64;
/** Without a sync in between, the system writes everything at once, which delays commits of the intake (decision 29). */
const stepsPerSync = 16;

/** Copies in a read transaction: otherwise each commit of another connection restarts SQLite's backup. */
async function copySnapshot(dataDir: string, file: string, check: () => void): Promise<Content> {
  const source = openForCopying(dataDir);
  const descriptor = openSync(file, 'r+');
  let steps = 0;
  const progress = () => {
    check();
    steps += 1;
    if (steps % stepsPerSync === 0) fdatasyncSync(descriptor);
    return stepPages;
  };
  try {
    source.exec('BEGIN');
    const content = contentOf(source);
    await source.backup(file, { progress });
    source.exec('ROLLBACK');
    // The next commit would otherwise move the whole write-ahead log, and block intake for seconds. The second time,
    // moves what was written meanwhile.
    for (let i = 0; i < 2; i += 1) source.pragma('wal_checkpoint(PASSIVE)');
    return content;
  } finally {
    closeSync(descriptor);
    source.close();
  }
}

/** Returns the damage of the copied pages; null if there is none. */
function copyFault(file: string): string | null {
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { fileMustExist: true });
    // A single file, which can be opened without creating others.
    database.pragma('journal_mode = DELETE');
    const found = String(database.pragma('quick_check(1)', { simple: true }));
    return found === 'ok' ? null : found;
  } catch (error) {
    return errorText(error);
  } finally {
    database?.close();
  }
}

function badCopy(fault: string): AppError {
  return new AppError('unavailable', `The copy of the log failed the check: ${fault}.`, {
    advice: 'Check both disks. If this happens again, the notification log is damaged.',
  });
}
