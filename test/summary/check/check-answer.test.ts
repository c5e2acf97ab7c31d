/**
 * Every statement of an answer must be in the facts: true texts pass, and one invention fails the
 * check.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkAnswer } from '../../../src/summary/check/check-answer.ts';
import type { DoubtKind } from '../../../src/summary/check/claim.ts';
import type { FactSheet } from '../../../src/summary/facts/phrases.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';
import { inventions, naturalInventions } from './inventions.ts';
import { correctTexts, deleted, digest, naturalTexts, optical, radar } from './sample-sheets.ts';

const { isPlaceName } = openPlaces();
const trueTexts = [...correctTexts, ...naturalTexts];
const wrongTexts = [...inventions, ...naturalInventions];

function doubtsOf(text: string, sheet: FactSheet): string[] {
  const check = checkAnswer(text, sheet, isPlaceName);
  if (!check.safe) return [`unsafe: ${check.reason}`];
  expect(check.verified).toBe(check.doubts.length === 0);
  return check.doubts.map(({ kind, words }) => `${kind}: ${words}`);
}

describe('an answer', () => {
  it.each(trueTexts.map(([sheet, text]) => ({ sheet, text })))(
    'that is true is not marked: $text',
    ({ sheet, text }) => expect(doubtsOf(text, sheet)).toEqual([]),
  );

  it.each(wrongTexts.map(([kind, sheet, text, words]) => ({ kind, sheet, text, words })))(
    'that invents is caught: $text',
    ({ kind, sheet, text, words }) => expect(doubtsOf(text, sheet)).toEqual([`${kind}: ${words}`]),
  );

  it('is tested with enough true and false texts, and with each kind of doubt', () => {
    expect(trueTexts.length).toBeGreaterThanOrEqual(45);
    expect(wrongTexts.length).toBeGreaterThanOrEqual(150);
    expect(new Set(wrongTexts.map(([kind]) => kind))).toEqual(
      new Set<DoubtKind>(['number', 'date', 'name', 'place', 'state', 'script']),
    );
  });

  it('returns all doubts in the order of the text', () => {
    const text = 'Taken over Berlin by Landsat-9 on 3 March 2021, it has 15 % of clouds.';
    expect(doubtsOf(text, optical)).toEqual([
      'place: Berlin',
      'name: Landsat-9',
      'date: 3 March 2021',
      'number: 15 %',
    ]);
  });

  it('is stored in one line, in the composed form of Unicode', () => {
    const check = checkAnswer('  The scene shows\n\tGdan\u0301sk.\r\n', optical, isPlaceName);
    expect(check).toEqual({
      safe: true,
      text: 'The scene shows Gdańsk.',
      verified: true,
      doubts: [],
    });
  });

  it('has doubts of at most 60 characters', () => {
    const check = checkAnswer(`It is ${'X1'.repeat(200)}.`, optical, isPlaceName);
    expect(check).toMatchObject({ safe: true, doubts: [{ kind: 'name', words: 'X1'.repeat(30) }] });
  });

  it('does not match a part of a longer name', () => {
    const facts = [{ label: 'name', text: 'S2A_HACKED_X and S2A_X-PWNED and S2A_X/OWNED' }];
    const sheet: FactSheet = { kind: 'product', facts };
    expect(doubtsOf('The product S2A_HACKED_X arrived.', sheet)).toEqual([]);
    for (const name of ['HACKED', 'PWNED', 'OWNED', 'S2A_HACKED', 'S2A_X']) {
      expect(doubtsOf(`The product ${name} arrived.`, sheet)).toEqual([`name: ${name}`]);
    }
  });

  it('does not match words within a code, but within hyphenated words', () => {
    const facts = [
      { label: 'type', text: 'PAY-TO-EVE-AT-HACKED, as seen by the Berlin-Tegel team' },
    ];
    const sheet: FactSheet = { kind: 'digest', facts };
    expect(doubtsOf('The type is PAY-TO-EVE-AT-HACKED.', sheet)).toEqual([]);
    expect(doubtsOf('The man of Tegel is on the team.', sheet)).toEqual([]);
    expect(doubtsOf('All of it pays Eve now.', sheet)).toEqual(['name: Eve']);
    expect(doubtsOf('It was HACKED.', sheet)).toEqual(['name: HACKED']);
  });

  it.each([
    ['12', 'twelve'],
    ['21', 'twenty-one'],
    ['36', 'three dozen'],
    ['305', 'three hundred and five'],
    ['2,305', 'two thousand three hundred and five'],
    ['1,000', 'a thousand'],
    ['14,000,000', 'fourteen million'],
    ['1,200,000', '1.2 million'],
  ])('may write %s as %s, and as no other number', (digits, words) => {
    const facts = (text: string): FactSheet => ({ kind: 'product', facts: [{ label: 'x', text }] });
    expect(doubtsOf(`There are ${words} of them.`, facts(digits))).toEqual([]);
    const doubts = doubtsOf(`There are ${words} of them.`, facts(digits.replace(/[0-9]/, '9')));
    expect(doubts).toEqual([`number: ${words.replace('a ', '')}`]);
  });

  it('may name a country with or without its article', () => {
    const sheet: FactSheet = { kind: 'product', facts: [{ label: 'place', text: 'Netherlands' }] };
    expect(doubtsOf('It shows the Netherlands, from which the Dutch coast runs.', sheet)).toEqual(
      [],
    );
    const other: FactSheet = { kind: 'product', facts: [{ label: 'place', text: 'the Gambia' }] };
    expect(doubtsOf('It shows Gambia.', other)).toEqual([]);
    expect(doubtsOf('It shows the Netherlands.', other)).toEqual(['place: the Netherlands']);
  });

  it('passes a plain text without facts, and doubts a name', () => {
    const nothing: FactSheet = { kind: 'product', facts: [] };
    expect(doubtsOf('A product arrived.', nothing)).toEqual([]);
    expect(doubtsOf('A product of Sentinel-2 arrived.', nothing)).toEqual(['name: Sentinel-2']);
  });
});

describe('the facts themselves', () => {
  const sheets = { optical, radar, deleted, digest };
  const named = fc.constantFrom(...Object.values(sheets));

  it('pass in any order', () => {
    fc.assert(
      fc.property(
        named.chain((sheet) =>
          fc.record({
            sheet: fc.constant(sheet),
            facts: fc.subarray([...sheet.facts], { minLength: 1, maxLength: 8 }),
          }),
        ),
        ({ sheet, facts }) => {
          const text = facts.map(({ label, text: fact }) => `The ${label} is ${fact}.`).join(' ');
          expect(doubtsOf(text, sheet)).toEqual([]);
        },
      ),
    );
  });

  it('are doubted when any of their digits is changed', () => {
    const places = Object.values(sheets).flatMap((sheet) =>
      sheet.facts.flatMap(({ label, text }) =>
        [...text.matchAll(/[0-9]/g)].map(({ index }) => ({ sheet, label, text, index })),
      ),
    );
    expect(places.length).toBeGreaterThan(200);
    for (const { sheet, label, text, index } of places) {
      const all = sheet.facts.map((fact) => fact.text).join('\n');
      for (const step of [1, 8]) {
        const digit = (Number(text[index]) + step) % 10;
        const wrong = `${text.slice(0, index)}${digit}${text.slice(index + 1)}`;
        // The changed word may happen to be in another fact of the sheet.
        const word = wordAt(wrong, index);
        if (all.split(/[\s(),:]+/).includes(word)) continue;
        const doubts = doubtsOf(`The ${label} is ${wrong}.`, sheet);
        expect(doubts, `${label}: ${wrong}`).toHaveLength(1);
      }
    }
  });
});

/** The number or code around the character at an index. */
function wordAt(text: string, index: number): string {
  const before = /[^\s(),:]*$/.exec(text.slice(0, index))?.[0] ?? '';
  const after = /^[^\s(),:]*/.exec(text.slice(index))?.[0] ?? '';
  return before + after;
}

/** Any characters, including halves of surrogate pairs. */
const anyText = fc
  .array(fc.integer({ min: 0, max: 0x10ffff }), { minLength: 200, maxLength: 400 })
  .map((codes) => String.fromCodePoint(...codes));

describe('the check', () => {
  it('is fast for any text, and never throws', () => {
    const pieces = ['1,', '20 May ', '4 h ', 'a-', '10:15', 'twenty ', 'Gulf of ', "'", '. A', '9'];
    const texts = [
      ...pieces.map((piece) => piece.repeat(1200).slice(0, 1200)),
      ...fc.sample(anyText, 20),
      ...fc
        .sample(fc.array(fc.constantFrom(...pieces), { minLength: 40, maxLength: 60 }), 30)
        .map((parts) => parts.join('').repeat(10).slice(0, 1200)),
    ];
    checkAnswer('warm up', optical, isPlaceName);
    for (const text of texts) {
      const fastest = Math.min(...[1, 2, 3].map(() => timeOf(text)));
      expect(fastest, JSON.stringify(text.slice(0, 80))).toBeLessThan(50);
    }
  });
});

function timeOf(text: string): number {
  const start = performance.now();
  checkAnswer(text, optical, isPlaceName);
  return performance.now() - start;
}
