/** Fills earshot's own database with notifications, much faster than they could be delivered. */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { setImmediate as otherWork } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { identityOf } from '../src/domain/identity.ts';
import { dedupeKey } from '../src/store/dedupe-key.ts';
import { type BodyTemplate, writeIds } from './bodies.ts';
import { type AckIdForm, ackIdOf, productIdOf } from './request-ids.ts';

/** What to write. */
export interface PrefillOptions {
  readonly rows: number;
  readonly ackIdForm: AckIdForm;
  /** Made for the same form. */
  readonly templates: readonly BodyTemplate[];
  /** Cut or pad bodies to this size; undefined leaves them as they are. */
  readonly bodyBytes?: number | undefined;
  /** The run number that the rows' ids are made of. */
  readonly run: number;
  /** Called now and then with the number of rows written so far. */
  onProgress?(rows: number): void;
}

type ColumnValue = string | number | Buffer | Uint8Array | null;

/** Column name to value, for each table that a notification takes a row in. */
interface PrefillRow {
  readonly body: Record<string, ColumnValue>;
  readonly notification: Record<string, ColumnValue>;
}

const rowsPerTransaction = 10_000;
const firstReceivedAtUs = Date.UTC(2026, 0, 1) * 1_000;
const intervalUs = 400_000;

/**
 * Inserts the rows into the file of a stopped earshot that has created its tables and stored nothing.
 * Rejects when a table wants a column that `createRow` does not fill, or has one less.
 */
export async function prefillDatabase(file: string, options: PrefillOptions): Promise<void> {
  const db = new Database(file, { fileMustExist: true });
  try {
    // A crash costs a file that would be thrown away anyway, so nothing is journalled or synced.
    db.pragma('journal_mode = OFF');
    db.pragma('synchronous = OFF');
    db.pragma('cache_size = -262144');
    const example = createRow(options, 0);
    const insertBody = prepareInsert(db, 'body', example.body);
    const insertNotification = prepareInsert(db, 'notification', example.notification);
    const insertFromTo = db.transaction((from: number, to: number) => {
      for (let index = from; index < to; index += 1) {
        const row = createRow(options, index);
        insertBody(row.body);
        insertNotification(row.notification);
      }
    });
    for (let from = 0; from < options.rows; from += rowsPerTransaction) {
      const to = Math.min(from + rowsPerTransaction, options.rows);
      insertFromTo(from, to);
      options.onProgress?.(to);
      // A million rows take a minute or more: signals and timers must get their turn.
      await otherWork();
    }
    db.pragma('journal_mode = WAL');
  } finally {
    db.close();
  }
  flushToDisk(file);
}

/** Waits until the system has written the file, so that it does not do so while we measure. */
export function flushToDisk(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The one function that knows earshot's columns: what the store would write for this notification. */
function createRow(options: PrefillOptions, index: number): PrefillRow {
  const template = options.templates[index % options.templates.length];
  if (template === undefined) throw new Error('there are no templates');
  const ackId = ackIdOf(options.ackIdForm, options.run, index);
  const productId = productIdOf(options.run, index);
  const notificationDateUs = firstReceivedAtUs + index * intervalUs;
  const notification = {
    index: 0,
    ackId,
    productId,
    productName: template.productName,
    event: template.event,
    subscriptionId: template.subscriptionId,
    notificationDateUs,
  };
  const identity = identityOf(notification, { subscription: 'bench', bodyDigest: () => '' });
  const receivedAtUs = notificationDateUs + 50_000_000;
  return {
    body: {
      id: index + 1,
      encoding: 'identity',
      bytes: bodyOf(template, { ackId, productId }, options.bodyBytes),
    },
    notification: {
      dedupe_key: dedupeKey(identity),
      ack_id: ackId,
      product_id: productId,
      product_name: template.productName,
      event: template.event,
      subscription: 'bench',
      subscription_id: template.subscriptionId,
      notification_date_us: notificationDateUs,
      received_at_us: receivedAtUs,
      source: 'push',
      times_seen: 1,
      last_seen_at_us: receivedAtUs,
      body_id: index + 1,
      body_index: 0,
    },
  };
}

function bodyOf(
  template: BodyTemplate,
  ids: { ackId: string; productId: string },
  bodyBytes: number | undefined,
): Buffer {
  const bytes = Buffer.from(template.bytes);
  writeIds(bytes, 0, template, ids);
  if (bodyBytes === undefined) return bytes;
  // JSON may end in any amount of white space; a body cut short is no longer JSON, only its size.
  return bodyBytes <= bytes.length
    ? bytes.subarray(0, bodyBytes)
    : Buffer.concat([bytes, Buffer.alloc(bodyBytes - bytes.length, ' ')]);
}

function prepareInsert(db: Database.Database, table: string, example: object) {
  const columns = Object.keys(example);
  // The shape is SQLite's own; `pragma` cannot tell it.
  const facts = db.pragma(`table_info(${table})`) as { name: string; pk: number }[];
  const unfilled = facts.filter(({ name, pk }) => pk === 0 && !columns.includes(name));
  const unknown = columns.filter((column) => facts.every(({ name }) => name !== column));
  if (unfilled.length > 0 || unknown.length > 0) {
    const names = [...unfilled.map(({ name }) => name), ...unknown].join(', ');
    throw new Error(`table ${table} is not as bench/prefill.ts expects: ${names || 'missing'}`);
  }
  const places = columns.map(() => '?').join(', ');
  const statement = db.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`);
  return (row: Record<string, ColumnValue>) => statement.run(Object.values(row));
}
