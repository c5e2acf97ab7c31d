/** Removing what is old from the log, so that it can be kept for years. Times are microseconds since 1970, UTC. */
import { hourUs } from './completeness.ts';

/** How far the log was pruned. */
export interface PruneHorizon {
  /** Notifications up to this position are gone, but for those that came again later. */
  position: number;
  /** Of what was received before this moment, nothing may be said to be missing. */
  receivedBeforeUs: number;
  prunedAtUs: number;
}

/** A clock of ours that was behind that of the catalogue by no more dates a push before its event. */
const clockToleranceUs = hourUs / 12;

/**
 * The first whole hour of events of which all that was received is still in the log: an event is received after
 * its date. 0 for a log that was never pruned.
 */
export function unprunedSinceUs(horizon: PruneHorizon | null): number {
  if (horizon === null) return 0;
  return Math.ceil((horizon.receivedBeforeUs + clockToleranceUs) / hourUs) * hourUs;
}

/** What is to be kept; null for no bound. What fails either is removed, the oldest first. */
export interface Retention {
  ageUs: number | null;
  /** Of the log's file, without its free pages. */
  bytes: number | null;
}

/** What reads the log and has not read all of it, or what still refers to it: pruning goes no further. */
export interface PruneBlocker {
  /** For people: `sink orders`, `reader downloads`, `summaries`, `product index`. */
  name: string;
  /** What it has finished; pruning may go up to here. */
  position: number;
  /**
   * `cursor` and `index` are places of readers, which move on as they read. The others are left over behind them:
   * what waits for a sink, or was refused by it; a replay; summaries that are not written yet.
   */
  kind: 'cursor' | 'index' | 'waiting' | 'dead-letters' | 'replay' | 'summary-jobs';
  /** The name without words: of the cursor, or of the sink. */
  key: string;
  /** Since when it stands there; null where that is not known. */
  sinceUs: number | null;
}

/** What the log takes up on the disk. */
export interface LogSize {
  /** The database file without its free pages, the write-ahead log not counted. */
  usedBytes: number;
  /** Pages in the file that hold nothing. */
  freeBytes: number;
  /** The write-ahead log beside it. */
  walBytes: number;
  /** 0 in an empty log. */
  firstPosition: number;
  lastPosition: number;
  /** When the first notification of the log was received; null in an empty one. */
  firstReceivedAtUs: number | null;
}

/** What pruning would remove now; estimated where notifications did not come in the order of their times. */
export interface Prunable {
  notifications: number;
  /** When the first was received, and when the first that stays was; null where nothing goes. */
  fromUs: number | null;
  untilUs: number | null;
  /** About what they take up. */
  bytes: number;
  /** Quarantine entries that go along. */
  quarantined: number;
  /** What keeps back more, that which is furthest behind first; none where all that is to go may go. */
  heldBy: PruneBlocker[];
}

export interface PruneRequest {
  keep: Retention;
  /** Also entries of the quarantine that are still held. */
  withQuarantined: boolean;
  /** The part of the file that may stay free for what comes next, 0 to 1. */
  freeShare: number;
  nowUs: number;
}

/** The questions, which never wait for intake. All reject with `unavailable`. */
export interface PruningReader {
  pruneHorizon(): Promise<PruneHorizon | null>;
  /** In no order. */
  pruneBlockers(): Promise<PruneBlocker[]>;
  logSize(): Promise<LogSize>;
  prunable(request: PruneRequest): Promise<Prunable>;
}

/**
 * What goes, in this order: notifications with their bodies, entries of the quarantine, jobs and texts of summaries
 * whose notifications are gone; at last the space is given back.
 */
export const prunePhases = [
  'notifications',
  'quarantine',
  'summary-jobs',
  'summary-texts',
  'space',
] as const;
export type PrunePhase = (typeof prunePhases)[number];

/** What came of one short transaction. */
export interface PruneStep {
  /** Rows, but for `space`: there, bytes. */
  removed: number;
  /** What the next step of the phase takes as `after`; null when the phase is over. */
  next: number | null;
}

/** The changes. All reject with `unavailable`. */
export interface Pruning extends PruningReader {
  /**
   * One step of a phase, on disk when it resolves: a transaction of some 25 ms, so that intake hardly waits. It may
   * be repeated, left out, or done by two programs at once. The horizon moves along with what it removes. Neither
   * the newest notification goes, nor one that a holder has not finished, nor the one at which it stands.
   */
  pruneStep(options: {
    phase: PrunePhase;
    request: PruneRequest;
    after: number;
  }): Promise<PruneStep>;
  /** Takes the write-ahead log into the file, and cuts both, as far as nobody reads them. */
  checkpoint(): Promise<void>;
  /** Gives up the place of a reader; false where there is none of this name. */
  removeReader(key: string): Promise<boolean>;
}
