/** Opens the store: the ports of the domain on one SQLite file, with a writer thread and a query thread. */

import type { Io } from '../core/cli/io.ts';
import type { DataConfig } from '../core/config/config.ts';
import type { CredentialPairs } from '../core/config/endpoint-credentials.ts';
import type { AcquireLock } from '../core/host/job.ts';
import {
  type Caller,
  moduleFile,
  type OperationName,
  pick,
  type Remote,
  remote,
} from '../core/host/rpc.ts';
import type {
  CommitFacts,
  Cursors,
  Intake,
  Logger,
  NotificationLog,
  NotificationQuery,
  NotificationRow,
  Quarantine,
} from '../core/terms/ports.ts';
import { requireDatabase } from './engine/database.ts';
import type { DataPlace } from './engine/disk-limit.ts';
import { createAcquireLock } from './engine/locks.ts';
import { StoreThread } from './engine/thread.ts';
import {
  IntakeActivity,
  type IntakeOptions,
  IntakeQueue,
  packDeliveries,
} from './log/intake-queue.ts';
import type { RecoverOptions } from './log/recovered-events.ts';
import type { Writes } from './log/writer-thread.ts';
import type { Reads } from './query-thread.ts';
import {
  pages,
  type ReaderPorts,
  type StorePorts,
  type TablesSlot,
  tableFiles,
  tablesOf,
} from './tables.ts';

/** Maximum quarantine entries removed in one transaction: other programs wait for the lock. */
const dropMax = 100;

/** Timeout of a change. */
const callTimeoutSeconds = 30;

/** Maximum deliveries of one commit: their senders are answered while the next one is written. */
const deliveriesMax = 32;

/** The thread writes one commit while the next one waits for it. */
const commitsMax = 2;

/** The queries of the store. */
export interface StoreReader
  extends NotificationLog,
    Pick<Cursors, 'cursor'>,
    Omit<Quarantine, 'retry' | 'drop'>,
    ReaderPorts {
  pruning: Remote<Reads['pruning']>;
  close(): Promise<void>;
}

export interface Store extends Intake, NotificationLog, Cursors, Quarantine, StorePorts {
  pruning: StoreReader['pruning'] & Remote<Writes['file']> & Remote<Writes['pruning']>;
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

/** Reads that background jobs repeat. */
const repeatedReads: readonly OperationName<Reads>[] = [
  'log.cursor',
  'log.lastPosition',
  'pruning.pruneHorizon',
];

/** Time without a query after which the query thread ends. */
const queryIdleSeconds = 5;

/**
 * Opens an existing store for queries only. The first query opens the file. With the activity of a process that knows
 * all changes, reads are repeated only after a change.
 */
export function openStoreReader(
  dataDir: string,
  tables: readonly TablesSlot[],
  activity?: IntakeActivity,
): StoreReader {
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
  const names = new Set([...repeatedReads, ...repeated]);
  const caller = activity === undefined ? thread : rememberingReads(thread, names, activity);
  return { ...readPorts(remote<Reads>(caller), tables), close: () => thread.close() };
}

/** Opens an existing store for short queries on this thread: a command starts 0.1 s earlier than with a thread. */
export async function openReaderHere(
  dataDir: string,
  tables: readonly TablesSlot[],
): Promise<StoreReader> {
  const { createReadsHere } = await import('./query-thread.ts');
  const reads = createReadsHere({ dataDir, tables: tableFiles(tables) });
  return { ...readPorts(remote<Reads>(reads), tables), close: reads.close };
}

/** Returns the read-only ports, based on the operations of a query thread. */
function readPorts(
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
    quarantined: ({ beforeId = Number.MAX_SAFE_INTEGER, limit }) =>
      pages(limit, (rowsMax, last) => quarantine.page(last?.id ?? beforeId, rowsMax)),
    pruning: pick(pruning, [
      'pruneHorizon',
      'prunePhases',
      'pruneBlockers',
      'logSize',
      'prunable',
      'selectPrunable',
    ]),
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
    /** Refuses to create a database: for commands that work on an existing one. */
    mustExist?: boolean;
  } & Pick<IntakeOptions, 'queueBytesMax' | 'onCommit'>,
): Promise<Store> {
  const { dataDir, diskReserveBytes, tables } = options;
  if (options.mustExist) requireDatabase(dataDir);
  const activity = new IntakeActivity();
  const thread = new StoreThread(moduleFile('./log/writer-thread', import.meta.url), {
    ...{ dataDir, diskReserveBytes, tables: tableFiles(tables) },
    callTimeoutSeconds,
    onChanged: () => activity.wake(),
  });
  try {
    await thread.start();
  } catch (error) {
    await thread.close();
    throw error;
  }
  const sharesCommits = groupsThatShare(tables);
  const call: Caller['call'] = (op, args, signal) =>
    sharesCommits(op) ? intake.change({ op, args }) : thread.call(op, args, signal);
  const writer = remote<Writes>(notingChanges({ call }, tables, activity));
  const intake = new IntakeQueue({
    ...{ thread, deliveriesMax, commitsMax, nextCommitMin: deliveriesMax },
    queueBytesMax: options.queueBytesMax,
    commit: (deliveries, changes) => {
      const packed = packDeliveries(deliveries);
      const args = [packed, changes] satisfies Parameters<typeof writer.deliveries>;
      // Without a timeout: the bodies are in memory until the thread has answered.
      const answer = thread.call(
        'deliveries',
        args,
        undefined,
        [packed.buffer],
        Number.POSITIVE_INFINITY,
      );
      return answer as ReturnType<typeof writer.deliveries>;
    },
    check: () => writer.check(),
    onCommit: (commit) => {
      activity.note(commit);
      options.onCommit?.(commit);
    },
  });
  const reader = openStoreReader(dataDir, tables, activity);
  return {
    ...reader,
    ...writePorts(reader, writer, tables),
    accept: (delivery) => intake.accept(delivery),
    checkWritable: () => intake.checkWritable(),
    acquireLock: createAcquireLock(dataDir),
    shared: null,
    activity,
    queue: () => intake.size(),
    isWriterRunning: () => thread.isRunning,
    ...pick(writer, ['retry']),
    close: async () => {
      await intake.drain();
      await reader.close();
      await thread.close();
    },
  };
}

function groupsThatShare(tables: readonly TablesSlot[]): (op: string) => boolean {
  const groups = new Set(tables.filter((one) => one.sharesCommits).map(({ group }) => group));
  return (op) => groups.has(op.split('.')[0] ?? '');
}

/** Returns the ports of the whole store, except those of the intake. */
export function writePorts(
  reader: StoreReader,
  writer: Remote<Writes>,
  tables: readonly TablesSlot[],
) {
  const { recover } = pick(writer.log, ['recover']);
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
      ...pick(writer.file, ['checkpoint', 'checkpointIfFull', 'releaseFreePages']),
      ...pick(writer.pruning, ['removeReader', 'removeSelected']),
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

export interface StoreUse {
  /** Refuses to create a database: for commands that work on an existing one. */
  mustExist?: boolean;
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: (commit: CommitFacts) => void;
  /** By default, nothing is logged. */
  log?: Logger;
}

export type StoreIo = Pick<Io, 'newId' | 'random' | 'features'>;

/** Parts that all receivers share, for commands that do not need the store. */
export interface SharedParts {
  acquireLock: AcquireLock;
  /** Null for a store of its own. */
  syncFiles: FileSync | null;
  close(): Promise<void>;
}

/** A feature by which several receivers share one log. Null: the settings name none. */
export interface SharedStore {
  open(config: DataConfig, io: StoreIo, use: StoreUse): Promise<Store | null>;
  openParts(config: DataConfig, io: StoreIo): Promise<SharedParts | null>;
}

async function sharedStoreOf({ features }: StoreIo): Promise<SharedStore | undefined> {
  return features.find(({ sharedStore }) => sharedStore !== undefined)?.sharedStore?.();
}

export async function openConfiguredStore(
  config: DataConfig,
  io: StoreIo,
  use: StoreUse = {},
): Promise<Store> {
  const shared = await (await sharedStoreOf(io))?.open(config, io, use);
  if (shared != null) return shared;
  const { dataDir, diskReserveBytes } = config;
  const tables = tablesOf(io.features);
  return openStore({ dataDir, diskReserveBytes, ...use, tables });
}

/** Opens what all receivers share. */
export async function openSharedParts(config: DataConfig, io: StoreIo): Promise<SharedParts> {
  const shared = await (await sharedStoreOf(io))?.openParts(config, io);
  if (shared != null) return shared;
  const acquireLock = createAcquireLock(config.dataDir);
  return { acquireLock, syncFiles: null, close: async () => undefined };
}

const nothing = () => undefined;
export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Maximum number of answers: a name of a sink or subscription can be an argument. */
const answersMax = 1_000;

/** Returns the caller with the last answers of these operations remembered until the next change, by their arguments. */
export function rememberingReads(
  caller: Caller,
  names: ReadonlySet<string>,
  activity: Pick<IntakeActivity, 'changes'>,
): Caller {
  const answers = new Map<string, unknown>();
  let changes = activity.changes;
  return {
    call: async (op, args, signal) => {
      if (!names.has(op)) return caller.call(op, args, signal);
      if (changes !== activity.changes) answers.clear();
      changes = activity.changes;
      const before = changes;
      const key = JSON.stringify([op, args]);
      if (answers.has(key)) return answers.get(key);
      const answer = await caller.call(op, args, signal);
      // After a change during the call, the answer may be older.
      if (before === activity.changes && answers.size < answersMax) answers.set(key, answer);
      return answer;
    },
  };
}

/** Returns the caller of changes, each of which is noted when it has ended; after a failure, it may have been made. */
export function notingChanges(
  caller: Caller,
  tables: readonly TablesSlot[],
  activity: Pick<IntakeActivity, 'wake'>,
): Caller {
  const quiet = new Set(
    tables.flatMap(({ group, quiet: names = [] }) => names.map((name) => `${group}.${name}`)),
  );
  return {
    call: async (op, args, signal) => {
      try {
        return await caller.call(op, args, signal);
      } finally {
        if (!quiet.has(op)) activity.wake();
      }
    },
  };
}
