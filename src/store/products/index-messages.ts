/** What the indexing thread is asked, one thing at a time. */

/** The file that counts, or the one that a rebuild fills. */
export type IndexTarget = 'current' | 'building';

export type IndexRequest =
  /** Indexes for about so long; answers with what was done. */
  | { op: 'work'; id: number; target: IndexTarget; budgetMs: number }
  /** Takes out some of what the log has no more; answers with how many events went, 0 when none is left. */
  | { op: 'prune'; id: number }
  /** Makes the rebuilt file the one that counts. */
  | { op: 'install'; id: number }
  /** Drops what a rebuild has begun. */
  | { op: 'discard'; id: number }
  | { op: 'close'; id: number };

export interface WorkDone {
  /** Notifications that were indexed; 0 at the end of the log. */
  indexed: number;
  indexedPosition: number;
  lastPosition: number;
}
