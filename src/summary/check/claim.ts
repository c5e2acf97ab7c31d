/** What a text states that can be looked up: dates, numbers, telling phrases, and all other words. */
import type { Span } from '../../filter/finding.ts';

/** What is said of a moment; months and days begin at 1. A part that is not said is absent. */
export interface DateParts {
  year?: number;
  month?: number;
  day?: number;
  /** 0 is Sunday. */
  weekday?: number;
  hour?: number;
  minute?: number;
  second?: number;
  /** In another time zone than UTC: true of no date of ours. */
  zone?: 'other';
}

/** One or two dates (`20 to 22 May 2024`), each with the ways it can be read (05/06/2024 has two). */
export interface DateClaim extends Span {
  kind: 'date';
  dates: readonly (readonly DateParts[])[];
  /** It may be a mere number instead (2024), under this key. */
  orNumber?: string;
}

export interface NumberClaim extends Span {
  kind: 'number';
  value: number;
  /** What it is measured in, `none` for a bare number; values are in the base of that measure. */
  measure: string;
  /** One of its unit in that base. */
  factor: number;
  /** By which of these it is found in the facts: any will do. */
  keys: readonly string[];
}

/** Words that state a number or a time without a digit: `half`, `yesterday`. Found by their key. */
export interface PhraseClaim extends Span {
  kind: 'phrase';
  states: 'number' | 'date';
  key: string;
}

export interface WordClaim extends Span {
  kind: 'word';
  /** As in the text, without a possessive s. */
  word: string;
}

export type Claim = DateClaim | NumberClaim | PhraseClaim | WordClaim;

export const doubtKinds = ['number', 'date', 'name', 'place', 'state', 'script'] as const;

export type DoubtKind = (typeof doubtKinds)[number];

export interface Doubt {
  kind: DoubtKind;
  /** As in the answer, cut when it is long. */
  words: string;
}

export type PlacedDoubt = Span & Pick<Doubt, 'kind'>;

/**
 * The text with one form of hyphen, dash and apostrophe. As long as before, place by place: some models
 * write `Sentinel‑2` with a hyphen that does not break.
 */
export function matchingText(text: string): string {
  return text
    .replaceAll(/[\u2010\u2011\u2212]/g, '-')
    .replaceAll(/[\u2012-\u2015]/g, '\u2013')
    .replaceAll(/[\u2018\u2019\u02bc]/g, "'");
}

/** The match from a place on: of a sticky pattern, right there. */
export function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** A name without its case, its accents and its article: `São Paulo` and `the Netherlands` are `sao paulo` and `netherlands`. */
export function foldedName(name: string): string {
  const folded = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return folded.replace(/^the /, '');
}

/**
 * A word by which it is found among the words of the facts. Short forms of missions and levels stand for
 * the long ones: `S2B` and `Sentinel 2B` are `sentinel-2b`, `L2A` is `level-2a`.
 */
export function wordKey(word: string): string {
  const key = foldedName(word);
  const short = /^([sl])([0-9][a-dp]?)$/.exec(key);
  if (short !== null) return `${short[1] === 's' ? 'sentinel' : 'level'}-${short[2]}`;
  return key.replace(/^(sentinel|landsat|level) (?=[0-9])/, '$1-');
}
