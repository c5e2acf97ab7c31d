/** The units that numbers of our facts and of answers may have, and what they are equal to. */
import { matchAt } from './claim.ts';

interface Unit {
  /** Numbers of different measures are never equal. */
  measure: string;
  /** One of it in the base of the measure. */
  factor: number;
}

const mile = 1609.344;

/** Each: measure, factor, spellings; a plural s and British or American endings are understood. */
const table: readonly (readonly [string, number, string])[] = [
  ['percentage points', 1, 'percentage points?|% points?'],
  ['percent', 1, '%|percent|per cent|pct'],
  ['square metres', 1e6, 'km²|km2|sq\\.? ?km|square kilomet(?:re|er)s?|square km'],
  ['square metres', 1, 'm²|m2|sq\\.? ?m|square met(?:re|er)s?'],
  ['square metres', 1e4, 'ha|hectares?'],
  ['square metres', mile * mile, 'square miles?|sq\\.? ?mi'],
  ['square metres', 4046.8564224, 'acres?'],
  ['metres a second', 1, 'm/s|met(?:re|er)s per second'],
  ['metres a second', 1 / 3.6, 'km/h|kilomet(?:re|er)s per hour'],
  ['metres', 1000, 'km|kms|kilomet(?:re|er)s?'],
  ['metres', 1, 'm|met(?:re|er)s?'],
  ['metres', 0.01, 'cm|centimet(?:re|er)s?'],
  ['metres', 1e-3, 'mm|millimet(?:re|er)s?'],
  ['metres', 1e-6, '[µμ]m|micromet(?:re|er)s?|microns?'],
  ['metres', 1e-9, 'nm|nanomet(?:re|er)s?'],
  ['metres', 1852, 'nmi|nautical miles?'],
  ['metres', mile, 'mi|miles?'],
  ['metres', 0.3048, 'ft|feet|foot'],
  ['bytes', 1, 'bytes?'],
  ['bytes', 1e3, 'kB|kilobytes?'],
  ['bytes', 1e6, 'MB|megabytes?'],
  ['bytes', 1e9, 'GB|gigabytes?'],
  ['bytes', 1e12, 'TB|terabytes?'],
  ['bytes', 1e15, 'PB|petabytes?'],
  ['bytes', 2 ** 10, 'KiB|kibibytes?'],
  ['bytes', 2 ** 20, 'MiB|mebibytes?'],
  ['bytes', 2 ** 30, 'GiB|gibibytes?'],
  ['bytes', 2 ** 40, 'TiB|tebibytes?'],
  ['seconds', 1e-3, 'ms|milliseconds?'],
  ['seconds', 1, 's|secs?|seconds?'],
  ['seconds', 60, 'mins?|minutes?'],
  ['seconds', 3600, 'h|hrs?|hours?'],
  ['seconds', 86_400, 'd|days?'],
  ['seconds', 604_800, 'weeks?'],
  ['months', 1, 'months?'],
  ['months', 12, 'yrs?|years?'],
  ['months', 120, 'decades?'],
  ['degrees Celsius', 1, '°C|degrees? C(?:elsius)?'],
  ['degrees Fahrenheit', 1, '°F|degrees? F(?:ahrenheit)?'],
  ['degrees', 1, '°|deg|degrees?'],
  ['decibels', 1, 'dB|decibels?'],
  ['hertz', 1, 'Hz|hertz'],
  ['hertz', 1e3, 'kHz'],
  ['hertz', 1e6, 'MHz'],
  ['hertz', 1e9, 'GHz|gigahertz'],
  ['pascals', 100, 'hPa'],
  ['kilograms', 1, 'kg|kilograms?'],
  ['kilograms', 1000, 'tonnes?|tons?'],
  ['money', 1, '€|£|¥|euros?|dollars?|pounds?'],
];

const units = table.map(([measure, factor, spellings]) => ({
  unit: { measure, factor },
  pattern: new RegExp(`[ -]?(${spellings})(?![\\p{L}_²³])`, 'iuy'),
}));

/** Most numbers have no unit; this decides so at once. */
const mayBegin = /[ -]?[\p{L}%°€£¥]/uy;

/**
 * The unit that begins here, after a blank or a hyphen or none; null for none. The longest counts; letters
 * that are units alone are small ones. A digit may follow in `4h37min` alone.
 */
export function readUnit(text: string, at: number): { unit: Unit; end: number } | null {
  if (matchAt(mayBegin, text, at) === null) return null;
  let found: { unit: Unit; end: number } | null = null;
  for (const { unit, pattern } of units) {
    const match = matchAt(pattern, text, at);
    const end = at + (match?.[0].length ?? 0);
    if (match === null || (found !== null && end <= found.end)) continue;
    if (/^[A-Z]$/.test(match[1] ?? '')) continue;
    if (/[0-9]/.test(text.charAt(end)) && unit.measure !== 'seconds') continue;
    found = { unit, end };
  }
  return found;
}

/** By which a number is found: equal values of a measure have equal keys. */
export function numberKey(value: number, measure: string): string {
  return `${Number(value.toPrecision(12))} ${measure}`;
}
