/** Converts errors of SQLite and the file system into errors with advice. */
import { AppError, errorCodeOf, isAppError } from '../../domain/app-error.ts';

/** A message (the problem) and its advice (the fix). */
type Explanation = readonly [message: string, advice?: string];

/** Explanation of each primary result code of SQLite for the operator. */
const explanations: Record<string, Explanation> = {
  SQLITE_FULL: ['The disk is full.', 'Free some space: intake resumes automatically.'],
  SQLITE_READONLY: [
    'The database file cannot be written.',
    'Give the user that runs earshot write permission to the data directory and the files in it.',
  ],
  SQLITE_BUSY: [
    'The database is locked by another program.',
    'Close that program (for example a database browser or a backup): intake resumes automatically.',
  ],
  SQLITE_CORRUPT: [
    'The database file is damaged.',
    'Stop earshot, keep a copy of the data directory, and restore a backup.',
  ],
  SQLITE_NOTADB: [
    'The database file is damaged, or is not a database.',
    'Stop earshot, keep a copy of the data directory, and restore a backup.',
  ],
  SQLITE_CANTOPEN: [
    'The database file cannot be opened.',
    'Check that the data directory exists and belongs to the user that runs earshot.',
  ],
  SQLITE_IOERR: ['The disk reports an error.', 'Check its free space and the system log.'],
  SQLITE_PERM: [
    'The operating system denies access to the database file.',
    'Check that the file belongs to the user that runs earshot.',
  ],
  SQLITE_NOMEM: ['SQLite ran out of memory.'],
};

/** Explanations of a failure to open a file, after its name. Readers also write files next to it. */
const openingExplanations: Record<string, Explanation> = {
  SQLITE_READONLY: [
    'cannot be written.',
    'Give the user that runs earshot write permission to the folder and the files in it (reading also requires it), and check that the disk is not mounted read-only.',
  ],
  SQLITE_CANTOPEN: [
    'cannot be opened.',
    'Give the user that runs earshot write permission to the folder (reading also requires it), and check that the disk is not full or mounted read-only.',
  ],
  SQLITE_IOERR: [
    'cannot be opened: the disk reports an error.',
    'Check its free space and the system log.',
  ],
};

const aliases: Record<string, string> = {
  SQLITE_LOCKED: 'SQLITE_BUSY',
  SQLITE_PROTOCOL: 'SQLITE_BUSY',
};

/** Codes after which a connection is reopened: its cached state of the file may be stale. */
const reopenAfter = new Set([
  'SQLITE_READONLY',
  'SQLITE_CORRUPT',
  'SQLITE_NOTADB',
  'SQLITE_CANTOPEN',
  'SQLITE_IOERR',
]);

/** Returns the primary result code of an SQLite error; null for any other error. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string')
    return null;
  const primary = /^SQLITE_[A-Z]+/.exec(error.code)?.[0];
  return primary === undefined ? null : (aliases[primary] ?? primary);
}

/** Returns true for failures of the disk, the file or its lock, false for those of one statement. */
export function isEnvironmentFailure(error: unknown): boolean {
  return isAppError(error, 'unavailable') || (sqliteCode(error) ?? '') in explanations;
}

export function needsReopening(error: unknown): boolean {
  return reopenAfter.has(sqliteCode(error) ?? '');
}

/** Returns the error to throw when a file cannot be opened; it names the file for failures of the environment. */
export function openingError(error: unknown, file: string): unknown {
  const explanation = openingExplanations[sqliteCode(error) ?? ''];
  if (explanation === undefined) return error;
  const [message, ...next] = explanation;
  return environmentError([`${file} ${message}`, ...next], error);
}

/** Returns the error for callers of the store: `unavailable` for the environment, else `internal`. */
export function storeError(error: unknown): AppError {
  if (isAppError(error)) return error;
  const code = sqliteCode(error);
  const explanation = code === null ? undefined : explanations[code];
  if (explanation !== undefined) return environmentError(explanation, error);
  return new AppError('internal', 'Internal error in the store.', { cause: error });
}

function environmentError([message, ...next]: Explanation, cause: unknown): AppError {
  const advice = [...next, `(${errorCodeOf(cause)})`].join(' ');
  return new AppError('unavailable', message, { advice, cause });
}
