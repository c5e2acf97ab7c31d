/** Locks: work that only one process may do at a time. */

/** Releases a lock. */
export interface Release {
  (): void;
  /** Aborted when the lock is lost: another node of the shared log has taken it over. */
  readonly lost?: AbortSignal;
}

/**
 * Acquires a lock that is released at the latest when the process ends, even by a crash. Resolves with the function
 * that releases it. Rejects with `conflict` when the lock is held by another for longer than `waitMs`, and with the
 * signal's reason when that aborts the wait.
 */
export type AcquireLock = (
  name: string,
  options: { waitMs: number; signal?: AbortSignal },
) => Promise<Release>;
