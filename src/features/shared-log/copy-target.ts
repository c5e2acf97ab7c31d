/** The shared log as target of a copy. */
import { AppError } from '../../core/terms/app-error.ts';
import type { Connections } from './connection.ts';
import { sqlErrors } from './database.ts';
import type { LogCopy, LogHead } from './terms.ts';

/** Functions of a copy. */
export const copySql = `
    -- Appends an entry of a copy. Replaces the keys of notifications that were copied before.
    CREATE FUNCTION earshot.copy_entry(
      new_batch uuid, new_node uuid, keys jsonb, new_encoding text, new_payload bytea)
    RETURNS TABLE (entry_number bigint, digest text)
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      log_head earshot.head;
    BEGIN
      PERFORM earshot.begin_durable(false);
      SELECT * INTO STRICT log_head FROM earshot.head FOR UPDATE;
      IF log_head.state <> 'copying' THEN
        RAISE EXCEPTION 'the log is %', log_head.state USING ERRCODE = '${sqlErrors.notOpen}';
      END IF;
      DELETE FROM earshot.notification_key USING jsonb_array_elements(keys) AS copied
      WHERE position = (copied->>'position')::bigint;
      -- A key that was pruned and received again since an earlier part of the copy.
      DELETE FROM earshot.notification_key USING jsonb_array_elements(keys) AS copied
      WHERE dedupe_key = decode(copied->>'key', 'hex');
      DELETE FROM earshot.recovered_event USING jsonb_array_elements(keys) AS copied
      WHERE position = (copied->>'position')::bigint;
      INSERT INTO earshot.notification_key
      SELECT decode(copied->>'key', 'hex'), (copied->>'position')::bigint,
        decode(copied->>'subscriptionId', 'hex'), decode(copied->>'product', 'hex'), copied->>'event',
        decode(copied->>'content', 'hex')
      FROM jsonb_array_elements(keys) AS copied;
      INSERT INTO earshot.recovered_event
      SELECT (copied->>'position')::bigint, decode(copied->>'product', 'hex'), copied->>'event',
        copied->>'subscription', (copied->>'recoveredUs')::bigint, (copied->>'isPushed')::boolean
      FROM jsonb_array_elements(keys) AS copied WHERE copied->>'recoveredUs' IS NOT NULL;
      log_head.position := greatest(log_head.position,
        (SELECT max((copied->>'position')::bigint) FROM jsonb_array_elements(keys) AS copied));
      entry_number := log_head.number + 1;
      UPDATE earshot.head SET number = entry_number, position = log_head.position;
      INSERT INTO earshot.entry VALUES (entry_number, new_batch, new_node, clock_timestamp(),
        log_head.position, true, '[]', new_encoding, new_payload);
      digest := (SELECT encode(sha256(payload), 'hex') FROM earshot.entry WHERE number = entry_number);
      RETURN NEXT;
    END $$;

    -- Changes the state of the log; returns its state.
    CREATE FUNCTION earshot.change_state(from_state text, to_state text) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      PERFORM earshot.begin_durable(false);
      UPDATE earshot.head SET state = to_state
      WHERE state = from_state AND (to_state <> 'copying' OR number = 0);
      RETURN (SELECT state FROM earshot.head);
    END $$;
`;

export function createCopyTarget(
  { query }: Connections,
  nodeId: string,
  readHead: () => Promise<LogHead>,
): LogCopy {
  const change = async (from: LogHead['state'], to: LogHead['state']) => {
    const [row] = await query<{ state: LogHead['state'] }>(
      'SELECT earshot.change_state($1, $2) AS state',
      [from, to],
    );
    return row?.state;
  };
  const changeOr = async (from: LogHead['state'], to: LogHead['state'], message: string) => {
    if ((await change(from, to)) !== to) throw new AppError('conflict', message);
  };
  return {
    begin: async () => {
      if ((await change('open', 'copying')) === 'copying') return readHead();
      throw new AppError(
        'conflict',
        'The database of EARSHOT_LOG_URL already contains a shared log.',
        { advice: 'Use an empty database.' },
      );
    },
    append: async ({ batchId, keys, encoding, bytes }) => {
      const [row] = await query<{ entry_number: string; digest: string }>(
        'SELECT * FROM earshot.copy_entry($1, $2, $3, $4, $5)',
        [batchId, nodeId, JSON.stringify(keys), encoding, bytes],
      );
      if (row === undefined) throw new AppError('internal', 'A copied entry has no number.');
      return { number: Number(row.entry_number), digest: row.digest };
    },
    keysOf: async (from, to) => {
      const [row] = await query<{ count: string; digest: string }>(
        `SELECT count(*) AS count, encode(sha256(convert_to(coalesce(string_agg(
             position || ':' || encode(dedupe_key, 'hex'), ',' ORDER BY position), ''), 'UTF8')), 'hex') AS digest
         FROM earshot.notification_key WHERE position >= $1 AND position < $2`,
        [from, to],
      );
      return { count: Number(row?.count), digest: row?.digest ?? '' };
    },
    open: () => changeOr('copying', 'open', 'The shared log is not being copied.'),
    reopen: () => changeOr('moved', 'open', 'The shared log is not closed.'),
    moveAway: () => changeOr('open', 'moved', 'The shared log is not open.'),
  };
}
