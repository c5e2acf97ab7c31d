/** Rows of the notification log as they are copied into a shared log, and from its entries into the logs of nodes. */
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { createBodyReader, createBodyWriter } from '../../store/bodies/bodies.ts';
import { type Database, prepared } from '../../store/engine/database.ts';
import {
  type CopiedRows,
  decodeEntry,
  type EntryContent,
  encodeEntry,
  partBytesMax,
  toJson,
} from './entry.ts';
import { digestOf, eventName, itemDigest } from './prepare-entry.ts';
import type { CopiedKey, EncodedContent } from './terms.ts';

/** Rows of one entry. */
const rowsMax = 256;

type Row = Record<string, unknown>;

/** An entry of a copy. */
export interface CopiedPart extends EncodedContent {
  keys: CopiedKey[];
  /** Digest of the bytes. */
  digest: string;
  /** Position of the last row. */
  lastPosition: number;
  seen: { position: number; timesSeen: number }[];
}

/** Returns the rows after a position; null when there are none. */
export function copiedRows(database: Database, after: number): CopiedPart | null {
  const next = prepared<[number, number], Row>(
    database,
    'SELECT * FROM notification WHERE position > ? ORDER BY position LIMIT ?',
  ).all(after, rowsMax);
  const rows = limited(database, next);
  return rows.length === 0 ? null : partOf(database, rows, []);
}

/** Returns rows up to a position that have changed since they were copied; null for none. */
export function changedRows(database: Database, upTo: number): CopiedPart | null {
  const changed = prepared<[number, number], Row>(
    database,
    `SELECT notification.* FROM copied_change JOIN notification USING (position)
     WHERE position <= ? ORDER BY position LIMIT ?`,
  ).all(upTo, rowsMax);
  return changed.length === 0 ? null : partOf(database, [], changed);
}

/** Returns the entry of a log without notifications. */
export const noRows = (database: Database): CopiedPart => partOf(database, [], []);

/** Drops the marks of changes that were copied; a row that has changed again stays. Each change counts a receipt. */
export function dropCopiedChanges(database: Database, seen: CopiedPart['seen']): void {
  const drop = prepared(
    database,
    `DELETE FROM copied_change WHERE position = ?
       AND ? = (SELECT times_seen FROM notification WHERE notification.position = copied_change.position)`,
  );
  for (const { position, timesSeen } of seen) drop.run(position, timesSeen);
}

/** Returns the first rows, as far as their bodies have the size of a part. */
function limited(database: Database, rows: Row[]): Row[] {
  const reader = createBodyReader(database, 'transaction');
  const seen = new Set<unknown>();
  let bytes = 0;
  const end = rows.findIndex(({ body_id: id }) => {
    if (bytes >= partBytesMax) return true;
    if (!seen.has(id)) bytes += reader.storedBody(Number(id)).length;
    seen.add(id);
    return false;
  });
  return end === -1 ? rows : rows.slice(0, end);
}

function partOf(database: Database, rows: Row[], changed: Row[]): CopiedPart {
  const reader = createBodyReader(database, 'transaction');
  const ids = [...new Set(rows.map(({ body_id: id }) => Number(id)))];
  const bodies = ids.map((id) => ({
    ...{ id, bytes: reader.storedBody(id), encoding: reader.encoding(id) },
  }));
  const content: CopiedRows = { kind: 'rows', rows, bodies, changed };
  const encoded = encodeEntry(content);
  if (!isDeepStrictEqual(comparable(decodeEntry(encoded)), comparable(content))) {
    throw new Error('A copied entry differs from its rows.');
  }
  const all = [...rows, ...changed];
  const keys = all.map((row) => keyOf(row, reader.content(Number(row.body_id))));
  const lastPosition = Number(all.at(-1)?.position ?? 0);
  const seen = all.map((row) => ({
    position: Number(row.position),
    timesSeen: Number(row.times_seen),
  }));
  return { ...encoded, keys, digest: hash('sha256', encoded.bytes, 'hex'), lastPosition, seen };
}

function comparable(content: EntryContent): [string, Buffer] {
  const parts: Uint8Array[] = [];
  const json = toJson(content, parts);
  return [json, Buffer.concat(parts)];
}

interface KeyColumns {
  position: number;
  dedupe_key: Uint8Array;
  ack_id: string | null;
  product_id: string;
  event: string;
  subscription: string | null;
  subscription_id: string | null;
  source: string;
  body_index: number;
  event_us: number | null;
  pushed_at_us: number | null;
}

function keyOf(columns: Row, body: Uint8Array | undefined): CopiedKey {
  // Selected with all columns of the table.
  const row = columns as unknown as KeyColumns;
  const isCompared = row.ack_id !== null && row.source === 'push' && body !== undefined;
  const isRecovered = row.source === 'reconcile' && row.event_us !== null;
  return {
    position: row.position,
    key: Buffer.from(row.dedupe_key).toString('hex'),
    subscriptionId:
      row.subscription_id === null ? null : digestOf(row.subscription_id.toLowerCase()),
    subscription: row.subscription,
    product: digestOf(row.product_id.toLowerCase()),
    event: eventName(row.event),
    content: isCompared ? itemDigest(body, row.body_index) : null,
    recoveredUs: isRecovered ? row.event_us : null,
    isPushed: row.pushed_at_us !== null,
  };
}

/** Writes the rows of an entry into the log of a node. */
export function writeCopiedRows(database: Database, { rows, bodies, changed }: CopiedRows): void {
  const writer = createBodyWriter(database);
  const ids = new Map(
    bodies.map(({ id, bytes, encoding }) => [
      id,
      writer.add({
        body: bytes,
        encoded: encoding === null ? undefined : { encoding, content: bytes },
      }),
    ]),
  );
  writer.end();
  for (const row of rows) insertRow(database, { ...row, body_id: ids.get(Number(row.body_id)) });
  for (const row of changed) {
    const { body_id: _, ...columns } = row;
    const names = Object.keys(columns).map(safeName);
    const assignments = names.map((name) => `${name} = @${name}`).join(', ');
    prepared<[object]>(
      database,
      // Another row with its key was pruned in the copied log.
      `UPDATE OR REPLACE notification SET ${assignments} WHERE position = @position`,
    ).run(columns);
  }
}

function insertRow(database: Database, row: Row): void {
  const names = Object.keys(row).map(safeName);
  const values = names.map((name) => `@${name}`).join(', ');
  prepared<[object]>(
    database,
    // Another row with its key was pruned in the copied log.
    `INSERT OR REPLACE INTO notification (${names.join(', ')}) VALUES (${values})`,
  ).run(row);
}

/** Names of columns are part of SQL. */
function safeName(name: string): string {
  if (/^[a-z_]+$/.test(name)) return name;
  throw new Error('An entry contains an invalid column name.');
}
