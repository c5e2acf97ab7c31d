/** Turns a failure of the disk that a backup is written to, or read from, into an error that says what to do. */
import { AppError } from '../../domain/app-error.ts';
import { errorCodeOf } from '../../domain/error-code.ts';

const full = ['SQLITE_FULL', 'ENOSPC', 'EDQUOT'];

/** Any other error stays what it is. */
export function diskError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error;
  const code = errorCodeOf(error);
  const failed = (message: string) => new AppError('unavailable', message, { cause: error });
  if (full.includes(code)) {
    return failed(`The disk of ${path} is full (${code}). Free some space there, or name another.`);
  }
  if (!/^(E[A-Z]+|SQLITE_IOERR.*)$/.test(code)) return error;
  return failed(
    `${path} cannot be read or written (${code}). Look at its rights, at that disk, and at the system log; some file systems hold no file above 4 GiB.`,
  );
}
