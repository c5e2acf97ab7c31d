/** What the log has of events, read from its file. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { parseDate } from '../src/domain/dates.ts';
import type { SubscriptionEvent } from '../src/domain/subscription.ts';
import { bodyReader } from '../src/store/bodies/body-reader.ts';
import { databaseFileName } from '../src/store/engine/database.ts';

/** An entry of the log. */
export interface LoggedEvent {
  position: number;
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  /** Of the record's PublicationDate, ModificationDate or DeletionDate. */
  dateUs: number;
  source: 'push' | 'reconcile';
  /** When a push of it came first; null when none did. */
  pushedAtUs: number | null;
}

interface Row {
  position: number;
  subscription: string;
  event: SubscriptionEvent;
  productId: string;
  source: 'push' | 'reconcile';
  receivedAtUs: number;
  pushedAtUs: number | null;
  bodyId: number;
  bodyIndex: number;
}

const dateFields = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
} as const;

/** Every entry, oldest first. Throws for one without a record, or without its date. */
export function readLog(dataDir: string): LoggedEvent[] {
  const database = new Sqlite(join(dataDir, databaseFileName), { readonly: true });
  try {
    const rows = database.prepare<[], Row>(
      `SELECT position, subscription, event, product_id AS productId, source,
         received_at_us AS receivedAtUs, pushed_at_us AS pushedAtUs, body_index AS bodyIndex,
         body_id AS bodyId
       FROM notification ORDER BY position`,
    );
    const bodies = bodyReader(database);
    // One at a time: bodies are large, and not kept.
    return Array.from(rows.iterate(), (row) => toLogged(row, bodies.keptBody(row.bodyId)));
  } finally {
    database.close();
  }
}

function toLogged(
  { bodyIndex, bodyId: _, receivedAtUs, ...row }: Row,
  body: Uint8Array,
): LoggedEvent {
  const json: unknown = JSON.parse(Buffer.from(body).toString());
  // The bodies are the sandbox's own, or the receiver's.
  const item = (Array.isArray(json) ? json[bodyIndex] : json) as Record<string, unknown>;
  const record = (item.value ?? item.Value) as Record<string, unknown>;
  const date = parseDate(String(record[dateFields[row.event]]));
  if (date === null) throw new Error(`Entry ${row.position} has no date.`);
  const pushedAtUs = row.source === 'push' ? receivedAtUs : row.pushedAtUs;
  return { ...row, dateUs: date.us, pushedAtUs };
}
