/** Whole contents of the shared log: checkpoints, the removal of old entries, and copies from and to other logs. */
import { AppError } from '../../core/terms/app-error.ts';
import { type Connections, sqlErrors } from './connection.ts';
import type { CopiedPart } from './copy-thread.ts';
import type { EncodedContent, LogHead } from './schema.ts';

/** Nodes without a report for this long are not waited for. */
const nodeRetention = '1 day';

/** Reports are kept longer, so that people see a lost node. */
const reportRetention = '30 days';

/** Entries that a new checkpoint must make removable: it contains all tables but the notifications. */
const removableMinDefault = 100_000;

/** Entries removed by one statement. */
const removedMax = 1_000;

/** Tables and functions of checkpoints. */
export const checkpointSql = `
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
`;

/** Functions of a copy. */
export const copySql = `
    -- Begins a copy into an empty log, or again a copy from the same log. Returns the identity of the new log; null for
    -- a log in use.
    CREATE FUNCTION earshot.begin_copy(source text) RETURNS uuid
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      new_id uuid;
    BEGIN
      PERFORM earshot.begin_durable(false);
      UPDATE earshot.head
      SET state = 'copying', log_id = gen_random_uuid(), copied_from = source, number = 0, position = 0
      WHERE (state = 'open' AND number = 0) OR (state = 'copying' AND copied_from = source)
      RETURNING log_id INTO new_id;
      IF FOUND THEN
        TRUNCATE earshot.entry, earshot.notification_key, earshot.recovered_event, earshot.checkpoint;
      END IF;
      RETURN new_id;
    END $$;

    -- Appends an entry of a copy. Replaces the keys of notifications that were copied before.
    CREATE FUNCTION earshot.copy_entry(
      new_batch uuid, new_node uuid, keys jsonb, new_encoding text, new_payload bytea)
    RETURNS bigint
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
      UPDATE earshot.head SET number = log_head.number + 1, position = log_head.position;
      INSERT INTO earshot.entry VALUES (log_head.number + 1, new_batch, new_node, clock_timestamp(),
        log_head.position, '[]', new_encoding, new_payload);
      RETURN log_head.number + 1;
    END $$;

    -- Changes the state of the log; returns its state.
    CREATE FUNCTION earshot.change_state(from_state text, to_state text) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      PERFORM earshot.begin_durable(false);
      UPDATE earshot.head SET state = to_state WHERE state = from_state;
      RETURN (SELECT state FROM earshot.head);
    END $$;
`;

/** `removableMin` is for tests. */
export function checkpoints({ query, value }: Connections, removableMin = removableMinDefault) {
  /**
   * Returns the entry of the last checkpoint; null without one. A checkpoint is the content of all tables after an entry,
   * without notifications: a new node starts from it when earlier entries were removed.
   */
  const checkpointNumber = async () =>
    (await value<number>('SELECT max(number) FROM earshot.checkpoint WHERE is_last')) ?? null;
  return {
    checkpointNumber,
    /** Streams the parts of a checkpoint. Rejects with `conflict` when another one has replaced it. */
    async *checkpointParts(number: number): AsyncGenerator<EncodedContent> {
      for (let part = 0; ; part += 1) {
        const [row] = await query<EncodedContent & { is_last: boolean }>(
          `SELECT encoding, content AS bytes, is_last FROM earshot.checkpoint
           WHERE number = $1 AND part = $2`,
          [number, part],
        );
        if (row === undefined) {
          throw new AppError('conflict', 'A newer checkpoint has replaced this one.');
        }
        yield row;
        if (row.is_last) return;
      }
    },
    /** Stores a checkpoint, which replaces older ones. */
    saveCheckpoint: async (number: number, parts: AsyncIterable<EncodedContent>) => {
      await query('DELETE FROM earshot.checkpoint WHERE number = $1', [number]);
      let count = 0;
      for await (const { encoding, bytes } of parts) {
        const values = [number, count, encoding, bytes];
        await query('INSERT INTO earshot.checkpoint VALUES ($1, $2, false, $3, $4)', values);
        count += 1;
      }
      await query(
        'UPDATE earshot.checkpoint SET is_last = true WHERE number = $1 AND part = $2 - 1',
        [number, count],
      );
      await query('DELETE FROM earshot.checkpoint WHERE number < $1', [number]);
    },
    /**
     * Removes reports that nobody needs, keys up to `prunedPosition`, and the entries up to the last checkpoint that
     * contain only notifications up to there and that all nodes of the last day have applied. `needsCheckpoint`: a newer
     * checkpoint would permit the removal of many more.
     */
    maintain: async (prunedPosition: number) => {
      await query(`DELETE FROM earshot.node WHERE seen_at < now() - interval '${reportRetention}'`);
      const removeKeys = 'SELECT earshot.remove_keys($1)';
      let keys = 0;
      for (let removed = 1; removed > 0; keys += removed) {
        removed = (await value<number>(removeKeys, [prunedPosition])) ?? 0;
      }
      const checkpoint = (await checkpointNumber()) ?? 0;
      const [row] = await query<{ applied: number | null; removable: number }>(
        `SELECT (SELECT min(applied) FROM earshot.node
             WHERE seen_at > now() - interval '${nodeRetention}') AS applied,
           coalesce((SELECT number - 1 FROM earshot.entry WHERE last_position > $1
             ORDER BY number LIMIT 1), (SELECT number - 1 FROM earshot.head)) AS removable`,
        [prunedPosition],
      );
      const removable = row?.removable ?? 0;
      const upTo = Math.min(removable, checkpoint, row?.applied ?? removable);
      for (let entries = 0; ; ) {
        const removed = await query(
          `DELETE FROM earshot.entry WHERE number IN (SELECT number FROM earshot.entry
             WHERE number <= $1 ORDER BY number LIMIT ${removedMax}) RETURNING number`,
          [upTo],
        );
        entries += removed.length;
        if (removed.length < removedMax) {
          return { keys, entries, needsCheckpoint: removable >= checkpoint + removableMin };
        }
      }
    },
  };
}

/** Returns the shared log as target of a copy. All calls reject with `unavailable`. */
export function createCopyTarget({ query, value }: Connections, nodeId: string) {
  return {
    /**
     * Begins the copy of a log into an empty shared log, or again one that was interrupted. Returns the id of the shared
     * log. Rejects with `conflict` for one in use.
     */
    begin: async (source: string): Promise<string> => {
      const logId = await value<string>('SELECT earshot.begin_copy($1)', [source]);
      if (logId) return logId;
      throw new AppError(
        'conflict',
        'The database of EARSHOT_LOG_URL already contains a shared log.',
        {
          advice:
            'Use an empty database, or remove the unfinished copy of another log: DROP SCHEMA earshot CASCADE.',
        },
      );
    },
    /** Appends an entry. Returns its number. */
    append: async (batchId: string, { keys, encoding, bytes }: CopiedPart) => {
      const values = [batchId, nodeId, JSON.stringify(keys), encoding, bytes];
      return (await value<number>('SELECT earshot.copy_entry($1, $2, $3, $4, $5)', values)) ?? 0;
    },
    /** Returns the number of the keys of positions in [from, to), and the SHA-256 of `position:key`, joined by commas. */
    keysOf: async (from: number, to: number) => {
      const [row] = await query<{ count: number; digest: string }>(
        `SELECT count(*) AS count, encode(sha256(convert_to(coalesce(string_agg(
             position || ':' || encode(dedupe_key, 'hex'), ',' ORDER BY position), ''), 'UTF8')), 'hex') AS digest
         FROM earshot.notification_key WHERE position >= $1 AND position < $2`,
        [from, to],
      );
      return row ?? { count: 0, digest: '' };
    },
    /** Opens or closes the log for appends. Rejects with `conflict` for a log in another state. */
    changeState: async (from: LogHead['state'], to: LogHead['state']) => {
      const state = await value('SELECT earshot.change_state($1, $2)', [from, to]);
      if (state !== to) throw new AppError('conflict', `The shared log is not ${from}.`);
    },
  };
}
