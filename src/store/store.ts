/** Opens the store: the ports of the domain over one SQLite file, one writer thread, one query thread. */
import type { Administration, AdministrationReader } from '../domain/administration.ts';
import type { AlertReader, Alerts } from '../domain/alerts.ts';
import type { BackupReader, Backups } from '../domain/backups.ts';
import type { CommitFacts } from '../domain/commit-facts.ts';
import type { Completeness, CompletenessReader } from '../domain/completeness.ts';
import type {
  Cursors,
  DriftCount,
  Intake,
  LogCounts,
  NotificationLog,
  NotificationQuery,
  NotificationRow,
  OriginalBody,
  Quarantine,
  QuarantineEntry,
  QuarantineRow,
  Receipt,
} from '../domain/ports.ts';
import type { Pruning, PruningReader } from '../domain/pruning.ts';
import type { SinkReader, Sinks } from '../domain/sinks.ts';
import type { Summaries, SummaryReader } from '../domain/summaries.ts';
import { createAdministration, createAdministrationReader } from './administration.ts';
import { createAlertReader, createAlerts } from './alerts.ts';
import { createBackupReader, createBackups } from './backups/backups.ts';
import { createCompleteness, createCompletenessReader } from './completeness.ts';
import { requireDatabase } from './engine/database.ts';
import type { DataPlace } from './engine/disk-limit.ts';
import { StoreThread, threadFile } from './engine/thread.ts';
import { IntakeQueue } from './intake-queue.ts';
import {
  byMessages,
  type MessageThread,
  type QueryRequest,
  type WriterRequest,
} from './messages.ts';
import { pages } from './pages.ts';
import { createPruning, createPruningReader } from './pruning/pruning.ts';
import { createSinkReader, createSinks } from './sinks.ts';
import { createSummaries, createSummaryReader } from './summaries.ts';

/** Bodies that wait for their commit may take up 64 MiB: some 13,000 notifications. */
const queueBytesMaxDefault = 64 * 2 ** 20;

/** Entries of the quarantine that one transaction removes: other programs wait for the lock. */
const dropMax = 100;

/** A delivery without an answer after this long is given up: its sender gets 503 and may try again. */
const callTimeoutSeconds = 30;

/** What can be asked of the store. */
export type StoreReader = NotificationLog &
  Pick<Cursors, 'cursor'> &
  Omit<Quarantine, 'retry' | 'drop'> & {
    administration: AdministrationReader;
    summaries: SummaryReader;
    completeness: CompletenessReader;
    alerts: AlertReader;
    sinks: SinkReader;
    backups: BackupReader;
    pruning: PruningReader;
    close(): Promise<void>;
  };

export type Store = Intake &
  NotificationLog &
  Cursors &
  Quarantine & {
    administration: Administration;
    summaries: Summaries;
    completeness: Completeness;
    alerts: Alerts;
    sinks: Sinks;
    backups: Backups;
    pruning: Pruning;
    /** Bodies that wait for their commit, and how much of them may. */
    queue(): { bytes: number; bytesMax: number };
    /** False while there is no thread that writes; it is started anew when it is needed. */
    isWriterRunning(): boolean;
    close(): Promise<void>;
  };

/** Opens an existing store for questions only. The file is opened with the first one. */
export function openStoreReader(dataDir: string): StoreReader {
  // No time limit: a scan of a very large log may take long, and nobody else waits for it.
  const worker = new StoreThread(threadFile('query-thread'), {
    dataDir,
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
  });
  const thread = byMessages<QueryRequest>(worker);
  return {
    find: (query) => findRows(thread, query),
    body: (position) => thread.call<Uint8Array>((id) => ({ op: 'body', id, position })),
    original: (position) => thread.call<OriginalBody>((id) => ({ op: 'original', id, position })),
    lastPosition: () => thread.call<number>((id) => ({ op: 'last-position', id })),
    drift: () => thread.call<DriftCount[]>((id) => ({ op: 'drift', id })),
    counts: () => thread.call<LogCounts>((id) => ({ op: 'counts', id })),
    cursor: (reader) => thread.call<number | null>((id) => ({ op: 'cursor', id, reader })),
    quarantined: ({ released, limit }) =>
      pages<QuarantineRow>(limit, (rowsMax, last) => {
        const beforeId = last?.id ?? Number.MAX_SAFE_INTEGER;
        return thread.call((id) => ({ op: 'quarantined', id, released, beforeId, rowsMax }));
      }),
    heldCount: () => thread.call<number>((id) => ({ op: 'held-count', id })),
    quarantineEntry: (quarantineId) =>
      thread.call<QuarantineEntry>((id) => ({ op: 'quarantine-entry', id, quarantineId })),
    administration: createAdministrationReader(thread),
    summaries: createSummaryReader(thread),
    completeness: createCompletenessReader(thread),
    alerts: createAlertReader(thread),
    sinks: createSinkReader(thread),
    backups: createBackupReader(thread),
    pruning: createPruningReader(thread),
    close: () => worker.close(),
  };
}

async function* findRows(
  thread: MessageThread<QueryRequest>,
  asked: NotificationQuery,
): AsyncGenerator<NotificationRow> {
  const query = await thread.call<NotificationQuery>((id) => ({
    op: 'narrow-by-time',
    id,
    query: asked,
  }));
  yield* pages<NotificationRow>(query.limit, (rowsMax, last) => {
    const after = query.order === 'oldest' ? 'afterPosition' : 'beforePosition';
    const bounds = last === undefined ? {} : { [after]: last.position };
    return thread.call((id) => ({ op: 'find', id, rowsMax, query: { ...query, ...bounds } }));
  });
}

/**
 * Opens the store for everything; makes the directory and the file when they are not there.
 * Rejects with `configuration` for a file that cannot be ours, `unavailable` for a disk that
 * cannot be written.
 */
export async function openStore(
  options: DataPlace & {
    nowUs: () => number;
    queueBytesMax?: number;
    /** Refuses to make a new database: for commands that work on an existing one. */
    mustExist?: boolean;
    /** Called after each commit of deliveries; must not throw. */
    onCommit?: ((commit: CommitFacts) => void) | undefined;
  },
): Promise<Store> {
  const { dataDir, diskReserveBytes, nowUs, queueBytesMax = queueBytesMaxDefault } = options;
  if (options.mustExist) requireDatabase(dataDir);
  const worker = new StoreThread(threadFile('writer-thread'), {
    dataDir,
    diskReserveBytes,
    callTimeoutSeconds,
    onCommit: options.onCommit,
  });
  const thread = byMessages<WriterRequest>(worker);
  try {
    await worker.start();
  } catch (error) {
    await worker.close();
    throw error;
  }
  const intake = new IntakeQueue({ thread: worker, nowUs, queueBytesMax });
  const reader = openStoreReader(dataDir);
  return {
    ...reader,
    accept: (delivery) => intake.accept(delivery),
    checkWritable: () => intake.checkWritable(),
    queue: () => ({ bytes: intake.queuedBytes, bytesMax: queueBytesMax }),
    isWriterRunning: () => worker.isRunning,
    moveCursor: (name, position, atUs) =>
      thread.call<void>((id) => ({ op: 'move-cursor', id, reader: name, position, atUs })),
    retry: (quarantineId, atUs) =>
      thread.call<Receipt>((id) => ({ op: 'retry', id, quarantineId, atUs })),
    drop: async (quarantineIds) => {
      let dropped = 0;
      for (let from = 0; from < quarantineIds.length; from += dropMax) {
        const some = quarantineIds.slice(from, from + dropMax);
        dropped += await thread.call<number>((id) => ({
          op: 'drop-quarantined',
          id,
          quarantineIds: some,
        }));
      }
      return dropped;
    },
    administration: createAdministration(reader.administration, thread),
    summaries: createSummaries(reader.summaries, thread),
    completeness: createCompleteness(reader.completeness, thread),
    alerts: createAlerts(reader.alerts, thread),
    sinks: createSinks(reader.sinks, thread),
    backups: createBackups(reader.backups, thread),
    pruning: createPruning(reader.pruning, thread),
    close: async () => {
      intake.flush();
      await reader.close();
      await worker.close();
    },
  };
}
