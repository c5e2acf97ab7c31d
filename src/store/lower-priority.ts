/** Lets a thread come after those that take notifications in. */
import { constants, setPriority } from 'node:os';

/** Linux gives each thread a priority of its own. Elsewhere the process keeps its own. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A system that forbids it gives all threads the same.
  }
}
