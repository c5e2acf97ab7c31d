/** Finds the names of places in a text, in whatever case they are written. */
import type { Claim, Span, WordClaim } from './claim.ts';

export interface FoundPlace extends Span {
  /** In small letters, words parted by one blank. */
  name: string;
}

/** The longest names have six words. */
const wordsMax = 6;

/** From left to right, the longest name first; names do not overlap. */
export function placesIn(
  claims: readonly Claim[],
  text: string,
  isPlaceName: (lowerCaseWords: string) => boolean,
): FoundPlace[] {
  const found: FoundPlace[] = [];
  let index = 0;
  while (index < claims.length) {
    const words = wordsFrom(claims, index, text);
    const place = longestPlace(words, isPlaceName);
    const first = words[0];
    if (place === null && first !== undefined) found.push(...placesWithin(first, isPlaceName));
    if (place !== null) found.push(place.found);
    index += place?.words ?? 1;
  }
  return found;
}

/** Words that are parted by a single blank each. */
function wordsFrom(claims: readonly Claim[], index: number, text: string): WordClaim[] {
  const words: WordClaim[] = [];
  for (const claim of claims.slice(index, index + wordsMax)) {
    const before = words.at(-1);
    if (claim.kind !== 'word') break;
    if (before !== undefined && text.slice(before.end, claim.start) !== ' ') break;
    words.push(claim);
  }
  return words;
}

function longestPlace(
  words: readonly WordClaim[],
  isPlaceName: (lowerCaseWords: string) => boolean,
): { found: FoundPlace; words: number } | null {
  for (let count = words.length; count > 0; count -= 1) {
    const [first, last] = [words[0], words[count - 1]];
    const name = words
      .slice(0, count)
      .map(({ word }) => word.toLowerCase())
      .join(' ');
    if (first === undefined || last === undefined || !isPlaceName(name)) continue;
    return { found: { start: first.start, end: last.end, name }, words: count };
  }
  return null;
}

/** In `Berlin-based` and `Poland/Czechia`. */
function placesWithin(
  { start, word }: WordClaim,
  isPlaceName: (lowerCaseWords: string) => boolean,
): FoundPlace[] {
  const parts = [...word.matchAll(/[^-/]+/g)];
  if (parts.length < 2) return [];
  return parts
    .map((part) => ({
      at: start + part.index,
      name: part[0].toLowerCase(),
      length: part[0].length,
    }))
    .filter(({ name }) => isPlaceName(name))
    .map(({ at, name, length }) => ({ start: at, end: at + length, name }));
}
