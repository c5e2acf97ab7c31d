/** Claims of a text that can be checked: dates, numbers, phrases, and all other words. */
import type { Span } from '../../filter/finding.ts';

/** Stated parts of a date and time; months and days begin at 1. */
export interface DateParts {
  year?: number;
  month?: number;
  day?: number;
  /** 0 is Sunday. */
  weekday?: number;
  hour?: number;
  minute?: number;
  second?: number;
  /** A time zone other than UTC, which no fact has. */
  zone?: 'other';
}

/** A date or a span of two (`20 to 22 May 2024`), each with its possible readings (05/06/2024 has two). */
export interface DateClaim extends Span {
  kind: 'date';
  dates: readonly (readonly DateParts[])[];
  /** Key of the number, if the text may be a plain number instead (2024). */
  orNumber?: string;
}

export interface NumberClaim extends Span {
  kind: 'number';
  value: number;
  /** Measure, or `none` for a number without unit; values are in the base unit of the measure. */
  measure: string;
  /** Its unit in base units. */
  factor: number;
  /** Keys for the lookup in the facts; any match suffices. */
  keys: readonly string[];
}

/** A number or time without digits: `half`, `yesterday`. Looked up by its key. */
export interface PhraseClaim extends Span {
  kind: 'phrase';
  states: 'number' | 'date';
  key: string;
}

export interface WordClaim extends Span {
  kind: 'word';
  /** Without a possessive s. */
  word: string;
}

export type Claim = DateClaim | NumberClaim | PhraseClaim | WordClaim;

export const doubtKinds = ['number', 'date', 'name', 'place', 'state', 'script'] as const;

export type DoubtKind = (typeof doubtKinds)[number];

export interface Doubt {
  kind: DoubtKind;
  /** Quoted from the answer, truncated if long. */
  words: string;
}

export type PlacedDoubt = Span & Pick<Doubt, 'kind'>;

/**
 * Unifies hyphens, dashes and apostrophes without changing positions: some models write `Sentinel‑2` with a
 * non-breaking hyphen.
 */
export function matchingText(text: string): string {
  return text
    .replaceAll(/[\u2010\u2011\u2212]/g, '-')
    .replaceAll(/[\u2012-\u2015]/g, '\u2013')
    .replaceAll(/[\u2018\u2019\u02bc]/g, "'");
}

/** Matches a sticky pattern at a position, or a global one from there on. */
export function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Removes case, accents and article: `São Paulo` becomes `sao paulo`, `the Netherlands` becomes `netherlands`. */
export function foldedName(name: string): string {
  const folded = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return folded.replace(/^the /, '');
}

/**
 * Returns the key of a word for the lookup in the facts. Expands short forms of missions and levels: `S2B` and
 * `Sentinel 2B` become `sentinel-2b`, `L2A` becomes `level-2a`.
 */
export function wordKey(word: string): string {
  const key = foldedName(word);
  const short = /^([sl])([0-9][a-dp]?)$/.exec(key);
  if (short !== null) return `${short[1] === 's' ? 'sentinel' : 'level'}-${short[2]}`;
  return key.replace(/^(sentinel|landsat|level) (?=[0-9])/, '$1-');
}

interface Unit {
  /** Numbers of different measures are never equal. */
  measure: string;
  /** The unit in base units of the measure. */
  factor: number;
}

const mile = 1609.344;

/** Measure, factor and spellings, with plurals and British and American endings. */
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

/** Fast check: most numbers have no unit. */
const mayBegin = /[ -]?[\p{L}%°€£¥]/uy;

/**
 * Reads the unit that begins here, optionally after a space or hyphen; null if there is none. The longest match
 * counts; units of a single letter must be in lower case. A digit may follow only a unit of time, as in `4h37min`.
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

/** Returns the key of a number: equal values of a measure have equal keys. */
export function numberKey(value: number, measure: string): string {
  return `${Number(value.toPrecision(12))} ${measure}`;
}
