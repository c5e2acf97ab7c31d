/**
 * What the program needs from a store, and how each call fails.
 *
 * Words: a *delivery* is one request that hands us notifications; its *receipt* says what became of
 * it. The *log* keeps every notification once, at a *position* that only grows. A *reader* is any
 * part that works through the log; its *cursor* is the position it has finished. The *quarantine*
 * keeps bodies that are not notifications. All times are microseconds since 1970, UTC.
 */
import type { Fault } from './notification.ts';

/** One request body as it came, with what the receiver knows about it. */
export interface Delivery {
  body: Uint8Array;
  /** Of a body that came with a Content-Encoding. */
  encoded?: EncodedBody | undefined;
  /** The subscription's name from the URL path; null when the path had none. */
  subscription: string | null;
  receivedAtUs: number;
  /** How it came: pushed by the catalogue, or found missing and fetched. */
  source: 'push' | 'reconcile';
  /** Header names and values in turn, as received; credentials are removed before they are kept. */
  headers: readonly string[];
}

/** The bytes that hold the JSON of a delivery. */
export function contentOf({ body, encoded }: Pick<Delivery, 'body' | 'encoded'>): Uint8Array {
  return encoded?.content instanceof Uint8Array ? encoded.content : body;
}

/** How a body was encoded, and what it holds; the fault of one that cannot be decoded. */
export interface EncodedBody {
  /** Names in lower case, in the order in which they were applied: `gzip`. */
  encoding: string;
  content: Uint8Array | Fault;
}

/** A body as it came. */
export interface OriginalBody {
  /** The same for all notifications of one body. */
  bodyId: number;
  bytes: Uint8Array;
  /** Null for one without a Content-Encoding. */
  encoding: string | null;
}

/** What became of a delivery, on disk when it is handed out. */
export type Receipt =
  /** With an id, a known AckId came with other content, which is held in quarantine for the first time. */
  | { outcome: 'stored'; stored: number; duplicates: number; quarantineId?: number }
  | { outcome: 'duplicate'; duplicates: number; quarantineId?: number }
  | { outcome: 'rejected'; faults: Fault[]; quarantineId: number; stored: number };

/** The way into the store. */
export interface Intake {
  /**
   * Reads a body and keeps what is in it: notifications in the log, anything else in the quarantine,
   * all in one transaction. Resolves after the commit is on disk. A notification that is known
   * already is counted on its row (times seen, last seen) and is no error, so a call may be repeated
   * at will. Rejects with `unavailable` when nothing could be committed or the queue is full. Then
   * nothing is claimed; a delivery that was given up after waiting long may still be kept later.
   */
  accept(delivery: Delivery): Promise<Receipt>;
  /**
   * Resolves when the store can take a write, proven by a commit not older than a few seconds.
   * Rejects with `unavailable` and the reason otherwise.
   */
  checkWritable(): Promise<void>;
}

/** One notification of the log. */
export interface NotificationRow {
  position: number;
  ackId: string | null;
  productId: string;
  productName: string | null;
  event: string;
  /** The name in the URL path. */
  subscription: string | null;
  /** The id in the notification. */
  subscriptionId: string | null;
  notificationDateUs: number | null;
  receivedAtUs: number;
  source: string;
  /** 1 for a notification that came once. */
  timesSeen: number;
  lastSeenAtUs: number;
  /** Its place in the body that it came in, counted from 0; 0 in one that is no array. */
  bodyIndex: number;
}

/** Maximum length of a name pattern, and of a name that one can match. Names of products are file names. */
export const namePatternMax = 255;

/** Conditions that a row must all meet; an absent one is no condition. */
export interface NotificationQuery {
  ackId?: string | undefined;
  productId?: string | undefined;
  /**
   * Exact, or with the wildcards `*` (any text) and `?` (one character). Case matters. A pattern with wildcards has at
   * most `namePatternMax` characters, else `invalid`; it matches no name that is longer than so many bytes.
   */
  name?: string | undefined;
  /** Any of these, in lower case. */
  events?: readonly string[] | undefined;
  subscription?: string | undefined;
  source?: string | undefined;
  /** Which time `sinceUs` (included) and `untilUs` (excluded) speak of. */
  time?: 'received' | 'notification' | undefined;
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Only positions above, or below, this one: where the page before ended. */
  afterPosition?: number | undefined;
  beforePosition?: number | undefined;
  /** By position; newest first unless told otherwise. */
  order?: 'newest' | 'oldest' | undefined;
  limit?: number | undefined;
}

/** The log, as its readers see it. None of these calls ever delays the intake. */
export interface NotificationLog {
  /**
   * Streams the rows that match, page by page, each page a short read of its own: rows that arrive
   * meanwhile neither shift nor repeat what is still to come. Rejects with `unavailable` when the
   * store cannot be read.
   */
  find(query: NotificationQuery): AsyncIterable<NotificationRow>;
  /**
   * The JSON that the notification came in: the body byte by byte, decoded where it had a Content-Encoding. Rejects
   * with `not_found`.
   */
  body(position: number): Promise<Uint8Array>;
  /** The same body byte by byte as it came. Rejects with `not_found`. */
  original(position: number): Promise<OriginalBody>;
  /** The highest position given so far; 0 in an empty log. */
  lastPosition(): Promise<number>;
  /** How often each drift shape was seen. */
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
  /** Deliveries beyond the first of each notification. */
  duplicates: number;
  /** Bodies that are still held in quarantine. */
  quarantined: number;
}

/** Where readers have got to. A cursor is kept across restarts. */
export interface Cursors {
  /** The position a reader has finished; null for a reader that never was. */
  cursor(reader: string): Promise<number | null>;
  /** Moves a cursor, forward or back. On disk when it resolves. Rejects with `unavailable`. */
  moveCursor(reader: string, position: number, atUs: number): Promise<void>;
}

/** A body that is not a notification, or holds an item that is not. */
export interface QuarantineRow {
  id: number;
  receivedAtUs: number;
  subscription: string | null;
  /** The first fault's code. */
  reason: string;
  faults: Fault[];
  bodyBytes: number;
  /** Null while it is held; else when a retry read it in full. */
  releasedAtUs: number | null;
}

export interface QuarantineEntry extends QuarantineRow {
  headers: string[];
  /** Byte by byte as it came. */
  body: Uint8Array;
  /** Its Content-Encoding; null for one without. */
  encoding: string | null;
}

export interface Quarantine {
  /** Newest first; released entries only when asked for. */
  quarantined(options: { released: boolean; limit?: number }): AsyncIterable<QuarantineRow>;
  /** How many entries are held. */
  quarantinedCount(): Promise<number>;
  /** Rejects with `not_found`. */
  quarantineEntry(id: number): Promise<QuarantineEntry>;
  /**
   * Reads a held body again, through the same path as a new one, keeping its time of receipt. When
   * the whole body can be read now, the entry is released. Rejects with `not_found`.
   */
  retry(id: number, atUs: number): Promise<Receipt>;
  /** Removes held entries, with bodies that nothing else refers to. Returns how many there were. */
  drop(ids: readonly number[]): Promise<number>;
}

/** Where the program's parts report what they do; pino fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface CommitFacts {
  /** From reading the bodies until all of it was on disk. */
  durationSeconds: number;
  deliveries: number;
  /** Of the first notification in it that tells of a created product; null when there is none. */
  publicationDelay: PublicationDelay | null;
}

/** How long after its publication a product was told of. */
export interface PublicationDelay {
  /** The name in the URL path. */
  subscription: string | null;
  seconds: number;
}

export interface DiskSpace {
  /** What the user that asks may still write. */
  freeBytes: number;
  totalBytes: number;
  /** While less is free, nothing is taken in. 0 where there is no such limit. */
  reserveBytes: number;
}

const gibibyte = 2 ** 30;

/** Below these a person is told: well before intake ends, on a disk of any size. */
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

/** A backup that was made, or tried in vain. */
export interface BackupRun {
  /** Absolute path of the copy. */
  file: string;
  startedAtUs: number;
  endedAtUs: number;
  /** Size of the copy; null for one that failed. */
  bytes: number | null;
  /** The last position of the log in the copy; null for one that failed. */
  lastPosition: number | null;
  /** Why it failed, in words for people and without secrets; null for one that was made. */
  error: string | null;
}

export interface LastBackups {
  /** The last one that was made and verified; null when none ever was. */
  made: BackupRun | null;
  /** The last one that failed; null when none did. It may be older than `made`. */
  failed: BackupRun | null;
}

/** Rejects with `unavailable`. */
export interface BackupReader {
  lastBackups(): Promise<LastBackups>;
}

export interface Backups extends BackupReader {
  /** Remembers a run in the place of the last one with the same end. Rejects with `unavailable`. */
  recordBackup(run: BackupRun): Promise<void>;
}
