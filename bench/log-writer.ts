/** Writes notifications directly to earshot's database, much faster than by delivery. */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { setImmediate as otherWork } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { packBatch } from '../src/store/bodies/bodies.ts';
import { dedupeKey, identityOf } from '../src/store/log/dedupe-key.ts';

/** A notification in the log; times in µs since 1970. */
export interface LogEntry {
  readonly ackId: string;
  readonly productId: string;
  readonly productName: string;
  readonly event: string;
  readonly subscriptionId: string;
  readonly notificationDateUs: number;
  readonly receivedAtUs: number;
  /** Request body. The buffer may be reused after the entry is written. */
  readonly body: Buffer;
}

/** Column name to value. */
type Row = Record<string, string | number | Uint8Array | null>;

const rowsPerTransaction = 10_000;

/** Number of bodies that arrive together at full speed. */
const bodiesTogether = 64;

/**
 * Inserts entries (at least one) into the empty database of a stopped earshot. Calls `onProgress` with the number of
 * written entries. Rejects if the columns of a table differ from those written here.
 */
export async function writeLog(
  file: string,
  entries: Iterable<LogEntry>,
  onProgress: (written: number) => void,
): Promise<void> {
  const db = new Database(file, { fileMustExist: true });
  try {
    // No journal and no sync: after a crash the file is discarded anyway. The write-ahead log must be
    // disabled first.
    db.pragma('journal_mode = DELETE');
    db.pragma('journal_mode = OFF');
    db.pragma('synchronous = OFF');
    db.pragma('cache_size = -131072');
    const insertNotification = prepareInsert(db, 'notification');
    const bodies = createBodies(db);
    let written = 0;
    db.exec('BEGIN');
    for (const entry of entries) {
      written += 1;
      insertNotification(rowOf(entry, written));
      bodies.add(entry.body);
      if (written % rowsPerTransaction !== 0) continue;
      db.exec('COMMIT');
      onProgress(written);
      // A million rows take a minute or more; lets signals and timers run.
      await otherWork();
      db.exec('BEGIN');
    }
    bodies.flush();
    db.exec('COMMIT');
    db.pragma('journal_mode = WAL');
  } finally {
    db.close();
  }
  flushToDisk(file);
}

/** Flushes the file to disk, so that this does not happen during a measurement. */
function flushToDisk(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the row that the store would write. */
function rowOf({ body: _, ...entry }: LogEntry, number: number): Row {
  const notification = { index: 0, ...entry };
  const identity = identityOf(notification, { subscription: 'bench', bodyDigest: () => '' });
  return {
    dedupe_key: dedupeKey(identity),
    ack_id: entry.ackId,
    product_id: entry.productId,
    product_name: entry.productName,
    event: entry.event,
    subscription: 'bench',
    subscription_id: entry.subscriptionId,
    notification_date_us: entry.notificationDateUs,
    received_at_us: entry.receivedAtUs,
    source: 'push',
    times_seen: 1,
    last_seen_at_us: entry.receivedAtUs,
    body_id: number,
    body_index: 0,
    event_us: null,
    pushed_at_us: null,
  };
}

/** Collects bodies with ids 1, 2, 3, … and writes them like the store. */
function createBodies(db: Database.Database) {
  const insert = prepareInsert(db, 'body');
  let id = 1;
  let gathered: Buffer[] = [];
  const flush = () => {
    for (const { encoding, bodies, bytes } of packBatch(gathered)) {
      insert({ id, encoding, packed: bytes, bodies });
      id += bodies;
    }
    gathered = [];
  };
  return {
    add: (body: Buffer) => {
      gathered.push(Buffer.from(body));
      if (gathered.length === bodiesTogether) flush();
    },
    flush,
  };
}

/** Returns an insert function, prepared with its first row. It throws if the table has other columns. */
function prepareInsert(db: Database.Database, table: string): (row: Row) => void {
  let statement: Database.Statement | undefined;
  return (row) => {
    statement ??= prepareFor(db, table, Object.keys(row));
    statement.run(Object.values(row));
  };
}

function prepareFor(db: Database.Database, table: string, columns: string[]) {
  // Typed by SQLite's documentation: `pragma` is untyped.
  const facts = db.pragma(`table_info(${table})`) as { name: string; pk: number }[];
  const unfilled = facts.filter(({ name, pk }) => pk === 0 && !columns.includes(name));
  const unknown = columns.filter((column) => facts.every(({ name }) => name !== column));
  if (unfilled.length > 0 || unknown.length > 0) {
    const names = [...unfilled.map(({ name }) => name), ...unknown].join(', ');
    throw new Error(
      `unexpected columns of table ${table}: ${names || 'missing'}; update bench/log-writer.ts`,
    );
  }
  const places = columns.map(() => '?').join(', ');
  return db.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`);
}
