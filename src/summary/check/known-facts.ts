/** Indexes the facts of a sheet, to look up claims of a text. */
import type { Span } from '../../filter/finding.ts';
import type { FactSheet } from '../facts/phrases.ts';
import {
  type Claim,
  type DateClaim,
  type DateParts,
  foldedName,
  matchingText,
  type NumberClaim,
  type WordClaim,
  wordKey,
} from './claim.ts';
import { readClaims } from './read-claims.ts';

export type IsPlaceName = (lowerCaseWords: string) => boolean;

export interface KnownFacts {
  dates: readonly DateParts[];
  /** Limits by number key: a fact may state `more than 5`. */
  numbers: ReadonlyMap<string, ReadonlySet<Limit>>;
  phrases: ReadonlySet<string>;
  /** Whole words and the parts of hyphenated ones, by `wordKey`. */
  words: ReadonlySet<string>;
  /** Full names of places, by `foldedName`: Gulf of Mexico does not include Mexico. */
  places: ReadonlySet<string>;
}

/** Reads labels and texts, each separately. */
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
      const limits = claim.kind === 'number' ? limitsOf(claim, text) : (['exact'] as const);
      for (const key of keysOf(claim)) {
        numbers.set(key, new Set([...(numbers.get(key) ?? []), ...limits]));
      }
      if (claim.kind === 'phrase') phrases.add(claim.key);
      if (claim.kind === 'word') for (const key of wordKeysOf(claim.word)) words.add(key);
    }
    for (const [form, short] of shortForms) if (form.test(text)) words.add(short);
    for (const { name } of placesIn(claims, text, isPlaceName)) places.add(foldedName(name));
  }
  for (const phrase of dayPhrases(dates)) phrases.add(phrase);
  return { dates, numbers, phrases, words, places };
}

/** Returns the keys of the number that a claim states, or may state. */
export function keysOf(claim: Claim): readonly string[] {
  if (claim.kind === 'number') return claim.keys;
  return claim.kind === 'date' && claim.orNumber !== undefined ? [claim.orNumber] : [];
}

/** Returns true if the facts have the number with a compatible limit. */
export function isKnownNumber(claim: NumberClaim, text: string, known: KnownFacts): boolean {
  const limits = limitsOf(claim, text);
  return claim.keys.some((key) => limits.some((limit) => known.numbers.get(key)?.has(limit)));
}

/**
 * Returns the keys of a word, of the parts of a hyphenated word without digits, and of the general form: Sentinel-2B
 * implies Sentinel-2, Level-2A implies Level-2. Parts of codes, joined by underscores or in capitals, have no keys.
 */
function wordKeysOf(word: string): string[] {
  const key = wordKey(word);
  const isCode = key.includes('_') || !/\p{Ll}/u.test(word);
  const parts = isCode ? [] : key.split(/[-/]/).filter((part) => !/[0-9]/.test(part));
  const general = /^((?:sentinel|level)-[0-9])[a-d]$/.exec(key)?.[1];
  return [key, ...parts, ...(key.includes('/') && !key.includes('_') ? key.split('/') : [])].concat(
    general ?? [],
  );
}

/** Adds the preceding day to a time without a date: `20 May 2024 10:15 UTC to 10:20 UTC`. */
export function datesOf(claims: readonly Claim[]): DateParts[] {
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

/** Returns `same day` and `next day` if two dates of the facts are on the same or on successive days. */
function dayPhrases(dates: readonly DateParts[]): string[] {
  const days = dates
    .map(dayNumberOf)
    .filter((day) => day !== null)
    .sort((a, b) => a - b);
  const gaps = days.slice(1).map((day, index) => day - (days[index] ?? day));
  return [...(gaps.includes(0) ? ['same day'] : []), ...(gaps.includes(1) ? ['next day'] : [])];
}

/** Returns days since 1970; null for an incomplete date. */
function dayNumberOf({ year, month, day }: DateParts): number | null {
  if (year === undefined || month === undefined || day === undefined) return null;
  return Date.UTC(year, month - 1, day) / 86_400_000;
}

/** Returns true if each date of a claim is in the facts, in one of its readings. */
export function areKnownDates({ dates }: DateClaim, known: readonly DateParts[]): boolean {
  return dates.every((readings) => readings.some((reading) => isKnownDate(reading, known)));
}

/** Returns true if a date of the facts has all stated parts. */
function isKnownDate(said: DateParts, known: readonly DateParts[]): boolean {
  return known.some((date) => {
    const days = dayNumberOf(date);
    const weekday =
      date.weekday ?? (days === null ? undefined : new Date(days * 864e5).getUTCDay());
    const whole: DateParts = weekday === undefined ? date : { ...date, weekday };
    return Object.entries(said).every(([part, value]) => whole[part as keyof DateParts] === value);
  });
}

export interface FoundPlace extends Span {
  /** In lower case, words separated by single spaces. */
  name: string;
}

/** Maximum number of words in a place name. */
const wordsMax = 6;

/** Finds place names from left to right, the longest first; they do not overlap. */
export function placesIn(
  claims: readonly Claim[],
  text: string,
  isPlaceName: IsPlaceName,
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

/** Returns the following words that are separated by single spaces. */
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
  isPlaceName: IsPlaceName,
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

/** Finds places within words such as `Berlin-based` and `Poland/Czechia`. */
function placesWithin({ start, word }: WordClaim, isPlaceName: IsPlaceName): FoundPlace[] {
  const parts = [...word.matchAll(/[^-/]+/g)];
  if (parts.length < 2) return [];
  return parts
    .map(({ index, 0: part }) => ({
      start: start + index,
      end: start + index + part.length,
      name: part.toLowerCase(),
    }))
    .filter(({ name }) => isPlaceName(name));
}

/** Abbreviations, by the text in the facts that permits them. */
const shortForms: readonly (readonly [RegExp, string])[] = [
  [/ground range detected/, 'grd'],
  [/high-resolution ground range detected/, 'grdh'],
  [/single[ -]look complex/, 'slc'],
  [/ocean wind, wave and surface velocity/, 'ocn'],
  [/\braw\b/, 'raw'],
  [/cloud-optimised/, 'cog'],
  [/top-of-atmosphere/, 'toa'],
  [/(?<!-)\bsurface reflectance/, 'boa'],
  [/near real time|NRT-/, 'nrt'],
  [/non time critical/, 'ntc'],
  [/short time critical/, 'stc'],
  [/land surface temperature/, 'lst'],
  [/sea surface temperature/, 'sst'],
  [/fire radiative power/, 'frp'],
  [/aerosol optical depth/, 'aod'],
  [/satellite navigation/, 'gnss'],
];

const adjectives = `
  afghan: afghanistan; albanian: albania; algerian: algeria; american: united states of america, united states;
  antarctic: antarctica; argentine argentinian: argentina; australian: australia; austrian: austria;
  bangladeshi: bangladesh; belarusian: belarus; belgian: belgium; bolivian: bolivia; brazilian: brazil;
  british english: united kingdom; bulgarian: bulgaria; canadian: canada; chadian: chad; chilean: chile;
  chinese: china; colombian: colombia; croatian: croatia; cuban: cuba; czech: czechia; danish: denmark;
  dutch: netherlands; egyptian: egypt; estonian: estonia; ethiopian: ethiopia; finnish: finland; french: france;
  german: germany; greek: greece; hungarian: hungary; icelandic: iceland; indian: india; indonesian: indonesia;
  iranian: iran; iraqi: iraq; irish: ireland; israeli: israel; italian: italy; japanese: japan; kazakh: kazakhstan;
  kenyan: kenya; korean: south korea, north korea; latvian: latvia; libyan: libya; lithuanian: lithuania;
  malaysian: malaysia; mexican: mexico; mongolian: mongolia; moroccan: morocco; namibian: namibia; nigerian: nigeria;
  norwegian: norway; pakistani: pakistan; peruvian: peru; philippine filipino: philippines; polish: poland;
  portuguese: portugal; romanian: romania; russian: russia; saudi: saudi arabia; scottish welsh: united kingdom;
  serbian: serbia; slovak: slovakia; slovenian slovene: slovenia; spanish: spain; sudanese: sudan, south sudan;
  swedish: sweden; swiss: switzerland; syrian: syria; thai: thailand; tunisian: tunisia; turkish: turkey;
  ukrainian: ukraine; venezuelan: venezuela; vietnamese: vietnam; yemeni: yemen; zambian: zambia
`;

/** Countries by adjective, in lower case. */
export const countriesByAdjective: ReadonlyMap<string, readonly string[]> = new Map(
  adjectives.split(';').flatMap((entry) => {
    const [said = '', countries = ''] = entry.split(':');
    const names = countries.split(',').map((name) => name.trim());
    return said
      .trim()
      .split(/\s+/)
      .map((word) => [word, names] as const);
  }),
);

/** `exact` also covers limits that include the number itself. */
type Limit = 'less' | 'more' | 'exact';

const less = /(?:\b(?:less|fewer|lower|smaller|shorter) than|\bunder|\bbelow)(?: an?)? $/i;

const more =
  /(?:\b(?:more|greater|larger|longer|higher) than|\babove|\bexceed(?:s|ed|ing)?|\bin excess of|\bat least|\b(?:no|not) less than|\bupwards of)(?: an?)? $/i;

const atMost = /\b(?:no|not) more than $/i;

/** Not a limit in `spread over 12 km²` and `recorded over 30 s`. */
const over = /(\p{L}*) ?\bover(?: an?)? $/iu;

const extending =
  /^(?:spread|extend|stretch|distribut|scatter|record|acquir|observ|collect|last|sens|taken)/i;

const within = /\bwithin $/i;
const reach = 40;

/** Returns the limits that the text before a number may express. */
function limitsOf({ start, measure }: NumberClaim, text: string): readonly Limit[] {
  const before = text.slice(Math.max(0, start - reach), start);
  if (atMost.test(before)) return ['exact', 'less'];
  if (less.test(before)) return ['less'];
  if (more.test(before)) return ['more'];
  if (within.test(before)) return ['exact', 'less'];
  const spread = over.exec(before);
  if (spread === null) return ['exact'];
  const isTime = measure === 'seconds' || measure === 'months';
  return isTime || extending.test(spread[1] ?? '') ? ['more', 'exact'] : ['more'];
}
