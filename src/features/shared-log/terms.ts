/**
 * The shared log of several receivers, and how each call fails.
 *
 * Terms: a *node* is a receiver with its own data directory. The shared log is a sequence of *entries*, numbered from 1
 * without gaps, that all nodes apply in order to their own stores. An entry contains deliveries or changes, and the
 * decision of the log about each notification of its deliveries. A *lease* gives one node the right to a job for a time.
 */

import type { Release } from '../../core/host/job.ts';

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

/** A right to a job. The term grows with each new holder. */
export interface LeaseTerm {
  name: string;
  term: number;
}

/** A lease, with the function that releases it. */
export interface Lease extends Release {
  readonly lost: AbortSignal;
  /** The last entry before this term: entries of earlier holders are not after it. */
  readonly since: number;
  /** Gives up the lease as if it had expired: it is not renewed, and writes under it are refused. */
  giveUp(reason: string): void;
}

export interface NewEntry {
  /** Identifies the append, so that it can be repeated when its result is unknown. */
  batchId: string;
  /** The append is refused when another holder has the lease. */
  lease: LeaseTerm | null;
  /** Null for an entry without deliveries. */
  items: readonly LogItem[] | null;
  /** Refuses the append when a product of the items was received after this position. */
  checkedPosition: number | null;
  /** Refuses the append when an item is `reused`. */
  refusesReused: boolean;
  /** Content of the entry, which the log does not read, and its encoding. */
  payload: Uint8Array;
  encoding: string;
}

export interface AppendedEntry {
  number: number;
  outcomes: ItemOutcome[];
}

export interface LogEntry extends AppendedEntry {
  batchId: string;
  payload: Uint8Array;
  encoding: string;
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

/** Small files that all nodes share, such as the endpoint credentials. Calls reject with `unavailable`. */
export interface SharedFiles {
  /** Returns the versions of all files, by name. */
  versions(): Promise<Map<string, number>>;
  /** Returns a file; null when there is none. */
  read(name: string): Promise<string | null>;
  /** Replaces a file, or removes it (null). Returns its new version. */
  write(name: string, content: string | null): Promise<number>;
}

/** State of the database. */
export interface DatabaseState {
  /** For example `15.18`. */
  version: string;
  /** True if commits wait for a synchronous standby. */
  waitsForStandby: boolean;
  /** Names of the synchronous standbys that are connected; null if the user may not see them. */
  standbys: string[] | null;
  leases: { name: string; nodeId: string }[];
  /** Connections that are not in use. */
  freeConnections: number;
}

/** A warning of the database, whose text is safe to print. */
export interface DatabaseWarning {
  /** SQLSTATE. */
  code: string;
  text: string;
}

/** Content that only nodes read, and its encoding. */
export interface EncodedContent {
  encoding: string;
  bytes: Uint8Array;
}

/** A notification that is copied from another log, with what the log decides by. Digests are hexadecimal text. */
export interface CopiedKey
  extends Pick<
    LogItem,
    'key' | 'subscriptionId' | 'subscription' | 'product' | 'event' | 'content'
  > {
  position: number;
  /** Set for a recovered event: its date. */
  recoveredUs: number | null;
  /** True for a recovered event whose push has arrived. */
  isPushed: boolean;
}

export interface CopiedEntry extends EncodedContent {
  batchId: string;
  /** Notifications of the entry, with new or changed keys. */
  keys: readonly CopiedKey[];
}

/** The shared log as target of a copy. All calls reject with `unavailable`. */
export interface LogCopy {
  /** Begins or continues the copy into an empty log. Rejects with `conflict` for a log that is in use. */
  begin(): Promise<LogHead>;
  /** Appends an entry. Returns its number and the SHA-256 of the stored content, hexadecimal. */
  append(entry: CopiedEntry): Promise<{ number: number; digest: string }>;
  /** Returns the number of the keys of positions in [from, to), and the SHA-256 of `position:key`, joined by commas. */
  keysOf(from: number, to: number): Promise<{ count: number; digest: string }>;
  /** Opens the copied log for appends. */
  open(): Promise<void>;
  /** Closes the log for appends, because another log continues it. */
  moveAway(): Promise<void>;
  /** Opens it again. */
  reopen(): Promise<void>;
}

export interface MaintainedLog {
  /** Removed keys of pruned notifications. */
  keys: number;
  /** Removed partitions of entries. */
  partitions: number;
  /** True when a newer checkpoint would permit the removal of more entries. */
  needsCheckpoint: boolean;
}

/** Report of a node about itself. */
export interface NodeReport {
  /** Random id of the data directory. */
  id: string;
  name: string;
  /** Last entry that it has applied. */
  applied: number;
  facts: NodeFacts;
}

export interface NodeFacts {
  version: string;
  startedAtUs: number;
  /** Reason for refusing notifications; null if it accepts them. */
  refusing: string | null;
  /** Why it applies no entries; null if it does. */
  fault: string | null;
  freeBytes: number | null;
  /** Digest of the endpoint credentials that it accepts. */
  credentials: string;
}

/**
 * A node reports every five seconds. Without a report for this time, it counts as stopped. `earshot.report` has the same
 * limit, because released SQL never changes.
 */
export const nodeSilentMs = 20_000;

/** A node as last reported. */
export interface KnownNode extends NodeReport {
  /** Entries that it had not applied at the time of the report. */
  lag: number;
  /** Age of the report, by the clock of the database. */
  ageMs: number;
}

/** Calls reject with `unavailable` when the database cannot be used, and when the result is unknown. */
export interface SharedLog {
  head(): Promise<LogHead>;
  /**
   * Appends an entry, on disk when it resolves. A repeated call with the same batch id returns the first result. Rejects
   * with `conflict` when the lease, a position or an item refuses it.
   */
  append(entry: NewEntry): Promise<AppendedEntry>;
  /** Proves that the log accepts appends. Rejects with `unavailable` and the reason. */
  check(): Promise<void>;
  /** Returns the entries after a number, in order; some of them if there are many. */
  read(after: number): Promise<LogPart>;
  /**
   * Returns the entry of the last checkpoint; null without one. A checkpoint is the content of all tables after an entry,
   * without notifications: a new node starts from it when earlier entries were removed.
   */
  checkpointNumber(): Promise<number | null>;
  /** Streams the parts of a checkpoint. Rejects with `conflict` when another one has replaced it. */
  checkpointParts(number: number): AsyncIterable<EncodedContent>;
  /** Stores a checkpoint, which replaces older ones. */
  saveCheckpoint(number: number, parts: AsyncIterable<EncodedContent>): Promise<void>;
  /**
   * Prepares space for the next entries, and removes results and reports that nobody needs. Removes keys up to
   * `prunedPosition`, and the entries up to the last checkpoint that contain only notifications up to there and that
   * all nodes of the last day have applied.
   */
  maintain(prunedPosition: number): Promise<MaintainedLog>;
  /**
   * Returns the term of a lease that this process holds; null for one that it has not acquired. Throws `conflict` for
   * one that it has lost, until it is released.
   */
  currentLease(name: string): LeaseTerm | null;
  /** Returns the warnings of the database about statements of this process in the last minutes. */
  warnings(): DatabaseWarning[];
  /** Acquires a lease. Rejects as `AcquireLock` does. */
  acquireLease(
    name: string,
    options: {
      waitMs: number;
      signal?: AbortSignal | undefined;
      /** Each attempt is made only if this node can use the lease. */
      isReady?: () => boolean;
    },
  ): Promise<Lease>;
  /** Resolves when there may be new entries, after the time, or when the signal is aborted. */
  news(timeoutMs: number, signal: AbortSignal): Promise<void>;
  /** Stores the report of this node. */
  copy: LogCopy;
  files: SharedFiles;
  report(node: NodeReport): Promise<void>;
  nodes(): Promise<KnownNode[]>;
  /** Removes the report of a node that does not run; resolves with false if there is none of this name. */
  removeNode(name: string): Promise<boolean>;
  database(): Promise<DatabaseState>;
  close(): Promise<void>;
}
