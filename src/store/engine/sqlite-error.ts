/** Converts errors of SQLite into errors with advice. */
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { faultError, knownFault } from '../../core/terms/faults.ts';

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
  return isAppError(error, 'unavailable') || knownFault(sqliteCode(error) ?? '') !== null;
}

export function needsReopening(error: unknown): boolean {
  return reopenAfter.has(sqliteCode(error) ?? '');
}

/** Returns the error to throw when a file cannot be opened; it names the file for failures of the environment. */
export function openingError(error: unknown, file: string): unknown {
  return knownFault(sqliteCode(error) ?? '') === null
    ? error
    : faultError('unavailable', `${file} cannot be opened`, error);
}

/** Returns the error for callers of the store: `unavailable` for the environment, else `internal`. */
export function storeError(error: unknown): AppError {
  if (isAppError(error)) return error;
  if (knownFault(sqliteCode(error) ?? '') === null)
    return new AppError('internal', 'Internal error in the store.', { cause: error });
  return faultError('unavailable', 'The database cannot be used', error);
}
