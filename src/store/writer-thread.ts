/** The writer thread: commits whatever has arrived while the last commit ran (group commit). */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { isAppError } from '../domain/app-error.ts';
import type { CommitFacts } from '../domain/commit-facts.ts';
import type { Delivery, Receipt } from '../domain/ports.ts';
import type { PruneStep } from '../domain/pruning.ts';
import { recordBackup } from './backups/backup-runs.ts';
import { ackIdReused } from './delivery-writer.ts';
import { createDiskLimit, type DataPlace, isGrowing, spareBytes } from './disk-limit.ts';
import type {
  PackedDelivery,
  SentError,
  Settled,
  ThreadMessage,
  WriterRequest,
} from './messages.ts';
import type { PruneStepOptions } from './pruning/prune-messages.ts';
import { shortStepMs, usualStepMs } from './pruning/prune-writer.ts';
import { publicationDelay } from './publication-delay.ts';
import { sentError } from './sent-error.ts';
import { isEnvironmentFailure, sqliteCode } from './sqlite-error.ts';
import { createWriterConnection, type Writers } from './writer-connection.ts';

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

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const place = workerData as DataPlace;
const connection = createWriterConnection(place.dataDir);
const requireRoom = createDiskLimit(place);
const post = (message: ThreadMessage) => port.postMessage(message);

try {
  begin();
  port.on('message', (first: WriterRequest) => handle([first, ...waiting()]));
  setInterval(() => connection.saveRemovedLog(), removedFilesCheckMs).unref();
  post({ kind: 'started' });
} catch (error) {
  post({ kind: 'failed', error: sentError(error) });
}

/** Everything that has been sent meanwhile. */
function waiting(): WriterRequest[] {
  const requests: WriterRequest[] = [];
  for (;;) {
    const received = receiveMessageOnPort(port);
    if (received === undefined) return requests;
    requests.push(received.message);
  }
}

function handle(requests: readonly WriterRequest[]): void {
  const arrived = requests.flatMap((request) =>
    request.op === 'deliveries' ? request.deliveries.map((one) => unpack(request.buffer, one)) : [],
  );
  const changes = requests.filter(isChange);
  let failure = arrived.length > 0 ? lackOfRoom() : undefined;
  // With deliveries, they share a commit: one of their own would cost intake a turn.
  const along = arrived.length > 0 && failure === undefined ? changes : [];
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
  for (const request of requests) {
    if (request.op === 'deliveries' || along.some(({ id }) => id === request.id)) continue;
    post({ kind: 'settled', settled: [answer(request)] });
    if (request.op === 'close') port.close();
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

function isChange(request: WriterRequest): request is ChangeRequest {
  return sharedOps.some((op) => op === request.op);
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
    return connection.transact((writers) => [
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
    const quarantineId = connection.transact(({ deliveries }) =>
      deliveries.quarantine.hold(delivery, faults),
    );
    return {
      id,
      value: { outcome: 'rejected', faults, quarantineId, stored: 0 } satisfies Receipt,
    };
  } catch {
    return { id, error: sentError(failure) };
  }
}

function answer(request: Exclude<WriterRequest, { op: 'deliveries' }>): Settled {
  try {
    if (isGrowing(request)) requireRoom();
    return { id: request.id, value: perform(request) };
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
    else connection.transact(() => undefined);
  } catch (error) {
    const isFull = !hasRoom || sqliteCode(error) === 'SQLITE_FULL';
    if (!isFull || !isEnvironmentFailure(error)) throw error;
  }
}

function retry(quarantineId: number, atUs: number): Receipt {
  try {
    return connection.transact(({ deliveries }) => deliveries.retry(quarantineId, atUs));
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    return { outcome: 'rejected', faults: [ackIdReused], quarantineId, stored: 0 };
  }
}

/** Pruning may use the reserve: it is what makes space. On a nearly full disk the write-ahead log must stay small for that. */
function pruneStep(options: PruneStepOptions): PruneStep {
  const isShort = spareBytes(place) < 0;
  if (isShort) connection.checkpoint();
  return connection.transact(({ pruning }) =>
    pruning.step(options, isShort ? shortStepMs : usualStepMs),
  );
}

function proveWritable(): void {
  connection.transact(({ database }) => {
    database
      .prepare('INSERT OR REPLACE INTO write_check VALUES (1, randomblob(?))')
      .run(checkBytes);
  });
}

function perform(request: Exclude<WriterRequest, { op: 'deliveries' }>): unknown {
  switch (request.op) {
    case 'check':
      return proveWritable();
    case 'move-cursor':
      return connection.transact(({ database }) => {
        database
          .prepare('INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)')
          .run(request.reader, request.position, request.atUs);
      });
    case 'retry':
      return retry(request.quarantineId, request.atUs);
    case 'drop-quarantined':
      return connection.transact(({ pruning }) => pruning.dropQuarantined(request.quarantineIds));
    case 'commit-administration':
      return connection.transact(({ administration }) => administration.write(request.change));
    case 'mark-deliveries':
      return connection.transact(({ administration }) => administration.mark(request.marks));
    case 'change-completeness':
      return connection.transact(({ completeness }) => completeness.write(request.change));
    case 'prune-step':
      return pruneStep(request.options);
    case 'forget-reader':
      return connection.transact(({ pruning }) => pruning.forgetReader(request.key));
    case 'checkpoint':
      return connection.checkpoint();
    case 'record-backup':
      return connection.transact(({ database }) => recordBackup(database, request.run));
    case 'change-summaries':
    case 'change-alerts':
    case 'change-sinks':
      return connection.transact((writers) => writeChange(writers, request));
    case 'close':
      return connection.close();
  }
}
