/** Number of repetitions in a test: a share by default, all with `TEST_THOROUGH=1`. */

export const isThorough = process.env.TEST_THOROUGH === '1';

/** Number of repetitions. */
export function times(usual: number, thorough: number): number {
  return isThorough ? thorough : usual;
}

/**
 * The moments at which a program is killed around its request of that number: before and after it,
 * or alternating.
 */
export function momentsAt(requestNumber: number): ('before' | 'after')[] {
  if (isThorough) return ['before', 'after'];
  return [requestNumber % 2 === 1 ? 'before' : 'after'];
}
