/** Tells the log of failed logins, so many a minute at most: who fails must not fill the disk. */
import type { Logger } from '../domain/ports.ts';

/** Of all addresses together, as whoever has one IPv6 network has more of them than a disk has room. */
export const linesPerMinuteMax = 30;
const windowUs = 60_000_000;

/** Returns what writes one line; beyond the bound, one more says so, and then none until the minute is over. */
export function createLoginLog(log: Logger, nowUs: () => number): Logger['warn'] {
  let startUs = Number.NEGATIVE_INFINITY;
  let lines = 0;
  return (fields, message) => {
    const now = nowUs();
    // A window that begins in the future was opened by a clock that ran ahead.
    if (now < startUs || now - startUs >= windowUs) [startUs, lines] = [now, 0];
    lines += 1;
    if (lines <= linesPerMinuteMax) log.warn(fields, message);
    else if (lines === linesPerMinuteMax + 1) {
      log.warn({}, 'many failed logins; more of them get no line of their own for a minute');
    }
  };
}
