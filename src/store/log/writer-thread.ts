/** The writer thread: commits together all deliveries that arrived during the last commit (group commit). */
import type { Database } from 'better-sqlite3';
import {
  type Operations,
  operationsByName,
  type SerializedError,
  type Settled,
  serializeError,
  type ThreadMessage,
  type ThreadRequest,
} from '../../core/host/rpc.ts';
import type { CommitFacts, Delivery, Receipt } from '../../core/terms/ports.ts';
import { prepared } from '../engine/database.ts';
import { createDiskLimit, type DataPlace } from '../engine/disk-limit.ts';
import { isEnvironmentFailure, sqliteCode, storeError } from '../engine/sqlite-error.ts';
import { serveThread } from '../engine/thread.ts';
import { createWriterConnection, type WriterConnection } from '../engine/writer-connection.ts';
import { changes as plainChanges, pruneShortly } from '../pruning/prune-writer.ts';
import type { PruneStep, PruneStepOptions } from '../pruning/terms.ts';
import { loadTables, tables, withTables } from '../tables.ts';
import { type PackedDelivery, unpackDeliveries } from './intake-queue.ts';
import type { RecoverOptions } from './recovered-events.ts';

/**
 * Limits of one transaction: its senders are answered while the next one is written, and other programs wait only
 * briefly for the lock.
 */
const transactionDeliveriesMax = 32;
const transactionBytesMax = 4 * 2 ** 20;

/** Interval of the check for removed files while nothing is written. */
const removedFilesCheckMs = 250;

/** Bytes written by a check: a disk without space for them has none for notifications. */
const checkBytes = 128 * 2 ** 10;

/** Changes of the store itself, one transaction each. */
const changes = {
  ...plainChanges,
  log: {
    ...plainChanges.log,
    recover: (database: Database, options: RecoverOptions): (number | null)[] =>
      loadedIntake().recover(database, options),
  },
};

/** Operations that are not exactly one transaction. */
const tasks = {
  check(writer: Writer): void {
    writer.requireSpace();
    proveWritable(writer);
  },
  retry({ connection, requireSpace }: Writer, id: number, atUs: number): Receipt {
    requireSpace();
    return loadedIntake().retryQuarantined((work) => connection.transact(work), id, atUs);
  },
  checkpoint: ({ connection }: Writer): void => connection.checkpoint(),
  pruneStep: ({ connection, place }: Writer, options: PruneStepOptions): PruneStep =>
    pruneShortly(connection, place, options),
};

export type Writes = typeof changes & typeof tasks;

/** Operations that need the intake code, which takes most of the load time. */
const intakeOperations = new Set(['deliveries', 'check', 'retry', 'log.recover']);

interface Writer {
  place: DataPlace;
  connection: WriterConnection;
  requireSpace: () => void;
  post: (message: ThreadMessage) => void;
}

type Arrived = { id: number; delivery: Delivery };

/** The code that reads and writes notifications, loaded on first use. */
let intake: Awaited<ReturnType<typeof loadIntake>> | undefined;

async function loadIntake() {
  const [delivery, recovered] = await Promise.all([
    import('./write-delivery.ts'),
    import('./recovered-events.ts'),
  ]);
  return { ...delivery, ...recovered };
}

function loadedIntake() {
  if (intake === undefined) throw new Error('The intake code is not loaded.');
  return intake;
}

/** Changes of the store and of features, by name. */
let changesByName: ReturnType<typeof operationsByName<Database>>;

/** Returns true for changes that add data, or record that intake works. All others also run on a full disk. */
function needsSpace(op: string): boolean {
  const [group = '', name = ''] = op.split('.');
  return op === 'log.recover' || tables().get(group)?.needsSpace?.includes(name) === true;
}

const sharesCommits = (op: string): boolean =>
  tables().get(op.split('.')[0] ?? '')?.sharesCommits === true;

/** Returns all operations, with the changes wrapped in the space check and a transaction. */
function createOperations(): Operations<Writer> {
  changesByName = operationsByName(withTables('writes', changes));
  const wrapped = [...changesByName].map(([name, change]) => [
    name,
    ({ connection, requireSpace }: Writer, ...args: never[]) => {
      if (needsSpace(name)) requireSpace();
      return connection.transact((database) => change(database, ...args));
    },
  ]);
  return { ...tasks, ...Object.fromEntries(wrapped) };
}

/** Commits deliveries in groups. Small changes share the first commit, because separate ones would delay intake. */
function answerSome(writer: Writer, requests: readonly ThreadRequest[]): readonly ThreadRequest[] {
  const arrived = requests.flatMap(arrivedIn);
  if (arrived.length === 0) return requests;
  let failure = spaceError(writer);
  const shared = failure === undefined ? requests.filter(({ op }) => sharesCommits(op)) : [];
  const answered = new Set<number>();
  for (const [i, group] of [...groups(arrived)].entries()) {
    const sharing = i === 0 ? shared : [];
    const beganMs = performance.now();
    // After a failure, the next groups are refused without waiting for the same lock again.
    const settled = failure === undefined ? commit(writer, group, sharing) : refuse(group, failure);
    for (const { id } of settled) answered.add(id);
    failure = settled.slice(0, group.length).find((one) => 'error' in one)?.error;
    const facts = failure === undefined ? commitFactsOf(group, settled, beganMs) : undefined;
    writer.post({ kind: 'settled', settled, event: facts });
    failure ??= spaceError(writer);
  }
  return requests.filter(({ op, id }) => op !== 'deliveries' && !answered.has(id));
}

function arrivedIn({ op, args }: ThreadRequest): Arrived[] {
  if (op !== 'deliveries') return [];
  const [buffer, deliveries] = args as [ArrayBuffer, PackedDelivery[]];
  return unpackDeliveries(buffer, deliveries);
}

function* groups(arrived: readonly Arrived[]): Generator<Arrived[]> {
  let group: Arrived[] = [];
  let bytes = 0;
  for (const one of arrived) {
    const length = one.delivery.body.byteLength;
    if (group.length === transactionDeliveriesMax || bytes + length > transactionBytesMax) {
      if (group.length > 0) yield group;
      group = [];
      bytes = 0;
    }
    group.push(one);
    bytes += length;
  }
  if (group.length > 0) yield group;
}

/**
 * Commits the group and the changes in one transaction. When one of them makes it fail, retries without the changes
 * (which then run one by one), and then with each delivery alone.
 */
function commit(
  writer: Writer,
  group: readonly Arrived[],
  shared: readonly ThreadRequest[],
): Settled[] {
  const { writeDeliveries } = loadedIntake();
  const deliveries = group.map(({ delivery }) => delivery);
  try {
    return writer.connection.transact((database) => {
      const receipts = writeDeliveries(database, deliveries);
      return [
        ...group.map(({ id }, i) => ({ id, value: receipts[i] })),
        ...shared.map(({ id, op, args }) => ({
          id,
          value: changesByName.get(op)?.(database, ...(args as never[])),
        })),
      ];
    });
  } catch (error) {
    if (isEnvironmentFailure(error))
      return refuse([...group, ...shared], serializeError(storeError(error)));
    if (shared.length > 0) return commit(writer, group, []);
    if (group.length > 1) return group.flatMap((one) => commit(writer, [one], []));
    return group.map((one) => quarantine(writer, one, error));
  }
}

function refuse(refused: readonly { id: number }[], error: SerializedError): Settled[] {
  return refused.map(({ id }) => ({ id, error }));
}

function quarantine({ connection }: Writer, { id, delivery }: Arrived, failure: unknown): Settled {
  try {
    const { quarantineUnstorable } = loadedIntake();
    const value = connection.transact((database) => quarantineUnstorable(database, delivery));
    return { id, value };
  } catch {
    return { id, error: serializeError(storeError(failure)) };
  }
}

function commitFactsOf(
  group: readonly Arrived[],
  settled: readonly Settled[],
  beganMs: number,
): CommitFacts {
  const durationSeconds = (performance.now() - beganMs) / 1_000;
  const first = group.find((_, i) => isStored(settled[i]));
  const delay = first === undefined ? null : loadedIntake().publicationDelay(first.delivery);
  return { durationSeconds, deliveries: group.length, publicationDelay: delay };
}

function isStored(one: Settled | undefined): boolean {
  return one !== undefined && 'value' in one && (one.value as Receipt).outcome === 'stored';
}

function spaceError({ requireSpace }: Writer): SerializedError | undefined {
  try {
    requireSpace();
    return undefined;
  } catch (error) {
    return serializeError(storeError(error));
  }
}

/** Skips the write probe when the disk is full: the probe would fail and prevent startup. */
function begin(writer: Writer): void {
  const hasSpace = spaceError(writer) === undefined;
  try {
    if (hasSpace) proveWritable(writer);
    else writer.connection.transact(() => undefined);
  } catch (error) {
    const isFull = !hasSpace || sqliteCode(error) === 'SQLITE_FULL';
    if (!isFull || !isEnvironmentFailure(error)) throw error;
  }
}

function proveWritable({ connection }: Writer): void {
  connection.transact((database) => {
    prepared(database, 'INSERT OR REPLACE INTO write_check VALUES (1, randomblob(?))').run(
      checkBytes,
    );
  });
}

export default serveThread<Writer>(async (place, post) => {
  await loadTables(place.tables);
  const connection = createWriterConnection(place.dataDir);
  const writer = {
    place,
    connection,
    requireSpace: createDiskLimit(place, connection.tryCheckpoint),
    post,
  };
  begin(writer);
  setInterval(() => connection.saveRemovedLog(), removedFilesCheckMs).unref();
  return {
    operations: createOperations(),
    context: () => writer,
    prepare: (requests) =>
      intake === undefined && requests.some(({ op }) => intakeOperations.has(op))
        ? loadIntake().then((loaded) => {
            intake = loaded;
          })
        : undefined,
    answerSome: (requests) => answerSome(writer, requests),
    close: () => connection.close(),
  };
});
