/** Reads times on the command line: absolute, or counted back from now. */
import { InvalidArgumentError } from 'commander';
import { parseDate } from '../domain/notification-date.ts';

const unitsUs: Record<string, number> = {
  s: 1e6,
  m: 60e6,
  h: 3_600e6,
  d: 86_400e6,
  w: 604_800e6,
};

/** `24h`, `90m`, `7d` before now, or an ISO 8601 date or time (UTC unless it names a zone), in µs. */
export function parseTimeArgument(text: string, nowUs: number): number {
  const relative = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text);
  if (relative !== null) {
    return Math.round(nowUs - Number(relative[1]) * (unitsUs[relative[2] ?? ''] ?? 0));
  }
  const date = parseDate(text);
  if (date === null) {
    throw new InvalidArgumentError(
      'Use 90m, 24h, 7d or a date such as 2026-11-20 or 2026-11-20T06:00:00Z.',
    );
  }
  return date.us;
}

/** A time of the command line with the words it was given in. */
export interface TimeArgument {
  us: number;
  words: string;
  /** The moment that it was counted back from. */
  readAtUs: number;
}

/** A parser for commander; `now` is the moment at which it is called. */
export function readTimeArgument({ nowUs }: { nowUs: () => number }) {
  return (words: string): TimeArgument => {
    const readAtUs = nowUs();
    return { us: parseTimeArgument(words, readAtUs), words, readAtUs };
  };
}
