/** Pruning: removal of old notifications from the log, to limit its size. Times are microseconds since 1970, UTC. */
import { hourUs } from '../../core/terms/dates.ts';
import type { Database } from '../engine/database.ts';
import type { DataPlace } from '../engine/disk-limit.ts';

/** Extent of the pruning so far. */
export interface PruneHorizon {
  /** Notifications up to this position are removed, except those received again later. */
  position: number;
  /** Events received before this time are never reported as missing. */
  receivedBeforeUs: number;
  prunedAtUs: number;
}

/** Tolerated lag of our clock: one slower than the catalogue's dates a push before its event. */
const clockToleranceUs = hourUs / 12;

/**
 * Returns the start of the first hour of events without pruned notifications, as an event is received after its date.
 * Returns 0 for a log that was never pruned.
 */
export function unprunedSinceUs(horizon: PruneHorizon | null): number {
  if (horizon === null) return 0;
  return Math.ceil((horizon.receivedBeforeUs + clockToleranceUs) / hourUs) * hourUs;
}

/** Limits of the log; null for no limit. Notifications beyond either limit are removed, oldest first. */
export interface Retention {
  ageUs: number | null;
  /** Size of the log file without its free pages. */
  bytes: number | null;
}

/** A reader that has not read the whole log, or data that still refers to it. Pruning stops there. */
export interface PruneBlocker {
  /** Readable name: `sink orders`, `reader downloads`, `summaries`, `product index`. */
  name: string;
  /** Last position it has finished; pruning may continue up to here. */
  position: number;
  /**
   * `cursor` and `index` are positions of readers, which advance as they read. `pending`: data that a reader still
   * needs, such as waiting items of a sink.
   */
  kind: 'cursor' | 'index' | 'pending';
  /** Key of the reader. */
  key: string;
  /** How to advance it, or to remove it. */
  advice: string;
  /** Group of the feature that reads; null for a reader of `earshot tail`. */
  of: string | null;
  /** Time since which it has been at this position; null when not known. */
  sinceUs: number | null;
  /** Tolerated lag of a reader, in the status; absent for one that is evaluated elsewhere. */
  lagMaxUs?: number | undefined;
}

/** Disk space used by the log. */
export interface LogSize {
  /** Database file without its free pages and without the write-ahead log. */
  usedBytes: number;
  /** Free pages in the file. */
  freeBytes: number;
  /** Write-ahead log. */
  walBytes: number;
  /** 0 for an empty log. */
  firstPosition: number;
  lastPosition: number;
  /** Time of receipt of the first notification; null for an empty log. */
  firstReceivedAtUs: number | null;
}

/** Data that pruning would remove now, estimated if notifications are not in the order of their times. */
export interface Prunable {
  notifications: number;
  /** Times of receipt of the first removed and the first remaining notification; null if nothing is removed. */
  fromUs: number | null;
  untilUs: number | null;
  /** Approximate size. */
  bytes: number;
  /** Quarantine entries removed with them. */
  quarantined: number;
  /** Blockers of further pruning, the one with the largest backlog first; empty if nothing is blocked. */
  heldBy: PruneBlocker[];
}

export interface PruneRequest {
  keep: Retention;
  /** Also removes quarantine entries. */
  withQuarantined: boolean;
  /** Share of the file that may remain free for future notifications, 0 to 1. */
  freeShare: number;
  nowUs: number;
}

/** Describes a reader of the log by its key; null for a key of another feature. */
export type DescribeReader = (
  key: string,
) => { name: string; advance: string; lagMaxUs?: number } | null;

/** Rows of a feature that pruning removes after their notifications, in parts: their table may have no index on it. */
export interface PrunedRows {
  /** Returns ids to remove among some hundred rows after an id, and the last row that was read; null at the end. */
  select(database: Database, after: number): { ids: number[]; next: number } | null;
  /** Removes rows; returns their number. */
  remove(database: Database, ids: readonly number[]): number;
}

/** Result of one short transaction. */
export interface PruneStep {
  /** Number of rows; for `space`, of bytes. */
  removed: number;
  /** `after` of the next step of the phase; null when the phase is complete. */
  next: number | null;
}

/** Removes data of a feature that belongs to pruned notifications. `onProgress` gets a sentence. */
export type AfterPruning = (
  place: DataPlace & { signal: AbortSignal; onProgress: (text: string) => void },
) => Promise<void>;
