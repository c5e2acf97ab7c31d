/** Formats the values of facts. Returns null for implausible values. */

import { dayUs, minuteUs, secondUs } from '../../core/terms/dates.ts';

const yearUs = 365.25 * dayUs;

/** Plausible dates: from the first Landsat to beyond all plans. */
const [firstUs, lastUs] = [Date.UTC(1972, 0, 1) * 1000, Date.UTC(2100, 0, 1) * 1000];

const monthName = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' });

/** `20 May 2024 10:15 UTC`; null outside 1972 to 2099. */
export function datePhrase(us: number | null): string | null {
  const day = dayPhrase(us);
  return day === null || us === null ? null : `${day} ${timeOf(us)} UTC`;
}

/** `20 May 2024`; null outside 1972 to 2099. */
export function dayPhrase(us: number | null): string | null {
  if (us === null || !(us >= firstUs && us < lastUs)) return null;
  const date = new Date(us / 1000);
  return `${date.getUTCDate()} ${monthName.format(date)} ${date.getUTCFullYear()}`;
}

/** `10:15`. */
export function timeOf(us: number): string {
  return new Date(us / 1000).toISOString().slice(11, 16);
}

/** `29 s`, `3 min`, `4 h 37 min`, `12 days`, `7.4 years`; null below half a second and above a hundred years. */
export function durationPhrase(us: number | null): string | null {
  if (us === null || !(us >= secondUs / 2 && us < 36_525 * dayUs)) return null;
  if (us < 119.5 * secondUs) return `${Math.round(us / secondUs)} s`;
  const minutes = Math.round(us / minuteUs);
  if (minutes < 60) return `${minutes} min`;
  if (us >= 2 * yearUs) return `${(us / yearUs).toFixed(1)} years`;
  if (minutes >= 48 * 60) return `${countPhrase(Math.round(us / dayUs))} days`;
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60)} h${rest === 0 ? '' : ` ${rest} min`}`;
}

/** The time between two dates; null if the second is not after the first, or one is implausible. */
export function delayPhrase(fromUs: number | null, toUs: number | null): string | null {
  if (datePhrase(fromUs) === null || datePhrase(toUs) === null) return null;
  return durationPhrase((toUs ?? 0) - (fromUs ?? 0));
}

/** `2.0 GB` (1 kB is 1,000 bytes); null for 0, and from 1,000 TB on. */
export function sizePhrase(bytes: number | null): string | null {
  if (bytes === null || !(bytes >= 1 && bytes < 1e15)) return null;
  const unit = [1e12, 1e9, 1e6].find((one) => bytes >= 0.9995 * one) ?? 1e3;
  const name = { 1e12: 'TB', 1e9: 'GB', 1e6: 'MB', 1e3: 'kB' }[unit];
  return `${(bytes / unit).toFixed(1)} ${name}`;
}

/** `27.7 %`; rounded down, as in lists; null outside 0 to 100. */
export function percentPhrase(percent: number | null): string | null {
  if (percent === null || !(percent >= 0 && percent <= 100)) return null;
  return `${(Math.floor(percent * 10) / 10).toFixed(1).replace(/\.0$/, '')} %`;
}

/** `1,234`. */
export function countPhrase(count: number): string {
  return count.toLocaleString('en');
}

/** `a`, `a and b`, `a, b and c`. */
export function listPhrase(items: readonly string[]): string {
  const last = items.at(-1) ?? '';
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} and ${last}`;
}
