/** Reads times on the command line: absolute, or counted back from now. */
import { InvalidArgumentError } from 'commander';
import { parseDate } from '../domain/notification-date.ts';

const unitsUs: Readonly<Record<string, number>> = {
  s: 1e6,
  m: 60e6,
  h: 3_600e6,
  d: 86_400e6,
  w: 604_800e6,
};

/** The length of `90s`, `90m`, `24h`, `7d` or `2w` in µs; null for any other text. */
export function lengthOfTimeUs(text: string): number | null {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text) ?? [];
  return amount === undefined ? null : Math.round(Number(amount) * (unitsUs[unit] ?? 0));
}

/** `24h`, `90m`, `7d` before now, or an ISO 8601 date or time (UTC unless it names a zone), in µs. */
export function parseTimeArgument(text: string, nowUs: number): number {
  const backUs = lengthOfTimeUs(text);
  if (backUs !== null) return nowUs - backUs;
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

type Clock = Readonly<{ nowUs: () => number }>;

/** A parser for commander; `now` is the moment at which it is called. */
export function readTime({ nowUs }: Clock): (text: string) => number {
  return (text) => parseTimeArgument(text, nowUs());
}

/** The same, with the words and the moment. */
export function readTimeArgument({ nowUs }: Clock): (text: string) => TimeArgument {
  return (words) => {
    const readAtUs = nowUs();
    return { us: parseTimeArgument(words, readAtUs), words, readAtUs };
  };
}
