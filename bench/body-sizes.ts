/** What the log takes up on the disk for each notification, before and after it was compacted. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { compactLog } from '../src/store/bodies/compact-log.ts';
import { databaseFileName } from '../src/store/engine/database.ts';
import { openStore } from '../src/store/store.ts';
import { type BodyKind, bodiesOf } from './body-kinds.ts';
import type { Cleanup } from './cleanup.ts';
import type { Progress } from './progress.ts';

/** How notifications arrive: many at the same time, or each alone. */
export const arrivals = ['full speed', 'one at a time'] as const;
export type Arrival = (typeof arrivals)[number];

/** All of these are bytes for one notification. */
export interface LogBytes {
  /** The file, its write-ahead log taken in, without what an empty one takes up. */
  file: number;
  /** Pages of the table of bodies. */
  bodies: number;
  /** Pages of the table of notifications, and of its indexes. */
  notifications: number;
}

export interface BodySizes {
  kind: BodyKind;
  arrival: Arrival;
  count: number;
  /** Mean size of the bodies as they came. */
  rawBytes: number;
  stored: LogBytes;
  compacted: LogBytes;
  /** What compacting took, µs of this program's processors for a notification. */
  compactUs: number;
}

const atOnce = { 'full speed': 64, 'one at a time': 1 } as const;

/** Stores so many notifications, looks at the file, compacts it, and looks again. */
export async function measureSizes(
  { kind, arrival, count }: Pick<BodySizes, 'kind' | 'arrival' | 'count'>,
  {
    cleanup,
    parentFolder,
    progress,
  }: { cleanup: Cleanup; parentFolder: string; progress: Progress },
): Promise<BodySizes> {
  const dataDir = cleanup.temporaryFolder(parentFolder);
  progress.show(`${count} notifications, ${kind}, ${arrival}: storing`);
  await storeAll(dataDir, [], 1);
  const empty = fileBytes(dataDir);
  const rawBytes = await storeAll(dataDir, bodiesOf(kind, count), atOnce[arrival]);
  const look = () => readBytes(dataDir, { count, empty });
  const stored = look();
  progress.show(`${count} notifications, ${kind}, ${arrival}: compacting`);
  const before = process.cpuUsage();
  await compactLog({
    ...{ dataDir, freeShare: 0, rest: async () => {} },
    signal: new AbortController().signal,
  });
  const { user, system } = process.cpuUsage(before);
  const compacted = look();
  cleanup.removeFolder(dataDir);
  const compactUs = (user + system) / count;
  return { kind, arrival, count, rawBytes: rawBytes / count, stored, compacted, compactUs };
}

/** Resolves with the size of all bodies. */
async function storeAll(
  dataDir: string,
  bodies: Iterable<Buffer>,
  inFlightMax: number,
): Promise<number> {
  const store = await openStore({ dataDir, nowUs: () => Date.now() * 1_000 });
  let rawBytes = 0;
  const inFlight = new Set<Promise<void>>();
  for (const body of bodies) {
    rawBytes += body.length;
    const accepted = store
      .accept({
        ...{ body, subscription: 'bench', source: 'push', headers: [] },
        receivedAtUs: Date.now() * 1_000,
      })
      .then(() => void inFlight.delete(accepted));
    inFlight.add(accepted);
    if (inFlight.size >= inFlightMax) await Promise.race(inFlight);
  }
  await Promise.all(inFlight);
  await store.close();
  return rawBytes;
}

function fileBytes(dataDir: string): number {
  return statSync(join(dataDir, databaseFileName)).size;
}

function readBytes(dataDir: string, { count, empty }: { count: number; empty: number }): LogBytes {
  const database = new Database(join(dataDir, databaseFileName));
  try {
    database.pragma('wal_checkpoint(TRUNCATE)');
    const pages = database
      .prepare<[], { table: string; bytes: number }>(
        `SELECT tbl_name AS "table", sum(pgsize) AS bytes
         FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name`,
      )
      .all();
    const bytesOf = (table: string) => pages.find((one) => one.table === table)?.bytes ?? 0;
    return {
      file: (fileBytes(dataDir) - empty) / count,
      bodies: bytesOf('body') / count,
      notifications: bytesOf('notification') / count,
    };
  } finally {
    database.close();
  }
}
