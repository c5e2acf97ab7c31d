/** What a text states that can be looked up: dates, numbers, telling phrases, and all other words. */

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

/** Where it stands in the text: from (included), until (excluded). */
export interface Span {
  start: number;
  end: number;
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
