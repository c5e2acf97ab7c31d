/** The query thread: a reading connection off the main thread, so that no query delays an answer. */
import type { Database } from 'better-sqlite3';
import { deliveryMarks, gaps, history, registrations } from './administration-queries.ts';
import { askAlerts } from './alert-queries.ts';
import { lastBackups } from './backups/backup-runs.ts';
import { askCompleteness } from './completeness-queries.ts';
import { createReaderConnection } from './engine/database.ts';
import { serveThread } from './engine/serve-thread.ts';
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
import type { QueryRequest } from './messages.ts';
import { askPruning } from './pruning/prune-queries.ts';
import { heldCount, quarantineEntry, quarantinePage } from './quarantine-queries.ts';
import { askSinks } from './sink-queries.ts';
import { askSummaries } from './summary-queries.ts';

const names = [
  'find',
  'narrow-by-time',
  'body',
  'original',
  'last-position',
  'drift',
  'counts',
  'cursor',
  'quarantined',
  'held-count',
  'quarantine-entry',
  'registrations',
  'history',
  'gaps',
  'delivery-marks',
  'ask-summaries',
  'ask-completeness',
  'ask-alerts',
  'ask-sinks',
  'last-backups',
  'ask-pruning',
] as const;

serveThread(({ dataDir }) => {
  const connection = createReaderConnection(dataDir);
  return {
    operations: Object.fromEntries(names.map((name) => [name, perform])),
    context: () => connection.database(),
    close: () => connection.close(),
  };
});

function perform(database: Database, request: QueryRequest): unknown {
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
