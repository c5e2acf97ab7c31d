/** Opens the store of a node: its changes go through the shared log, and its queries read its own SQLite log. */

import type { Feature } from '../../core/feature.ts';
import type { AcquireLock } from '../../core/host/job.ts';
import { moduleFile, type Remote, remote } from '../../core/host/rpc.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { StoreThread } from '../../store/engine/thread.ts';
import { IntakeActivity, type IntakeOptions } from '../../store/log/intake-queue.ts';
import type { Writes } from '../../store/log/writer-thread.ts';
import {
  notingChanges,
  openStoreReader,
  type Shared,
  type Store,
  writePorts,
} from '../../store/store.ts';
import { type TablesSlot, tableFiles } from '../../store/tables.ts';
import type { NodePlace } from './apply-entries.ts';
import { stateOf, withCopyThread } from './copy-log.ts';
import { Follower } from './follower.ts';
import type { NodeWrites } from './node-thread.ts';
import { createNodeIntake, NodeChanges, retryQuarantined } from './node-writes.ts';
import type { SharedLog } from './postgres-log.ts';
import type { LogHead } from './schema.ts';
import { createFileSync, shareCredentials } from './shared-files.ts';

/** Timeout of a call to the writer thread. */
const callTimeoutSeconds = 30;

export interface NodeStoreOptions
  extends DataPlace,
    Pick<IntakeOptions, 'queueBytesMax' | 'onCommit'> {
  tables: readonly TablesSlot[];
  features: readonly Feature[];
  /** Opens the shared log for the node with this id. */
  openLog: (nodeId: string) => Promise<SharedLog>;
  /** Random UUID. */
  newId: () => string;
  logger: Logger;
}

/**
 * Opens the store of a node. Creates the directory and the file when they are missing. Rejects with `configuration` for
 * a log that does not belong to this shared log, and with `unavailable`.
 */
export async function openNodeStore(options: NodeStoreOptions): Promise<Store> {
  const { dataDir, diskReserveBytes, tables, queueBytesMax, onCommit } = options;
  const thread = new StoreThread(moduleFile('./node-thread', import.meta.url), {
    ...{ dataDir, diskReserveBytes, callTimeoutSeconds, tables: tableFiles(tables) },
  });
  const writer = remote<NodeWrites>(thread);
  let log: SharedLog | undefined;
  try {
    await thread.start();
    const known = await writer.place();
    const nodeId = known?.nodeId ?? options.newId();
    log = await options.openLog(nodeId);
    const head = await log.head();
    requireUsable(head, known, dataDir);
    const place = known ?? (await join(writer, log, { ...head, nodeId }));
    const activity = new IntakeActivity();
    const follower = new Follower({
      ...{ log, writer, place, logger: options.logger, activity },
      acquireLock: createAcquireLock(dataDir),
    });
    const parts = { log, writer, follower };
    const intake = createNodeIntake(parts, { thread, queueBytesMax, onCommit });
    const changes = new NodeChanges({ ...parts, thread, tables });
    const reader = openStoreReader(dataDir, tables, activity);
    const writes = remote<Writes>(notingChanges(changes, tables, activity));
    const ports = writePorts(reader, writes, tables);
    const opened = log;
    return {
      ...reader,
      ...ports,
      ...{ activity, acquireLock: createAcquire(log, follower) },
      shared: sharedOf(log, follower, nodeId, options),
      accept: (delivery) => intake.accept(delivery),
      retry: (id) => retryQuarantined(parts, id),
      checkWritable: () => intake.checkWritable(),
      queue: () => intake.size(),
      isWriterRunning: () => thread.isRunning,
      close: async () => {
        await intake.drain();
        await changes.drain();
        await follower.stop();
        await opened.close();
        await reader.close();
        await thread.close();
      },
    };
  } catch (error) {
    await log?.close();
    await thread.close();
    throw error;
  }
}

function sharedOf(
  log: SharedLog,
  follower: Follower,
  id: string,
  options: NodeStoreOptions,
): Shared {
  const { dataDir, features } = options;
  return {
    ...{ log, id, state: () => follower.state },
    syncFiles: createFileSync(dataDir, log.files, features),
    shareCredentials: (pairs, signal) => shareCredentials(dataDir, log, pairs, signal),
    caughtUp: async () => follower.until((await log.head()).number),
    saveCheckpoint: () => saveCheckpoint(log, options),
  };
}

/** Begins with the first entry that the log contains, and with the checkpoint when earlier ones were removed. */
async function join(
  writer: Remote<NodeWrites>,
  log: SharedLog,
  { logId, first, nodeId }: LogHead & { nodeId: string },
): Promise<NodePlace> {
  const stateFrom = (await log.checkpointNumber()) ?? 0;
  const place = { logId, nodeId, applied: first - 1, batchId: null, stateFrom };
  await writer.join(place);
  if ((await writer.place())?.nodeId === nodeId) return place;
  throw new AppError('unavailable', 'Another program has just made this a receiver.', {
    advice: 'Run the command again.',
  });
}

/** Saves the state after the last applied entry, which is read on its own thread. */
const saveCheckpoint = (log: SharedLog, place: DataPlace): Promise<number> =>
  withCopyThread(place, async (reading) => {
    await reading.begin();
    const number = (await reading.place())?.applied ?? 0;
    await log.saveCheckpoint(number, stateOf(reading));
    return number;
  });

function requireUsable({ logId, state }: LogHead, known: NodePlace | null, dataDir: string): void {
  if (state === 'moved' && known === null) {
    throw new AppError(
      'configuration',
      'The shared log of EARSHOT_LOG_URL is closed: another log continues it.',
      { advice: 'Remove EARSHOT_LOG_URL, or set it to another database.' },
    );
  }
  if (state === 'copying') {
    throw new AppError('unavailable', 'The shared log is not complete.', {
      advice: 'Wait until `earshot admin log copy` has finished, or run the command again.',
    });
  }
  if (known === null || known.logId === logId) return;
  throw new AppError(
    'configuration',
    `The data directory ${dataDir} belongs to another shared log than the database of EARSHOT_LOG_URL.`,
    { advice: 'Correct EARSHOT_LOG_URL, or set EARSHOT_DATA_DIR to an empty directory.' },
  );
}

/** Interval of the check whether this node still applies entries. */
const stuckCheckMs = 1_000;

/** Maximum wait for the last entries of the earlier holder: another node may be faster. */
const sinceMs = 5_000;

/**
 * Locks of the shared log are leases. The holder has applied everything that earlier holders have written. A node that
 * is stuck acquires none, and gives up the ones that it has.
 */
function createAcquire(log: SharedLog, follower: Follower): AcquireLock {
  return async (name, options) => {
    await follower.until((await log.head()).number);
    const isReady = () => !follower.state.isStuck;
    const lease = await log.acquireLease(name, { ...options, isReady });
    const timer = setInterval(() => {
      if (!isReady()) lease.giveUp('entries cannot be applied');
    }, stuckCheckMs).unref();
    const release = () => {
      clearInterval(timer);
      lease();
    };
    try {
      await follower.until(lease.since, sinceMs);
      if (!lease.lost.aborted) return Object.assign(release, { lost: lease.lost });
    } catch (error) {
      release();
      throw error;
    }
    release();
    throw new AppError('unavailable', 'Another receiver has taken over this job.');
  };
}
