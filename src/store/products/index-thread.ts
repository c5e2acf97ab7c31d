/** The thread that indexes: it has the log for reading, and the index for writing. */
import type { Database } from 'better-sqlite3';
import { createReaderConnection, inodeOf } from '../engine/database.ts';
import { type DataPlace, diskRoom, lacksRoom, spareBytes } from '../engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../engine/serve-thread.ts';
import { lastPosition } from '../log-queries.ts';
import { batchRowsMax, createIndexBatches, type IndexBatches } from './index-batch.ts';
import type { IndexTarget, WorkDone } from './index-messages.ts';
import { indexProgress, readLog } from './index-progress.ts';
import {
  currentProductFile,
  discardBuildingFile,
  installBuildingFile,
  isDamage,
  openBuildingFile,
  openProductFile,
  pageBytes,
  replaceProductFile,
  shrinkIdleLog,
  usualLogPages,
} from './product-file.ts';

/** What is being filled, and the connections it is filled with. */
interface Work {
  target: IndexTarget;
  log: Database;
  index: Database;
  inode: number;
  batches: IndexBatches;
}

let place: DataPlace;
let work: Work | undefined;

const operations = {
  /** Indexes for about so long; returns what was done. */
  work: (log: Database, target: IndexTarget, budgetMs: number): WorkDone => {
    const index = () => indexFor(budgetMs, workOn(target, log));
    return target === 'current' ? mended(index) : index();
  },
  /** Takes out some of what the log has no more; returns how many events went, 0 when none is left. */
  prune: (log: Database): number => mended(() => prune(workOn('current', log))),
  /** Makes the rebuilt file the one that counts. */
  install: (): void => {
    closeIndex();
    installBuildingFile(place.dataDir);
  },
  /** Drops what a rebuild has begun. */
  discard: (): void => {
    closeIndex();
    discardBuildingFile(place.dataDir);
  },
};
export type IndexOperations = typeof operations;

serveThread((given) => {
  place = given;
  lowerPriority();
  const log = createReaderConnection(place.dataDir);
  return {
    operations,
    context: () => log.database(),
    failure: (error) => {
      closeIndex();
      return error;
    },
    close: () => {
      closeIndex();
      log.close();
    },
  };
});

/** A damaged index is nothing that the log could not make good: it is begun anew, and the work done there. */
function mended<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isDamage(error)) throw error;
    closeIndex();
    replaceProductFile(place.dataDir).close();
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

function prune({ index, batches }: Work): number {
  const isShort = limitLog(index) < 0;
  return batches.prune(isShort ? pruneEventsShort : pruneEvents);
}

/** The connections for a target; opened anew when the log or the file that counts is another one. */
function workOn(target: IndexTarget, log: Database): Work {
  const isStale =
    work?.target !== target ||
    work.log !== log ||
    (target === 'current' && work.index.name !== currentProductFile(place.dataDir)) ||
    inodeOf(work.index.name) !== work.inode;
  if (work !== undefined && !isStale) return work;
  closeIndex();
  const begun = begin(target, log, openTarget(target));
  if (begun.batches.fitsLog()) return begun;
  // A restored backup, or a log that was begun anew: what the index knows is another story.
  closeIndex();
  return begin(target, log, replaceProductFile(place.dataDir));
}

function openTarget(target: IndexTarget): Database {
  return target === 'current' ? openProductFile(place.dataDir) : openBuildingFile(place.dataDir);
}

function begin(target: IndexTarget, log: Database, index: Database): Work {
  try {
    const batches = createIndexBatches(log, index);
    work = { target, log, index, inode: inodeOf(index.name), batches };
    return work;
  } catch (error) {
    index.close();
    throw error;
  }
}

function indexFor(budgetMs: number, { log, index, batches }: Work): WorkDone {
  const endMs = performance.now() + budgetMs;
  let indexed = 0;
  for (;;) {
    const count = batches.next(rowsAllowed(index));
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
