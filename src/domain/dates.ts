/** Parses dates of the catalogue: 0 to 9 fractional digits, with or without a time zone. */

/** A time in microseconds since 1970-01-01T00:00:00Z; `zoned` is true when its text has a time zone. */
export interface ReadDate {
  us: number;
  zoned: boolean;
}

const dateTime =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*([Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/;

/**
 * Parses an ISO 8601 date, or date and time. Without a time zone it is UTC (facts, catalogue 1.1 and filters 1).
 * Digits below a microsecond are truncated. Returns null for any other text.
 */
export function parseDate(text: string): ReadDate | null {
  const match = dateTime.exec(text.trim());
  if (match === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => (part === undefined ? 0 : Number(part)));
  const ms = Date.UTC(year, month - 1, day, hour, minute, second);
  const date = new Date(ms);
  // Date.UTC rolls 31 February over and reads years below 100 as 19xx; neither is the date in the text.
  if (
    date.getUTCFullYear() !== year ||
    date.getUTCMonth() !== month - 1 ||
    date.getUTCDate() !== day ||
    hour > 23 ||
    minute > 59 ||
    second > 59
  ) {
    return null;
  }
  const fractionUs = Number((match[7] ?? '').padEnd(6, '0').slice(0, 6));
  const us = (ms - zoneOffsetMs(match[8])) * 1000 + fractionUs;
  // Beyond the year 2255 microseconds are more than a number can hold exactly.
  return Number.isSafeInteger(us) ? { us, zoned: match[8] !== undefined } : null;
}

/** Formats a time as ISO 8601 UTC with six fractional digits, as the catalogue has done since 2024. */
export function formatDateUs(us: number): string {
  const ms = Math.floor(us / 1000);
  const fraction = String(us - ms * 1000).padStart(3, '0');
  return `${new Date(ms).toISOString().slice(0, -1)}${fraction}Z`;
}

/** Formats a time for people, in UTC: `2026-05-01 14:20`, or with seconds. */
export function shortDateUs(us: number, upTo: 'minute' | 'second' = 'minute'): string {
  return formatDateUs(us)
    .slice(0, upTo === 'minute' ? 16 : 19)
    .replace('T', ' ');
}

function zoneOffsetMs(zone: string | undefined): number {
  if (zone === undefined || zone === 'Z' || zone === 'z') return 0;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2));
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000;
}

/** Returns the number of whole days, for example until a certificate expires; negative after the end. */
export function wholeDays(us: number): number {
  return Math.floor(us / 86_400_000_000);
}
