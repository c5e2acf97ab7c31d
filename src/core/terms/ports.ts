/**
 * Interfaces of the store, and how each call fails.
 *
 * Terms: a *notification* is one event that the catalogue reports. A *push* is the POST request that brings it; a pull
 * subscription has a *queue* to read it from. A *delivery* is one body handed to the store, from a push, from a queue
 * or from the comparison with the catalogue; the *receipt* is its result. The *notification log* (the log) stores each notification once, at a *position*: an integer that only
 * grows. A *reader* is a part that reads the log in order; its *cursor* is the last position that it has processed.
 * The *quarantine* stores bodies that are not notifications. All times are microseconds since 1970, UTC.
 */
import type { z } from 'zod';
import type { Fault } from './notification.ts';
import type { notificationSchema, quarantineSchema } from './read-models.ts';

/** A request body, or an entry of a queue, as received, with its metadata. */
export interface Delivery {
  body: Uint8Array;
  /** Subscription name, for a push the one in the URL path; null for a path without a name. */
  subscription: string | null;
  receivedAtUs: number;
  source: NotificationSource;
  /** Header names and values, alternating, as received. Credentials are removed before they are stored. */
  headers: readonly string[];
}

/** A body, byte for byte as received. */
export interface OriginalBody {
  /** Shared by all notifications of the same body. */
  bodyId: number;
  bytes: Uint8Array;
}

/** Result of a delivery. Everything it reports is already on disk. */
export type Receipt =
  /** `quarantineId` is set when a known AckId came with other content, quarantined for the first time. */
  | { outcome: 'stored'; stored: number; duplicates: number; quarantineId?: number }
  | { outcome: 'duplicate'; duplicates: number; quarantineId?: number }
  /** Without `quarantineId` in a shared log, whose nodes assign it later. */
  | { outcome: 'rejected'; faults: Fault[]; quarantineId?: number; stored: number };

/** Write path of the store. */
export interface Intake {
  /**
   * Parses a body and stores its notifications in the log and anything else in the quarantine, in one transaction.
   * Resolves after the commit is on disk. A known notification only updates its row (times seen, last seen), so a
   * call may be repeated safely. Rejects with `unavailable` when nothing could be committed or the queue is full. A
   * delivery rejected after a long wait may still be stored later.
   */
  accept(delivery: Delivery): Promise<Receipt>;
  /**
   * Resolves when the store accepts writes, proven by a commit within the last few seconds. Otherwise rejects with
   * `unavailable` and the reason.
   */
  checkWritable(): Promise<void>;
}

/** A notification in the log. */
export interface NotificationRow extends z.infer<typeof notificationSchema> {
  lastSeenAtUs: number;
  /** Index in the array of its body, from 0; 0 when the body is a single object. */
  bodyIndex: number;
}

/** Maximum length of a name pattern, and of a name that a pattern can match. Product names are file names. */
export const namePatternMax = 255;

/** Conditions that a row must meet, all of them. An absent field sets no condition. */
export interface NotificationQuery {
  ackId?: string | undefined;
  productId?: string | undefined;
  /**
   * Exact name, or a pattern with `*` (any text) and `?` (one character); case-sensitive. A pattern longer than
   * `namePatternMax` characters is `invalid`. A pattern matches no name of more than `namePatternMax` bytes.
   */
  name?: string | undefined;
  /** Matches any of these, in lower case. */
  events?: readonly string[] | undefined;
  subscription?: string | undefined;
  source?: string | undefined;
  /** Time that `sinceUs` (inclusive) and `untilUs` (exclusive) refer to; `received` by default. */
  time?: 'received' | 'notification' | undefined;
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Only positions above, or below, this one: the end of the previous page. */
  afterPosition?: number | undefined;
  beforePosition?: number | undefined;
  /** Matches any of these. */
  positions?: readonly number[] | undefined;
  /** Order by position; newest first by default. */
  order?: 'newest' | 'oldest' | undefined;
  limit?: number | undefined;
}

/** Read access to the log. No call delays the intake. */
export interface NotificationLog {
  /**
   * Streams matching rows, page by page. Each page is a short read transaction; rows that arrive meanwhile neither
   * shift nor repeat the remaining ones. Rejects with `unavailable` when the store cannot be read.
   */
  find(query: NotificationQuery): AsyncIterable<NotificationRow>;
  /** Returns the body of a notification, byte for byte. Rejects with `not_found`. */
  body(position: number): Promise<Uint8Array>;
  /** Returns the same body with its id. Rejects with `not_found`. */
  original(position: number): Promise<OriginalBody>;
  /** Returns the highest position assigned so far; 0 for an empty log. */
  lastPosition(): Promise<number>;
  /** Returns the id of this log as a node of a shared log; null for a log of its own. */
  nodeId(): Promise<string | null>;
  /** Returns the count of each drift shape. */
  drift(): Promise<DriftCount[]>;
  counts(): Promise<LogCounts>;
}

export interface DriftCount {
  shape: string;
  count: number;
  firstSeenAtUs: number;
  lastSeenAtUs: number;
}

export interface LogCounts {
  notifications: number;
  /** Repeated deliveries of known notifications. */
  duplicates: number;
  quarantined: number;
}

/** Cursors of the readers. They survive restarts. */
export interface Cursors {
  /** Returns the last position that a reader has processed; null for an unknown reader. */
  cursor(reader: string): Promise<number | null>;
  /** Moves a cursor forward or back. The change is on disk when it resolves. Rejects with `unavailable`. */
  moveCursor(reader: string, position: number, atUs: number): Promise<void>;
}

/** A quarantined body: not a notification, or an array with an item that is not one. */
export type QuarantineRow = z.infer<typeof quarantineSchema>;

export interface QuarantineEntry extends QuarantineRow {
  headers: string[];
  /** Byte for byte as received. */
  body: Uint8Array;
}

export interface Quarantine {
  /** Streams entries, newest first. `beforeId`: only ids below this one, the end of the previous page. */
  quarantined(options: {
    beforeId?: number | undefined;
    limit?: number | undefined;
  }): AsyncIterable<QuarantineRow>;
  quarantinedCount(): Promise<number>;
  /** Returns an entry with its body. Rejects with `not_found`. */
  quarantineEntry(id: number): Promise<QuarantineEntry>;
  /**
   * Parses a quarantined body again, in the same way as a new one, and keeps its time of receipt. Removes the entry when
   * the whole body is stored. Rejects with `not_found`.
   */
  retry(id: number): Promise<Receipt>;
  /**
   * Removes quarantined entries, and their bodies unless something else refers to them. Returns the number of entries
   * removed.
   */
  drop(ids: readonly number[]): Promise<number>;
}

/** Logger interface; pino implements it. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface CommitFacts {
  /** Time from parsing the first body until the commit was on disk. */
  durationSeconds: number;
  deliveries: number;
  /** Delay of the first notification about a created product; null when there is none. */
  publicationDelay: PublicationDelay | null;
}

/** Time from the publication of a product to the receipt of its notification. */
export interface PublicationDelay {
  /** Subscription name in the URL path. */
  subscription: string | null;
  seconds: number;
}

export interface DiskSpace {
  /** Space that the current user may still use. */
  freeBytes: number;
  totalBytes: number;
  /** Notifications are refused while less space is free; 0 disables the limit. */
  reserveBytes: number;
}

const gibibyte = 2 ** 30;

/**
 * Returns the levels of free space below which an alert is raised: well before the intake stops, on a disk of any
 * size.
 */
export function diskLevels({ totalBytes, reserveBytes }: Omit<DiskSpace, 'freeBytes'>): {
  warningBytes: number;
  criticalBytes: number;
} {
  const tenth = totalBytes / 10;
  return {
    warningBytes: Math.max(Math.min(5 * gibibyte, tenth), 3 * reserveBytes),
    criticalBytes: Math.max(Math.min(gibibyte, tenth), 2 * reserveBytes),
  };
}

/** A finished backup, successful or failed. */
export interface BackupRun {
  /** Absolute path of the backup. */
  file: string;
  startedAtUs: number;
  endedAtUs: number;
  /** Size of the backup; null if it failed. */
  bytes: number | null;
  /** Last log position in the backup; null if it failed. */
  lastPosition: number | null;
  /** Reason of the failure, readable and without secrets; null if it succeeded. */
  error: string | null;
}

export interface LastBackups {
  /** The last successful, verified backup; null when there was none. */
  made: BackupRun | null;
  /** The last failed backup, possibly older than `made`; null when there was none. */
  failed: BackupRun | null;
}

/** Calls reject with `unavailable`. */
export interface BackupReader {
  lastBackups(): Promise<LastBackups>;
}

export interface Backups extends BackupReader {
  /** Stores a run; it replaces the last run with the same result. Rejects with `unavailable`. */
  recordBackup(run: BackupRun): Promise<void>;
}

/**
 * Origins of a notification. `push`: sent by the catalogue. `pull`: read from the queue of a pull subscription.
 * `reconcile`: found missing, or without a record, and fetched by earshot.
 */
export const notificationSources = ['push', 'pull', 'reconcile'] as const;
export type NotificationSource = (typeof notificationSources)[number];

export const alertLevels = ['warning', 'critical'] as const;

/** State of an alert, as it is sent: its level while it is active. */
export const alertStates = [...alertLevels, 'resolved'] as const;
export type AlertState = (typeof alertStates)[number];

/** Notification channels. */
export const alertChannels = ['url', 'command'] as const;
export type AlertChannel = (typeof alertChannels)[number];

/** Kinds of summaries. */
export const summaryKinds = ['product', 'digest'] as const;

export type SummaryKind = (typeof summaryKinds)[number];

/** `waiting`: for its turn, the end of its period, the budget or the service. */
export const summaryStates = ['waiting', 'done'] as const;

export type SummaryState = (typeof summaryStates)[number];

/** Maximum size (design, interface contract). */
export const bodyBytesMax = 2 ** 20;

/** Maximum nesting; records of the catalogue have about ten levels. */
export const nestingMax = 100;

/**
 * Streams the rows after a position, oldest first, and continues as new ones arrive. Calls `wait` at the end of the
 * log; it resolves when the log should be read again. Ends when the signal is aborted. Skips no row: positions become
 * visible in order.
 */
export async function* followLog(options: {
  log: Pick<NotificationLog, 'find' | 'lastPosition'>;
  query?: Omit<NotificationQuery, 'order' | 'limit' | 'afterPosition' | 'beforePosition'>;
  afterPosition: number;
  wait: (signal: AbortSignal) => Promise<void>;
  signal: AbortSignal;
}): AsyncGenerator<NotificationRow> {
  const { log, query, signal } = options;
  let { afterPosition } = options;
  while (!signal.aborted) {
    // The end is fixed before each round, so that rows that do not match are read only once.
    const lastPosition = await log.lastPosition();
    if (lastPosition > afterPosition) {
      const bounds = { afterPosition, beforePosition: lastPosition + 1 };
      for await (const row of log.find({ ...query, ...bounds, order: 'oldest' })) {
        if (signal.aborted) return;
        yield row;
      }
      afterPosition = lastPosition;
    }
    await options.wait(signal);
  }
}

/** Returns the notification at a position; null when the log does not contain it. */
export function notificationAt(log: Pick<NotificationLog, 'find'>, position: number) {
  return firstOf(log, { afterPosition: position - 1, beforePosition: position + 1 });
}

/** Returns the oldest matching notification; null when there is none. */
export async function firstOf(
  { find }: Pick<NotificationLog, 'find'>,
  query: Omit<NotificationQuery, 'order' | 'limit'>,
): Promise<NotificationRow | null> {
  for await (const row of find({ ...query, order: 'oldest', limit: 1 })) return row;
  return null;
}

/** Collects a stream; rejects when the signal is aborted. */
export async function collect<Row>(rows: AsyncIterable<Row>, signal: AbortSignal): Promise<Row[]> {
  const collected: Row[] = [];
  for await (const row of rows) {
    signal.throwIfAborted();
    collected.push(row);
  }
  return collected;
}

/** Accepted credentials of the endpoint (RFC 7617). */
export interface CredentialPair {
  username: string;
  password: string;
}
