/** The backup thread: copies the database while intake continues, and checks the copy. */
import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../../core/terms/app-error.ts';
import { type Database, databaseFileName, openForCopying } from '../../store/engine/database.ts';
import { type DataPlace, requireFreeSpace } from '../../store/engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../../store/engine/thread.ts';
import { loadTables } from '../../store/tables.ts';
import { type Content, contentOf, databaseFault, diskError, sumOf } from './backup-folder.ts';

type Context = DataPlace & { signal: AbortSignal };

const operations = {
  /** Copies the database to an empty file, and checks the copy. */
  copy: async (context: Context, file: string) => {
    const content = await copySnapshot(context, file);
    const fault = databaseFault(file, content, toCheckedFile);
    const message = `The copy of the log failed the check: ${fault}. The log or a disk may be damaged.`;
    if (fault !== null) throw new AppError('unavailable', message);
    return { content, sum: await sumOf(dirname(file), databaseFileName, context) };
  },
};
export type BackupOperations = typeof operations;

export default serveThread(async (place) => {
  lowerPriority();
  await loadTables(place.tables);
  return {
    operations,
    context: ({ signal }) => ({ ...place, signal }),
    failure: (error) => diskError(error, 'The backup'),
    close: () => undefined,
  };
});

/** Pages per step: 1 MiB. */
const stepPages = 64;
/** Without a sync in between, the system writes everything at once, which delays commits of the intake (decision 29). */
const stepsPerSync = 16;

/** Copies in a read transaction: otherwise each commit of another connection restarts SQLite's backup. */
async function copySnapshot(context: Context, file: string): Promise<Content> {
  const source = openForCopying(context.dataDir);
  const descriptor = openSync(file, 'r+');
  let steps = 0;
  const progress = () => {
    context.signal.throwIfAborted();
    requireFreeSpace(context, 'Backup');
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

/**
 * Converts the copy to a single file, which can be opened without creating others. Throws if the file is damaged.
 */
function toCheckedFile(database: Database): void {
  database.pragma('journal_mode = DELETE');
  const structure = String(database.pragma('quick_check(1)', { simple: true }));
  if (structure !== 'ok') throw new Error(structure);
}
