/** The questions about pruning as SQL: its horizon, what still needs the log, the log's size, and what would be removed. */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
import type {
  LogSize,
  Prunable,
  PruneBlocker,
  PruneHorizon,
  PruneRequest,
} from '../../domain/pruning.ts';
import { type SinkItem, sinkReader } from '../../domain/sinks.ts';
import { summaryReader } from '../../domain/summaries.ts';
import { prepared } from '../engine/database.ts';
import { lastPosition } from '../log/queries.ts';
import { indexedPosition, isDamage, openProductsForReading } from '../products/product-file.ts';

export function pruneHorizon(database: Database): PruneHorizon | null {
  const row = prepared<[], PruneHorizon>(
    database,
    `SELECT position, received_before_us AS receivedBeforeUs, pruned_at_us AS prunedAtUs
     FROM prune_horizon`,
  ).get();
  return row ?? null;
}

/** Nothing is counted: SQLite keeps these figures, and finds both ends of a table at once. */
export function logSize(database: Database): LogSize {
  const first = prepared<[], { position: number; receivedAtUs: number }>(
    database,
    `SELECT position, received_at_us AS receivedAtUs FROM notification ORDER BY position LIMIT 1`,
  ).get();
  const last = prepared<[], number | null>(database, 'SELECT max(position) FROM notification');
  const wal = statSync(`${database.name}-wal`, { throwIfNoEntry: false });
  return {
    ...pageBytes(database),
    walBytes: wal?.size ?? 0,
    firstPosition: first?.position ?? 0,
    lastPosition: last.pluck().get() ?? 0,
    firstReceivedAtUs: first?.receivedAtUs ?? null,
  };
}

/** How much of the log's file is in use; within a transaction, as it has left it so far. */
export function pageBytes(database: Database): Pick<LogSize, 'usedBytes' | 'freeBytes'> {
  const read = (name: string) => Number(database.pragma(name, { simple: true }));
  const [size, pages, free] = [read('page_size'), read('page_count'), read('freelist_count')];
  return { usedBytes: size * (pages - free), freeBytes: size * free };
}

/** The newest entries whose size is read; the others count as much as these on average. */
const sampleMax = 200;

/**
 * About the size of all bodies in the quarantine. Pruning by size leaves them out: they are not removed by it, and
 * notifications are not to be removed for them.
 */
export function quarantineBytes(database: Database): number {
  const held = 'quarantine INDEXED BY quarantine_held WHERE released_at_us IS NULL';
  const ask = (sql: string) => Number(prepared(database, sql).pluck().get() ?? 0);
  const entries = ask(`SELECT count(*) FROM ${held}`);
  if (entries === 0) return 0;
  const mean = ask(
    `SELECT avg((SELECT length(packed) / bodies FROM body WHERE id <= body_id ORDER BY id DESC LIMIT 1))
     FROM (SELECT body_id FROM ${held} ORDER BY id DESC LIMIT ${sampleMax})`,
  );
  return Math.round(entries * mean);
}

/** Finds what still needs the log: a few look-ups and one file that is opened, cheap enough for each step of a prune. */
export function pruneBlockers(database: Database): PruneBlocker[] {
  return [
    ...cursors(database),
    ...replays(database),
    ...sinkItems(database, 'waiting', 'waiting', 'what waits for'),
    ...sinkItems(database, 'dead', 'dead-letters', 'dead letters of'),
    ...summaryJobs(database),
    ...productIndex(database),
  ];
}

type Place = Pick<PruneBlocker, 'key' | 'position' | 'sinceUs'>;

function cursors(database: Database): PruneBlocker[] {
  const sql = 'SELECT reader AS key, position, moved_at_us AS sinceUs FROM reader_cursor';
  const ofSink = sinkReader('');
  const nameOf = (key: string) => {
    if (key === summaryReader) return key;
    return key.startsWith(ofSink) ? `sink ${key.slice(ofSink.length)}` : `reader ${key}`;
  };
  return prepared<[], Place>(database, sql)
    .all()
    .map((row) => ({ ...row, kind: 'cursor', name: nameOf(row.key) }));
}

function replays(database: Database): PruneBlocker[] {
  const sql = `SELECT id, sink AS key, position, requested_at_us AS sinceUs
    FROM sink_replay WHERE ended_at_us IS NULL`;
  return prepared<[], Place & { id: number }>(database, sql)
    .all()
    .map(({ id, ...row }) => ({ ...row, kind: 'replay', name: `replay ${id} of sink ${row.key}` }));
}

/** The first of each sink; the names are found by the same index, one after the other. */
function sinkItems(
  database: Database,
  state: SinkItem['state'],
  kind: PruneBlocker['kind'],
  what: string,
): PruneBlocker[] {
  const items = `sink_item INDEXED BY sink_item_${state}_position WHERE state = '${state}'`;
  const sql = `WITH RECURSIVE name (sink) AS (
      SELECT min(sink) FROM ${items}
      UNION ALL SELECT (SELECT min(sink) FROM ${items} AND sink > name.sink)
        FROM name WHERE sink IS NOT NULL)
    SELECT sink AS key, position - 1 AS position, queued_at_us AS sinceUs
    FROM sink_item WHERE id IN (
      SELECT (SELECT id FROM ${items} AND sink = name.sink ORDER BY position LIMIT 1)
      FROM name WHERE sink IS NOT NULL)`;
  return prepared<[], Place>(database, sql)
    .all()
    .map((row) => ({ ...row, kind, name: `${what} sink ${row.key}` }));
}

const openJobs = `summary_job INDEXED BY summary_job_due WHERE state IN ('waiting', 'asking')`;
const digestFromUs = "min(json_extract(scope, '$.fromUs'))";

/** Of digests, the first notification of the first window; `keptForDigestsUs` is exact. */
function summaryJobs(database: Database): PruneBlocker[] {
  const sql = `SELECT * FROM (
      SELECT 'summaries that wait' AS key, min(position) - 1 AS position,
        min(requested_at_us) AS sinceUs FROM ${openJobs} AND kind = 'product'
      UNION ALL
      SELECT 'digests that wait', (SELECT position FROM notification
          WHERE received_at_us >= digest.from_us ORDER BY received_at_us LIMIT 1) - 1, since_us
      FROM (SELECT ${digestFromUs} AS from_us, min(requested_at_us) AS since_us
        FROM ${openJobs} AND kind = 'digest') AS digest)
    WHERE position IS NOT NULL`;
  return prepared<[], Place>(database, sql)
    .all()
    .map((row) => ({ ...row, kind: 'summary-jobs', name: row.key }));
}

/** Digests that are still to be written need what was received from this moment on; null without any. */
export function keptForDigestsUs(database: Database): number | null {
  const sql = `SELECT ${digestFromUs} FROM ${openJobs} AND kind = 'digest'`;
  return prepared<[], number | null>(database, sql).pluck().get() ?? null;
}

/** None where there is no index of this version: a new one begins with the log as it is then. */
function productIndex(log: Database): PruneBlocker[] {
  try {
    const index = openProductsForReading(dirname(log.name));
    try {
      const position = indexedPosition({ index, log });
      return [{ name: 'product index', kind: 'index', key: 'index', position, sinceUs: null }];
    } finally {
      index.close();
    }
  } catch (error) {
    if (isDamage(error) || isAppError(error, 'unavailable')) return [];
    throw error;
  }
}

/** When what is kept by age was received at the earliest; null where nothing is removed by its age. */
export function keptSinceUs({ keep, nowUs }: PruneRequest): number | null {
  return keep.ageUs === null ? null : nowUs - keep.ageUs;
}

/**
 * What a prune would remove, and what holds it back. Counts by the index on times of receipt, which takes about a second
 * for some ten millions. As notifications mostly lie in the order of that time, what it finds is what is removed.
 */
export function prunable(database: Database, request: PruneRequest): Prunable {
  const one = (sql: string, ...values: number[]): number | null => {
    // SQLite's integers: a bound beyond all of them is the largest.
    const bounds = values.map((value) => Math.min(value, Number.MAX_SAFE_INTEGER));
    return (
      prepared<number[], number | null>(database, sql)
        .pluck()
        .get(...bounds) ?? null
    );
  };
  const total = one('SELECT count(*) FROM notification') ?? 0;
  const { usedBytes } = pageBytes(database);
  // A page for each table and index.
  const pages = one('SELECT count(*) FROM sqlite_schema WHERE rootpage > 0') ?? 0;
  const emptyBytes = pages * Number(database.pragma('page_size', { simple: true }));
  const holders = pruneBlockers(database);
  const last = lastPosition(database);
  const stays = Math.min(last, ...holders.map(({ position }) => position));

  /** About when the oldest notifications that take up the excess were received. */
  function bySizeUs(): number {
    const { bytes } = request.keep;
    const excess = bytes === null ? 0 : usedBytes - quarantineBytes(database) - bytes;
    if (excess <= 0) return 0;
    const count = Math.ceil((excess / (usedBytes - emptyBytes)) * total);
    const oldest =
      'SELECT received_at_us FROM notification ORDER BY received_at_us LIMIT 1 OFFSET ?';
    return one(oldest, count) ?? Number.POSITIVE_INFINITY;
  }

  const wantedUs = Math.max(keptSinceUs(request) ?? 0, bySizeUs());
  const firstHeld =
    'SELECT received_at_us FROM notification WHERE position >= ? ORDER BY position LIMIT 1';
  const untilUs = Math.min(
    wantedUs,
    one(firstHeld, stays) ?? 0,
    keptForDigestsUs(database) ?? Number.POSITIVE_INFINITY,
  );
  const count = one('SELECT count(*) FROM notification WHERE received_at_us < ?', untilUs) ?? 0;
  // The first that would stay if nothing held it back.
  const firstKept =
    'SELECT position FROM notification WHERE received_at_us >= ? ORDER BY received_at_us LIMIT 1';
  const wantedPosition = Math.min(one(firstKept, wantedUs) ?? last, last);
  // Entries of an age with the notifications.
  const entries = `SELECT count(*) FROM quarantine
    WHERE received_at_us < ? AND (released_at_us IS NOT NULL OR ?)`;
  return {
    notifications: count,
    fromUs: count === 0 ? null : one('SELECT min(received_at_us) FROM notification'),
    untilUs: count === 0 ? null : untilUs,
    bytes: total === 0 ? 0 : Math.round(((usedBytes - emptyBytes) * count) / total),
    quarantined:
      one(entries, Math.max(keptSinceUs(request) ?? 0, untilUs), Number(request.withQuarantined)) ??
      0,
    heldBy: holders
      .filter(({ position }) => position < wantedPosition)
      .toSorted((a, b) => a.position - b.position),
  };
}
