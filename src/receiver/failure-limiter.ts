/** Counts failed logins per address, within bounded memory. */
import { networkOf } from '../http/network-of.ts';

/** More failures than this in one minute from one address are answered with 429. */
export const failuresPerMinuteMax = 100;
const windowUs = 60_000_000;
const addressesMax = 10_000;

export interface FailureLimiter {
  /** Notes a failure; the number of failures of this address in its current minute. */
  note(address: string): number;
}

export function createFailureLimiter(nowUs: () => number): FailureLimiter {
  const windows = new Map<string, { startUs: number; failures: number }>();
  return {
    note: (address) => {
      const key = networkOf(address);
      const now = nowUs();
      const known = windows.get(key);
      // A window that begins in the future was opened by a clock that ran ahead.
      const isCurrent =
        known !== undefined && now >= known.startUs && now - known.startUs < windowUs;
      const window = isCurrent
        ? { startUs: known.startUs, failures: known.failures + 1 }
        : { startUs: now, failures: 1 };
      // Put back at the end: the address that has been quiet longest is the first to be forgotten.
      windows.delete(key);
      windows.set(key, window);
      if (windows.size > addressesMax) {
        const [oldest] = windows.keys();
        if (oldest !== undefined) windows.delete(oldest);
      }
      return window.failures;
    },
  };
}
