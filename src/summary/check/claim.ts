/** What a text states that can be looked up: dates, numbers, telling phrases, and all other words. */
import type { Span } from '../../filter/finding.ts';

/** What is said of a moment; months and days begin at 1. A part that is not said is absent. */
export interface DateParts {
  year?: number;
  month?: number;
  day?: number;
  /** 0 is Sunday. */
  weekday?: number;
  hour?: number;
  minute?: number;
  second?: number;
  /** In another time zone than UTC: true of no date of ours. */
  zone?: 'other';
}

/** One or two dates (`20 to 22 May 2024`), each with the ways it can be read (05/06/2024 has two). */
export interface DateClaim extends Span {
  kind: 'date';
  dates: readonly (readonly DateParts[])[];
  /** It may be a mere number instead (2024), under this key. */
  orNumber?: string;
}

export interface NumberClaim extends Span {
  kind: 'number';
  value: number;
  /** What it is measured in, `none` for a bare number; values are in the base of that measure. */
  measure: string;
  /** One of its unit in that base. */
  factor: number;
  /** By which of these it is found in the facts: any will do. */
  keys: readonly string[];
}

/** Words that state a number or a time without a digit: `half`, `yesterday`. Found by their key. */
export interface PhraseClaim extends Span {
  kind: 'phrase';
  states: 'number' | 'date';
  key: string;
}

export interface WordClaim extends Span {
  kind: 'word';
  /** As in the text, without a possessive s. */
  word: string;
}

export type Claim = DateClaim | NumberClaim | PhraseClaim | WordClaim;

export const doubtKinds = ['number', 'date', 'name', 'place', 'state', 'script'] as const;

export type DoubtKind = (typeof doubtKinds)[number];

export interface Doubt {
  kind: DoubtKind;
  /** As in the answer, cut when it is long. */
  words: string;
}

export type PlacedDoubt = Span & Pick<Doubt, 'kind'>;

/**
 * The text with one form of hyphen, dash and apostrophe. As long as before, place by place: some models
 * write `Sentinel‑2` with a hyphen that does not break.
 */
export function matchingText(text: string): string {
  return text
    .replaceAll(/[\u2010\u2011\u2212]/g, '-')
    .replaceAll(/[\u2012-\u2015]/g, '\u2013')
    .replaceAll(/[\u2018\u2019\u02bc]/g, "'");
}

/** The match from a place on: of a sticky pattern, right there. */
export function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** A name without its case, its accents and its article: `São Paulo` and `the Netherlands` are `sao paulo` and `netherlands`. */
export function foldedName(name: string): string {
  const folded = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return folded.replace(/^the /, '');
}

/**
 * A word by which it is found among the words of the facts. Short forms of missions and levels stand for
 * the long ones: `S2B` and `Sentinel 2B` are `sentinel-2b`, `L2A` is `level-2a`.
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
