/** The facts of a sheet, read so that what a text states can be looked up in them. */
import type { FactSheet } from '../facts/fact-sheet.ts';
import type { Claim, DateParts } from './claim.ts';
import { foldedName, matchingText, wordKey } from './matching-text.ts';
import { placesIn } from './places-in.ts';
import { readClaims } from './read-claims.ts';

export type IsPlaceName = (lowerCaseWords: string) => boolean;

export interface KnownFacts {
  dates: readonly DateParts[];
  numbers: ReadonlySet<string>;
  phrases: ReadonlySet<string>;
  /** Whole words, and the parts of hyphened ones; by `wordKey`. */
  words: ReadonlySet<string>;
  /** Whole names of places, folded: where the facts say Gulf of Mexico, they do not say Mexico. */
  places: ReadonlySet<string>;
}

/** Reads labels and texts alike, each by itself. */
export function knownFacts(sheet: FactSheet, isPlaceName: IsPlaceName): KnownFacts {
  const dates: DateParts[] = [];
  const numbers = new Set<string>();
  const phrases = new Set<string>();
  const words = new Set<string>();
  const places = new Set<string>();
  for (const part of sheet.facts.flatMap(({ label, text }) => [label, text])) {
    const text = matchingText(part.normalize('NFC').replaceAll(/\s+/g, ' '));
    const claims = readClaims(text);
    dates.push(...datesOf(claims));
    for (const claim of claims) {
      if (claim.kind === 'number') for (const key of claim.keys) numbers.add(key);
      if (claim.kind === 'date' && claim.orNumber !== undefined) numbers.add(claim.orNumber);
      if (claim.kind === 'phrase') phrases.add(claim.key);
      if (claim.kind === 'word') for (const key of keysOf(claim.word)) words.add(key);
    }
    for (const { name } of placesIn(claims, text, isPlaceName)) places.add(foldedName(name));
  }
  for (const phrase of dayPhrases(dates)) phrases.add(phrase);
  return { dates, numbers, phrases, words, places };
}

/** A time alone is one of the day before it: `20 May 2024 10:15 UTC to 10:20 UTC`. */
function datesOf(claims: readonly Claim[]): DateParts[] {
  const found: DateParts[] = [];
  let day: DateParts = {};
  for (const claim of claims) {
    if (claim.kind !== 'date') continue;
    for (const date of claim.dates.flat()) {
      if (date.day === undefined) found.push(date.hour === undefined ? date : { ...day, ...date });
      else {
        const { year, month } = date;
        day = { day: date.day, ...(year && { year }), ...(month && { month }) };
        found.push(date);
      }
    }
  }
  return found;
}

/**
 * A word, the parts of a hyphened one that are all letters, and what its last letter makes special: a product
 * of Sentinel-2B is one of Sentinel-2, Level-2A is Level-2. Underscores join: no part of a name is known.
 */
function keysOf(word: string): string[] {
  const key = wordKey(word);
  const parts = key.includes('_') ? [] : key.split(/[-/]/).filter((part) => !/[0-9]/.test(part));
  const general = /^((?:sentinel|level)-[0-9])[a-d]$/.exec(key)?.[1];
  return [key, ...parts, ...(key.includes('/') && !key.includes('_') ? key.split('/') : [])].concat(
    general ?? [],
  );
}

/** `same day` and `next day` are said rightly when two dates of the facts are so. */
function dayPhrases(dates: readonly DateParts[]): string[] {
  const days = dates
    .map(dayNumberOf)
    .filter((day) => day !== null)
    .sort((a, b) => a - b);
  const gaps = days.slice(1).map((day, index) => day - (days[index] ?? day));
  return [...(gaps.includes(0) ? ['same day'] : []), ...(gaps.includes(1) ? ['next day'] : [])];
}

/** Days since 1970; null for a date that lacks a part. */
function dayNumberOf({ year, month, day }: DateParts): number | null {
  if (year === undefined || month === undefined || day === undefined) return null;
  return Date.UTC(year, month - 1, day) / 86_400_000;
}

/** Whether some date of the facts has all parts that are said of this one. */
export function isKnownDate(said: DateParts, known: readonly DateParts[]): boolean {
  return known.some((date) => {
    const days = dayNumberOf(date);
    const weekday =
      date.weekday ?? (days === null ? undefined : new Date(days * 864e5).getUTCDay());
    const whole: DateParts = weekday === undefined ? date : { ...date, weekday };
    return Object.entries(said).every(([part, value]) => whole[part as keyof DateParts] === value);
  });
}
