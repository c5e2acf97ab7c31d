/** Reads what states a number in letters: `twelve`, `two hundred and five`, `half`, `dozens`. */
import type { NumberClaim, PhraseClaim } from './claim.ts';
import { numberClaim, withUnit } from './read-quantity.ts';

const small: Readonly<Record<string, number>> = Object.fromEntries(
  (
    'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen ' +
    'sixteen seventeen eighteen nineteen'
  )
    .split(' ')
    .map((word, value) => [word, value]),
);
const tens: Readonly<Record<string, number>> = {
  twenty: 20,
  thirty: 30,
  forty: 40,
  fifty: 50,
  sixty: 60,
  seventy: 70,
  eighty: 80,
  ninety: 90,
};
const scales: Readonly<Record<string, number>> = {
  dozen: 12,
  hundred: 100,
  thousand: 1e3,
  million: 1e6,
  billion: 1e9,
};

const words = [...Object.keys(small), ...Object.keys(tens), ...Object.keys(scales)].join('|');
const next = new RegExp(`([ -]|,? and )?(${words})(?![\\p{L}\\p{N}_])`, 'iuy');

const fractions = 'half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|eighths?|tenths?';
const phrases = [
  new RegExp(`(?:one|two|three|four|five|an?)[ -](?:${fractions})(?![\\p{L}\\p{N}_])`, 'iuy'),
  /(?:half|halves|halved|twice|thrice|double|doubled|triple|tripled|a couple|dozens|hundreds|thousands|millions|billions|an (?:hour|minute))(?![\p{L}\p{N}_])/iuy,
];

/** What states a number here. `one` alone states none: it is said of anything. */
export function readSpelled(text: string, start: number): NumberClaim | PhraseClaim | null {
  for (const pattern of phrases) {
    pattern.lastIndex = start;
    const match = pattern.exec(text)?.[0];
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

/** A cardinal number by the rules of English; words that do not continue it are left. */
function readCardinal(text: string, start: number): { value: number; end: number } | null {
  let total = 0;
  let group = 0;
  let end = start;
  let last = '';
  for (let count = 0; count < 12; count += 1) {
    next.lastIndex = end;
    const match = next.exec(text);
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

/** Tens go on with units, scales with anything smaller; all may be followed by a scale. */
function continues(step: { last: string; name: string; joint: string; first: boolean }): boolean {
  const { last, name, joint, first } = step;
  if (first) return joint === '';
  const joins = joint === ' ' || joint === '-';
  if (name in scales)
    return joins && (last in small || last in tens || (scales[last] ?? 1e9) < 1e3);
  if (last in tens) return joins && (small[name] ?? 10) < 10;
  return last in scales && last !== 'dozen';
}
