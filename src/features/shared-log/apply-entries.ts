/** Applies entries of the shared log to the SQLite log of this node, in order and once. */
import { type Operation, type SerializedError, serializeError } from '../../core/host/rpc.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { type BodyWriter, createBodyWriter } from '../../store/bodies/bodies.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import { isEnvironmentFailure, storeError } from '../../store/engine/sqlite-error.ts';
import { dedupeKey, recoveredIdentityOf } from '../../store/log/dedupe-key.ts';
import { quarantine } from '../../store/log/quarantine.ts';
import { countDrift, countDuplicate, insertNotification } from '../../store/log/queries.ts';
import { writePush, writeRecovered } from '../../store/log/recovered-events.ts';
import { ackIdReused } from '../../store/log/write-delivery.ts';
import { removeEntries } from '../../store/pruning/prune-writer.ts';
import {
  type Change,
  decodeEntry,
  type EntryContent,
  type EntryDelivery,
  type EntryNotification,
  fromJson,
  newerEntry,
  toJson,
} from './entry.ts';
import type { ItemOutcome, LogEntry } from './schema.ts';
import { clearStateTables, writePart } from './table-parts.ts';

/** Results of entries that are kept for their senders, which ask within seconds. */
const resultsMax = 10_000;

/** Place of this node in the shared log. */
export interface NodePlace {
  logId: string;
  nodeId: string;
  /** Last applied entry, and its batch id. */
  applied: number;
  batchId: string | null;
  /** Up to this entry, changes are part of the checkpoint that is loaded after it; 0 without one. */
  stateFrom: number;
}

/** Result of one change of an entry. */
export type ChangeResult = { value: unknown } | { error: SerializedError };

export function nodePlace(database: Database): NodePlace | null {
  const row = prepared<[], NodePlace>(
    database,
    `SELECT log_id AS logId, node_id AS nodeId, applied, batch_id AS batchId, state_from AS stateFrom
     FROM shared_log`,
  ).get();
  return row ?? null;
}

/** Makes this log a node of a shared log. Throws `configuration` when it contains notifications or registrations. */
export function joinLog(database: Database, place: NodePlace): void {
  const own = `SELECT 1 FROM notification UNION ALL SELECT 1 FROM registration
    UNION ALL SELECT 1 FROM quarantine LIMIT 1`;
  // Another process of this node may have joined first.
  if (nodePlace(database) !== null) return;
  if (prepared(database, own).get() !== undefined) {
    throw new AppError(
      'configuration',
      'The log in the data directory contains data that is not in the shared log of EARSHOT_LOG_URL.',
      {
        advice:
          'Copy it into the shared log with `earshot admin log copy`, or set EARSHOT_DATA_DIR to an empty directory.',
      },
    );
  }
  // Uptimes and similar rows of a receiver that has run without notifications.
  clearStateTables(database);
  joinCopied(database, place);
}

/** Makes a log whose content is in the shared log a node of it. */
export function joinCopied(database: Database, place: NodePlace): void {
  prepared(
    database,
    `INSERT INTO shared_log VALUES (1, @logId, @nodeId, @applied, @batchId, @stateFrom)`,
  ).run(place);
}

/** Sets the checkpoint that is loaded after its entry; 0 when it is loaded. */
export function setStateFrom(database: Database, number: number): void {
  prepared(database, 'UPDATE shared_log SET state_from = ?').run(number);
}

/**
 * Applies entries within the caller's transaction. Skips those that another process of this node has applied. Returns
 * the last applied entry, and the number of applied deliveries. Throws failures of the disk or file, and then the
 * transaction is rolled back.
 */
export function applyEntries(
  database: Database,
  entries: readonly LogEntry[],
  changes: ReadonlyMap<string, Operation<Database>>,
): Pick<NodePlace, 'applied' | 'batchId'> & { deliveries: number } {
  const place = nodePlace(database);
  if (place === null) throw new Error('This log does not belong to a shared log.');
  let { applied, batchId } = place;
  let deliveries = 0;
  for (const entry of entries) {
    if (entry.number <= applied) continue;
    // The checkpoint is loaded first.
    if (place.stateFrom > 0 && entry.number > place.stateFrom) break;
    if (entry.number !== applied + 1) throw new Error(`Entry ${applied + 1} is missing.`);
    const content = decodeEntry(entry);
    if (content.kind === 'deliveries') deliveries += content.deliveries.length;
    const isInCheckpoint = content.kind === 'changes' && entry.number <= place.stateFrom;
    if (!isInCheckpoint) apply(database, entry, content, changes);
    ({ number: applied, batchId } = entry);
  }
  prepared(database, 'UPDATE shared_log SET applied = ?, batch_id = ?').run(applied, batchId);
  return { applied, batchId, deliveries };
}

function apply(
  database: Database,
  { number, outcomes }: LogEntry,
  content: EntryContent,
  changes: ReadonlyMap<string, Operation<Database>>,
): void {
  if (content.kind === 'deliveries') applyDeliveries(database, content.deliveries, outcomes);
  else if (content.kind === 'recovered') applyRecovered(database, content, outcomes);
  else if (content.kind === 'rows') writePart(database, content.part);
  else {
    const results = content.changes.map((change) => applyChange(database, change, changes));
    saveResult(database, number, results);
  }
}

function applyDeliveries(
  database: Database,
  deliveries: readonly EntryDelivery[],
  outcomes: readonly ItemOutcome[],
): void {
  const bodies = createBodyWriter(database);
  const left = outcomes.values();
  for (const delivery of deliveries) {
    const own = [...left.take(delivery.notifications.length)];
    applyDelivery(database, bodies, delivery, own);
  }
  bodies.end();
  const drift = deliveries.flatMap((one) => one.drift);
  countDrift(database, drift, deliveries.at(-1)?.receivedAtUs ?? 0);
}

function applyDelivery(
  database: Database,
  bodies: BodyWriter,
  entry: EntryDelivery,
  outcomes: readonly ItemOutcome[],
): void {
  const { body, faults, retryOf } = entry;
  const nextId = bodies.nextId();
  for (const [i, notification] of entry.notifications.entries()) {
    const decided = outcomes[i];
    if (decided === undefined) throw new Error('An outcome of an entry is missing.');
    write(database, entry, notification, { decided, bodyId: nextId });
  }
  const isStored = outcomes.some(({ outcome }) => outcome === 'stored');
  const bodyId = isStored ? bodies.add(body) : undefined;
  if (faults.length > 0) {
    quarantine(database, bodies, { delivery: entry, faults, bodyId });
    return;
  }
  if (retryOf !== null) removeEntries(database, [retryOf]);
  if (!outcomes.some(({ outcome }) => outcome === 'reused')) return;
  countDrift(database, ['ack-id-reused'], entry.receivedAtUs);
  quarantine(database, bodies, { delivery: entry, faults: [ackIdReused], bodyId, isOnce: true });
}

function write(
  database: Database,
  delivery: EntryDelivery,
  notification: EntryNotification,
  { decided, bodyId }: { decided: ItemOutcome; bodyId: number },
): void {
  const { position } = decided;
  switch (decided.outcome) {
    case 'stored': {
      const { subscriptionKey } = notification;
      const key = Buffer.from(
        decided.inSubscription ? (subscriptionKey ?? '') : notification.key,
        'hex',
      );
      const row = { position, key, bodyId, eventUs: null };
      insertAt(database, key, position, () =>
        insertNotification(database, delivery, notification, row),
      );
      return;
    }
    case 'late': {
      const eventUs = prepared<[number], number>(
        database,
        'SELECT event_us FROM notification WHERE position = ?',
      )
        .pluck()
        .get(position);
      // Otherwise it was pruned.
      if (eventUs === undefined) return;
      const key = Buffer.from(notification.key, 'hex');
      removePruned(database, key, position);
      writePush(database, { ...delivery, item: notification, key }, { position, eventUs });
      return;
    }
    default:
      countDuplicate(database, position, delivery.receivedAtUs);
  }
}

/** Inserts a row that the log has decided to store. */
function insertAt(
  database: Database,
  key: Uint8Array,
  position: number,
  insert: () => number | null,
): void {
  if (insert() !== null) return;
  removePruned(database, key, position);
  if (insert() === null) throw new Error(`Position ${position} of an entry cannot be written.`);
}

/** Removes another row with a key that is new in the log: it was pruned there, and here the checkpoint will do so. */
function removePruned(database: Database, key: Uint8Array, position: number): void {
  const remove = 'DELETE FROM notification WHERE dedupe_key = ? AND position < ?';
  prepared(database, remove).run(key, position);
}

function applyRecovered(
  database: Database,
  { events, atUs }: Extract<EntryContent, { kind: 'recovered' }>,
  outcomes: readonly ItemOutcome[],
): void {
  const bodies = createBodyWriter(database);
  for (const [i, event] of events.entries()) {
    const decided = outcomes[i];
    if (decided?.outcome !== 'stored') continue;
    const { position } = decided;
    const key = dedupeKey(recoveredIdentityOf(event));
    insertAt(database, key, position, () =>
      writeRecovered(database, bodies, event, { atUs, position }),
    );
  }
  bodies.end();
}

/** Applies a change in a transaction of its own within the caller's. All nodes get the same value, or the same error. */
function applyChange(
  database: Database,
  { op, args }: Change,
  changes: ReadonlyMap<string, Operation<Database>>,
): ChangeResult {
  const change = changes.get(op);
  if (change === undefined) throw newerEntry();
  try {
    const value = database.transaction(() => change(database, ...(args as never[])))();
    return { value: value ?? null };
  } catch (error) {
    if (isEnvironmentFailure(error)) throw error;
    return { error: serializeError(storeError(error)) };
  }
}

function saveResult(database: Database, number: number, result: ChangeResult[]): void {
  const parts: Uint8Array[] = [];
  const json = toJson(result, parts);
  prepared(database, 'INSERT INTO shared_result VALUES (?, ?, ?)').run(
    number,
    json,
    Buffer.concat(parts),
  );
  prepared(database, 'DELETE FROM shared_result WHERE number <= ?').run(number - resultsMax);
}

/** Returns the result of an applied entry; null without one. */
export function entryResult(database: Database, number: number): ChangeResult[] | null {
  const row = prepared<[number], { json: string; bytes: Uint8Array }>(
    database,
    'SELECT json, bytes FROM shared_result WHERE number = ?',
  ).get(number);
  return row === undefined ? null : (fromJson(row.json, row.bytes) as ChangeResult[]);
}
