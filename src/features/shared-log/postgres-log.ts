/** The shared log in PostgreSQL. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { jittered } from '../../core/host/job.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { IntakeActivity } from '../../store/log/intake-queue.ts';
import { checkpoints, createCopyTarget } from './checkpoints.ts';
import { answerMs, type Connections, openConnections, ownError, sqlErrors } from './connection.ts';
import { createLeases } from './leases.ts';
import {
  type AppendedEntry,
  type ItemOutcome,
  type LogEntry,
  type LogHead,
  type LogPart,
  migrations,
  type NewEntry,
} from './schema.ts';
import { createFiles, nodeSilentMs } from './shared-files.ts';

/** The oldest supported version of PostgreSQL, as `server_version_num`. */
const versionMin = 150_000;

/**
 * Time in which an append begins another attempt, because a failover takes some seconds. An attempt takes up to 5.5 s
 * (connection and answer), and a load balancer waits for 12 s.
 */
const appendMs = 6_000;

/** First wait between attempts, doubled by each. */
const retryMs = 100;
const retryMsMax = 2_000;

/** Entries read at once, and their size after which no other is read. */
const entriesMax = 16;
const entriesBytesMax = 4 * 2 ** 20;

export interface SharedLogOptions {
  /** URLs of the servers. */
  urls: readonly string[];
  /** Refuses appends without a synchronous standby. */
  needsStandby: boolean;
  /** Id of this node. */
  nodeId: string;
  /** Random UUID. */
  newId: () => string;
  random: () => number;
  log: Logger;
  /** For tests: entries that need a new checkpoint. */
  removableMin?: number;
}

/** Calls reject with `unavailable` when the database cannot be used, and when the result is unknown. */
export type SharedLog = Awaited<ReturnType<typeof openSharedLog>>;

/**
 * Opens the shared log; creates its tables in the schema `earshot` when they are missing. Rejects with `configuration`
 * for a server that cannot keep an answered notification, or of a newer earshot, and with `unavailable`.
 */
export async function openSharedLog(options: SharedLogOptions) {
  const connections = openConnections(options.urls);
  try {
    await requireServer(connections);
    await migrate(connections);
  } catch (error) {
    await connections.close();
    throw error;
  }
  const { releaseAll, ...leases } = createLeases(connections, options);
  const own = new IntakeActivity();
  let newest = 0;
  return {
    ...reads(connections),
    ...checkpoints(connections, options.removableMin),
    ...nodeReports(connections, options.needsStandby),
    ...leases,
    files: createFiles(connections),
    copy: createCopyTarget(connections, options.nodeId),
    /** Appends an entry, on disk when it resolves. Rejects with `conflict` when a condition or a position refuses it. */
    append: async (entry: NewEntry): Promise<AppendedEntry> => {
      const appended = await appendEntry(connections, entry, options);
      newest = Math.max(newest, appended.number);
      own.wake();
      return appended;
    },
    /** Proves that the log accepts appends. Rejects with `unavailable` and the reason. */
    check: () => checkWritable(connections, options),
    /** Resolves when this process has appended an entry after this one, after the time, or when the signal is aborted. */
    news: async (after: number, timeoutMs: number, signal: AbortSignal) => {
      const isNew = newest > after;
      // Reported once: the caller must not read in a loop while the entry cannot be applied.
      newest = 0;
      if (!isNew) await own.next(timeoutMs, signal);
    },
    close: async () => {
      await releaseAll();
      await connections.close();
    },
  };
}

async function requireServer({ query }: Connections): Promise<void> {
  const [server] = await query<{ version: string; fsync: string; encoding: string }>(
    `SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
       current_setting('server_encoding') AS encoding`,
  );
  if (Number(server?.version) < versionMin) {
    throw new AppError('configuration', 'The shared log needs PostgreSQL 15 or newer.', {
      advice: 'Upgrade the server of EARSHOT_LOG_URL.',
    });
  }
  if (server?.fsync === 'off') {
    throw new AppError(
      'configuration',
      'The server of EARSHOT_LOG_URL has fsync=off: a power failure would lose answered notifications.',
      { advice: 'Set fsync to on.' },
    );
  }
  if (server?.encoding !== 'UTF8') {
    throw new AppError('configuration', 'The database of EARSHOT_LOG_URL is not encoded in UTF8.', {
      advice: "Create the database with ENCODING 'UTF8'.",
    });
  }
}

/** Applies missing migrations, one transaction each, under a lock. */
async function migrate({ query, value }: Connections): Promise<void> {
  const version = await schemaVersion(value);
  if (version > migrations.length) {
    throw new AppError(
      'configuration',
      `The shared log was created by a newer version of earshot (schema ${version}; this version supports up to ${migrations.length}).`,
      { advice: 'Install the newer version.' },
    );
  }
  for (const [i, sql] of migrations.entries()) {
    if (i < version) continue;
    await query(`DO $migration$ BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('earshot.migrate'));
      CREATE SCHEMA IF NOT EXISTS earshot;
      CREATE TABLE IF NOT EXISTS earshot.schema_version (version integer NOT NULL);
      IF (SELECT coalesce(max(version), 0) FROM earshot.schema_version) = ${i} THEN
        EXECUTE $step$ ${sql} $step$;
        INSERT INTO earshot.schema_version VALUES (${i + 1});
      END IF;
    END $migration$`);
  }
}

async function schemaVersion(value: Connections['value']): Promise<number> {
  const table = await value<string>("SELECT to_regclass('earshot.schema_version')");
  if (!table) return 0;
  return (await value<number>('SELECT max(version) FROM earshot.schema_version')) ?? 0;
}

const outcomesSchema = z.array(
  z
    .tuple([z.enum(['stored', 'stored-in-subscription', 'duplicate', 'reused', 'late']), z.int()])
    .transform(
      ([outcome, position]): ItemOutcome =>
        outcome === 'stored' || outcome === 'stored-in-subscription'
          ? { outcome: 'stored', position, inSubscription: outcome === 'stored-in-subscription' }
          : { outcome, position },
    ),
);

/**
 * Appends an entry. Repeats the call while the result is unknown, with the same batch id, which returns the result of
 * the first one.
 */
async function appendEntry(
  { query }: Connections,
  entry: NewEntry,
  { nodeId, newId, needsStandby, random }: SharedLogOptions,
): Promise<AppendedEntry> {
  const { items, checkedPosition, lease, refusesReused = false, encoding, bytes } = entry;
  const values = [
    ...[newId(), nodeId, lease?.name ?? null, lease?.term ?? null, needsStandby],
    ...[items && JSON.stringify(items), checkedPosition, refusesReused, encoding, bytes],
  ];
  const deadlineMs = performance.now() + appendMs;
  for (let waitMs = retryMs; ; waitMs = Math.min(waitMs * 2, retryMsMax)) {
    try {
      const [row] = await query<{ number: number; outcomes: unknown }>(
        `SELECT entry_number AS number, entry_outcomes AS outcomes
         FROM earshot.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
        values,
        answerMs,
      );
      return { number: row?.number ?? 0, outcomes: outcomesSchema.parse(row?.outcomes) };
    } catch (error) {
      if (!mayPass(error) || performance.now() + waitMs > deadlineMs) throw error;
      await delay(jittered(waitMs, random));
    }
  }
}

/** True for a failure that another attempt may not have: the connection, a failover, a lock. */
function mayPass(error: unknown): boolean {
  if (!isAppError(error, 'unavailable')) return false;
  const { unknown, sqlState } = error.facts;
  // Without a connection, the failure has no state.
  return (
    unknown === true || sqlState === '' || /^(08|25006|40|53300|55P03|57P)/.test(String(sqlState))
  );
}

async function checkWritable(
  { query }: Connections,
  { needsStandby }: SharedLogOptions,
): Promise<void> {
  // The row lock is part of the transaction, so that its commit waits for the disk and the standby.
  const [head] = await query<{ state: LogHead['state'] }>(
    'SELECT earshot.begin_durable($1), state FROM earshot.head FOR UPDATE',
    [needsStandby],
    answerMs,
  );
  if (head?.state !== 'open') throw ownError(sqlErrors.notOpen);
}

/** The reading calls. */
function reads({ query }: Connections) {
  return {
    head: async (): Promise<LogHead> => {
      const [head] = await query<LogHead>(
        `SELECT log_id AS "logId", state, coalesce((SELECT min(number) FROM earshot.entry), number + 1) AS first,
           number, position FROM earshot.head`,
      );
      if (head === undefined) throw new AppError('internal', 'The shared log has no head.');
      return head;
    },
    read: async (after: number): Promise<LogPart> => {
      const rows = await query<LogEntry>(
        `SELECT number, batch_id AS "batchId", outcomes, encoding, payload AS bytes FROM (
           SELECT number, batch_id, outcomes, encoding,
             CASE WHEN number > $1 THEN payload ELSE '' END AS payload,
             sum(CASE WHEN number > $1 THEN octet_length(payload) ELSE 0 END) OVER (
               ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
           FROM (SELECT * FROM earshot.entry WHERE number >= $1 ORDER BY number LIMIT ${entriesMax}) AS next
         ) AS sized
         WHERE coalesce(bytes_before, 0) < ${entriesBytesMax} ORDER BY number`,
        [after],
      );
      const entries = rows.map((row) => ({ ...row, outcomes: outcomesSchema.parse(row.outcomes) }));
      const [first] = entries;
      const isKnown = first?.number === after;
      return {
        lastBatchId: isKnown ? first.batchId : null,
        entries: entries.slice(Number(isKnown)),
      };
    },
  };
}

/** A node as last reported. */
const nodeSchema = z.object({
  /** Random id of the data directory. */
  id: z.string(),
  name: z.string(),
  /** Last entry that it has applied. */
  applied: z.number(),
  /** Entries that it had not applied at the time of the report. */
  lag: z.number(),
  /** Age of the report, by the clock of the database. */
  ageMs: z.number(),
  facts: z.object({
    version: z.string(),
    startedAtUs: z.number(),
    /** Reason for refusing notifications; null if it accepts them. */
    refusing: z.string().nullable(),
    /** Why it applies no entries; null if it does. */
    fault: z.string().nullable(),
    freeBytes: z.number().nullable(),
    /** Digest of the endpoint credentials that it accepts. */
    credentials: z.string(),
  }),
});
export type KnownNode = z.infer<typeof nodeSchema>;

export type DatabaseState = Awaited<ReturnType<SharedLog['database']>>;

/** Reports of the nodes, and the state of the database. */
function nodeReports({ query, value }: Connections, needsStandby: boolean) {
  return {
    /** Stores the report of a node about itself. */
    report: async ({ id, name, applied, facts }: Omit<KnownNode, 'lag' | 'ageMs'>) => {
      const startedAtUs = await value<number>('SELECT earshot.report($1, $2, $3, $4, $5)', [
        id,
        name,
        applied,
        JSON.stringify(facts),
        needsStandby,
      ]);
      // An earlier start is that of this receiver before its restart.
      if ((startedAtUs ?? 0) <= facts.startedAtUs) return;
      throw new AppError(
        'conflict',
        'Another running receiver has the same id: its data directory is a copy of this one.',
        {
          advice: 'Stop one of the two, delete its data directory, and start it: it fills itself.',
        },
      );
    },
    nodes: async (): Promise<KnownNode[]> => {
      const rows = await query(
        `SELECT id, name, applied, lag, facts,
           greatest(0, extract(epoch FROM clock_timestamp() - seen_at) * 1000)::float8 AS "ageMs"
         FROM earshot.node ORDER BY name, id`,
      );
      return z.array(nodeSchema).parse(rows);
    },
    /** Removes the report of a node that does not run; resolves with false if there is none of this name. */
    removeNode: async (name: string) => {
      const rows = await query(
        `DELETE FROM earshot.node WHERE name = $1 AND seen_at < clock_timestamp() - interval '${nodeSilentMs} milliseconds'
         RETURNING id`,
        [name],
      );
      return rows.length > 0;
    },
    database: async () => {
      const [row] = await query<{
        version: string;
        names: string;
        standbys: (string | null)[] | null;
        leases: { name: string; nodeId: string }[] | null;
      }>(
        `SELECT current_setting('server_version') AS version,
           current_setting('synchronous_standby_names') AS names,
           (SELECT array_agg(CASE WHEN sync_state IN ('sync', 'quorum') THEN application_name END)
            FROM pg_stat_replication WHERE sync_state IS NULL OR sync_state <> 'async') AS standbys,
           (SELECT jsonb_agg(jsonb_build_object('name', name, 'nodeId', holder) ORDER BY name)
            FROM earshot.lease WHERE holder IS NOT NULL AND expires_at > clock_timestamp()) AS leases`,
      );
      const standbys = row?.standbys ?? [];
      const names = standbys.filter((name) => name !== null);
      return {
        /** For example `15.18`. */
        version: row?.version.split(' ')[0] ?? '',
        /** True if commits wait for a synchronous standby. */
        waitsForStandby: (row?.names ?? '') !== '',
        /** Names of the synchronous standbys that are connected; null if the user may not see them. */
        standbys: names.length < standbys.length ? null : names,
        leases: row?.leases ?? [],
      };
    },
  };
}
