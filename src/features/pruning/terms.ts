/** Pruning: removal of old notifications from the log, to limit its size. Times are microseconds since 1970, UTC. */
import { hourUs } from '../../core/terms/time-units.ts';

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
   * `cursor` and `index` are positions of readers, which advance as they read. The others are pending data: waiting
   * items of a sink, its dead letters, or a replay.
   */
  kind: 'cursor' | 'index' | 'waiting' | 'dead-letters' | 'replay';
  /** Bare name of the reader or sink. */
  key: string;
  /** Time since which it has been at this position; null when not known. */
  sinceUs: number | null;
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
  /** Also removes quarantine entries that were not released. */
  withQuarantined: boolean;
  /** Share of the file that may remain free for future notifications, 0 to 1. */
  freeShare: number;
  nowUs: number;
}

/** Read access, which never waits for the intake. All calls reject with `unavailable`. */
export interface PruningReader {
  pruneHorizon(): Promise<PruneHorizon | null>;
  /** Returns the blockers, in no order. */
  pruneBlockers(): Promise<PruneBlocker[]>;
  logSize(): Promise<LogSize>;
  prunable(request: PruneRequest): Promise<Prunable>;
}

/**
 * Phases of pruning, in this order: notifications with their bodies; quarantine entries; summaries of removed
 * notifications; return of free space to the file system.
 */
export const prunePhases = ['notifications', 'quarantine', 'summaries', 'space'] as const;
export type PrunePhase = (typeof prunePhases)[number];

/** Result of one short transaction. */
export interface PruneStep {
  /** Number of rows; for `space`, of bytes. */
  removed: number;
  /** `after` of the next step of the phase; null when the phase is complete. */
  next: number | null;
}

/** Write access. All calls reject with `unavailable`. */
export interface Pruning extends PruningReader {
  /**
   * Runs one step of a phase, on disk when it resolves: a transaction of about 25 ms, so that it hardly delays the
   * intake. A step may be repeated, skipped, or run by two processes at once. Moves the horizon with what it removes.
   * Never removes the newest notification, one that a blocker has not finished, or the one at its position.
   */
  pruneStep(options: {
    phase: PrunePhase;
    request: PruneRequest;
    after: number;
  }): Promise<PruneStep>;
  /** Writes the write-ahead log to the database file and truncates both, as far as no transaction reads them. */
  checkpoint(): Promise<void>;
  /** Removes the cursor of a reader; resolves with false if there is none of this name. */
  removeReader(key: string): Promise<boolean>;
}
