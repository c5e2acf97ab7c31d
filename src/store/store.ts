/** Opens the store: the ports of the domain on one SQLite file, with a writer thread and a query thread. */

import type { CredentialPairs } from '../core/config/endpoint-credentials.ts';
import type { AcquireLock } from '../core/host/job.ts';
import { moduleFile, type OperationName, pick, type Remote, remote } from '../core/host/rpc.ts';
import type {
  CommitFacts,
  Cursors,
  Intake,
  NotificationLog,
  NotificationQuery,
  NotificationRow,
  Quarantine,
} from '../core/terms/ports.ts';
import { requireDatabase } from './engine/database.ts';
import type { DataPlace } from './engine/disk-limit.ts';
import { createAcquireLock } from './engine/locks.ts';
import { StoreThread } from './engine/thread.ts';
import { rememberingReads } from './engine/unchanged-reads.ts';
import { IntakeActivity } from './log/intake-activity.ts';
import { IntakeQueue } from './log/intake-queue.ts';
import type { RecoverOptions } from './log/recovered-events.ts';
import type { Writes } from './log/writer-thread.ts';
import { pages } from './paging.ts';
import type { Pruning, PruningReader } from './pruning/terms.ts';
import type { Reads } from './query-thread.ts';
import { type ReaderPorts, type StorePorts, type TablesSlot, tableFiles } from './tables.ts';

/** Maximum memory for bodies that wait for their commit: 64 MiB, about 13,000 notifications. */
const queueBytesMaxDefault = 64 * 2 ** 20;

/** Maximum quarantine entries removed in one transaction: other programs wait for the lock. */
const dropMax = 100;

/** Timeout of a delivery: its sender then gets 503 and may retry. */
const callTimeoutSeconds = 30;

/** The queries of the store. */
export interface StoreReader
  extends NotificationLog,
    Pick<Cursors, 'cursor'>,
    Omit<Quarantine, 'retry' | 'drop'>,
    ReaderPorts {
  pruning: PruningReader;
  close(): Promise<void>;
}

export interface Store extends Intake, NotificationLog, Cursors, Quarantine, StorePorts {
  pruning: Pruning;
  /**
   * Writes events of one subscription to the log, except known ones: already recovered, or pushed after position
   * `knownUpTo`. A later push of such an event is counted on its row. Updates the counts of hours already compared.
   * Resolves with the new positions; null for known events and for those before the first hour that was not pruned.
   */
  recover(options: RecoverOptions): Promise<(number | null)[]>;
  /** Parts shared with other receivers; null for a store of its own. */
  shared: Shared | null;
  /** Commits of this process. */
  activity: IntakeActivity;
  /** Memory of bodies that wait for their commit, and its limit. */
  queue(): { bytes: number; bytesMax: number };
  /** Acquires a lock: of this data directory or, with a shared log, of all nodes. */
  acquireLock: AcquireLock;
  /** False while no writer thread runs; the next use restarts it. */
  isWriterRunning(): boolean;
  close(): Promise<void>;
}

/** Copies changed files between the data directory and the other receivers, in both directions. */
export type FileSync = () => Promise<void>;

/** A store that several receivers share. The feature that provides it adds to this interface. */
export interface Shared {
  syncFiles: FileSync;
  /**
   * Writes the endpoint credentials, and waits until every running receiver accepts them. Rejects with `unavailable` when
   * one does not.
   */
  shareCredentials(pairs: CredentialPairs, signal: AbortSignal): Promise<void>;
}

/** Reads that background jobs repeat every second or more often. */
const repeatedReads: readonly OperationName<Reads>[] = [
  'log.cursor',
  'log.lastPosition',
  'pruning.pruneHorizon',
];

/** Time without a query after which the query thread ends. */
const queryIdleSeconds = 5;

/** Opens an existing store for queries only. The first query opens the file. */
export function openStoreReader(dataDir: string, tables: readonly TablesSlot[]): StoreReader {
  // No timeout: a scan of a very large log may take long and delays no one else.
  const thread = new StoreThread(moduleFile('./query-thread', import.meta.url), {
    dataDir,
    tables: tableFiles(tables),
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
    idleSeconds: queryIdleSeconds,
  });
  const repeated = tables.flatMap(({ group, repeated: names = [] }) =>
    names.map((name) => `${group}.${name}`),
  );
  const caller = rememberingReads(thread, dataDir, new Set([...repeatedReads, ...repeated]));
  return { ...readPorts(remote<Reads>(caller), tables), close: () => thread.close() };
}

/** Returns the read-only ports, based on the operations of a query thread. */
export function readPorts(
  reads: Remote<Reads>,
  tables: readonly TablesSlot[],
): Omit<StoreReader, 'close'> {
  const { log, quarantine, pruning } = reads;
  const groups = reads as unknown as Record<string, never>;
  const ports = tables.map(({ group, reader }) => [group, reader(groups[group] as never)]);
  return {
    ...(Object.fromEntries(ports) as ReaderPorts),
    ...pick(log, ['body', 'original', 'lastPosition', 'drift', 'counts', 'cursor', 'nodeId']),
    find: (query) => findRows(log, query),
    ...pick(quarantine, ['quarantinedCount', 'quarantineEntry']),
    quarantined: ({ released, beforeId = Number.MAX_SAFE_INTEGER, limit }) =>
      pages(limit, (rowsMax, last) =>
        quarantine.page({ released, beforeId: last?.id ?? beforeId, rowsMax }),
      ),
    pruning: pick(pruning, ['pruneHorizon', 'prunePhases', 'pruneBlockers', 'logSize', 'prunable']),
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
    /** Tables of features. */
    tables: readonly TablesSlot[];
    nowUs: () => number;
    queueBytesMax?: number;
    /** Refuses to create a database: for commands that work on an existing one. */
    mustExist?: boolean;
    /** Called after each commit of deliveries; must not throw. */
    onCommit?: ((commit: CommitFacts) => void) | undefined;
  },
): Promise<Store> {
  const { dataDir, diskReserveBytes, tables, nowUs } = options;
  const { queueBytesMax = queueBytesMaxDefault } = options;
  if (options.mustExist) requireDatabase(dataDir);
  const activity = new IntakeActivity();
  const thread = new StoreThread(moduleFile('./log/writer-thread', import.meta.url), {
    ...{ dataDir, diskReserveBytes, tables: tableFiles(tables) },
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
  const reader = openStoreReader(dataDir, tables);
  return {
    ...reader,
    ...writePorts(reader, writer, { tables, activity }),
    accept: (delivery) => intake.accept(delivery),
    checkWritable: () => intake.checkWritable(),
    acquireLock: createAcquireLock(dataDir),
    shared: null,
    activity,
    queue: () => ({ bytes: intake.queuedBytes, bytesMax: queueBytesMax }),
    isWriterRunning: () => thread.isRunning,
    ...pick(writer, ['retry']),
    close: async () => {
      intake.flush();
      await reader.close();
      await thread.close();
    },
  };
}

/** Returns the ports of the whole store, except those of the intake. */
export function writePorts(
  reader: StoreReader,
  writer: Remote<Writes>,
  { tables, activity }: { tables: readonly TablesSlot[]; activity: IntakeActivity },
) {
  const recover = async (options: RecoverOptions) => {
    const positions = await writer.log.recover(options);
    activity.wake();
    return positions;
  };
  const ports = tables.map(({ group, store }) => {
    const own = { reader: Reflect.get(reader, group), writes: Reflect.get(writer, group) };
    return [group, store(own.reader as never, own.writes as never, { recover })];
  });
  return {
    ...(Object.fromEntries(ports) as StorePorts),
    ...pick(writer.log, ['moveCursor']),
    recover,
    pruning: {
      ...reader.pruning,
      ...pick(writer, ['pruneStep', 'checkpoint']),
      ...pick(writer.pruning, ['removeReader']),
    },
    drop: async (ids: readonly number[]) => {
      let dropped = 0;
      for (let from = 0; from < ids.length; from += dropMax) {
        dropped += await writer.quarantine.drop(ids.slice(from, from + dropMax));
      }
      return dropped;
    },
  };
}
