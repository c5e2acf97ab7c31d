/** The thread that indexes: it has the log for reading, and the index for writing. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { inodeOf } from '../database.ts';
import { type DataPlace, requireSpareRoom } from '../disk-limit.ts';
import { lastPosition } from '../log-queries.ts';
import { lowerPriority } from '../lower-priority.ts';
import type { Settled, ThreadMessage } from '../messages.ts';
import { createReaderConnection } from '../reader-connection.ts';
import { sentError } from '../sent-error.ts';
import { createIndexBatches, type IndexBatches } from './index-batch.ts';
import type { IndexRequest, IndexTarget, WorkDone } from './index-messages.ts';
import { indexProgress, readLog } from './index-progress.ts';
import {
  currentProductFile,
  discardBuildingFile,
  installBuildingFile,
  isDamage,
  openBuildingFile,
  openProductFile,
  replaceProductFile,
} from './product-file.ts';

/** What is being filled, and the connections it is filled with. */
interface Work {
  target: IndexTarget;
  log: Database;
  index: Database;
  inode: number;
  batches: IndexBatches;
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
  if (request.op === 'prune') return mended(() => workOn('current', log()).batches.prune());
  if (request.op === 'work') {
    const { target, budgetMs } = request;
    requireRoom();
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

function requireRoom(): void {
  try {
    requireSpareRoom(place, 'Indexing');
  } catch (error) {
    // What is written ahead takes up room twice.
    work?.index.pragma('wal_checkpoint(TRUNCATE)');
    throw error;
  }
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
  if (begun.batches.fitsLog()) return begun;
  // A restored backup, or a log that was begun anew: what the index knows is another story.
  closeIndex();
  return begin(target, log, replaceProductFile(dataDir));
}

function openTarget(target: IndexTarget): Database {
  return target === 'current' ? openProductFile(dataDir) : openBuildingFile(dataDir);
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
    const count = batches.next();
    indexed += count;
    if (count === 0 || performance.now() >= endMs) break;
  }
  const { position: indexedPosition } = indexProgress(index);
  return { indexed, indexedPosition, lastPosition: readLog(() => lastPosition(log)) };
}

function closeIndex(): void {
  work?.index.close();
  work = undefined;
}
