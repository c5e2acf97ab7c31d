/** The thread that indexes: it has the log for reading, and the index for writing. */
import type { Database } from 'better-sqlite3';
import { createReaderConnection, inodeOf } from '../engine/database.ts';
import { type DataPlace, diskSpace, insufficientSpace, spareBytes } from '../engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../engine/serve-thread.ts';
import { lastPosition } from '../log/queries.ts';
import { batchRowsMax, type IndexFiles, indexBatch, pruneIndexed } from './index-batches.ts';
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

/** The file in use, or the one that a rebuild fills. */
export type IndexTarget = 'current' | 'building';

export interface WorkDone {
  /** Notifications that were indexed; 0 at the end of the log. */
  indexed: number;
  /** Positions of the log. */
  indexedPosition: number;
  lastPosition: number;
}

/** The open index. */
interface Work extends IndexFiles {
  target: IndexTarget;
  inode: number;
}

let place: DataPlace;
let work: Work | undefined;

const operations = {
  /** Indexes for about `budgetMs`. */
  work: (log: Database, target: IndexTarget, budgetMs: number): WorkDone => {
    const index = () => indexFor(budgetMs, workOn(target, log));
    return target === 'current' ? repaired(index) : index();
  },
  /** Removes some of what is no longer in the log; returns how many events, 0 when none is left. */
  prune: (log: Database): number => repaired(() => prune(workOn('current', log))),
  /** Replaces the current file by the rebuilt one. */
  install: (): void => {
    closeIndex();
    installBuildingFile(place.dataDir);
  },
  /** Drops an unfinished rebuild. */
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

/** Does the work again on an empty index when the file is damaged: the log has everything. */
function repaired<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isDamage(error)) throw error;
    closeIndex();
    replaceProductFile(place.dataDir).close();
    return work();
  }
}

/** Growth of the write-ahead log by one notification, with a margin: 4 pages; measured at 1 to 2 kB in a small index. */
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
  const freeBytes = diskSpace(place)?.freeBytes ?? 0;
  const neededBytes = freeBytes - spareBytes(place) + 2 * rowsMin * rowBytesMax;
  throw insufficientSpace('Indexing', freeBytes, neededBytes);
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

/** The connections for a target; opened again when the log or the current file is another one. */
function workOn(target: IndexTarget, log: Database): Work {
  const isStale =
    work?.target !== target ||
    work.log !== log ||
    (target === 'current' && work.index.name !== currentProductFile(place.dataDir)) ||
    inodeOf(work.index.name) !== work.inode;
  if (work !== undefined && !isStale) return work;
  closeIndex();
  const open = target === 'current' ? openProductFile : openBuildingFile;
  const begun = begin(target, log, open(place.dataDir));
  if (fitsLog(begun)) return begun;
  // A restored backup, or a new log: the index describes another one.
  closeIndex();
  return begin(target, log, replaceProductFile(place.dataDir));
}

function begin(target: IndexTarget, log: Database, index: Database): Work {
  work = { target, log, index, inode: inodeOf(index.name) };
  return work;
}

function indexFor(budgetMs: number, files: Work): WorkDone {
  const endMs = performance.now() + budgetMs;
  let indexed = 0;
  for (;;) {
    const count = indexBatch(files, rowsAllowed(files.index));
    indexed += count;
    if (count === 0 || performance.now() >= endMs) break;
  }
  if (indexed === 0) shrinkIdleLog(files.index);
  const { position: indexedPosition } = indexProgress(files.index);
  return { indexed, indexedPosition, lastPosition: readLog(() => lastPosition(files.log)) };
}

function closeIndex(): void {
  work?.index.close();
  work = undefined;
}
