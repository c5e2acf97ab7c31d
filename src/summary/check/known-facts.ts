/** The facts of a sheet, read so that what a text states can be looked up in them. */
import type { FactSheet } from '../facts/fact-sheet.ts';
import type { Claim, DateParts, NumberClaim } from './claim.ts';
import { datesOf, dayPhrases } from './known-dates.ts';
import { type Limit, limitsOf } from './limits.ts';
import { foldedName, matchingText, wordKey } from './matching-text.ts';
import { placesIn } from './places-in.ts';
import { readClaims } from './read-claims.ts';
import { shortFormsOf } from './short-forms.ts';

export type IsPlaceName = (lowerCaseWords: string) => boolean;

export interface KnownFacts {
  dates: readonly DateParts[];
  /** With the limits that the facts set them. */
  numbers: ReadonlyMap<string, ReadonlySet<Limit>>;
  phrases: ReadonlySet<string>;
  /** Whole words, and the parts of hyphened ones; by `wordKey`. */
  words: ReadonlySet<string>;
  /** Whole names of places, by `foldedName`: where the facts say Gulf of Mexico, they do not say Mexico. */
  places: ReadonlySet<string>;
}

/** Reads labels and texts alike, each by itself. */
export function knownFacts(sheet: FactSheet, isPlaceName: IsPlaceName): KnownFacts {
  const dates: DateParts[] = [];
  const numbers = new Map<string, Set<Limit>>();
  const phrases = new Set<string>();
  const words = new Set<string>();
  const places = new Set<string>();
  for (const part of sheet.facts.flatMap(({ label, text }) => [label, text])) {
    const text = matchingText(part.normalize('NFC').replaceAll(/\s+/g, ' '));
    const claims = readClaims(text);
    dates.push(...datesOf(claims));
    for (const claim of claims) {
      for (const [key, limit] of numbersOf(claim, text)) {
        numbers.set(key, (numbers.get(key) ?? new Set()).add(limit));
      }
      if (claim.kind === 'phrase') phrases.add(claim.key);
      if (claim.kind === 'word') for (const key of keysOf(claim.word)) words.add(key);
    }
    for (const word of shortFormsOf(text)) words.add(word);
    for (const { name } of placesIn(claims, text, isPlaceName)) places.add(foldedName(name));
  }
  for (const phrase of dayPhrases(dates)) phrases.add(phrase);
  return { dates, numbers, phrases, words, places };
}

function numbersOf(claim: Claim, text: string): (readonly [string, Limit])[] {
  if (claim.kind === 'date' && claim.orNumber !== undefined) return [[claim.orNumber, 'exact']];
  if (claim.kind !== 'number') return [];
  return claim.keys.flatMap((key) => limitsOf(claim, text).map((limit) => [key, limit] as const));
}

/** Whether the facts have the number, under the same limit or none. */
export function isKnownNumber(claim: NumberClaim, text: string, known: KnownFacts): boolean {
  const limits = limitsOf(claim, text);
  return claim.keys.some((key) => limits.some((limit) => known.numbers.get(key)?.has(limit)));
}

/**
 * A word, the parts of a hyphened one that are all letters, and what its last letter makes special: a product
 * of Sentinel-2B is one of Sentinel-2, Level-2A is Level-2. Underscores join, as hyphens do between capitals: no
 * part of a code is known.
 */
function keysOf(word: string): string[] {
  const key = wordKey(word);
  const isCode = key.includes('_') || !/\p{Ll}/u.test(word);
  const parts = isCode ? [] : key.split(/[-/]/).filter((part) => !/[0-9]/.test(part));
  const general = /^((?:sentinel|level)-[0-9])[a-d]$/.exec(key)?.[1];
  return [key, ...parts, ...(key.includes('/') && !key.includes('_') ? key.split('/') : [])].concat(
    general ?? [],
  );
}
