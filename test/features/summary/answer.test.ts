/** The language of summaries: what is accepted, what is refused, and that no answer adds a fact. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sharedPlaces } from '../../../src/features/products/places/places.ts';
import { chatRequest, checkAnswer, type Facts } from '../../../src/features/summary/answer.ts';
import { times } from '../../helpers/thorough.ts';

const facts: Facts = {
  mission: 'Sentinel-2B',
  type: 'surface reflectance',
  place: 'northern Italy',
  sensed: '2 May 2026 10:15 UTC',
  cloud: '3.6 %',
  count: '12',
  orbit: '22',
};

const { names: placeNames } = sharedPlaces();

const check = (answer: string) => checkAnswer(answer, facts, placeNames);

it.each([
  ['A scene of {mission}.', 'A scene of Sentinel-2B.'],
  [
    '{type} from {mission}, over {place}',
    'Surface reflectance from Sentinel-2B, over northern Italy.',
  ],
  [
    ' A clear view.\n\nSensed {sensed} ({cloud})! ',
    'A clear view. Sensed 2 May 2026 10:15 UTC (3.6 %)!',
  ],
  ["{mission}'s “view” of {place}: fine", "Sentinel-2B's “view” of northern Italy: fine."],
  ['With {count} products; may be clear', 'With 12 products; may be clear.'],
  ['The orbit {orbit}, {count} of them.', 'The orbit 22, 12 of them.'],
])('the answer %j is accepted', (answer, text) => {
  expect(check(answer)).toEqual({ text });
});

it.each([
  ['', 'it is empty'],
  [' \n ', 'it is empty'],
  ['A clear view.', 'it uses no name in braces'],
  [`A view of {mission}${' very'.repeat(80)} clear.`, 'it has more than 400 characters'],
  ['{missions} over {place}', 'it uses the unknown name {missions}'],
  ['{constructor} {toString}', 'it uses the unknown name {constructor}'],
  ['{mission} at ½ past', 'it has a digit outside of braces'],
  ['{mission} { }', 'it has a brace that encloses no name'],
  ['{Mission} {mission}', 'it has a brace that encloses no name'],
  ...['{mission} #', '{mission}\u202e', 'über {place}'].map((answer) => [
    answer,
    'it has a character other than plain English text',
  ]),
  ...['x{mission}', '{count}{orbit}', '{type}-based', '-{count}'].map((answer) => [
    answer,
    'it has a name in braces without a space or a punctuation mark around it',
  ]),
  ['in {count} {orbit} times', 'it has two numbers without a word in between'],
  ['{count} - {orbit}', 'it has two numbers without a word in between'],
  ['Lyon by {mission}', 'it begins a sentence with "lyon", which may be a name'],
  ['{mission}. JAXA too', 'it begins a sentence with "jaxa", which may be a name'],
  ...['{mission} saw Lyon', '{mission} by NASA', 'IN {place}'].map((answer) => [
    answer,
    'it has a capitalised word outside of braces, which may be a name',
  ]),
  ['{mission} on monday', 'it has the word "monday" outside of braces, which states a fact'],
  ['In two views of {place}', 'it has the word "two" outside of braces, which states a fact'],
  ['Not north of {place}', 'it has the word "north" outside of braces, which states a fact'],
  ['{place} seen by sentinel', 'it has the name of a satellite or an operator outside of braces'],
  ['{mission} over norway', 'it has the name of a place outside of braces'],
  ['{mission} over the united-states', 'it has the name of a place outside of braces'],
])('the answer %j is refused: %s', (answer, refused) => {
  expect(check(answer)).toEqual({ refused });
});

/** Text between values as a hostile model may write it, with many of the words that matter. */
const hostileText = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.constantFrom(
    ...['Paris', 'paris', 'NORWAY', 'north sea', 'May', 'may', 'Friday', '١٢', 'IX', '4', 'twelve'],
    ...['Sentinel', 'landsat', '\u202e', '\u0000', '{', '}', '#', '. The ', ' a ', ', ', 'clear'],
  ),
  fc.constantFrom(...placeNames),
);

const namedText = fc
  .constantFrom(...Object.keys(facts), 'unknown', '__proto__')
  .map((name) => `{${name}}`);

const hostileAnswer = fc
  .array(fc.oneof(hostileText, namedText, fc.constantFrom(' ', ', ')), { maxLength: 12 })
  .map((parts) => parts.join(''));

/** Removes the values, the longest first. */
function withoutValues(text: string): string {
  const values = Object.values(facts).toSorted((a, b) => b.length - a.length);
  return values.reduce((rest, value) => {
    const capitalised = `${value[0]?.toUpperCase()}${value.slice(1)}`;
    return rest.replaceAll(value, '').replaceAll(capitalised, '');
  }, text);
}

it('whatever a model answers, the text has no digit and no name that is not a fact', () => {
  let accepted = 0;
  fc.assert(
    fc.property(hostileAnswer, (answer) => {
      const checked = check(answer);
      if ('refused' in checked) return;
      accepted += 1;
      const rest = withoutValues(checked.text);
      expect(rest).not.toMatch(/[\p{N}\p{C}{}<>#]/u);
      const words = rest.match(/\p{L}+/gu) ?? [];
      const lower = ` ${words.join(' ').toLowerCase()} `;
      expect(placeNames.filter((name) => lower.includes(` ${name} `))).toEqual([]);
      const names = ['Paris', 'May', 'Friday', 'IX', 'Sentinel', 'NORWAY'];
      expect(words.filter((word) => names.includes(word))).toEqual([]);
    }),
    { numRuns: times(3_000, 100_000) },
  );
  expect(accepted).toBeGreaterThan(times(3_000, 100_000) / 200);
});

describe('a request', () => {
  const request = chatRequest('product', facts, 'a/b');

  it('has the rules, and each fact in a line of its own', () => {
    const [system, user] = request.messages;
    expect(user?.content.split('\n')).toEqual(
      Object.entries(facts).map(([name, value]) => `{${name}}: ${value}`),
    );
    for (const value of Object.values(facts)) expect(system?.content).not.toContain(value);
    const example = /Example: (.*)/.exec(system?.content ?? '')?.[1] ?? '';
    expect(check(example)).toHaveProperty('text');
  });
});
