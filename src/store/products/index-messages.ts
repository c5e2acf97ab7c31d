/** What the indexing thread is asked, one thing at a time. */

/** The file that counts, or the one that a rebuild fills. */
export type IndexTarget = 'current' | 'building';

export interface WorkDone {
  /** Notifications that were indexed; 0 at the end of the log. */
  indexed: number;
  indexedPosition: number;
  lastPosition: number;
}
