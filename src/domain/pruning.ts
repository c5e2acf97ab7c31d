/** Removing what is old from the log, so that it can be kept for years. Times are microseconds since 1970, UTC. */

/** How far the log was pruned. */
export interface PruneHorizon {
  /** Notifications up to this position are gone, but for those that came again later. */
  position: number;
  /** Of what was received before this moment, nothing may be said to be missing. */
  receivedBeforeUs: number;
  prunedAtUs: number;
}

/** What reads the log and has not read all of it, or what still refers to it: pruning goes no further. */
export interface LogHolder {
  /** For people: `sink orders`, `reader downloads`, `summaries`, `product index`. */
  name: string;
  /** What it has finished; pruning may go up to here. */
  position: number;
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

/** The questions, which never wait for intake. All reject with `unavailable`. */
export interface PruningReader {
  pruneHorizon(): Promise<PruneHorizon | null>;
  /** In no order. */
  logHolders(): Promise<LogHolder[]>;
  logSize(): Promise<LogSize>;
}
