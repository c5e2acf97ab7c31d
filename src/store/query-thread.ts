/** The query thread: a reading connection off the main thread, so that no query delays an answer. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { deliveryMarks, gaps, history, registrations } from './administration-queries.ts';
import { askAlerts } from './alert-queries.ts';
import { lastBackups } from './backups/backup-runs.ts';
import { askCompleteness } from './completeness-queries.ts';
import {
  bodyAt,
  cursorOf,
  driftCounts,
  findPage,
  lastPosition,
  logCounts,
  narrowByTime,
  originalAt,
} from './log-queries.ts';
import type { QueryRequest, Settled, ThreadMessage } from './messages.ts';
import { askPruning } from './pruning/prune-queries.ts';
import { heldCount, quarantineEntry, quarantinePage } from './quarantine-queries.ts';
import { createReaderConnection, type ReaderConnection } from './reader-connection.ts';
import { sentError } from './sent-error.ts';
import { askSinks } from './sink-queries.ts';
import { askSummaries } from './summary-queries.ts';

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const { dataDir } = workerData as { dataDir: string };
const post = (message: ThreadMessage) => port.postMessage(message);

try {
  const connection = createReaderConnection(dataDir);
  port.on('message', (request: QueryRequest) => {
    post({ kind: 'settled', settled: [answer(connection, request)] });
    if (request.op === 'close') port.close();
  });
  post({ kind: 'started' });
} catch (error) {
  post({ kind: 'failed', error: sentError(error) });
}

function answer(connection: ReaderConnection, request: QueryRequest): Settled {
  try {
    if (request.op === 'close') return { id: request.id, value: connection.close() };
    return { id: request.id, value: perform(connection.database(), request) };
  } catch (error) {
    return { id: request.id, error: sentError(error) };
  }
}

function perform(database: Database, request: Exclude<QueryRequest, { op: 'close' }>): unknown {
  switch (request.op) {
    case 'find':
      return findPage(database, request.query, request.rowsMax);
    case 'narrow-by-time':
      return narrowByTime(database, request.query);
    case 'body':
      return bodyAt(database, request.position);
    case 'original':
      return originalAt(database, request.position);
    case 'last-position':
      return lastPosition(database);
    case 'drift':
      return driftCounts(database);
    case 'counts':
      return logCounts(database);
    case 'cursor':
      return cursorOf(database, request.reader);
    case 'quarantined':
      return quarantinePage(database, request);
    case 'held-count':
      return heldCount(database);
    case 'quarantine-entry':
      return quarantineEntry(database, request.quarantineId);
    case 'registrations':
      return registrations(database);
    case 'history':
      return history(database, request);
    case 'gaps':
      return gaps(database);
    case 'delivery-marks':
      return deliveryMarks(database);
    case 'ask-summaries':
      return askSummaries(database, request.question);
    case 'ask-completeness':
      return askCompleteness(database, request.question);
    case 'ask-alerts':
      return askAlerts(database, request.question);
    case 'ask-sinks':
      return askSinks(database, request.question);
    case 'last-backups':
      return lastBackups(database);
    case 'ask-pruning':
      return askPruning(database, request.question);
  }
}
