/** Reports of the nodes, and the state of the database. */
import { z } from 'zod';
import { AppError } from '../../core/terms/app-error.ts';
import type { Connections } from './connection.ts';
import { type DatabaseState, type KnownNode, nodeSilentMs, type SharedLog } from './terms.ts';

interface NodeRow {
  id: string;
  name: string;
  applied: string;
  lag: string;
  facts: unknown;
  age: number;
}

const factsSchema = z.object({
  version: z.string(),
  startedAtUs: z.number(),
  refusing: z.string().nullable(),
  fault: z.string().nullable(),
  freeBytes: z.number().nullable(),
  credentials: z.string(),
});

export function nodeReports(
  { query }: Connections,
  needsStandby: boolean,
): Pick<SharedLog, 'report' | 'nodes' | 'removeNode' | 'database'> {
  return {
    report: async ({ id, name, applied, facts }) => {
      const [row] = await query<{ started: string | null }>(
        'SELECT earshot.report($1, $2, $3, $4, $5) AS started',
        [...[id, name, applied, JSON.stringify(facts), needsStandby]],
      );
      // An earlier start is that of this receiver before its restart.
      if (row?.started == null || Number(row.started) <= facts.startedAtUs) return;
      throw new AppError(
        'conflict',
        'Another running receiver has the same id: its data directory is a copy of this one.',
        {
          advice: 'Stop one of the two, delete its data directory, and start it: it fills itself.',
        },
      );
    },
    nodes: async (): Promise<KnownNode[]> => {
      const rows = await query<NodeRow & { [column: string]: unknown }>(
        `SELECT id, name, applied, lag, facts,
           greatest(0, extract(epoch FROM clock_timestamp() - seen_at) * 1000)::float8 AS age
         FROM earshot.node ORDER BY name, id`,
      );
      return rows.map(({ id, name, applied, lag, facts, age }) => ({
        ...{ id, name, applied: Number(applied), lag: Number(lag), ageMs: age },
        facts: factsSchema.parse(facts),
      }));
    },
    removeNode: async (name) => {
      const rows = await query(
        `DELETE FROM earshot.node WHERE name = $1 AND seen_at < clock_timestamp() - interval '${nodeSilentMs} milliseconds'
         RETURNING id`,
        [name],
      );
      return rows.length > 0;
    },
    database: async (): Promise<DatabaseState> => {
      const [row] = await query<{
        version: string;
        names: string;
        standbys: (string | null)[] | null;
        leases: { name: string; nodeId: string }[] | null;
        free: number;
      }>(
        `SELECT current_setting('server_version') AS version,
           current_setting('synchronous_standby_names') AS names,
           (SELECT array_agg(CASE WHEN sync_state IN ('sync', 'quorum') THEN application_name END)
            FROM pg_stat_replication WHERE sync_state IS NULL OR sync_state <> 'async') AS standbys,
           (SELECT jsonb_agg(jsonb_build_object('name', name, 'nodeId', holder) ORDER BY name)
            FROM earshot.lease WHERE holder IS NOT NULL AND expires_at > clock_timestamp()) AS leases,
           current_setting('max_connections')::int
             - (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS free`,
      );
      const standbys = row?.standbys ?? [];
      const names = standbys.filter((name) => name !== null);
      return {
        version: row?.version.split(' ')[0] ?? '',
        waitsForStandby: (row?.names ?? '') !== '',
        standbys: names.length < standbys.length ? null : names,
        leases: row?.leases ?? [],
        freeConnections: row?.free ?? 0,
      };
    },
  };
}
