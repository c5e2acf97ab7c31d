/** How much of the same a test does: a share that shows it, or with `TEST_THOROUGH=1` all of it. */

export const isThorough = process.env.TEST_THOROUGH === '1';

/** How often something is done. */
export function times(usual: number, thorough: number): number {
  return isThorough ? thorough : usual;
}

/** When a program is killed at its request of that number: before and after it, or by turns. */
export function momentsAt(requestNumber: number): ('before' | 'after')[] {
  if (isThorough) return ['before', 'after'];
  return [requestNumber % 2 === 1 ? 'before' : 'after'];
}
