/** Finds what still needs the log: places of readers, and what is left over behind them. */
import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
import type { LogHolder } from '../../domain/pruning.ts';
import { type SinkItem, sinkReader } from '../../domain/sinks.ts';
import { summaryReader } from '../../domain/summaries.ts';
import { indexedPosition, isDamage, openProductsForReading } from '../products/product-file.ts';

/** A few look-ups and one file that is opened: cheap enough for each step of a prune. */
export function logHolders(database: Database, dataDir: string): LogHolder[] {
  return [
    ...cursors(database),
    ...replays(database),
    ...sinkItems(database, 'waiting', 'waiting', 'what waits for'),
    ...sinkItems(database, 'dead', 'dead-letters', 'dead letters of'),
    ...summaryJobs(database),
    ...productIndex(database, dataDir),
  ];
}

function cursors(database: Database): LogHolder[] {
  return database
    .prepare<[], Pick<LogHolder, 'key' | 'position' | 'sinceUs'>>(
      'SELECT reader AS key, position, moved_at_us AS sinceUs FROM reader_cursor',
    )
    .all()
    .map((row) => ({ ...row, kind: 'cursor', name: cursorName(row.key) }));
}

const ofSink = sinkReader('');

function cursorName(key: string): string {
  if (key === summaryReader) return key;
  return key.startsWith(ofSink) ? `sink ${key.slice(ofSink.length)}` : `reader ${key}`;
}

function replays(database: Database): LogHolder[] {
  return database
    .prepare<[], { id: number } & Pick<LogHolder, 'key' | 'position' | 'sinceUs'>>(
      `SELECT id, sink AS key, position, requested_at_us AS sinceUs
       FROM sink_replay WHERE ended_at_us IS NULL`,
    )
    .all()
    .map(({ id, ...row }) => ({ ...row, kind: 'replay', name: `replay ${id} of sink ${row.key}` }));
}

/** The first of each sink; the names are found by the same index, one after the other. */
function sinkItems(
  database: Database,
  state: SinkItem['state'],
  kind: LogHolder['kind'],
  what: string,
): LogHolder[] {
  const items = `sink_item INDEXED BY sink_item_${state}_position WHERE state = '${state}'`;
  return database
    .prepare<[], Pick<LogHolder, 'key' | 'position' | 'sinceUs'>>(
      `WITH RECURSIVE name (sink) AS (
         SELECT min(sink) FROM ${items}
         UNION ALL SELECT (SELECT min(sink) FROM ${items} AND sink > name.sink)
           FROM name WHERE sink IS NOT NULL)
       SELECT sink AS key, position - 1 AS position, queued_at_us AS sinceUs
       FROM sink_item WHERE id IN (
         SELECT (SELECT id FROM ${items} AND sink = name.sink ORDER BY position LIMIT 1)
         FROM name WHERE sink IS NOT NULL)`,
    )
    .all()
    .map((row) => ({ ...row, kind, name: `${what} sink ${row.key}` }));
}

const openJobs = `summary_job INDEXED BY summary_job_due WHERE state IN ('waiting', 'asking')`;

/** Of digests, the first notification of the first window; `keptForDigestsUs` is exact. */
function summaryJobs(database: Database): LogHolder[] {
  return database
    .prepare<[], Pick<LogHolder, 'name' | 'position' | 'sinceUs'>>(
      `SELECT * FROM (
         SELECT 'summaries that wait' AS name, min(position) - 1 AS position,
           min(requested_at_us) AS sinceUs FROM ${openJobs} AND kind = 'product'
         UNION ALL
         SELECT 'digests that wait', (SELECT position FROM notification
             WHERE received_at_us >= digest.from_us ORDER BY received_at_us LIMIT 1) - 1, since_us
         FROM (SELECT ${digestFromUs} AS from_us, min(requested_at_us) AS since_us
           FROM ${openJobs} AND kind = 'digest') AS digest)
       WHERE position IS NOT NULL`,
    )
    .all()
    .map((row) => ({ ...row, kind: 'summary-jobs', key: row.name }));
}

const digestFromUs = "min(json_extract(scope, '$.fromUs'))";

/** What was received from this moment on is told of by digests that are still to be written; null without any. */
export function keptForDigestsUs(database: Database): number | null {
  const row = database
    .prepare<[], { us: number | null }>(
      `SELECT ${digestFromUs} AS us FROM ${openJobs} AND kind = 'digest'`,
    )
    .get();
  return row?.us ?? null;
}

/** None where there is no index of this version: whoever makes one begins with the log as it is then. */
function productIndex(log: Database, dataDir: string): LogHolder[] {
  try {
    const index = openProductsForReading(dataDir);
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
