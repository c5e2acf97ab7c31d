/** Names in an answer that the facts do not have. */
import type { Claim, Span, WordClaim } from './claim.ts';
import { type Doubt, type DoubtKind, doubtOf, type PlacedDoubt } from './doubt.ts';
import type { IsPlaceName, KnownFacts } from './known-facts.ts';
import { foldedName, wordKey } from './matching-text.ts';
import { type FoundPlace, placesIn } from './places-in.ts';
import {
  beforeParticiple,
  capitalWords,
  conditionWords,
  fieldWords,
  openingWords,
  ordinaryPlaceWords,
} from './plain-words.ts';
import { countriesByAdjective } from './short-forms.ts';

/** Names of places, in whatever case, that the facts do not have as whole names. */
export function placeDoubts(
  text: string,
  claims: readonly Claim[],
  { places }: KnownFacts,
  isPlaceName: IsPlaceName,
): PlacedDoubt[] {
  return placesIn(claims, text, isPlaceName)
    .filter((place) => !places.has(foldedName(place.name)) && !isOrdinary(text, place))
    .map(({ start, end }) => ({ kind: 'place', start, end }));
}

/** Within a sentence an ordinary word is a place only when it is written large. */
function isOrdinary(text: string, { start, name }: FoundPlace): boolean {
  if (!ordinaryPlaceWords.has(name)) return false;
  return !/\p{Lu}/u.test(text.charAt(start)) || beginsSentence(text, start);
}

/** Words that name something and are not in the facts; of another script, whatever they are. */
export function nameDoubts(
  text: string,
  claims: readonly Claim[],
  known: KnownFacts,
  places: readonly Span[],
): PlacedDoubt[] {
  const isPlace = ({ start, end }: Span) =>
    places.some((place) => place.start < end && start < place.end);
  const doubts = claims
    .filter((claim) => claim.kind === 'word')
    .filter((claim) => !isPlace(claim))
    .flatMap((claim) => doubtAbout(text, claim, known));
  return joined(text, doubts);
}

function doubtAbout(text: string, claim: WordClaim, known: KnownFacts): PlacedDoubt[] {
  const { start, end, word } = claim;
  if (known.words.has(wordKey(word))) return [];
  if (isForeignScript(word)) return [{ kind: 'script', start, end }];
  const first = beginsSentence(text, start);
  const isOpener = first && (isOpening(word) || isParticiple(word, text.slice(end, end + 16)));
  const [doubt] = unknownParts(word, known.words).flatMap((part, index) => {
    return index === 0 && isOpener ? [] : (doubtOfPart(part, known) ?? []);
  });
  return doubt === undefined ? [] : [{ kind: doubt, start, end }];
}

function doubtOfPart(part: string, { places }: KnownFacts): DoubtKind | null {
  const key = foldedName(part);
  const countries = countriesByAdjective.get(key);
  if (countries !== undefined && (key !== 'polish' || part !== key)) {
    return countries.some((country) => places.has(country)) ? null : 'place';
  }
  if (isCode(part)) return key === 'id' || key === 'utc' ? null : 'name';
  if (conditionWords.has(key)) return 'state';
  if (fieldWords.has(key)) return 'name';
  return /^\p{Lu}/u.test(part) && !capitalWords.has(key) ? 'name' : null;
}

function isOpening(word: string): boolean {
  const [part = ''] = word.split(/[-/]/);
  return !isCode(part) && openingWords.has(foldedName(part)) && !fieldWords.has(foldedName(part));
}

/** `Tucked between`, `Named after`: names that end so are places, or are followed by a verb. */
function isParticiple(word: string, after: string): boolean {
  return /^\p{Lu}\p{Ll}{2,}(?:ed|ing)$/u.test(word) && beforeParticiple.test(after);
}

/** No name of the facts has more parts: a GUID has five. */
const partsMax = 8;

/** What is left of a hyphened word without the names of the facts: of `Sentinel-2-based`, `based`. */
function unknownParts(word: string, known: ReadonlySet<string>): string[] {
  const parts = word.split(/[-/]/);
  const rest: string[] = [];
  let at = 0;
  while (at < parts.length) {
    let count = Math.min(parts.length - at, partsMax);
    while (count > 0 && !known.has(wordKey(parts.slice(at, at + count).join('-')))) count -= 1;
    if (count === 0) rest.push(parts[at] ?? '');
    at += Math.max(count, 1);
  }
  return rest;
}

/** Digits, underscores, capitals within or throughout: such a word is a name wherever it stands. */
function isCode(word: string): boolean {
  return /[\p{N}_]|\p{Ll}\p{Lu}|\p{Lu}{2}/u.test(word);
}

/** Letters that are not those of European languages in Latin script: look-alikes are among them. */
function isForeignScript(word: string): boolean {
  return /[^\p{Script=Latin}\p{M}\p{N}_'/µμ -]|[\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f\uff00-\uffef]/u.test(
    word,
  );
}

function beginsSentence(text: string, start: number): boolean {
  return /(?:^|[.!?]["')]{0,2} )["'(]{0,2}$/.test(text.slice(Math.max(0, start - 6), start));
}

/** Unknown words beside each other are one name. */
function joined(text: string, doubts: readonly PlacedDoubt[]): PlacedDoubt[] {
  const whole: PlacedDoubt[] = [];
  for (const doubt of doubts) {
    const before = whole.at(-1);
    if (before?.kind === doubt.kind && text.slice(before.end, doubt.start) === ' ') {
      whole[whole.length - 1] = { ...before, end: doubt.end };
    } else whole.push(doubt);
  }
  return whole;
}

/** Makes doubts of places in a text; of those that overlap, the first counts. */
export function asDoubts(text: string, placed: readonly PlacedDoubt[]): Doubt[] {
  const doubts: Doubt[] = [];
  let end = 0;
  for (const doubt of placed.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (doubt.start < end) continue;
    doubts.push(doubtOf(doubt.kind, text.slice(doubt.start, doubt.end)));
    end = doubt.end;
  }
  return doubts;
}
