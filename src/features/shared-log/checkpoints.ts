/** Checkpoints of the shared log, and the removal of old entries. */
import { AppError } from '../../core/terms/app-error.ts';
import type { Connections } from './connection.ts';
import type { EncodedContent, MaintainedLog, SharedLog } from './terms.ts';

/** Retention of the results of appends, for clients that do not know them. */
const resultRetention = '1 day';

/** Nodes without a report for this long are not waited for. */
const nodeRetention = '1 day';

/** Reports are kept longer, so that people see a lost node. */
const reportRetention = '30 days';

/** Tables and functions of checkpoints, and of the removal of entries. */
export const checkpointSql = (partitionEntries: number) => `
    CREATE TABLE earshot.checkpoint (
      number bigint NOT NULL,
      part integer NOT NULL,
      is_last boolean NOT NULL,
      encoding text COLLATE "C" NOT NULL,
      content bytea NOT NULL,
      PRIMARY KEY (number, part)
    );

    -- Removes up to 10,000 keys of pruned notifications; returns their number.
    CREATE FUNCTION earshot.remove_keys(up_to bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      removed bigint;
    BEGIN
      DELETE FROM earshot.recovered_event WHERE position <= up_to;
      DELETE FROM earshot.notification_key WHERE position IN (
        SELECT position FROM earshot.notification_key WHERE position <= up_to ORDER BY position LIMIT 10000);
      GET DIAGNOSTICS removed = ROW_COUNT;
      RETURN removed;
    END $$;

    -- Number of the last entry of the oldest partition, when all its notifications are pruned; otherwise null.
    CREATE FUNCTION earshot.removable_number(up_to_position bigint) RETURNS bigint
    LANGUAGE sql STABLE AS $$
      SELECT last_number FROM (
        SELECT substr(relname, 7)::bigint + ${partitionEntries} - 1 AS last_number
        FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'earshot.entry'::regclass ORDER BY substr(relname, 7)::bigint LIMIT 1) AS oldest
      WHERE last_number <= (SELECT number FROM earshot.head)
        AND up_to_position >= (SELECT last_position FROM earshot.entry
          WHERE number <= last_number ORDER BY number DESC LIMIT 1)
    $$;

    -- Drops the oldest partition if it may be removed. Returns whether it was dropped.
    CREATE FUNCTION earshot.drop_partition(up_to_number bigint, up_to_position bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      last_number bigint;
    BEGIN
      PERFORM set_config('lock_timeout', '2s', true);
      PERFORM pg_advisory_xact_lock(hashtext('earshot.add_partitions'));
      last_number := earshot.removable_number(up_to_position);
      IF last_number IS NULL OR last_number > up_to_number THEN
        RETURN false;
      END IF;
      EXECUTE format('DROP TABLE earshot.%I', 'entry_' || (last_number + 1 - ${partitionEntries}));
      RETURN true;
    END $$;
`;

/** Adds the partitions of the next entries. */
export async function addPartitions(query: Connections['query']): Promise<void> {
  await query('SELECT earshot.add_partitions(number + 1) FROM earshot.head');
}

export function checkpoints({
  query,
}: Connections): Pick<
  SharedLog,
  'checkpointNumber' | 'checkpointParts' | 'saveCheckpoint' | 'maintain'
> {
  const checkpointNumber = async () => {
    const [row] = await query<{ number: string | null }>(
      'SELECT max(number) AS number FROM earshot.checkpoint WHERE is_last',
    );
    return row?.number == null ? null : Number(row.number);
  };
  return {
    checkpointNumber,
    async *checkpointParts(number): AsyncGenerator<EncodedContent> {
      for (let part = 0; ; part += 1) {
        const [row] = await query<{ encoding: string; content: Uint8Array; is_last: boolean }>(
          'SELECT encoding, content, is_last FROM earshot.checkpoint WHERE number = $1 AND part = $2',
          [number, part],
        );
        if (row === undefined) {
          throw new AppError('conflict', 'A newer checkpoint has replaced this one.');
        }
        yield { encoding: row.encoding, bytes: row.content };
        if (row.is_last) return;
      }
    },
    saveCheckpoint: async (number, parts) => {
      await query('DELETE FROM earshot.checkpoint WHERE number = $1', [number]);
      let part = 0;
      const save = ({ encoding, bytes }: EncodedContent, isLast: boolean) =>
        query('INSERT INTO earshot.checkpoint VALUES ($1, $2, $3, $4, $5)', [
          ...[number, part, isLast, encoding, bytes],
        ]);
      let last: EncodedContent | undefined;
      for await (const next of parts) {
        if (last !== undefined) {
          await save(last, false);
          part += 1;
        }
        last = next;
      }
      if (last === undefined) throw new Error('A checkpoint has no content.');
      await save(last, true);
      await query('DELETE FROM earshot.checkpoint WHERE number < $1', [number]);
    },
    maintain: async (prunedPosition) => {
      await removeOutdated(query);
      const keys = await removeKeys(query, prunedPosition);
      return { keys, ...(await removeEntries(query, prunedPosition, await checkpointNumber())) };
    },
  };
}

async function removeOutdated(query: Connections['query']): Promise<void> {
  await addPartitions(query);
  await query(
    `DELETE FROM earshot.appended WHERE appended_at < now() - interval '${resultRetention}'`,
  );
  await query(`DELETE FROM earshot.node WHERE seen_at < now() - interval '${reportRetention}'`);
}

/** Removes the keys up to a position in short transactions. */
async function removeKeys(query: Connections['query'], position: number): Promise<number> {
  let keys = 0;
  for (;;) {
    const [row] = await query<{ removed: string }>('SELECT earshot.remove_keys($1) AS removed', [
      position,
    ]);
    const removed = Number(row?.removed ?? 0);
    if (removed === 0) return keys;
    keys += removed;
  }
}

async function removeEntries(
  query: Connections['query'],
  position: number,
  checkpointNumber: number | null,
): Promise<Omit<MaintainedLog, 'keys'>> {
  const [row] = await query<{ applied: string | null }>(
    `SELECT min(applied) AS applied FROM earshot.node
     WHERE seen_at > now() - interval '${nodeRetention}'`,
  );
  const applied = row?.applied == null ? Number.MAX_SAFE_INTEGER : Number(row.applied);
  const values = [Math.min(checkpointNumber ?? 0, applied), position];
  for (let partitions = 0; ; partitions += 1) {
    const [removed] = await query<{ dropped: boolean; left: string | null }>(
      'SELECT earshot.drop_partition($1, $2) AS dropped, earshot.removable_number($2) AS left',
      values,
    );
    if (removed?.dropped !== true) {
      const left = Number(removed?.left ?? 0);
      return { partitions, needsCheckpoint: left > (checkpointNumber ?? 0) };
    }
  }
}
