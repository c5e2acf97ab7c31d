/** How long one transaction of a prune may take. */

const stepMs = 25;

/** Repeats work until the time is up, or it returns false because nothing is left. Returns what it returned last. */
export function repeatForStep(work: () => boolean): boolean {
  const endMs = performance.now() + stepMs;
  for (;;) {
    if (!work()) return false;
    if (performance.now() >= endMs) return true;
  }
}
