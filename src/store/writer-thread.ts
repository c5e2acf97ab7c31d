/** The writer thread: commits whatever has arrived while the last commit ran (group commit). */
import type { Database } from 'better-sqlite3';
import { isAppError } from '../domain/app-error.ts';
import type { CommitFacts } from '../domain/commit-facts.ts';
import type { Delivery, Receipt } from '../domain/ports.ts';
import type { PruneStep } from '../domain/pruning.ts';
import { type AdministrationWriter, createAdministrationWriter } from './administration-writer.ts';
import { type AlertWriter, createAlertWriter } from './alert-writer.ts';
import { recordBackup } from './backups/backup-runs.ts';
import { type CompletenessWriter, createCompletenessWriter } from './completeness-writer.ts';
import { ackIdReused, createDeliveryWriter, type DeliveryWriter } from './delivery-writer.ts';
import { perConnection } from './engine/database.ts';
import { createDiskLimit, type DataPlace, spareBytes } from './engine/disk-limit.ts';
import {
  type SentError,
  type Settled,
  sentError,
  type ThreadMessage,
  type ThreadRequest,
} from './engine/rpc.ts';
import { serveThread } from './engine/serve-thread.ts';
import { isEnvironmentFailure, sqliteCode } from './engine/sqlite-error.ts';
import { createWriterConnection, type WriterConnection } from './engine/writer-connection.ts';
import type { PackedDelivery, WriterRequest } from './messages.ts';
import type { PruneStepOptions } from './pruning/prune-messages.ts';
import {
  createPruneWriter,
  type PruneWriter,
  shortStepMs,
  usualStepMs,
} from './pruning/prune-writer.ts';
import { publicationDelay } from './publication-delay.ts';
import { createSinkWriter, type SinkWriter } from './sink-writer.ts';
import { createSummaryWriter, type SummaryWriter } from './summary-writer.ts';

/** Bounds of one transaction, so that other programs never wait long for the lock. */
const transactionDeliveriesMax = 512;
const transactionBytesMax = 4 * 2 ** 20;

/** Removed files are noticed so soon while nothing is written. */
const removedFilesCheckMs = 250;

/** A check writes this much: a disk without room for it has none for notifications. */
const checkBytes = 128 * 2 ** 10;

type Arrived = { id: number; delivery: Delivery };

/** Changes that readers of the log make all the time: small ones, which may share a commit. */
const sharedOps = ['change-summaries', 'change-alerts', 'change-sinks'] as const;
type ChangeRequest = Extract<WriterRequest, { op: (typeof sharedOps)[number] }>;

const names = [
  'check',
  'move-cursor',
  'retry',
  'drop-quarantined',
  'commit-administration',
  'mark-deliveries',
  'change-completeness',
  'prune-step',
  'forget-reader',
  'checkpoint',
  'record-backup',
  'change-summaries',
  'change-alerts',
  'change-sinks',
] as const;

let place: DataPlace;
let connection: WriterConnection;
let requireRoom: () => void;
let post: (message: ThreadMessage) => void;

/** What a transaction writes with. */
interface Writers {
  deliveries: DeliveryWriter;
  administration: AdministrationWriter;
  summaries: SummaryWriter;
  completeness: CompletenessWriter;
  alerts: AlertWriter;
  sinks: SinkWriter;
  pruning: PruneWriter;
  database: Database;
}

const writersOf = perConnection(
  (database): Writers => ({
    database,
    deliveries: createDeliveryWriter(database),
    administration: createAdministrationWriter(database),
    summaries: createSummaryWriter(database),
    completeness: createCompletenessWriter(database),
    alerts: createAlertWriter(database),
    sinks: createSinkWriter(database),
    pruning: createPruneWriter(database),
  }),
);

function transact<T>(work: (writers: Writers) => T): T {
  return connection.transact((database) => {
    const writers = writersOf(database);
    writers.deliveries.begin();
    const result = work(writers);
    writers.deliveries.end();
    return result;
  });
}

/** With deliveries, changes share a commit: one of their own would cost intake a turn. */
function take(requests: readonly ThreadRequest[]): readonly ThreadRequest[] {
  const arrived = requests.flatMap(({ op, args }) => {
    if (op !== 'deliveries') return [];
    const [buffer, deliveries] = args as [ArrayBuffer, PackedDelivery[]];
    return deliveries.map((one) => unpack(buffer, one));
  });
  if (arrived.length === 0) return requests;
  const changes = requests.flatMap(({ id, args }) => {
    const request = args[0] as WriterRequest;
    return isChange(request) ? [{ ...request, id }] : [];
  });
  let failure = lackOfRoom();
  const along = failure === undefined ? changes : [];
  for (const [i, group] of [...groups(arrived)].entries()) {
    const mine = i === 0 ? along : [];
    const beganMs = performance.now();
    // What one group has waited for in vain, the next one need not wait for again.
    const settled = failure === undefined ? commit(group, mine) : refuse(group, failure);
    failure = settled.slice(0, group.length).find((one) => 'error' in one)?.error;
    const facts = failure === undefined ? factsOf(group, settled, beganMs) : undefined;
    post({ kind: 'settled', settled, commit: facts });
    failure ??= lackOfRoom();
  }
  return requests.filter(
    ({ op, id }) => op !== 'deliveries' && !along.some((change) => change.id === id),
  );
}

/** Whether a request adds to the store, or says that it takes what comes. All others end, move or free something. */
function isGrowing(request: WriterRequest): boolean {
  switch (request.op) {
    case 'check':
    case 'retry':
      return true;
    case 'change-completeness':
      return request.change.kind === 'recover' || request.change.kind === 'mark-up';
    case 'change-summaries':
      return request.change.kind === 'enqueue' || request.change.kind === 'claim';
    case 'change-sinks':
      return request.change.kind === 'enqueue' || request.change.kind === 'add-replay';
    default:
      return false;
  }
}

function factsOf(
  group: readonly Arrived[],
  settled: readonly Settled[],
  beganMs: number,
): CommitFacts {
  const durationSeconds = (performance.now() - beganMs) / 1_000;
  const first = group.find((_, i) => isStored(settled[i]));
  const delay = first === undefined ? null : publicationDelay(first.delivery);
  return { durationSeconds, deliveries: group.length, publicationDelay: delay };
}

function isStored(one: Settled | undefined): boolean {
  return one !== undefined && 'value' in one && (one.value as Receipt).outcome === 'stored';
}

function isChange(request: WriterRequest | undefined): request is ChangeRequest {
  return sharedOps.some((op) => op === request?.op);
}

function unpack(buffer: ArrayBuffer, { id, offset, length, ...rest }: PackedDelivery): Arrived {
  return { id, delivery: { ...rest, body: new Uint8Array(buffer, offset, length) } };
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

/** One transaction for the group; when it fails for the sake of one item, each gets its own. */
function commit(group: readonly Arrived[], changes: readonly ChangeRequest[]): Settled[] {
  try {
    return transact((writers) => [
      ...group.map(({ id, delivery }) => ({ id, value: writers.deliveries.write(delivery) })),
      ...changes.map((one) => ({ id: one.id, value: writeChange(writers, one) })),
    ]);
  } catch (error) {
    if (isEnvironmentFailure(error)) return refuse([...group, ...changes], sentError(error));
    if (changes.length > 0) return [...commit(group, []), ...changes.map(answer)];
    if (group.length > 1) return group.flatMap((one) => commit([one], []));
    return group.map((one) => holdUnstorable(one, error));
  }
}

function writeChange({ summaries, alerts, sinks }: Writers, request: ChangeRequest): unknown {
  switch (request.op) {
    case 'change-summaries':
      return summaries.write(request.change);
    case 'change-alerts':
      return alerts.write(request.change);
    case 'change-sinks':
      return sinks.write(request.change);
  }
}

function refuse(refused: readonly { id: number }[], error: SentError): Settled[] {
  return refused.map(({ id }) => ({ id, error }));
}

/** A body that our own code fails on is kept for the day when it no longer does. */
function holdUnstorable({ id, delivery }: Arrived, failure: unknown): Settled {
  const message = 'The notification could not be stored.';
  const faults = [{ code: 'not-storable', index: null, message } as const];
  try {
    const quarantineId = transact(({ deliveries }) => deliveries.quarantine.hold(delivery, faults));
    return {
      id,
      value: { outcome: 'rejected', faults, quarantineId, stored: 0 } satisfies Receipt,
    };
  } catch {
    return { id, error: sentError(failure) };
  }
}

function answer(request: WriterRequest): Settled {
  try {
    if (isGrowing(request)) requireRoom();
    return { id: request.id, value: performed(request) };
  } catch (error) {
    return { id: request.id, error: sentError(error) };
  }
}

function lackOfRoom(): SentError | undefined {
  try {
    requireRoom();
    return undefined;
  } catch (error) {
    return sentError(error);
  }
}

/** A disk that is full has nothing to be proven, and may lack the room to open the file: a new start makes none. */
function begin(): void {
  const hasRoom = lackOfRoom() === undefined;
  try {
    if (hasRoom) proveWritable();
    else transact(() => undefined);
  } catch (error) {
    const isFull = !hasRoom || sqliteCode(error) === 'SQLITE_FULL';
    if (!isFull || !isEnvironmentFailure(error)) throw error;
  }
}

function retry(quarantineId: number, atUs: number): Receipt {
  try {
    return transact(({ deliveries }) => deliveries.retry(quarantineId, atUs));
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    return { outcome: 'rejected', faults: [ackIdReused], quarantineId, stored: 0 };
  }
}

/** Pruning may use the reserve: it is what makes space. On a nearly full disk the write-ahead log must stay small for that. */
function pruneStep(options: PruneStepOptions): PruneStep {
  const isShort = spareBytes(place) < 0;
  if (isShort) connection.checkpoint();
  return transact(({ pruning }) => pruning.step(options, isShort ? shortStepMs : usualStepMs));
}

function proveWritable(): void {
  transact(({ database }) => {
    database
      .prepare('INSERT OR REPLACE INTO write_check VALUES (1, randomblob(?))')
      .run(checkBytes);
  });
}

function performed(request: WriterRequest): unknown {
  switch (request.op) {
    case 'check':
      return proveWritable();
    case 'move-cursor':
      return transact(({ database }) => {
        database
          .prepare('INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)')
          .run(request.reader, request.position, request.atUs);
      });
    case 'retry':
      return retry(request.quarantineId, request.atUs);
    case 'drop-quarantined':
      return transact(({ pruning }) => pruning.dropQuarantined(request.quarantineIds));
    case 'commit-administration':
      return transact(({ administration }) => administration.write(request.change));
    case 'mark-deliveries':
      return transact(({ administration }) => administration.mark(request.marks));
    case 'change-completeness':
      return transact(({ completeness }) => completeness.write(request.change));
    case 'prune-step':
      return pruneStep(request.options);
    case 'forget-reader':
      return transact(({ pruning }) => pruning.forgetReader(request.key));
    case 'checkpoint':
      return connection.checkpoint();
    case 'record-backup':
      return transact(({ database }) => recordBackup(database, request.run));
    case 'change-summaries':
    case 'change-alerts':
    case 'change-sinks':
      return transact((writers) => writeChange(writers, request));
  }
}

serveThread((given, send) => {
  place = given;
  post = send;
  connection = createWriterConnection(place.dataDir);
  requireRoom = createDiskLimit(place);
  begin();
  setInterval(() => connection.saveRemovedLog(), removedFilesCheckMs).unref();
  const perform = (_: undefined, request: WriterRequest) => {
    if (isGrowing(request)) requireRoom();
    return performed(request);
  };
  return {
    operations: Object.fromEntries(names.map((name) => [name, perform])),
    context: () => undefined,
    take,
    close: () => connection.close(),
  };
});
