/** Opens the store: the ports of the domain over one SQLite file, one writer thread, one query thread. */
import type { Administration, AdministrationReader } from '../domain/account.ts';
import type { AlertReader, Alerts } from '../domain/alerts.ts';
import type { Completeness, CompletenessReader } from '../domain/completeness.ts';
import type {
  BackupReader,
  Backups,
  CommitFacts,
  Cursors,
  Intake,
  NotificationLog,
  NotificationQuery,
  NotificationRow,
  Quarantine,
} from '../domain/ports.ts';
import type { Pruning, PruningReader } from '../domain/pruning.ts';
import type { SinkReader, Sinks } from '../domain/sinks.ts';
import type { Summaries, SummaryReader } from '../domain/summaries.ts';
import { requireDatabase } from './engine/database.ts';
import type { DataPlace } from './engine/disk-limit.ts';
import { pick, type Remote, remote } from './engine/rpc.ts';
import { StoreThread, threadFile } from './engine/thread.ts';
import { IntakeQueue } from './log/intake-queue.ts';
import type { Writes } from './log/writer-thread.ts';
import { changeAll, pages } from './paging.ts';
import type { Reads } from './query-thread.ts';

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

/** Opens an existing store for queries only. The file is opened with the first one. */
export function openStoreReader(dataDir: string): StoreReader {
  // No time limit: a scan of a very large log may take long, and nobody else waits for it.
  const thread = new StoreThread(threadFile('query-thread'), {
    dataDir,
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
  });
  return { ...readPorts(remote<Reads>(thread)), close: () => thread.close() };
}

/** The ports that only read, over the operations of a query thread. */
export function readPorts(reads: Remote<Reads>): Omit<StoreReader, 'close'> {
  const { log, quarantine, account, alerts, coverage, sinks, summaries, backups, pruning } = reads;
  return {
    ...pick(log, ['body', 'original', 'lastPosition', 'drift', 'counts', 'cursor']),
    find: (query) => findRows(log, query),
    ...pick(quarantine, ['quarantinedCount', 'quarantineEntry']),
    quarantined: ({ released, limit }) =>
      pages(limit, (rowsMax, last) =>
        quarantine.page({ released, beforeId: last?.id ?? Number.MAX_SAFE_INTEGER, rowsMax }),
      ),
    administration: pick(account, ['registrations', 'history', 'gaps', 'deliveryMarks']),
    summaries: {
      ...pick(summaries, ['textsOf', 'due', 'nextDueAtUs', 'known']),
      ...pick(summaries, ['spending', 'counts', 'backlog']),
      find: (query) =>
        pages(query.limit, (rowsMax, last) =>
          summaries.page({ ...query, beforeId: last?.id ?? query.beforeId }, rowsMax),
        ),
    },
    completeness: pick(coverage, [
      'recoveredEvents',
      'definitions',
      'uptimes',
      'coverage',
      'arrivals',
      'unprunedSinceUs',
    ]),
    alerts: pick(alerts, ['alerts', 'dueDeliveries', 'unsentDeliveries']),
    sinks: {
      ...pick(sinks, ['due', 'nextDueAtUs', 'deliveries', 'counts', 'sameReplay', 'replays']),
      items: ({ sink, state, limit }) =>
        pages(limit, (rowsMax, last) =>
          sinks.itemsPage({ sink, state, beforeId: last?.id ?? Number.MAX_SAFE_INTEGER, rowsMax }),
        ),
    },
    backups: pick(backups, ['lastBackups']),
    pruning: pick(pruning, ['pruneHorizon', 'pruneBlockers', 'logSize', 'prunable']),
  };
}

async function* findRows(
  log: Remote<Reads['log']>,
  asked: NotificationQuery,
): AsyncGenerator<NotificationRow> {
  const query = await log.narrowByTime(asked);
  yield* pages(query.limit, (rowsMax, last: NotificationRow | undefined) => {
    const after = query.order === 'oldest' ? 'afterPosition' : 'beforePosition';
    const bounds = last === undefined ? {} : { [after]: last.position };
    return log.page({ ...query, ...bounds }, rowsMax);
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
  const thread = new StoreThread(threadFile('log/writer-thread'), {
    dataDir,
    diskReserveBytes,
    callTimeoutSeconds,
    onCommit: options.onCommit,
  });
  try {
    await thread.start();
  } catch (error) {
    await thread.close();
    throw error;
  }
  const writer = remote<Writes>(thread);
  const intake = new IntakeQueue({ thread, nowUs, queueBytesMax });
  const reader = openStoreReader(dataDir);
  return {
    ...reader,
    accept: (delivery) => intake.accept(delivery),
    checkWritable: () => intake.checkWritable(),
    queue: () => ({ bytes: intake.queuedBytes, bytesMax: queueBytesMax }),
    isWriterRunning: () => thread.isRunning,
    ...pick(writer.log, ['moveCursor']),
    ...pick(writer, ['retry']),
    drop: async (ids) => {
      let dropped = 0;
      for (let from = 0; from < ids.length; from += dropMax) {
        dropped += await writer.quarantine.drop(ids.slice(from, from + dropMax));
      }
      return dropped;
    },
    ...changePorts(reader, writer),
    close: async () => {
      intake.flush();
      await reader.close();
      await thread.close();
    },
  };
}

/** The ports that the program changes: the queries of the reader, and the changes. */
export function changePorts(
  reader: Omit<StoreReader, 'close'>,
  writer: Remote<Writes>,
): Pick<
  Store,
  'administration' | 'summaries' | 'completeness' | 'alerts' | 'sinks' | 'backups' | 'pruning'
> {
  const { account, summaries, coverage, alerts, sinks, backups, pruning } = writer;
  return {
    administration: { ...reader.administration, ...pick(account, ['commit', 'markDeliveries']) },
    summaries: {
      ...reader.summaries,
      ...pick(summaries, ['enqueue', 'claim', 'settle']),
      retry: (options) => changeAll(() => summaries.retrySome(options)),
      drop: (options) => changeAll(() => summaries.dropSome(options)),
    },
    completeness: {
      ...reader.completeness,
      ...pick(coverage, ['recover', 'saveCoverage', 'recordUptime', 'beginRun', 'endRun']),
    },
    alerts: { ...reader.alerts, ...pick(alerts, ['settleFindings', 'settleDelivery']) },
    sinks: {
      ...reader.sinks,
      ...pick(sinks, ['enqueue', 'settle', 'addReplay']),
      retry: (options) => changeAll(() => sinks.retrySome(options)),
      drop: (options) => changeAll(() => sinks.dropSome(options)),
    },
    backups: { ...reader.backups, ...pick(backups, ['recordBackup']) },
    pruning: {
      ...reader.pruning,
      ...pick(writer, ['pruneStep', 'checkpoint']),
      ...pick(pruning, ['removeReader']),
    },
  };
}
