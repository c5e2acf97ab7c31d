/** Turns SQLite's and the file system's failures into errors that say what to do. */
import { AppError, errorCodeOf, isAppError } from '../../domain/app-error.ts';

/** What happened, and what to do. */
type Words = readonly [message: string, advice?: string];

/** What each primary result code of SQLite means for the one who runs earshot. */
const advice: Record<string, Words> = {
  SQLITE_FULL: ['The disk is full.', 'Free some space: intake goes on by itself.'],
  SQLITE_READONLY: [
    'The database file cannot be written.',
    'Give the user that runs earshot write permission to the data directory and the files in it.',
  ],
  SQLITE_BUSY: [
    'Another program holds the database locked.',
    'Close it (a database browser, a backup): intake goes on by itself.',
  ],
  SQLITE_CORRUPT: [
    'The database file is damaged.',
    'Stop earshot, keep a copy of the data directory, and restore a backup.',
  ],
  SQLITE_NOTADB: [
    'The file is not a database, or it is damaged.',
    'Stop earshot, keep a copy of the data directory, and restore a backup.',
  ],
  SQLITE_CANTOPEN: [
    'The database file cannot be opened.',
    'Check that the data directory exists and belongs to the user that runs earshot.',
  ],
  SQLITE_IOERR: [
    'The disk reports an error.',
    'It may be full: look at the free space, and at the system log.',
  ],
  SQLITE_PERM: ['The operating system denies access to the database file.', 'Check its owner.'],
  SQLITE_NOMEM: ['SQLite ran out of memory.'],
};

/** The same of a failure to open a file, after its name. Those that only read write beside it, too. */
const openingAdvice: Record<string, Words> = {
  SQLITE_READONLY: [
    'cannot be written.',
    'Give the user that runs earshot write permission to the folder and the files in it; reading takes it, too. Or the disk is mounted read-only.',
  ],
  SQLITE_CANTOPEN: [
    'cannot be opened.',
    'The user that runs earshot needs write permission to the folder, for reading, too; and the disk must not be full, or mounted read-only.',
  ],
  SQLITE_IOERR: [
    'cannot be opened, as the disk reports an error.',
    'It may be full: free some space, or look at the system log.',
  ],
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

/** What to throw when a file cannot be opened: where the environment is at fault, an error that names the file. */
export function openingError(error: unknown, file: string): unknown {
  const words = openingAdvice[sqliteCode(error) ?? ''];
  if (words === undefined) return error;
  const [message, ...next] = words;
  return environmentError([`${file} ${message}`, ...next], error);
}

/** The error that callers of the store see: `unavailable` for the environment, else `internal`. */
export function storeError(error: unknown): AppError {
  if (isAppError(error)) return error;
  const code = sqliteCode(error);
  const words = code === null ? undefined : advice[code];
  if (words !== undefined) return environmentError(words, error);
  return new AppError('internal', 'The store failed in a way it should not.', { cause: error });
}

function environmentError([message, ...next]: Words, cause: unknown): AppError {
  const advice = [...next, `(${errorCodeOf(cause)})`].join(' ');
  return new AppError('unavailable', message, { advice, cause });
}
