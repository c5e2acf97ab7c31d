/** Counts failed logins per address, within bounded memory. */
import { isIPv6 } from 'node:net';

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
      const window =
        known !== undefined && now - known.startUs < windowUs
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

/** IPv4 addresses count one by one; of IPv6, where a host owns a whole network, the /64. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').length;
  const filled = [
    ...groups,
    ...Array<string>(Math.max(0, missing)).fill('0'),
    ...(tail ?? '').split(':'),
  ];
  return `${filled.slice(0, 4).join(':')}::/64`;
}
