/** Reads a text from its beginning to its end: what it states, in the order in which it stands. */
import type { Claim, DateClaim, NumberClaim, WordClaim } from './claim.ts';
import { numberKey } from './measures.ts';
import { readDate } from './read-date.ts';
import { readQuantity } from './read-quantity.ts';
import { readRelative } from './read-relative.ts';
import { readSpelled } from './read-spelled.ts';

const wordStart = /[\p{L}\p{N}_]/gu;
const guid = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\p{L}\p{N}_-])/iuy;
/** `Sentinel 2B` is one word, as `Sentinel-2B` is. */
const numbered = /(?:Sentinel|Landsat|Level) [0-9][\p{L}\p{N}]{0,2}(?![\p{L}\p{N}_])/iuy;
const word = /[\p{L}\p{M}\p{N}_]+(?:[-/'][\p{L}\p{M}\p{N}_]+)*/uy;
const joint = /^ ?(?:\u2013|-|to|until|and|or|,|\/|x|×) ?$/i;

/** The text must have passed `matchingText`. Each character is looked at a fixed number of times. */
export function readClaims(text: string): Claim[] {
  const claims: Claim[] = [];
  let at = 0;
  for (;;) {
    wordStart.lastIndex = at;
    const start = wordStart.exec(text)?.index;
    if (start === undefined) return withSharedUnits(claims, text);
    const claim = readAt(text, start);
    claims.push(claim);
    at = Math.max(claim.end, start + 1);
  }
}

function readAt(text: string, start: number): Claim {
  if (/[0-9]/.test(text.charAt(start))) {
    return (
      readWord(guid, text, start) ??
      readDate(text, start) ??
      yearOr(readQuantity(text, start)) ??
      readWord(word, text, start) ??
      oddNumeral(text, start)
    );
  }
  return (
    readDate(text, start) ??
    readRelative(text, start) ??
    readSpelled(text, start) ??
    readWord(numbered, text, start) ??
    oddWord(text, start) ??
    readWord(word, text, start) ??
    oddNumeral(text, start)
  );
}

function readWord(pattern: RegExp, text: string, start: number): WordClaim | null {
  pattern.lastIndex = start;
  const match = pattern.exec(text)?.[0];
  if (match === undefined) return null;
  return { kind: 'word', start, end: start + match.length, word: match.replace(/'s$/i, '') };
}

/** A bare number of four digits may be a year. */
function yearOr(claim: NumberClaim | null): NumberClaim | DateClaim | null {
  if (claim === null || claim.measure !== 'none' || claim.end - claim.start !== 4) return claim;
  const { start, end, value } = claim;
  if (!(value >= 1900 && value < 2100 && Number.isInteger(value))) return claim;
  const orNumber = numberKey(value, 'none');
  return { kind: 'date', start, end, dates: [[{ year: value }]], orNumber };
}

const odd = /^(?![0-9])\p{N}/u;

/** Numerals beyond the ten digits (`½`, `③`, `４`) state a number, and are found only as they stand. */
function oddWord(text: string, start: number): Claim | null {
  return odd.test(text.slice(start, start + 2)) ? oddNumeral(text, start) : null;
}

function oddNumeral(text: string, start: number): Claim {
  const character = String.fromCodePoint(text.codePointAt(start) ?? 0);
  const end = start + character.length;
  return { kind: 'phrase', start, end, states: 'number', key: character };
}

/** In `10 to 20 %` the first number is one of percent too. */
function withSharedUnits(claims: Claim[], text: string): Claim[] {
  for (let index = claims.length - 2; index >= 0; index -= 1) {
    const claim = claims[index];
    // `to`, `and` and `x` between the two are words of their own.
    const next = [claims[index + 1], claims[index + 2]].find((one) => one?.kind === 'number');
    if (claim?.kind !== 'number' || claim.measure !== 'none' || next?.kind !== 'number') continue;
    const between = text.slice(claim.end, next.start);
    if (next.measure === 'none' || !joint.test(between)) continue;
    const { measure, factor } = next;
    const shared = numberKey(claim.value * factor, measure);
    const before = text.slice(Math.max(0, claim.start - 8), claim.start);
    const keys = isSpan(before, between) ? [shared] : [...claim.keys, shared];
    claims[index] = { ...claim, measure, factor, keys };
  }
  return claims;
}

function isSpan(before: string, between: string): boolean {
  return /^ ?(?:\u2013|-|to|until) ?$/i.test(between) || /between $/i.test(before);
}
