/** The indexing thread: reads the log and writes the product index. */
import { createReaderConnection, type Database, inodeOf } from '../../../store/engine/database.ts';
import {
  type DataPlace,
  diskSpace,
  insufficientSpace,
  spareBytes,
} from '../../../store/engine/disk-limit.ts';
import { lowerPriority, serveThread } from '../../../store/engine/thread.ts';
import { lastPosition } from '../../../store/log/queries.ts';
import { batchRowsMax, type IndexFiles, indexBatch, pruneIndexed } from './index-batches.ts';
import {
  createNextIndex,
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

/** The current file, or the file of a rebuild. */
export type IndexTarget = 'current' | 'building';

export interface WorkDone {
  /** Number of indexed notifications; 0 at the end of the log. */
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
  /** Removes some of the events that are no longer in the log. Returns their number; 0 when none is left. */
  prune: (log: Database): number => repaired(() => prune(workOn('current', log))),
  /** Creates one of the indexes that a rebuilt file still needs; returns false if it has all. */
  sort: (log: Database): boolean => {
    const { index } = workOn('building', log);
    requireSpaceToSort(index);
    return createNextIndex(index);
  },
  /** Replaces the current file with the rebuilt one. */
  install: (): void => {
    closeIndex();
    installBuildingFile(place.dataDir);
  },
  /** Discards an unfinished rebuild. */
  discard: (): void => {
    closeIndex();
    discardBuildingFile(place.dataDir);
  },
};
export type IndexOperations = typeof operations;

export default serveThread((given) => {
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

/** Repeats the work on an empty index when the file is damaged: the index can be rebuilt from the log. */
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

/** Maximum growth of the write-ahead log per notification. Measured in a small index: 1 to 2 kB. */
const rowBytesMax = 2 * pageBytes;
const logPagesMin = 125;
/** Minimum size of a transaction: with space for fewer rows, indexing waits. */
const rowsMin = 32;
/** Events pruned in one transaction (about 50 ms); fewer when disk space is short, as it may use the disk reserve. */
const [pruneEvents, pruneEventsShort] = [128, 16];

/**
 * Number of notifications that the next transaction may index without its writes, or their checkpoint, using the disk
 * reserve. Throws `unavailable` while there is not enough space.
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

/** Bytes that an index and the temporary files of its sorting take for each product: names take the most. */
const sortedBytesMax = 200;

/** Throws `unavailable` if the next index would use the disk reserve. */
function requireSpaceToSort(index: Database): void {
  const products = Number(index.prepare('SELECT max(id) FROM product').pluck().get());
  const missingBytes = sortedBytesMax * products - spareBytes(place);
  if (missingBytes <= 0) return;
  const freeBytes = diskSpace(place)?.freeBytes ?? 0;
  throw insufficientSpace('Indexing', freeBytes, freeBytes + missingBytes);
}

/** Limits the write-ahead log of the index to a quarter of the spare space, at least 1 MB. Returns the spare bytes. */
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

/** Returns the connections for a target. Reopens them when the log or the current file was replaced. */
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
  // The log was replaced, for example by a restored backup: the index describes another log.
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
