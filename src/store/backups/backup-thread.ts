/** The thread for backups: copies the store beside intake, and checks the copy. */
import Sqlite, { type Database } from 'better-sqlite3';
import { openForCopying } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';
import { fileVersion } from '../engine/migrate.ts';
import { lowerPriority, serveThread } from '../engine/serve-thread.ts';
import { lastPosition } from '../log/queries.ts';
import { addContents } from './backup-contents.ts';
import { type BackupJob, createBackupJob } from './backup-job.ts';
import type { BackupProgress, Copied, CopyRequest } from './backup-messages.ts';
import { checkCopy } from './check-copy.ts';
import { copyPages } from './copy-pages.ts';
import { diskError } from './disk-error.ts';
import { seal } from './seal.ts';
import { digestTables, tableNames } from './table-digests.ts';

/** Pages of the write-ahead log that the writer's own next commit may take over. */
const leftPagesMax = 1_000;

const operations = {
  copy: async (place: DataPlace, request: CopyRequest): Promise<Copied> => {
    const current = createBackupJob(place);
    job = current;
    try {
      return await copy(place, request, current);
    } catch (error) {
      throw diskError(error, request.file);
    } finally {
      job = undefined;
    }
  },
  progress: (): BackupProgress | null => job?.progress ?? null,
  stop: (): void => job?.stop(),
};
export type BackupOperations = typeof operations;

let job: BackupJob | undefined;

serveThread((place) => {
  lowerPriority();
  return { operations, context: () => place, close: () => undefined };
});

async function copy(
  { dataDir }: DataPlace,
  { file, about, files }: CopyRequest,
  current: BackupJob,
): Promise<Copied> {
  const { copied, ...figures } = await copyStore(dataDir, file, current);
  complete(file, { about: { ...about, ...copied }, files });
  await checkCopy(file, figures, current);
  await seal(file, current);
  return copied;
}

/** Copies, and counts what was copied in the store itself: one transaction, so both see the same. */
async function copyStore(dataDir: string, file: string, current: BackupJob) {
  const source = openForCopying(dataDir);
  try {
    source.exec('BEGIN');
    const position = lastPosition(source);
    await copyPages(source, file, current);
    const tables = await digestTables(source, tableNames(source), current);
    const notifications = tables.find(({ name }) => name === 'notification')?.rows ?? 0;
    const copied: Copied = { lastPosition: position, notifications };
    return { copied, tables, version: fileVersion(source) };
  } finally {
    endSnapshot(source);
    source.close();
  }
}

/**
 * What was committed meanwhile lies in the write-ahead log, as our transaction needed the file as it was. The
 * writer's next commit would take all of that into the file, and stand still for seconds; here nobody waits for it.
 */
function endSnapshot(source: Database): void {
  try {
    if (source.inTransaction) source.exec('ROLLBACK');
    emptyLog(source);
  } catch {
    // The writer takes over what is left.
  }
}

function emptyLog(source: Database): void {
  let done = 0;
  for (;;) {
    // SQLite's own shape: how many pages of the log are in the file now.
    const [row] = source.pragma('wal_checkpoint(PASSIVE)') as { checkpointed: number }[];
    const checkpointed = row?.checkpointed ?? 0;
    if (checkpointed - done < leftPagesMax) return;
    done = checkpointed;
  }
}

function complete(file: string, parts: Parameters<typeof addContents>[1]): void {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    // One file without others beside it. What is lost with a power cut has no name yet.
    database.pragma('journal_mode = MEMORY');
    database.transaction(() => addContents(database, parts)).immediate();
  } finally {
    database.close();
  }
}
