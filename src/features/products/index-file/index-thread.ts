/** The indexing thread: reads the log and writes the product index. */

import { isAppError } from '../../../core/terms/app-error.ts';
import { type ProductRecord, recordIn } from '../../../filter/values.ts';
import { type BodyReader, createBodyReader } from '../../../store/bodies/bodies.ts';
import { bodyDocument } from '../../../store/bodies/body-document.ts';
import {
  createReaderConnection,
  type Database,
  inodeOf,
  prepared,
} from '../../../store/engine/database.ts';
import {
  type DataPlace,
  diskSpace,
  insufficientSpace,
  spareBytes,
} from '../../../store/engine/disk-limit.ts';
import { isEnvironmentFailure, storeError } from '../../../store/engine/sqlite-error.ts';
import { lowerPriority, serveThread } from '../../../store/engine/thread.ts';
import { lastPosition } from '../../../store/log/queries.ts';
import { pruneHorizon } from '../../../store/pruning/prune-queries.ts';
import {
  currentProductFile,
  fitsLog,
  indexProgress,
  isCurrentFile,
  isDamage,
  isReportedDamaged,
  markAt,
  type OpenIndex,
  openProductFile,
  pageBytes,
  readLog,
  replaceProductFile,
  reportDamage,
  shrinkIdleLog,
  usualLogPages,
} from './product-file.ts';
import { productTables } from './product-schema.ts';
import { type LoggedNotification, removeProduct, writeNotification } from './product-writer.ts';

export interface WorkDone {
  /** Number of indexed notifications; 0 at the end of the log. */
  indexed: number;
  /** Positions of those that are unreadable. They stay in the log. */
  skipped: number[];
  /** Positions of the log. */
  indexedPosition: number;
  lastPosition: number;
}

interface PruneDone {
  /** Number of removed events; 0 when none is left. */
  events: number;
  /** Positions of unreadable notifications of the same products. They stay in the log. */
  skipped: number[];
}

let place: DataPlace;
let open: (OpenIndex & IndexFiles) | undefined;

const operations = {
  /** Indexes for about `budgetMs`. Returns null when the file is damaged, and must be replaced first. */
  work: (log: Database, budgetMs: number): WorkDone | null =>
    unlessDamaged(() => indexFor(budgetMs, workOn(log))),
  /** Replaces the file whose damage was reported, unless another program has done so. */
  replaceDamaged: (): void => {
    const damaged = currentProductFile(place.dataDir);
    if (damaged === null || !isReportedDamaged(damaged)) return;
    closeIndex();
    replaceProductFile(place.dataDir, damaged, productTables).close();
  },
  /** Removes some of the events that are no longer in the log. Returns null when the file is damaged. */
  prune: (log: Database): PruneDone | null => unlessDamaged(() => pruneIndexed(workOn(log))),
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

/** Returns null, and reports the damage, when the file is damaged. */
function unlessDamaged<Result>(work: () => Result): Result | null {
  const current = currentProductFile(place.dataDir);
  if (current !== null && isReportedDamaged(current)) return null;
  try {
    return work();
  } catch (error) {
    if (!isDamage(error)) throw error;
    const damaged = open?.index.name ?? currentProductFile(place.dataDir);
    if (damaged !== null) reportDamage(damaged);
    closeIndex();
    return null;
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

/** Limits the write-ahead log of the index to a quarter of the spare space, at least 1 MB. Returns the spare bytes. */
function limitLog(index: Database): number {
  const bytes = spareBytes(place);
  const pages = Math.floor(bytes / 4 / pageBytes);
  index.pragma(`wal_autocheckpoint = ${Math.min(Math.max(logPagesMin, pages), usualLogPages)}`);
  return bytes;
}

/** Returns the connections. Reopens them when the log or the current file was replaced. */
function workOn(log: Database): IndexFiles {
  if (open?.log === log && isCurrentFile(place.dataDir, open)) return open;
  closeIndex();
  const begun = begin(log, openProductFile(place.dataDir, productTables));
  if (fitsLog(begun)) return begun;
  // The log was replaced, for example by a restored backup: the index describes another log.
  const replaced = begun.index.name;
  closeIndex();
  return begin(log, replaceProductFile(place.dataDir, replaced, productTables));
}

function begin(log: Database, index: Database): IndexFiles {
  open = { log, index, inode: inodeOf(index.name) };
  return open;
}

function indexFor(budgetMs: number, files: IndexFiles): WorkDone {
  const endMs = performance.now() + budgetMs;
  const skipped: number[] = [];
  let indexed = 0;
  for (;;) {
    const count = indexBatch(files, rowsAllowed(files.index), skipped);
    indexed += count;
    // A failure of a later batch would lose the skipped positions.
    if (count === 0 || skipped.length > 0 || performance.now() >= endMs) break;
  }
  if (indexed === 0) shrinkIdleLog(files.index);
  const { position: indexedPosition } = indexProgress(files.index);
  const end = readLog(() => lastPosition(files.log));
  return { indexed, skipped, indexedPosition, lastPosition: end };
}

function closeIndex(): void {
  open?.index.close();
  open = undefined;
}

/**
 * Notifications in one transaction: about half a second of work. Indexes are written at random places; a large
 * transaction writes a shared page only once. The log is read in smaller steps, because an open read blocks the
 * checkpoint of its write-ahead log.
 */
const batchRowsMax = 4_096;
const readRowsMax = 256;

/** A transaction and a step also end after a time: on a busy machine, this thread of low priority makes slow progress. */
const batchMsMax = 1_000;
const readMsMax = 50;

/** Separate connections, because a write transaction would lock every file attached to its connection. */
interface IndexFiles {
  log: Database;
  index: Database;
}

/** Indexes up to `rowsMax` notifications in one transaction. Returns their number; 0 at the end of the log. */
function indexBatch({ log, index }: IndexFiles, rowsMax: number, skipped: number[]): number {
  const batch = index.transaction((write: typeof writeRow): number => {
    // Read inside the transaction: another process may index at the same time.
    const { position: first } = indexProgress(index);
    let count = 0;
    let position = first;
    const endMs = performance.now() + batchMsMax;
    // One step at least: 0 means the end of the log.
    while (count < rowsMax && (count === 0 || performance.now() < endMs)) {
      const limit = Math.min(readRowsMax, rowsMax - count);
      const rows = inSnapshot(log, (reading) =>
        indexRows(index, { reading, write, position, limit }),
      );
      if (rows.length === 0) break;
      count += rows.length;
      position = rows.at(-1)?.position ?? position;
    }
    if (position > first) {
      const advance = prepared(index, 'UPDATE progress SET position = ?, mark = ?');
      advance.run(position, markAt(log, position));
    }
    return count;
  });
  try {
    return batch.immediate(writeRow);
  } catch (error) {
    if (isEnvironmentFailure(error)) throw error;
    return batch.immediate((...args) => {
      if (!writeIfReadable(...args)) skipped.push(args[1].position);
    });
  }
}

/** Indexes the next rows in a read transaction of the log. Returns the indexed rows; none at the end of the log. */
function indexRows(
  index: Database,
  step: { reading: LogReading; write: typeof writeRow; position: number; limit: number },
): LogRow[] {
  const { reading, write, position, limit } = step;
  const endMs = performance.now() + readMsMax;
  const rows = readLog(() =>
    prepared<[number, number], LogRow>(reading.log, rowsAfterSql).all(position, limit),
  );
  const indexed: LogRow[] = [];
  for (const row of rows) {
    const isNextBody = row.bodyId !== indexed.at(-1)?.bodyId;
    if (isNextBody && indexed.length > 0 && performance.now() >= endMs) break;
    write(index, row, reading);
    indexed.push(row);
  }
  return indexed;
}

/**
 * Removes events that are no longer in the log, some in one transaction. Removes a product without remaining events.
 * Rewrites other products from their remaining events, so that the index equals one built from this log.
 */
function pruneIndexed({ log, index }: IndexFiles): PruneDone {
  const eventsMax = limitLog(index) < 0 ? pruneEventsShort : pruneEvents;
  const upTo = readLog(() => pruneHorizon(log))?.position ?? 0;
  const oldest = prepared<[number, number], { position: number; product: number }>(
    index,
    `SELECT position, product FROM product_event WHERE position <= ?
     ORDER BY position LIMIT ?`,
  );
  // Without this check, each call would lock the index.
  if (oldest.get(upTo, 1) === undefined) return { events: 0, skipped: [] };
  const positionsOf = prepared<[number], number>(
    index,
    'SELECT position FROM product_event WHERE product = ? ORDER BY position',
  ).pluck();
  const prune = index.transaction((): PruneDone => {
    const skipped: number[] = [];
    const events = oldest.all(upTo, eventsMax);
    inSnapshot(log, (reading) => {
      for (const product of new Set(events.map((event) => event.product))) {
        const positions = positionsOf.all(product);
        removeProduct(index, product);
        for (const position of positions) {
          const row = position > upTo ? rowAt(log, position) : undefined;
          if (row !== undefined && !writeIfReadable(index, row, reading)) skipped.push(position);
        }
      }
    });
    return { events: events.length, skipped };
  });
  return prune.immediate();
}

/** A read transaction of the log. */
interface LogReading {
  log: Database;
  bodies: BodyReader;
}

/** Reads in one transaction of the log, so that each pack of bodies is read only once. */
function inSnapshot<Result>(log: Database, read: (reading: LogReading) => Result): Result {
  return log.transaction(() => read({ log, bodies: createBodyReader(log, 'transaction') }))();
}

function writeRow(index: Database, row: LogRow, reading: LogReading): void {
  writeNotification(index, { ...row, record: recordOf(reading, row) }, (position) => {
    const other = rowAt(reading.log, position);
    return other === undefined ? null : recordOf(reading, other);
  });
}

/** Returns false for a notification on which our own code fails: it is skipped, so that it does not block the others. */
function writeIfReadable(index: Database, row: LogRow, reading: LogReading): boolean {
  try {
    index.transaction(() => writeRow(index, row, reading))();
    return true;
  } catch (error) {
    if (isEnvironmentFailure(error)) throw error;
    return false;
  }
}

type LogRow = Omit<LoggedNotification, 'record'> & { bodyIndex: number; bodyId: number };

/*
 * A late push is counted on the recovered row and sets its NotificationDate. The index ignores that date:
 * derived values must not depend on the time of reading.
 */
const columns = `position, product_id AS productId, product_name AS productName, event,
  subscription, source, received_at_us AS receivedAtUs, body_index AS bodyIndex, body_id AS bodyId,
  CASE source WHEN 'reconcile' THEN NULL ELSE notification_date_us END AS notificationDateUs`;
const rowsAfterSql = `SELECT ${columns} FROM notification WHERE position > ? ORDER BY position LIMIT ?`;
const rowAtSql = `SELECT ${columns} FROM notification WHERE position = ?`;

function rowAt(log: Database, position: number): LogRow | undefined {
  return readLog(() => prepared<[number], LogRow>(log, rowAtSql).get(position));
}

/** Throws for a damaged body: it is then skipped, and a comparison with the catalogue recovers its events. */
function recordOf({ bodies }: LogReading, { bodyId, bodyIndex }: LogRow): ProductRecord | null {
  const body = readBody(bodies, bodyId);
  if (body === undefined) return null;
  const document = bodyDocument(body);
  if (document === undefined) throw new Error(`Body ${bodyId} is not JSON.`);
  return recordIn(document, bodyIndex);
}

function readBody(bodies: BodyReader, bodyId: number): Uint8Array | undefined {
  try {
    return bodies.body(bodyId);
  } catch (error) {
    // A damaged body is skipped; an unreadable log ends the batch.
    if (isAppError(error)) throw new Error(`Body ${bodyId} cannot be read.`, { cause: error });
    throw storeError(error);
  }
}
