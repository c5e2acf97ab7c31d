/** Rows of the log, cursors of its readers, and counters of undocumented payload shapes (drift). */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../core/terms/app-error.ts';
import type { DriftShape, Notification } from '../../core/terms/notification.ts';
import {
  type Delivery,
  type DriftCount,
  type LogCounts,
  type NotificationQuery,
  type NotificationRow,
  namePatternMax,
  type OriginalBody,
} from '../../core/terms/ports.ts';
import { bodyReader } from '../bodies/bodies.ts';
import { prepared } from '../engine/database.ts';
import { dedupeKey, lastKeyOf } from './dedupe-key.ts';

const columns = `position, ack_id AS ackId, product_id AS productId, product_name AS productName,
  event, subscription, subscription_id AS subscriptionId,
  notification_date_us AS notificationDateUs, received_at_us AS receivedAtUs, source,
  times_seen AS timesSeen, last_seen_at_us AS lastSeenAtUs, body_index AS bodyIndex`;

export const logReads = {
  page,
  narrowByTime,
  body,
  original,
  lastPosition,
  drift: driftCounts,
  counts,
  cursor,
  nodeId,
};

export const logWrites = {
  moveCursor(database: Database, reader: string, position: number, atUs: number): void {
    prepared(database, 'INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)').run(
      reader,
      position,
      atUs,
    );
  },
};

/** Returns a page of rows in the order of their positions; fewer than `rowsMax` mean the end. */
function page(database: Database, query: NotificationQuery, rowsMax: number): NotificationRow[] {
  const { where, values } = conditions(query);
  const direction = query.order === 'oldest' ? 'ASC' : 'DESC';
  // NOT INDEXED: pages are in the order of positions, which only the table itself has.
  const source = query.ackId === undefined ? 'notification NOT INDEXED' : 'notification';
  return prepared<unknown[], NotificationRow>(
    database,
    `SELECT ${columns} FROM ${source} WHERE ${where} ORDER BY position ${direction} LIMIT ?`,
  ).all(...values, rowsMax);
}

/**
 * Limits a query by time of receipt to the positions that can match, so that no page scans beyond them.
 * Uses the exact minimum and maximum position, because times are not in order after the clock was set
 * back. `+` makes SQLite scan the index instead of the table.
 */
export function narrowByTime(database: Database, query: NotificationQuery): NotificationQuery {
  const { sinceUs, untilUs, afterPosition = 0, beforePosition = Number.MAX_SAFE_INTEGER } = query;
  if (query.time === 'notification' || (sinceUs ?? untilUs) === undefined) return query;
  const row = prepared<[number, number], { first: number | null; last: number | null }>(
    database,
    `SELECT min(+position) AS first, max(+position) AS last FROM notification
       WHERE received_at_us >= ? AND received_at_us < ?`,
  ).get(sinceUs ?? 0, untilUs ?? Number.MAX_SAFE_INTEGER);
  const { first = null, last = null } = row ?? {};
  if (first === null || last === null) return { ...query, limit: 0 };
  return {
    ...query,
    afterPosition: Math.max(afterPosition, first - 1),
    beforePosition: Math.min(beforePosition, last + 1),
  };
}

function body(database: Database, position: number): Uint8Array {
  return original(database, position).bytes;
}

function original(database: Database, position: number): OriginalBody {
  const row = prepared<[number], { bodyId: number }>(
    database,
    'SELECT body_id AS bodyId FROM notification WHERE position = ?',
  ).get(position);
  if (row === undefined) throw new AppError('not_found', `The log has no position ${position}.`);
  const { bodyId } = row;
  return { bodyId, bytes: bodyReader(database).storedBody(bodyId) };
}

export function lastPosition(database: Database): number {
  return Number(
    prepared(database, 'SELECT coalesce(max(position), 0) FROM notification').pluck().get(),
  );
}

function counts(database: Database): LogCounts {
  const row = prepared<[], LogCounts>(
    database,
    `SELECT count(*) AS notifications, coalesce(sum(times_seen - 1), 0) AS duplicates,
         (SELECT count(*) FROM quarantine) AS quarantined
       FROM notification`,
  ).get();
  return row ?? { notifications: 0, duplicates: 0, quarantined: 0 };
}

function cursor(database: Database, reader: string): number | null {
  const row = prepared<[string], { position: number }>(
    database,
    'SELECT position FROM reader_cursor WHERE reader = ?',
  ).get(reader);
  return row?.position ?? null;
}

/** Returns the id of this log as a node of a shared log; null for a log of its own. */
export function nodeId(database: Database): string | null {
  return prepared<[], string>(database, 'SELECT node_id FROM shared_log').pluck().get() ?? null;
}

function conditions(query: NotificationQuery) {
  const ackKey = query.ackId === undefined ? undefined : dedupeKey(`ack\n${query.ackId}`);
  const parts: [string, unknown][] = [
    // Several subscriptions may have sent the same AckId.
    ['dedupe_key >= ?', ackKey],
    ['dedupe_key <= ?', ackKey && lastKeyOf(ackKey)],
    ['product_id = ?', query.productId],
    nameCondition(query.name),
    ['subscription = ?', query.subscription],
    ['source = ?', query.source],
    ['position > ?', query.afterPosition],
    ['position < ?', query.beforePosition],
    ...timeConditions(query),
  ];
  const used = parts.filter(([, value]) => value !== undefined);
  const where = used.map(([text]) => text);
  const values = used.map(([, value]) => value);
  if (query.events !== undefined) {
    where.push(`event IN (${query.events.map(() => '?').join(', ')})`);
    values.push(...query.events);
  }
  if (query.positions !== undefined) {
    where.push('position IN (SELECT value FROM json_each(?))');
    values.push(JSON.stringify(query.positions));
  }
  return { where: where.length === 0 ? 'true' : where.join(' AND '), values };
}

function timeConditions(query: NotificationQuery): [string, unknown][] {
  const { sinceUs, untilUs } = query;
  if (query.time === 'notification') {
    return [
      ['notification_date_us >= ?', sinceUs],
      ['notification_date_us < ?', untilUs],
    ];
  }
  return [
    ['received_at_us >= ?', sinceUs],
    ['received_at_us < ?', untilUs],
  ];
}

/** Excludes names above the maximum length from patterns, so that each row costs only microseconds. */
function nameCondition(name: string | undefined): [string, string | undefined] {
  if (name === undefined || !/[*?]/.test(name)) return ['product_name = ?', name];
  if (name.length > namePatternMax) {
    throw new AppError(
      'invalid',
      `The name pattern has ${name.length} characters (maximum: ${namePatternMax}).`,
    );
  }
  // GLOB also supports `[…]`; the user's pattern does not.
  const glob = name.replaceAll('[', '[[]');
  return [`octet_length(product_name) <= ${namePatternMax} AND product_name GLOB ?`, glob];
}

/**
 * Inserts a notification, by default (null) at the next position. Returns its position; null when its key is known.
 * `eventUs` is the date of a recovered event.
 */
export function insertNotification(
  database: Database,
  {
    subscription,
    receivedAtUs,
    source,
  }: Pick<Delivery, 'subscription' | 'receivedAtUs' | 'source'>,
  item: Notification,
  row: { position: number | null; key: Uint8Array; bodyId: number; eventUs: number | null },
): number | null {
  const { changes, lastInsertRowid } = prepared(
    database,
    `INSERT INTO notification (position, dedupe_key, ack_id, product_id, product_name, event,
       subscription, subscription_id, notification_date_us, received_at_us, source, times_seen,
       last_seen_at_us, body_id, body_index, event_us)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
     ON CONFLICT (dedupe_key) DO NOTHING`,
  ).run(
    row.position,
    row.key,
    item.ackId,
    item.productId,
    item.productName,
    item.event,
    subscription,
    item.subscriptionId,
    item.notificationDateUs,
    receivedAtUs,
    source,
    receivedAtUs,
    row.bodyId,
    item.index,
    row.eventUs,
  );
  return changes === 1 ? Number(lastInsertRowid) : null;
}

/** Counts a repeated delivery of the notification at a position. */
export function countDuplicate(database: Database, position: number, receivedAtUs: number): void {
  prepared(
    database,
    `UPDATE notification
     SET times_seen = times_seen + 1, last_seen_at_us = max(last_seen_at_us, ?)
     WHERE position = ?`,
  ).run(receivedAtUs, position);
}

/** Maximum number of shapes: senders choose the field names. Further shapes share a row. */
const shapesMax = 200;
const overflowShape = 'unknown-field:(more)';

function driftCounts(database: Database): DriftCount[] {
  return prepared<[], DriftCount>(
    database,
    `SELECT shape, count, first_seen_at_us AS firstSeenAtUs, last_seen_at_us AS lastSeenAtUs
     FROM drift ORDER BY count DESC, shape`,
  ).all();
}

/** Adds the shapes of one transaction, with one statement per shape. */
export function countDrift(database: Database, shapes: readonly DriftShape[], atUs: number): void {
  if (shapes.length === 0) return;
  const known = new Set(prepared<[], string>(database, 'SELECT shape FROM drift').pluck().all());
  const sums = new Map<string, number>();
  for (const shape of shapes) {
    const bounded = shape.startsWith('unknown-field:') && known.size >= shapesMax;
    const row = bounded && !known.has(shape) ? overflowShape : shape;
    known.add(row);
    sums.set(row, (sums.get(row) ?? 0) + 1);
  }
  for (const [shape, count] of sums) {
    prepared(
      database,
      `INSERT INTO drift VALUES (?, ?, ?, ?)
       ON CONFLICT (shape) DO UPDATE SET
         count = count + excluded.count, last_seen_at_us = excluded.last_seen_at_us`,
    ).run(shape, count, atUs, atUs);
  }
}
