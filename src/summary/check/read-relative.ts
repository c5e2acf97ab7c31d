/** Reads words that tell a time without a date: `yesterday`, `last week`, `the next day`. */
import type { PhraseClaim } from './claim.ts';

const spans =
  'night|morning|afternoon|evening|week|weekend|month|quarter|year|season|decade|century|spring|' +
  'summer|autumn|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day|few [a-z]{3,8}';
const end = '(?![\\p{L}\\p{N}_])';

const patterns: readonly { pattern: RegExp; key?: string }[] = [
  {
    pattern: new RegExp(`same (?:calendar )?day${end}`, 'iuy'),
    key: 'same day',
  },
  {
    pattern: new RegExp(
      `(?:(?:next|following|previous|preceding) day|day (?:after|before|later|earlier))${end}`,
      'iuy',
    ),
    key: 'next day',
  },
  { pattern: new RegExp(`(?:last|this|past|next|previous|coming) (?:${spans})${end}`, 'iuy') },
  {
    pattern: new RegExp(
      '(?:yesterday|today|tomorrow|tonight|recent|recently|lately|nowadays|ago|overnight|noon|' +
        'midnight|dawn|dusk|sunrise|sunset|mornings?|afternoons?|evenings?|spring|summer|autumn|winter|' +
        `springtime)${end}`,
      'iuy',
    ),
  },
];

/**
 * `same day` and `next day` can follow from the dates of the facts; all others are found only where the facts
 * have them word by word.
 */
export function readRelative(text: string, start: number): PhraseClaim | null {
  for (const { pattern, key } of patterns) {
    pattern.lastIndex = start;
    const match = pattern.exec(text)?.[0];
    if (match === undefined) continue;
    const claim = { kind: 'phrase', states: 'date', key: key ?? match.toLowerCase() } as const;
    return { ...claim, start, end: start + match.length };
  }
  return null;
}
