/** Opens a copy, and holds it against what was counted in the store itself. */
import Sqlite from 'better-sqlite3';
import { AppError, isAppError } from '../../domain/app-error.ts';
import type { BackupJob } from './backup-job.ts';
import { digestTables, type TableDigest } from './table-digests.ts';

/**
 * Throws `unavailable` where a table differs, or the structure is damaged, which the store's then is as well. The look at
 * the structure is one call into SQLite: it ends early only when the file is cut short under it.
 */
export async function checkCopy(
  file: string,
  { version, tables }: { version: number; tables: readonly TableDigest[] },
  job: BackupJob,
): Promise<void> {
  const database = new Sqlite(file, { readonly: true, fileMustExist: true });
  try {
    const found = await digestTables(
      database,
      tables.map(({ name }) => name),
      job,
    );
    const differing = tables.filter((was, i) => was.digest !== found[i]?.digest);
    if (differing.length > 0) {
      throw unsound(`It differs from the log in ${differing.map(({ name }) => name).join(', ')}.`);
    }
    if (database.pragma('user_version', { simple: true }) !== version) {
      throw unsound('It is of another version.');
    }
    job.progress = { phase: 'checking', done: 0, total: null };
    await job.turn();
    const structure = String(database.pragma('quick_check(1)', { simple: true }));
    job.goOn();
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
