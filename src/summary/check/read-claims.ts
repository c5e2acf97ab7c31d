/** Reads the claims of a text, in order. */
import {
  type Claim,
  type DateClaim,
  matchAt,
  type NumberClaim,
  numberKey,
  type PhraseClaim,
  readUnit,
  type WordClaim,
} from './claim.ts';
import { readDate } from './read-date.ts';

const wordStart = /[\p{L}\p{N}_]/gu;
const guid = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\p{L}\p{N}_-])/iuy;

/** `Sentinel 2B` is one word, as `Sentinel-2B` is. */
const numbered = /(?:Sentinel|Landsat|Level) [0-9][\p{L}\p{N}]{0,2}(?![\p{L}\p{N}_])/iuy;

const word = /[\p{L}\p{M}\p{N}_]+(?:[-/'][\p{L}\p{M}\p{N}_]+)*/uy;
const joint = /^ ?(?:\u2013|-|to|until|and|or|,|\/|x|×) ?$/i;

/** Takes a text from `matchingText`. Reads each character a bounded number of times. */
export function readClaims(text: string): Claim[] {
  const claims: Claim[] = [];
  let at = 0;
  for (;;) {
    const start = matchAt(wordStart, text, at)?.index;
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
  const match = matchAt(pattern, text, start)?.[0];
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

/** Numerals other than the ten digits (`½`, `③`, `４`) state a number, and match only the same character. */
function oddWord(text: string, start: number): Claim | null {
  return odd.test(text.slice(start, start + 2)) ? oddNumeral(text, start) : null;
}

function oddNumeral(text: string, start: number): Claim {
  const character = String.fromCodePoint(text.codePointAt(start) ?? 0);
  const end = start + character.length;
  return { kind: 'phrase', start, end, states: 'number', key: character };
}

/** In `10 to 20 %`, the first number is a percentage too. */
function withSharedUnits(claims: Claim[], text: string): Claim[] {
  for (let index = claims.length - 2; index >= 0; index -= 1) {
    const claim = claims[index];
    // `to`, `and` and `x` between the two are separate claims.
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

/** Matches thousands separated by comma or space, or decimals after a point or comma. */
const numeral =
  /([0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?|[0-9]+,[0-9]{1,2}(?![0-9,])|[0-9]+(?:\.[0-9]+)?)(?![0-9])/y;

const version = /[0-9]+(?:\.[0-9]+){2,}(?![\p{L}\p{N}_])/uy;
const ordinal = /(?:st|nd|rd|th)(?![\p{L}\p{N}_])/iuy;

const scales: Readonly<Record<string, number>> = {
  dozen: 12,
  hundred: 100,
  thousand: 1e3,
  million: 1e6,
  billion: 1e9,
};

const scale = /[ -](hundred|thousand|million|billion|dozen)(?![\p{L}\p{N}_])/iuy;

/** After hours, `m` is minutes. */
const shortMinutes = / ?m(?![\p{L}_])/uy;

const ends = /(?![\p{L}\p{N}_])/uy;
const andThen = /(?:,? and |, | )?(?=[0-9])/y;

/** Reads the number that begins here; null if there is none, as in `2A` or `32TQM`. */
function readQuantity(text: string, start: number): NumberClaim | null {
  const versioned = matchAt(version, text, start);
  if (versioned !== null) {
    const keys = [versioned[0]];
    const end = start + versioned[0].length;
    return { kind: 'number', start, end, value: Number.NaN, measure: 'none', factor: 1, keys };
  }
  const match = matchAt(numeral, text, start);
  if (match === null) return null;
  let end = start + match[0].length;
  let value = valueIn(match[0]) * (isNegative(text, start) ? -1 : 1);
  const scaled = matchAt(scale, text, end);
  if (scaled !== null) {
    value *= scales[(scaled[1] ?? '').toLowerCase()] ?? 1;
    end += scaled[0].length;
  }
  return withUnit(text, { start, end, value });
}

/** Adds the unit that follows a number; null if other letters follow. */
function withUnit(
  text: string,
  { start, end, value }: { start: number; end: number; value: number },
): NumberClaim | null {
  const read = readUnit(text, end);
  if (read === null) {
    const after = end + (matchAt(ordinal, text, end)?.[0].length ?? 0);
    if (matchAt(ends, text, after) === null) return null;
    const measure = /[€£¥]/.test(text.charAt(start - 1)) ? 'money' : 'none';
    return numberClaim({ start, end: after, value, measure, factor: 1 });
  }
  const { measure, factor } = read.unit;
  const total = { start, end: read.end, value: value * factor, measure, factor };
  const claim = measure === 'seconds' ? addSmaller(text, total, factor) : total;
  return matchAt(ends, text, claim.end) === null && measure === 'seconds'
    ? null
    : numberClaim(claim);
}

function numberClaim(of: Omit<NumberClaim, 'kind' | 'keys'>): NumberClaim {
  return { kind: 'number', ...of, keys: [numberKey(of.value, of.measure)] };
}

/** The next smaller unit of a time, in seconds. */
const smaller: Readonly<Record<number, number>> = { 604800: 86_400, 86400: 3600, 3600: 60, 60: 1 };

/** Reads `4 h 37 min` as one number. After hours, `m` means minutes. */
function addSmaller<Total extends { end: number; value: number }>(
  text: string,
  total: Total,
  factor: number,
): Total {
  const joint = matchAt(andThen, text, total.end);
  const at = total.end + (joint?.[0].length ?? 0);
  const match = joint === null ? null : matchAt(numeral, text, at);
  if (match === null) return total;
  const end = at + match[0].length;
  const short = factor === 3600 ? matchAt(shortMinutes, text, end) : null;
  const read =
    short === null
      ? readUnit(text, end)
      : { unit: { measure: 'seconds', factor: 60 }, end: end + short[0].length };
  if (read?.unit.measure !== 'seconds' || read.unit.factor !== smaller[factor]) return total;
  const value = total.value + valueIn(match[0]) * read.unit.factor;
  return addSmaller(text, { ...total, end: read.end, value }, read.unit.factor);
}

function valueIn(digits: string): number {
  if (/^[0-9]{1,3}(?:[, ][0-9]{3})+/.test(digits)) {
    const [, whole = '', rest = ''] = /^([0-9]{1,3}(?:[, ][0-9]{3})+)(.*)$/.exec(digits) ?? [];
    return Number(whole.replaceAll(/[, ]/g, '') + rest.replace(',', '.'));
  }
  return Number(digits.replace(',', '.'));
}

/** A hyphen before a number is a minus sign, except in `10-20` or `L-2`. */
function isNegative(text: string, start: number): boolean {
  return text.charAt(start - 1) === '-' && /^[\s(]?$/.test(text.charAt(start - 2));
}

const small: Readonly<Record<string, number>> = Object.fromEntries(
  [
    ...['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'],
    ...['eleven', 'twelve', 'thirteen', 'fourteen', 'fifteen', 'sixteen', 'seventeen', 'eighteen'],
    'nineteen',
  ].map((word, value) => [word, value]),
);

const tens: Readonly<Record<string, number>> = Object.fromEntries(
  ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'].map(
    (word, index) => [word, 10 * (index + 2)],
  ),
);

const words = [small, tens, scales].flatMap(Object.keys).join('|');
const next = new RegExp(`([ -]|,? and )?(${words})(?![\\p{L}\\p{N}_])`, 'iuy');
const fractions = 'half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|eighths?|tenths?';

const phrases = [
  new RegExp(`(?:one|two|three|four|five|an?)[ -](?:${fractions})(?![\\p{L}\\p{N}_])`, 'iuy'),
  /(?:half|halves|halved|twice|thrice|double|doubled|triple|tripled|a couple|dozens|hundreds|thousands|millions|billions|an (?:hour|minute))(?![\p{L}\p{N}_])/iuy,
];

/** Reads a spelled number. `one` alone does not count as a number. */
function readSpelled(text: string, start: number): NumberClaim | PhraseClaim | null {
  for (const pattern of phrases) {
    const match = matchAt(pattern, text, start)?.[0];
    if (match !== undefined) return phraseOf(match, start);
  }
  const read = readCardinal(text, start);
  return read === null ? null : withUnit(text, { start, ...read });
}

function phraseOf(words: string, start: number): NumberClaim | PhraseClaim {
  const end = start + words.length;
  const hourOrMinute = /^an (hour|minute)$/i.exec(words)?.[1];
  if (hourOrMinute !== undefined) {
    const value = hourOrMinute.toLowerCase() === 'hour' ? 3600 : 60;
    return numberClaim({ start, end, value, measure: 'seconds', factor: value });
  }
  const key = words.toLowerCase().replaceAll('-', ' ').replace(/^an? /, 'one ');
  return { kind: 'phrase', start, end, states: 'number', key };
}

/** Reads a cardinal number by the rules of English, up to the first word that does not continue it. */
function readCardinal(text: string, start: number): { value: number; end: number } | null {
  let total = 0;
  let group = 0;
  let end = start;
  let last = '';
  for (let count = 0; count < 12; count += 1) {
    const match = matchAt(next, text, end);
    if (match === null) break;
    const [all, joint = '', word = ''] = match;
    const name = word.toLowerCase();
    if (!continues({ last, name, joint, first: end === start })) break;
    const factor = scales[name];
    if (factor === undefined) group += small[name] ?? tens[name] ?? 0;
    else if (factor <= 100) group = Math.max(group, 1) * factor;
    else {
      total += Math.max(group, 1) * factor;
      group = 0;
    }
    end += all.length;
    last = name;
  }
  return end === start || (last === 'one' && total + group === 1)
    ? null
    : { value: total + group, end };
}

/** Tens may be followed by units, scales by anything smaller; all may be followed by a scale. */
function continues(step: { last: string; name: string; joint: string; first: boolean }): boolean {
  const { last, name, joint, first } = step;
  if (first) return joint === '';
  const joins = joint === ' ' || joint === '-';
  if (name in scales)
    return joins && (last in small || last in tens || (scales[last] ?? 1e9) < 1e3);
  if (last in tens) return joins && (small[name] ?? 10) < 10;
  return last in scales && last !== 'dozen';
}

const spans =
  'night|morning|afternoon|evening|week|weekend|month|quarter|year|season|decade|century|spring|' +
  'summer|autumn|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day|few [a-z]{3,8}';

const end = '(?![\\p{L}\\p{N}_])';

/** Phrases with their keys; null if the phrase itself is the key. */
const relatives = (
  [
    ['same (?:calendar )?day', 'same day'],
    ['(?:next|following|previous|preceding) day|day (?:after|before|later|earlier)', 'next day'],
    [`(?:last|this|past|next|previous|coming) (?:${spans})`, null],
    [
      'yesterday|today|tomorrow|tonight|recent|recently|lately|nowadays|ago|overnight|noon|midnight|' +
        'dawn|dusk|sunrise|sunset|mornings?|afternoons?|evenings?|spring|summer|autumn|winter|springtime',
      null,
    ],
  ] as const
).map(([source, key]) => ({ pattern: new RegExp(`(?:${source})${end}`, 'iuy'), key }));

/** Reads a relative time. Facts can imply `same day` and `next day`; others must be in the facts literally. */
function readRelative(text: string, start: number): PhraseClaim | null {
  for (const { pattern, key } of relatives) {
    const match = matchAt(pattern, text, start)?.[0];
    if (match === undefined) continue;
    const claim = { kind: 'phrase', states: 'date', key: key ?? match.toLowerCase() } as const;
    return { ...claim, start, end: start + match.length };
  }
  return null;
}
