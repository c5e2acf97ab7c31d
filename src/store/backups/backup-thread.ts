/** The thread for backups: copies the store beside intake, and checks the copy. */
import { parentPort, workerData } from 'node:worker_threads';
import Sqlite, { type Database } from 'better-sqlite3';
import { openForCopying } from '../database.ts';
import type { DataPlace } from '../disk-limit.ts';
import { lastPosition } from '../log-queries.ts';
import { lowerPriority } from '../lower-priority.ts';
import type { Settled, ThreadMessage } from '../messages.ts';
import { fileVersion } from '../migrate.ts';
import { sentError } from '../sent-error.ts';
import { addContents } from './backup-contents.ts';
import { type BackupJob, createBackupJob } from './backup-job.ts';
import type { BackupRequest, Copied } from './backup-messages.ts';
import { checkCopy } from './check-copy.ts';
import { copyPages } from './copy-pages.ts';
import { diskError } from './disk-error.ts';
import { seal } from './seal.ts';
import { digestTables, tableNames } from './table-digests.ts';

/** Pages of the write-ahead log that the writer's own next commit may take over. */
const leftPagesMax = 1_000;

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const place = workerData as DataPlace;
const post = (message: ThreadMessage) => port.postMessage(message);
let job: BackupJob | undefined;

lowerPriority();
port.on('message', (request: BackupRequest) => {
  void answer(request).then((settled) => {
    post({ kind: 'settled', settled: [settled] });
    if (request.op === 'close') port.close();
  });
});
post({ kind: 'started' });

async function answer(request: BackupRequest): Promise<Settled> {
  try {
    return { id: request.id, value: await perform(request) };
  } catch (error) {
    return { id: request.id, error: sentError(error) };
  }
}

function perform(request: BackupRequest): unknown {
  switch (request.op) {
    case 'copy':
      return copyInHand(request);
    case 'progress':
      return job?.progress ?? null;
    case 'stop':
      return job?.stop();
    case 'close':
      return undefined;
  }
}

async function copyInHand(request: Extract<BackupRequest, { op: 'copy' }>): Promise<Copied> {
  const current = createBackupJob(place);
  job = current;
  try {
    return await copy(request, current);
  } catch (error) {
    throw diskError(error, request.file);
  } finally {
    job = undefined;
  }
}

async function copy(
  { file, about, files }: Extract<BackupRequest, { op: 'copy' }>,
  current: BackupJob,
): Promise<Copied> {
  const { copied, ...figures } = await copyStore(file, current);
  complete(file, { about: { ...about, ...copied }, files });
  await checkCopy(file, figures, current);
  await seal(file, current);
  return copied;
}

/** Copies, and counts what was copied in the store itself: one transaction, so both see the same. */
async function copyStore(file: string, current: BackupJob) {
  const source = openForCopying(place.dataDir);
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
