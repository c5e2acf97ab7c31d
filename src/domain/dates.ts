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
  const [, year, month, day, hour = 0, minute = 0, second = 0, fraction = '', zone] = match;
  const days = daysSince1970(Number(year), Number(month), Number(day));
  if (days === null || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const seconds = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  const ms = (days * 86_400 + seconds) * 1_000 - zoneOffsetMs(zone);
  const us = ms * 1_000 + Number(fraction.padEnd(6, '0').slice(0, 6));
  // Beyond the year 2255 microseconds are more than a number can hold exactly.
  return Number.isSafeInteger(us) ? { us, zoned: zone !== undefined } : null;
}

/** Days of the last month that was parsed: dates of a product are mostly of the same one. */
let lastMonth = { year: Number.NaN, month: Number.NaN, firstDay: 0, days: 0 };

/** Returns the number of days from 1970-01-01 to a date; null if the date does not exist. */
function daysSince1970(year: number, month: number, day: number): number | null {
  if (year !== lastMonth.year || month !== lastMonth.month) {
    if (month < 1 || month > 12) return null;
    // Date.UTC reads years below 100 as 19xx.
    const start = (of: number) => new Date(0).setUTCFullYear(year, of - 1, 1) / 86_400_000;
    const firstDay = start(month);
    lastMonth = { year, month, firstDay, days: start(month + 1) - firstDay };
  }
  return day < 1 || day > lastMonth.days ? null : lastMonth.firstDay + day - 1;
}

const dayUs = 86_400_000_000;

/** The last formatted day: most times of a list are of few days, and a day costs most of a time. */
let lastDay = { number: 0, text: '1970-01-01' };

const digits = (value: number, count: number) => String(value).padStart(count, '0');

/** Formats a time as ISO 8601 UTC with six fractional digits, as the catalogue has done since 2024. */
export function formatDateUs(us: number): string {
  const number = Math.floor(us / dayUs);
  if (number !== lastDay.number) {
    const [text = ''] = new Date(number * 86_400_000).toISOString().split('T');
    lastDay = { number, text };
  }
  const rest = us - number * dayUs;
  const seconds = Math.floor(rest / 1_000_000);
  const hours = digits(Math.floor(seconds / 3_600), 2);
  const minutes = digits(Math.floor(seconds / 60) % 60, 2);
  const fraction = digits(rest - seconds * 1_000_000, 6);
  return `${lastDay.text}T${hours}:${minutes}:${digits(seconds % 60, 2)}.${fraction}Z`;
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
