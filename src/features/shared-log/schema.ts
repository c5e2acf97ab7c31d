/**
 * The tables and functions of the shared log in PostgreSQL, with their arguments and results.
 *
 * A *node* is a receiver with its own data directory. The log is a sequence of *entries*, numbered from 1 without gaps,
 * that all nodes apply in order to their own stores. An entry contains deliveries or changes, and the decision of the log
 * about each notification of its deliveries. A *lease* gives one node the right to a job for a time.
 */

import { checkpointSql, copySql } from './checkpoints.ts';
import { lockTimeoutMs, sqlErrors } from './connection.ts';
import { type LeaseTerm, leaseSql } from './leases.ts';
import { fileSql } from './shared-files.ts';

/** A notification that an entry adds, as far as the log decides about it. Keys and digests are hexadecimal text. */
export interface LogItem {
  key: string;
  /** Key of the same AckId in this subscription, used when another subscription has `key`. */
  subscriptionKey: string | null;
  /** Digest of the subscription id; null without one. */
  subscriptionId: string | null;
  /** Subscription name in the URL path. */
  subscription: string | null;
  /** Digest of the product id, in lower case. */
  product: string;
  event: string;
  /** Digest of the content of a push with an AckId; null if content is not compared. */
  content: string | null;
  /** True for a push, which may be that of a recovered event. */
  isPush: boolean;
  /** Date of the modification in its record, and date of the notification. */
  stateMs: number | null;
  notificationMs: number | null;
  /** Set for a recovered event: its date. */
  recoveredUs: number | null;
}

/** Decision about an item. */
export type ItemOutcome =
  /** A new notification, at this position. `inSubscription`: with its `subscriptionKey`. */
  | { outcome: 'stored'; position: number; inSubscription: boolean }
  /** The notification at this position was received again. `reused`: with different content. */
  | { outcome: 'duplicate' | 'reused'; position: number }
  /** The push of the recovered event at this position. */
  | { outcome: 'late'; position: number };

/** Content that only nodes read, and its encoding. */
export interface EncodedContent {
  encoding: string;
  bytes: Uint8Array;
}

/** An entry without its place in the log. */
export interface NewEntry extends EncodedContent {
  /** Null for an entry without deliveries. */
  items: readonly LogItem[] | null;
  /** Refuses the append when a product of the items was received after this position. */
  checkedPosition: number | null;
  /** Refuses the append when another holder has the lease. */
  lease?: LeaseTerm | null;
  /** Refuses the append when an item is `reused`. */
  refusesReused?: boolean;
}

export interface AppendedEntry {
  number: number;
  outcomes: ItemOutcome[];
}

export interface LogEntry extends AppendedEntry, EncodedContent {
  /** Identifies the append, so that it can be repeated when its result is unknown. */
  batchId: string;
}

/** Consecutive entries. */
export interface LogPart {
  /** Batch id of the entry before them; null when the log does not contain it. */
  lastBatchId: string | null;
  entries: LogEntry[];
}

/** End of the log. */
export interface LogHead {
  /** Identity of the log. */
  logId: string;
  /** `copying`: not yet complete. `moved`: in use elsewhere. Both refuse appends. */
  state: 'copying' | 'open' | 'moved';
  /** Number of the first entry that the log still contains; 1 for an empty log. */
  first: number;
  /** Number of the last entry. */
  number: number;
  /** Last position of a notification. */
  position: number;
}

/** SQL by version of the schema: the first element creates it, a later one upgrades a database by one version. */
export const migrations: readonly string[] = [
  /*
   * All functions are one statement of the client, so that a client that dies holds no lock.
   *
   * `head` has one row. `append` locks it until its commit: entries and positions become visible in their order, without
   * gaps. Keys have their own table, which is smaller, and keeps keys after their entries were removed.
   * Untrusted text is stored as digest or in `payload` only: PostgreSQL accepts no NUL in text. Text has collation C,
   * which no upgrade of the operating system changes.
   *
   * `notification_key`: `subscription`, `product` and `content` are digests. `recovered_event`: events that were fetched
   * from the catalogue; `pushed` after their push. `entry.asked`: repeated calls of clients that did not know the
   * result. `lease`: `term` grows with each new holder. `file`: files that all nodes share, such as credentials.
   */
  `
    CREATE TABLE earshot.head (
      only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
      log_id uuid NOT NULL,
      state text COLLATE "C" NOT NULL CHECK (state IN ('copying', 'open', 'moved')),
      number bigint NOT NULL,
      position bigint NOT NULL,
      copied_from text COLLATE "C"
    );
    INSERT INTO earshot.head (log_id, state, number, position) VALUES (gen_random_uuid(), 'open', 0, 0);

    CREATE TABLE earshot.entry (
      number bigint PRIMARY KEY,
      batch_id uuid NOT NULL UNIQUE,
      node uuid NOT NULL,
      appended_at timestamptz NOT NULL,
      last_position bigint NOT NULL,
      outcomes jsonb NOT NULL,
      encoding text COLLATE "C" NOT NULL,
      payload bytea NOT NULL,
      asked integer NOT NULL DEFAULT 0
    );
    -- Payloads are compressed.
    ALTER TABLE earshot.entry ALTER COLUMN payload SET STORAGE EXTERNAL;

    CREATE TABLE earshot.notification_key (
      dedupe_key bytea PRIMARY KEY,
      position bigint NOT NULL,
      subscription bytea,
      product bytea NOT NULL,
      event text COLLATE "C" NOT NULL,
      content bytea
    );
    CREATE UNIQUE INDEX notification_key_position ON earshot.notification_key (position);

    CREATE TABLE earshot.recovered_event (
      position bigint PRIMARY KEY,
      product bytea NOT NULL,
      event text COLLATE "C" NOT NULL,
      subscription text COLLATE "C",
      event_us bigint NOT NULL,
      pushed boolean NOT NULL
    );
    CREATE INDEX recovered_event_product ON earshot.recovered_event (product);

    CREATE TABLE earshot.node (
      id uuid PRIMARY KEY,
      name text COLLATE "C" NOT NULL,
      applied bigint NOT NULL,
      lag bigint NOT NULL,
      facts jsonb NOT NULL,
      seen_at timestamptz NOT NULL
    );

    -- Makes the commit of this transaction wait for the disk, and for the synchronous standby, if any.
    CREATE FUNCTION earshot.begin_durable(needs_standby boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      PERFORM set_config('lock_timeout', '${lockTimeoutMs}ms', true);
      IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
      END IF;
      IF needs_standby AND current_setting('synchronous_standby_names') = '' THEN
        RAISE EXCEPTION 'no synchronous standby is configured' USING ERRCODE = '${sqlErrors.noStandby}';
      END IF;
    END $$;

    -- Position of the recovered event that a push reports; null for none. Mirrors \`sameEvent\` of the SQLite log.
    CREATE FUNCTION earshot.recovered_position(item jsonb) RETURNS bigint
    LANGUAGE sql STABLE AS $$
      SELECT position FROM earshot.recovered_event
      WHERE NOT pushed AND product = decode(item->>'product', 'hex') AND event = item->>'event'
        AND subscription IS NOT DISTINCT FROM item->>'subscription'
        AND (event <> 'modified' OR CASE
          WHEN item->>'stateMs' IS NOT NULL THEN event_us / 1000 = (item->>'stateMs')::bigint
          ELSE event_us / 1000 <= (item->>'notificationMs')::bigint END)
      ORDER BY CASE event WHEN 'modified' THEN -event_us ELSE position END, position LIMIT 1
    $$;

    -- Decides about one item, and stores its key when it is new. Returns the name of the outcome and its position.
    CREATE FUNCTION earshot.decide(item jsonb, next_position bigint, any_unpushed boolean)
    RETURNS TABLE (outcome text, at bigint)
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      item_key bytea := decode(item->>'key', 'hex');
      item_product constant bytea := decode(item->>'product', 'hex');
      item_subscription constant bytea := decode(item->>'subscriptionId', 'hex');
      item_content constant bytea := decode(item->>'content', 'hex');
      recovered_us constant bigint := (item->>'recoveredUs')::bigint;
      known earshot.notification_key;
    BEGIN
      IF recovered_us IS NOT NULL THEN
        SELECT r.position INTO at FROM earshot.recovered_event r
        WHERE r.product = item_product AND r.event = item->>'event'
          AND r.subscription IS NOT DISTINCT FROM item->>'subscription'
          AND (r.event <> 'modified' OR r.event_us / 1000 = recovered_us / 1000)
        ORDER BY r.position LIMIT 1;
        IF FOUND THEN
          outcome := 'duplicate';
          RETURN NEXT;
          RETURN;
        END IF;
      ELSIF any_unpushed AND (item->>'isPush')::boolean THEN
        at := earshot.recovered_position(item);
        IF at IS NOT NULL AND NOT EXISTS
          (SELECT 1 FROM earshot.notification_key WHERE dedupe_key = item_key)
        THEN
          UPDATE earshot.recovered_event SET pushed = true WHERE position = at;
          UPDATE earshot.notification_key SET dedupe_key = item_key, subscription = item_subscription
          WHERE position = at;
          outcome := 'late';
          RETURN NEXT;
          RETURN;
        END IF;
      END IF;
      LOOP
        INSERT INTO earshot.notification_key
        VALUES (item_key, next_position, item_subscription, item_product, item->>'event', item_content)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
          IF recovered_us IS NOT NULL THEN
            INSERT INTO earshot.recovered_event VALUES
              (next_position, item_product, item->>'event', item->>'subscription', recovered_us, false);
          END IF;
          outcome := CASE WHEN item_key = decode(item->>'key', 'hex')
            THEN 'stored' ELSE 'stored-in-subscription' END;
          at := next_position;
          RETURN NEXT;
          RETURN;
        END IF;
        SELECT * INTO known FROM earshot.notification_key WHERE dedupe_key = item_key;
        -- Removed meanwhile, because it was pruned.
        CONTINUE WHEN NOT FOUND;
        EXIT WHEN item->>'subscriptionKey' IS NULL OR known.subscription = item_subscription
          OR known.subscription IS NULL OR item_key = decode(item->>'subscriptionKey', 'hex');
        item_key := decode(item->>'subscriptionKey', 'hex');
      END LOOP;
      outcome := CASE
        WHEN known.product = item_product AND known.event = item->>'event'
          AND (known.content = item_content OR known.content IS NULL OR item_content IS NULL)
        THEN 'duplicate' ELSE 'reused' END;
      at := known.position;
      RETURN NEXT;
    END $$;

    CREATE FUNCTION earshot.append(
      new_batch uuid, new_node uuid, lease_name text, lease_term bigint, needs_standby boolean,
      items jsonb, checked_position bigint, refuses_reused boolean, new_encoding text, new_payload bytea)
    RETURNS TABLE (entry_number bigint, entry_outcomes jsonb)
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      log_head earshot.head;
      item jsonb;
      decided record;
      all_decided jsonb[] := '{}';
      any_unpushed boolean;
    BEGIN
      PERFORM earshot.begin_durable(needs_standby);
      SELECT * INTO STRICT log_head FROM earshot.head FOR UPDATE;
      -- The update makes this commit wait for the disk and the standby, too: the first one may not have waited.
      UPDATE earshot.entry SET asked = asked + 1 WHERE batch_id = new_batch
      RETURNING number, outcomes INTO entry_number, entry_outcomes;
      IF FOUND THEN
        RETURN NEXT;
        RETURN;
      END IF;
      IF log_head.state <> 'open' THEN
        RAISE EXCEPTION 'the log is %', log_head.state USING ERRCODE = '${sqlErrors.notOpen}';
      END IF;
      IF lease_name IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM earshot.lease WHERE name = lease_name AND term = lease_term AND holder = new_node)
      THEN
        RAISE EXCEPTION 'the lease was taken over' USING ERRCODE = '${sqlErrors.leaseLost}';
      END IF;
      IF items IS NOT NULL THEN
        IF checked_position < log_head.position AND EXISTS (
          SELECT 1 FROM earshot.notification_key WHERE position > checked_position AND product IN
            (SELECT decode(value->>'product', 'hex') FROM jsonb_array_elements(items)))
        THEN
          RAISE EXCEPTION 'a product was received meanwhile' USING ERRCODE = '${sqlErrors.receivedSince}';
        END IF;
        any_unpushed := EXISTS (SELECT 1 FROM earshot.recovered_event WHERE NOT pushed);
        FOR item IN SELECT value FROM jsonb_array_elements(items) LOOP
          SELECT * INTO STRICT decided FROM earshot.decide(item, log_head.position + 1, any_unpushed);
          IF decided.outcome LIKE 'stored%' THEN
            log_head.position := log_head.position + 1;
            any_unpushed := any_unpushed OR item->>'recoveredUs' IS NOT NULL;
          ELSIF decided.outcome = 'reused' AND refuses_reused THEN
            RAISE EXCEPTION 'an AckId has different content' USING ERRCODE = '${sqlErrors.reused}';
          END IF;
          all_decided := all_decided || jsonb_build_array(decided.outcome, decided.at);
        END LOOP;
      END IF;
      entry_outcomes := to_jsonb(all_decided);
      entry_number := log_head.number + 1;
      UPDATE earshot.head SET number = entry_number, position = log_head.position;
      INSERT INTO earshot.entry VALUES (entry_number, new_batch, new_node, clock_timestamp(), log_head.position,
        entry_outcomes, new_encoding, new_payload);
      RETURN NEXT;
    END $$;

    -- Reports a node. The write also proves that the log accepts appends. Returns the start of another process that has
    -- reported with this id; null for none. A receiver that fills an empty disk replaces its earlier report.
    CREATE FUNCTION earshot.report(
      node_id uuid, node_name text, node_applied bigint, node_facts jsonb, needs_standby boolean)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      started_at_us bigint;
    BEGIN
      PERFORM earshot.begin_durable(needs_standby);
      SELECT (facts->>'startedAtUs')::bigint INTO started_at_us FROM earshot.node
      WHERE id = node_id AND seen_at > clock_timestamp() - interval '20 seconds';
      DELETE FROM earshot.node
      WHERE name = node_name AND id <> node_id AND seen_at < clock_timestamp() - interval '20 seconds';
      INSERT INTO earshot.node
      SELECT node_id, node_name, node_applied, greatest(0, number - node_applied), node_facts,
        clock_timestamp() FROM earshot.head
      ON CONFLICT (id) DO UPDATE SET name = excluded.name, applied = excluded.applied,
        lag = excluded.lag, facts = excluded.facts, seen_at = excluded.seen_at;
      RETURN started_at_us;
    END $$;

    ${leaseSql}
    ${fileSql}
    ${checkpointSql}
    ${copySql}
  `,
];
