/**
 * Parses and formats dates of the catalogue: years 0000 to 9999, any fractional digits, with or without a time zone.
 *
 * A time is a number of microseconds since 1970-01-01T00:00:00Z. Numbers beyond 2^53, before 1684 and after 2255, are
 * not exact to the microsecond: such a time has milliseconds, and its number is at most 16 microseconds away from it.
 * Numbers keep the order of times, and equal times have equal numbers.
 */

/** `zoned` is true when the text has a time zone. */
export interface ReadDate {
  us: number;
  zoned: boolean;
}

const dateTime =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,40}))?)?)?\s*([Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/;

/** Times that are at least this far from 1970 have milliseconds. */
const exactUsMax = Math.floor(Number.MAX_SAFE_INTEGER / 1_000) * 1_000;

const [firstMs, lastMs] = [
  Date.parse('0000-01-01T00:00:00.000Z'),
  Date.parse('9999-12-31T23:59:59.999Z'),
];

/** First time that can be represented. */
export const firstDateUs = firstMs * 1_000;

/**
 * Parses an ISO 8601 date, or date and time. Without a time zone it is UTC (facts, catalogue 1.1 and filters 1).
 * Digits below a microsecond, or a millisecond in far years, are truncated. A leap second is the start of the next
 * second. Returns null for any other text, and outside of the years 0000 to 9999, UTC.
 */
export function parseDate(text: string): ReadDate | null {
  const match = dateTime.exec(text.trim());
  if (match === null) return null;
  const [, year, month, day, hour = 0, minute = 0, second = 0, fraction = '', zone] = match;
  const days = daysSince1970(Number(year), Number(month), Number(day));
  if (days === null || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return null;
  const seconds = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  const ms = (days * 86_400 + seconds) * 1_000 - zoneOffsetMs(zone);
  const fractionUs = second === '60' ? 0 : Number(fraction.padEnd(6, '0').slice(0, 6));
  const us = ms * 1_000 + fractionUs;
  if (Math.abs(us) < exactUsMax) return { us, zoned: zone !== undefined };
  const farMs = ms + Math.floor(fractionUs / 1_000);
  return farMs < firstMs || farMs > lastMs
    ? null
    : { us: farMs * 1_000, zoned: zone !== undefined };
}

/** Parses a date to microseconds; returns null for any other value. */
export function readDateUs(value: unknown): number | null {
  return typeof value === 'string' ? (parseDate(value)?.us ?? null) : null;
}

/** Returns advice for a time whose `+` became a space, as in a URL; undefined for any other text. */
export function lostPlusAdvice(text: string): string | undefined {
  return /:\d\d(?:\.\d+)? \d\d:?\d\d$/.test(text)
    ? 'In a URL, write + as %2B, or use Z.'
    : undefined;
}

/** Rounds a time down to milliseconds. */
export function millisecondOf(us: number): number {
  return Math.abs(us) < exactUsMax ? Math.floor(us / 1_000) : Math.round(us / 1_000);
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

/** The last formatted day: most times of a list are of few days, and a day costs most of a time. */
let lastDay = { number: 0, text: '1970-01-01' };

const digits = (value: number, count: number) => String(value).padStart(count, '0');

/**
 * Formats a time as ISO 8601 UTC with six fractional digits, as the catalogue has done since 2024; three in far years.
 */
export function formatDateUs(us: number): string {
  if (Math.abs(us) >= exactUsMax) return new Date(millisecondOf(us)).toISOString();
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
  return Math.floor(us / dayUs);
}

export const secondUs = 1_000_000;
export const minuteUs = 60 * secondUs;
export const hourUs = 60 * minuteUs;
export const dayUs = 24 * hourUs;
export const weekUs = 7 * dayUs;

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;

/** Returns the start of the hour of a time. */
export function hourOf(us: number): number {
  return Math.floor(us / hourUs) * hourUs;
}

const unitsUs: Readonly<Record<string, number>> = {
  ...{ s: secondUs, m: minuteUs, h: hourUs, d: dayUs, w: weekUs },
};

/** Parses `90s`, `90m`, `24h`, `7d` or `2w` to microseconds; returns null for any other text. */
export function durationUs(text: string): number | null {
  const [, amount, unit = ''] = /^(\d{1,9}(?:\.\d{1,9})?)([smhdw])$/.exec(text) ?? [];
  return amount === undefined ? null : Math.round(Number(amount) * (unitsUs[unit] ?? 0));
}
