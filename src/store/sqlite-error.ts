/** Turns SQLite's and the file system's failures into errors that say what to do. */
import { AppError, isAppError } from '../domain/app-error.ts';

/** What each primary result code of SQLite means for the one who runs earshot. */
const advice: Record<string, string> = {
  SQLITE_FULL: 'The disk is full. Free some space: intake goes on by itself.',
  SQLITE_READONLY:
    'The database file cannot be written. Give the user that runs earshot write permission to the data directory and the files in it.',
  SQLITE_BUSY:
    'Another program holds the database locked. Close it (a database browser, a backup): intake goes on by itself.',
  SQLITE_CORRUPT:
    'The database file is damaged. Stop earshot, keep a copy of the data directory, and restore a backup.',
  SQLITE_NOTADB:
    'The file is not a database, or it is damaged. Stop earshot, keep a copy of the data directory, and restore a backup.',
  SQLITE_CANTOPEN:
    'The database file cannot be opened. Check that the data directory exists and belongs to the user that runs earshot.',
  SQLITE_IOERR: 'The disk reports an error. Look at the system log and at the free space.',
  SQLITE_PERM: 'The operating system denies access to the database file. Check its owner.',
  SQLITE_NOMEM: 'SQLite ran out of memory.',
};

const aliases: Record<string, string> = {
  SQLITE_LOCKED: 'SQLITE_BUSY',
  SQLITE_PROTOCOL: 'SQLITE_BUSY',
};

/** Codes after which a connection is closed and opened anew: what it knows of the file may be stale. */
const reopenAfter = new Set([
  'SQLITE_READONLY',
  'SQLITE_CORRUPT',
  'SQLITE_NOTADB',
  'SQLITE_CANTOPEN',
  'SQLITE_IOERR',
]);

/** The code of a failure of SQLite's or the file system's, for a message. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** The primary result code of a failure of SQLite's; null for any other error. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string')
    return null;
  const primary = /^SQLITE_[A-Z]+/.exec(error.code)?.[0];
  return primary === undefined ? null : (aliases[primary] ?? primary);
}

/** True for failures of the disk, the file or its lock, as opposed to those of one statement. */
export function isEnvironmentFailure(error: unknown): boolean {
  return isAppError(error, 'unavailable') || (sqliteCode(error) ?? '') in advice;
}

export function needsReopening(error: unknown): boolean {
  return reopenAfter.has(sqliteCode(error) ?? '');
}

/** The error that callers of the store see: `unavailable` for the environment, else `internal`. */
export function storeError(error: unknown): AppError {
  if (isAppError(error)) return error;
  const code = sqliteCode(error);
  const text = code === null ? undefined : advice[code];
  if (text !== undefined) {
    return new AppError('unavailable', `${text} (${errorCodeOf(error)})`, { cause: error });
  }
  return new AppError('internal', 'The store failed in a way it should not.', { cause: error });
}
