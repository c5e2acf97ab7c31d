/** The quarantine: bodies that are not notifications or contain an item that is not. */
import { hash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { AppError } from '../../core/terms/app-error.ts';
import type { Fault } from '../../core/terms/notification.ts';
import type { Delivery, QuarantineEntry, QuarantineRow } from '../../core/terms/ports.ts';
import { type BodyWriter, bodyReader } from '../bodies/bodies.ts';
import { prepared } from '../engine/database.ts';

const columns = `id, received_at_us AS receivedAtUs, subscription, source, faults, body_id AS bodyId`;

/** A stored row: `faults` and `headers` are JSON, written only by this module. */
type StoredRow = Omit<QuarantineRow, 'reason' | 'faults' | 'bodyBytes'> & {
  faults: string;
  bodyId: number;
};

export const quarantineReads = {
  /** Returns a page of the entries below an id, newest first. */
  page(database: Database, beforeId: number, rowsMax: number): QuarantineRow[] {
    return prepared<[number, number], StoredRow>(
      database,
      `SELECT ${columns} FROM quarantine WHERE id < ? ORDER BY id DESC LIMIT ?`,
    )
      .all(beforeId, rowsMax)
      .map((row) => toRow(row, bodyReader(database).storedBody(row.bodyId).length));
  },

  quarantinedCount(database: Database): number {
    return Number(prepared(database, 'SELECT count(*) FROM quarantine').pluck().get());
  },

  quarantineEntry(database: Database, id: number): QuarantineEntry {
    const row = prepared<[number], StoredRow & { headers: string }>(
      database,
      `SELECT ${columns}, headers FROM quarantine WHERE id = ?`,
    ).get(id);
    if (row === undefined) throw unknownBody(id);
    const { headers, ...rest } = row;
    const body = bodyReader(database).storedBody(row.bodyId);
    return { ...toRow(rest, body.length), headers: headersIn(headers), body };
  },
};

function toRow({ bodyId: _, ...row }: StoredRow, bodyBytes: number): QuarantineRow {
  const faults = JSON.parse(row.faults) as Fault[];
  return { ...row, faults, bodyBytes, reason: faults[0]?.code ?? 'unknown' };
}

/** A new entry: a delivery and its faults, with the id of its body when that is already stored. */
interface NewEntry {
  delivery: Delivery;
  faults: readonly Fault[];
  bodyId: number | undefined;
  /**
   * Adds no second entry with the same body of the same subscription, which the sender may repeat. By default true for a
   * queue: a reader repeats an entry of a queue until it is acknowledged.
   */
  isOnce?: boolean;
}

/** Adds an entry, with its body unless that is already stored. Returns the id of the entry; undefined for a known one. */
export function quarantine(
  database: Database,
  bodies: BodyWriter,
  { delivery, faults, bodyId, isOnce = delivery.source === 'pull' }: NewEntry,
): number | undefined {
  const { receivedAtUs, subscription, source, body, headers } = delivery;
  const digest = isOnce ? hash('sha256', body, 'buffer') : null;
  const known = prepared(
    database,
    'SELECT 1 FROM quarantine WHERE body_digest = ? AND subscription IS ?',
  ).get(digest, subscription);
  if (known !== undefined) return undefined;
  const { lastInsertRowid } = prepared(
    database,
    `INSERT INTO quarantine (received_at_us, subscription, source, faults, headers, body_id, body_digest)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    ...[receivedAtUs, subscription, source, JSON.stringify(faults)],
    ...[JSON.stringify(withoutCredentials(headers)), bodyId ?? bodies.add(body), digest],
  );
  return Number(lastInsertRowid);
}

/** Returns a quarantined body as a delivery, to be written again. Throws `not_found`. */
export function quarantinedDelivery(database: Database, id: number): Delivery {
  const entry = quarantineReads.quarantineEntry(database, id);
  const { body, subscription, receivedAtUs, source, headers } = entry;
  return { body, subscription, receivedAtUs, source, headers };
}

/** Returns stored headers as received: names and values, alternating. */
function headersIn(text: string): string[] {
  return (JSON.parse(text) as [string, string][]).flat();
}

/** Returns the header pairs without credentials. */
function withoutCredentials(headers: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (/^(authorization|proxy-authorization|cookie|set-cookie)$/i.test(name)) continue;
    pairs.push([name, headers[i + 1] ?? '']);
  }
  return pairs;
}

function unknownBody(id: number): AppError {
  const advice = 'For the ids: `earshot quarantine list`.';
  return new AppError('not_found', `There is no body ${id} in the quarantine.`, { advice });
}
