/** Share of its work that a test does: all repetitions with `TEST_THOROUGH=1`; programs that are installed. */
import { existsSync } from 'node:fs';
import { it } from 'vitest';

/** True in `npm run test:thorough`, which sets the variable to 0 or 1. */
export const isComplete = process.env.TEST_THOROUGH !== undefined;

/** `it`, for further tests of a promise: `npm run test:thorough` runs them, `npm run test:promises` does not. */
export const itIfComplete = (isComplete ? it : () => undefined) as typeof it;

export const isThorough = process.env.TEST_THOROUGH === '1';

/** Returns true if a file of another program is installed; in CI it is required. */
export function installed(path: string): boolean {
  return process.env.CI !== undefined || existsSync(path);
}

/** Number of repetitions. */
export function times(usual: number, thorough: number): number {
  return isThorough ? thorough : usual;
}
