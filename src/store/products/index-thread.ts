/** The thread that indexes: it has the log for reading, and the index for writing. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { inodeOf } from '../database.ts';
import { type DataPlace, diskRoom, lacksRoom, spareBytes } from '../disk-limit.ts';
import { lastPosition } from '../log-queries.ts';
import { lowerPriority } from '../lower-priority.ts';
import type { Settled, ThreadMessage } from '../messages.ts';
import { createReaderConnection } from '../reader-connection.ts';
import { sentError } from '../sent-error.ts';
import { batchRowsMax, type IndexFiles, indexBatch, pruneIndexed } from './index-batches.ts';
import type { IndexRequest, IndexTarget, WorkDone } from './index-messages.ts';
import {
  currentProductFile,
  discardBuildingFile,
  fitsLog,
  indexProgress,
  installBuildingFile,
  isDamage,
  openBuildingFile,
  openProductFile,
  pageBytes,
  readLog,
  replaceProductFile,
  shrinkIdleLog,
  usualLogPages,
} from './product-file.ts';

/** What is being filled, and the connections it is filled with. */
interface Work extends IndexFiles {
  target: IndexTarget;
  inode: number;
}

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const place = workerData as DataPlace;
const { dataDir } = place;
const post = (message: ThreadMessage) => port.postMessage(message);
let work: Work | undefined;

try {
  lowerPriority();
  const log = createReaderConnection(dataDir);
  port.on('message', (request: IndexRequest) => {
    post({ kind: 'settled', settled: [answer(request, log.database)] });
    if (request.op !== 'close') return;
    log.close();
    port.close();
  });
  post({ kind: 'started' });
} catch (error) {
  post({ kind: 'failed', error: sentError(error) });
}

function answer(request: IndexRequest, log: () => Database): Settled {
  try {
    return { id: request.id, value: perform(request, log) };
  } catch (error) {
    closeIndex();
    return { id: request.id, error: sentError(error) };
  }
}

function perform(request: IndexRequest, log: () => Database): WorkDone | number | undefined {
  if (request.op === 'prune') return mended(() => prune(workOn('current', log())));
  if (request.op === 'work') {
    const { target, budgetMs } = request;
    const index = () => indexFor(budgetMs, workOn(target, log()));
    return target === 'current' ? mended(index) : index();
  }
  closeIndex();
  if (request.op === 'install') installBuildingFile(dataDir);
  if (request.op === 'discard') discardBuildingFile(dataDir);
  return undefined;
}

/** A damaged index is nothing that the log could not make good: it is begun anew, and the work done there. */
function mended<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isDamage(error)) throw error;
    closeIndex();
    replaceProductFile(dataDir).close();
    return work();
  }
}

/** What one notification of a transaction adds to the write-ahead log, with a margin: 4 pages; measured at 1 to 2 kB in a small index. */
const rowBytesMax = 4 * 4_096;
const logPagesMin = 250;
/** Smaller transactions are not worth the work: indexing waits for space. */
const rowsMin = 32;
/** Events of one transaction of a prune, some 50 ms; and while disk space is short, as it may use the reserve. */
const [pruneEvents, pruneEventsShort] = [128, 16];

/**
 * Notifications that the next transaction may index, so that neither it nor its way from the write-ahead log into the file
 * uses the reserve. Throws `unavailable` while there is no space for that.
 */
function rowsAllowed(index: Database): number {
  const allowed = () => Math.floor(limitLog(index) / (2 * rowBytesMax));
  let rows = allowed();
  if (rows < rowsMin) {
    index.pragma('wal_checkpoint(TRUNCATE)');
    rows = allowed();
  }
  if (rows >= rowsMin) return Math.min(rows, batchRowsMax);
  const freeBytes = diskRoom(place)?.freeBytes ?? 0;
  const neededBytes = freeBytes - spareBytes(place) + 2 * rowsMin * rowBytesMax;
  throw lacksRoom('Indexing', freeBytes, neededBytes);
}

/** Keeps the write-ahead log of the index within a quarter of what is spare, 1 MB at least. Returns the spare bytes. */
function limitLog(index: Database): number {
  const bytes = spareBytes(place);
  const pages = Math.floor(bytes / 4 / pageBytes);
  index.pragma(`wal_autocheckpoint = ${Math.min(Math.max(logPagesMin, pages), usualLogPages)}`);
  return bytes;
}

function prune(files: Work): number {
  const isShort = limitLog(files.index) < 0;
  return pruneIndexed(files, isShort ? pruneEventsShort : pruneEvents);
}

/** The connections for a target; opened anew when the log or the file that counts is another one. */
function workOn(target: IndexTarget, log: Database): Work {
  const isStale =
    work?.target !== target ||
    work.log !== log ||
    (target === 'current' && work.index.name !== currentProductFile(dataDir)) ||
    inodeOf(work.index.name) !== work.inode;
  if (work !== undefined && !isStale) return work;
  closeIndex();
  const begun = begin(target, log, openTarget(target));
  if (fitsLog(log, begun.index)) return begun;
  // A restored backup, or a log that was begun anew: what the index knows is another story.
  closeIndex();
  return begin(target, log, replaceProductFile(dataDir));
}

function openTarget(target: IndexTarget): Database {
  return target === 'current' ? openProductFile(dataDir) : openBuildingFile(dataDir);
}

function begin(target: IndexTarget, log: Database, index: Database): Work {
  work = { target, log, index, inode: inodeOf(index.name) };
  return work;
}

function indexFor(budgetMs: number, files: Work): WorkDone {
  const { log, index } = files;
  const endMs = performance.now() + budgetMs;
  let indexed = 0;
  for (;;) {
    const count = indexBatch(files, rowsAllowed(index));
    indexed += count;
    if (count === 0 || performance.now() >= endMs) break;
  }
  if (indexed === 0) shrinkIdleLog(index);
  const { position: indexedPosition } = indexProgress(index);
  return { indexed, indexedPosition, lastPosition: readLog(() => lastPosition(log)) };
}

function closeIndex(): void {
  work?.index.close();
  work = undefined;
}
