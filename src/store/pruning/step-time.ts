/** Duration of one transaction of a prune. */

export const usualStepMs = 25;

/**
 * Duration while disk space is short: one piece of work, as what a transaction changes lies in the write-ahead log in
 * addition, some 300 kB of it.
 */
export const shortStepMs = 0;

/** Repeats work until the time is up, or it returns false because nothing is left. Returns what it returned last. */
export function repeatForStep(stepMs: number, work: () => boolean): boolean {
  const endMs = performance.now() + stepMs;
  for (;;) {
    if (!work()) return false;
    if (performance.now() >= endMs) return true;
  }
}
