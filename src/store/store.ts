/** Opens the store: the ports of the domain on one SQLite file, with a writer thread and a query thread. */

import type { AcquireLock, Administration, AdministrationReader } from '../admin/account.ts';
import { type OperationName, pick, type Remote, remote } from '../core/host/rpc.ts';
import { threadFileOf } from '../core/host/thread.ts';
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
} from '../core/terms/ports.ts';
import type { AlertReader, Alerts } from '../features/alerts/terms.ts';
import type { Completeness, CompletenessReader } from '../features/coverage/completeness.ts';
import type { Pruning, PruningReader } from '../features/pruning/terms.ts';
import type { FollowerState } from '../features/shared-log/follower.ts';
import type { SharedLog } from '../features/shared-log/terms.ts';
import type { SinkReader, Sinks } from '../features/sinks/terms.ts';
import type { Summaries, SummaryReader } from '../features/summary/terms.ts';
import { requireDatabase } from './engine/database.ts';
import type { DataPlace } from './engine/disk-limit.ts';
import { createAcquireLock } from './engine/locks.ts';
import { StoreThread } from './engine/thread.ts';
import { rememberingReads } from './engine/unchanged-reads.ts';
import { IntakeActivity } from './log/intake-activity.ts';
import { IntakeQueue } from './log/intake-queue.ts';
import type { Writes } from './log/writer-thread.ts';
import { changeAll, pages } from './paging.ts';
import type { Reads } from './query-thread.ts';

/** Maximum memory for bodies that wait for their commit: 64 MiB, about 13,000 notifications. */
const queueBytesMaxDefault = 64 * 2 ** 20;

/** Maximum quarantine entries removed in one transaction: other programs wait for the lock. */
const dropMax = 100;

/** Timeout of a delivery: its sender then gets 503 and may retry. */
const callTimeoutSeconds = 30;

/** The queries of the store. */
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
    /** Place in the shared log; null for a store of its own. */
    node: NodeState | null;
    /** Commits of this process. */
    activity: IntakeActivity;
    /** Memory of bodies that wait for their commit, and its limit. */
    queue(): { bytes: number; bytesMax: number };
    /** Acquires a lock: of this data directory or, with a shared log, of all nodes. */
    acquireLock: AcquireLock;
    /** False while no writer thread runs; the next use restarts it. */
    isWriterRunning(): boolean;
    close(): Promise<void>;
  };

/** Place of a node in the shared log. */
export interface NodeState {
  log: SharedLog;
  id: string;
  state(): FollowerState;
  /** Resolves when this node has applied everything that is in the shared log now. Rejects with `unavailable`. */
  caughtUp(): Promise<void>;
  /** Saves a checkpoint of this node in the shared log; returns the number of its entry. */
  saveCheckpoint(): Promise<number>;
}

/** Reads that background jobs repeat every second or more often. */
const repeatedReads: ReadonlySet<string> = new Set([
  'log.cursor',
  'log.lastPosition',
  'sinks.counts',
  'sinks.nextDueAtUs',
  'sinks.replays',
  'summaries.waiting',
  'alerts.openDeliveries',
  'pruning.pruneHorizon',
] satisfies OperationName<Reads>[]);

/** Time without a query after which the query thread ends. */
const queryIdleSeconds = 5;

/** Opens an existing store for queries only. The first query opens the file. */
export function openStoreReader(dataDir: string): StoreReader {
  // No timeout: a scan of a very large log may take long and delays no one else.
  const thread = new StoreThread(threadFileOf('./query-thread', import.meta.url), {
    dataDir,
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
    idleSeconds: queryIdleSeconds,
  });
  const reads = remote<Reads>(rememberingReads(thread, dataDir, repeatedReads));
  return { ...readPorts(reads), close: () => thread.close() };
}

/** Returns the read-only ports, based on the operations of a query thread. */
export function readPorts(reads: Remote<Reads>): Omit<StoreReader, 'close'> {
  const { log, quarantine, account, alerts, coverage, sinks, summaries, backups, pruning } = reads;
  return {
    ...pick(log, ['body', 'original', 'lastPosition', 'drift', 'counts', 'cursor', 'nodeId']),
    find: (query) => findRows(log, query),
    ...pick(quarantine, ['quarantinedCount', 'quarantineEntry']),
    quarantined: ({ released, beforeId = Number.MAX_SAFE_INTEGER, limit }) =>
      pages(limit, (rowsMax, last) =>
        quarantine.page({ released, beforeId: last?.id ?? beforeId, rowsMax }),
      ),
    administration: pick(account, ['registrations', 'history', 'gaps', 'deliveryMarks', 'queues']),
    summaries: {
      ...pick(summaries, ['textsOf', 'due', 'waiting', 'spending', 'refusedAnswer']),
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
      'stored',
      'unprunedSinceUs',
    ]),
    alerts: {
      ...pick(alerts, ['alerts', 'unsentDeliveries']),
      dueDeliveries: async (query) =>
        (await alerts.openDeliveries()) === 0 ? [] : alerts.dueDeliveries(query),
    },
    sinks: {
      ...pick(sinks, ['nextDueAtUs', 'deliveries', 'counts', 'sameReplay', 'replays']),
      due: async (query) =>
        (await sinks.nextDueAtUs(query.sink)) === null ? [] : sinks.due(query),
      items: ({ limit, ...query }) =>
        pages(limit, (rowsMax, last) =>
          sinks.itemsPage({ ...query, beforeId: last?.id ?? Number.MAX_SAFE_INTEGER, rowsMax }),
        ),
    },
    backups: pick(backups, ['lastBackups']),
    pruning: pick(pruning, ['pruneHorizon', 'pruneBlockers', 'logSize', 'prunable']),
  };
}

async function* findRows(
  log: Remote<Reads['log']>,
  requested: NotificationQuery,
): AsyncGenerator<NotificationRow> {
  const query = await log.narrowByTime(requested);
  yield* pages(query.limit, (rowsMax, last: NotificationRow | undefined) => {
    const after = query.order === 'oldest' ? 'afterPosition' : 'beforePosition';
    const bounds = last === undefined ? {} : { [after]: last.position };
    return log.page({ ...query, ...bounds }, rowsMax);
  });
}

/**
 * Opens the store for reading and writing. Creates the directory and the file when they are missing.
 * Rejects with `configuration` for a file of another program or version, `unavailable` for a disk
 * that is not writable.
 */
export async function openStore(
  options: DataPlace & {
    nowUs: () => number;
    queueBytesMax?: number;
    /** Refuses to create a database: for commands that work on an existing one. */
    mustExist?: boolean;
    /** Called after each commit of deliveries; must not throw. */
    onCommit?: ((commit: CommitFacts) => void) | undefined;
  },
): Promise<Store> {
  const { dataDir, diskReserveBytes, nowUs, queueBytesMax = queueBytesMaxDefault } = options;
  if (options.mustExist) requireDatabase(dataDir);
  const activity = new IntakeActivity();
  const thread = new StoreThread(threadFileOf('./log/writer-thread', import.meta.url), {
    dataDir,
    diskReserveBytes,
    callTimeoutSeconds,
    onCommit: (commit) => {
      activity.note(commit);
      options.onCommit?.(commit);
    },
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
  const ports = writePorts(reader, writer);
  return {
    ...reader,
    ...ports,
    accept: (delivery) => intake.accept(delivery),
    checkWritable: () => intake.checkWritable(),
    acquireLock: createAcquireLock(dataDir),
    node: null,
    activity,
    queue: () => ({ bytes: intake.queuedBytes, bytesMax: queueBytesMax }),
    isWriterRunning: () => thread.isRunning,
    ...pick(writer, ['retry']),
    completeness: {
      ...ports.completeness,
      recover: async (options) => {
        const positions = await ports.completeness.recover(options);
        activity.wake();
        return positions;
      },
    },
    close: async () => {
      intake.flush();
      await reader.close();
      await thread.close();
    },
  };
}

/** Returns the ports of the whole store, except those of the intake. */
export function writePorts(reader: StoreReader, writer: Remote<Writes>) {
  return {
    ...changePorts(reader, writer),
    ...pick(writer.log, ['moveCursor']),
    drop: async (ids: readonly number[]) => {
      let dropped = 0;
      for (let from = 0; from < ids.length; from += dropMax) {
        dropped += await writer.quarantine.drop(ids.slice(from, from + dropMax));
      }
      return dropped;
    },
  };
}

/** Returns the ports with changes: the queries of the reader plus the operations of the writer. */
export function changePorts(
  reader: Omit<StoreReader, 'close'>,
  writer: Remote<Writes>,
): Pick<
  Store,
  'administration' | 'summaries' | 'completeness' | 'alerts' | 'sinks' | 'backups' | 'pruning'
> {
  const { account, summaries, coverage, alerts, sinks, backups, pruning } = writer;
  return {
    administration: {
      ...reader.administration,
      ...pick(account, ['commit', 'markDeliveries', 'saveQueues']),
    },
    summaries: {
      ...reader.summaries,
      ...pick(summaries, ['enqueue', 'beginRequest', 'settle']),
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
