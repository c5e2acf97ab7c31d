/**
 * Formats values as text, each in one form, so that a copy can be found word by word. Returns null for
 * implausible values.
 */
import type { SummaryKind } from '../../domain/summaries.ts';

const secondUs = 1_000_000;
const minuteUs = 60 * secondUs;
const hourUs = 60 * minuteUs;
const dayUs = 24 * hourUs;
const yearUs = 365.25 * dayUs;

/** Plausible dates: from the first Landsat to beyond all plans. */
const [firstUs, lastUs] = [Date.UTC(1972, 0, 1) * 1000, Date.UTC(2100, 0, 1) * 1000];

/** Formats a date as `20 May 2024 10:15 UTC`, without seconds. Null outside 1972 to 2099. */
export function datePhrase(us: number | null): string | null {
  if (us === null || !(us >= firstUs && us < lastUs)) return null;
  const date = new Date(us / 1000);
  const month = monthName.format(date);
  const time = date.toISOString().slice(11, 16);
  return `${date.getUTCDate()} ${month} ${date.getUTCFullYear()} ${time} UTC`;
}

const monthName = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' });

/**
 * Formats a duration as `29 s`, `3 min`, `4 h 37 min`, `12 days` or `more than 8 years`: rounded to the last
 * unit, years truncated. Null below half a second and from a hundred years on.
 */
export function durationPhrase(us: number | null): string | null {
  if (us === null || !(us >= secondUs / 2 && us < 100 * yearUs)) return null;
  if (us < 119.5 * secondUs) return `${Math.round(us / secondUs)} s`;
  const minutes = Math.round(us / minuteUs);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) {
    const rest = minutes % 60;
    return rest === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
  }
  if (us < 2 * yearUs) return `${countPhrase(Math.round(us / dayUs))} days`;
  return `more than ${Math.floor(us / yearUs)} years`;
}

/**
 * Formats the time between two dates. From ten minutes on it is the difference of their minutes, so that it
 * agrees with the formatted dates. Null if the second is not after the first, or one is implausible.
 */
export function delayPhrase(fromUs: number | null, toUs: number | null): string | null {
  if (
    fromUs === null ||
    toUs === null ||
    datePhrase(fromUs) === null ||
    datePhrase(toUs) === null
  ) {
    return null;
  }
  const exactUs = toUs - fromUs;
  if (exactUs < 10 * minuteUs) return durationPhrase(exactUs);
  return durationPhrase(minuteStart(toUs) - minuteStart(fromUs));
}

function minuteStart(us: number): number {
  return Math.floor(us / minuteUs) * minuteUs;
}

/** Formats a size as `553.4 kB` or `2.0 GB` (1 kB is 1,000 bytes). Null for 0, and from 1,000 TB on. */
export function sizePhrase(bytes: number | null): string | null {
  if (bytes === null || !(bytes >= 1 && bytes < 1e15)) return null;
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${Math.floor(bytes)} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1000;
  let unit = 0;
  // A value that rounds to 1000.0 uses the next unit.
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}

/** Formats an area as `12,056 km²`; below 100 km² with one decimal. Null above the Earth's surface. */
export function areaPhrase(squareKm: number | null): string | null {
  if (squareKm === null || !(squareKm >= 0.05 && squareKm <= 511e6)) return null;
  return `${squareKm < 99.95 ? squareKm.toFixed(1) : countPhrase(Math.round(squareKm))} km²`;
}

/** Formats a percentage as `27.7 %`, `0 %` or `less than 0.1 %`: one decimal except for 0 and 100. Null outside 0 to 100. */
export function percentPhrase(percent: number | null): string | null {
  if (percent === null || !(percent >= 0 && percent <= 100)) return null;
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent < 0.1) return 'less than 0.1 %';
  return percent > 99.9 ? 'more than 99.9 %' : `${percent.toFixed(1)} %`;
}

/** Formats a whole number as `1,234`. */
export function countPhrase(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Returns the parts that are not null, in order. */
export function present<Text>(...parts: (Text | null)[]): Text[] {
  return parts.filter((part) => part !== null);
}

/** `a`, `a and b`, `a, b and c`. */
export function listPhrase(items: readonly string[]): string {
  const last = items.at(-1) ?? '';
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} and ${last}`;
}

export interface Fact {
  /** Readable name: `cloud cover`. */
  label: string;
  /** Formatted value, to be copied unchanged: `12.3 %`. */
  text: string;
}

/** Facts by importance. Texts contain computed values, and external texts only in a narrow, known form. */
export interface FactSheet {
  kind: SummaryKind;
  facts: readonly Fact[];
}

/** Omits unknown values. */
export function factSheet(
  kind: SummaryKind,
  rows: readonly (readonly [label: string, text: string | null])[],
): FactSheet {
  const facts = rows.flatMap(([label, text]): Fact[] => (text === null ? [] : [{ label, text }]));
  return { kind, facts };
}
