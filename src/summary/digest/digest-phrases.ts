/** The parts that a digest's sheet and its text share, so that the one repeats the other word by word. */
import { countWords, dateWords, durationWords, listWords, percentWords } from '../facts/phrases.ts';
import { type DigestFacts, distinctMax } from './digest-facts.ts';
import type { Ranking } from './tally.ts';
import type { Range } from './value-sample.ts';

const shortestUs = 1_000_000;

/** `380 products`, `1 product`, `more than 200,000 products`. */
export function productsWords({ products, isExact }: DigestFacts): string {
  return isExact
    ? amountWords(products, 'product')
    : `more than ${amountWords(distinctMax, 'product')}`;
}

/** `1 product`, `12 products`. */
export function amountWords(count: number, noun: string): string {
  return `${countWords(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `Austria (40)`, the most frequent first; without their numbers where there is one product. */
export function rankedNames(
  { top }: Ranking,
  { products }: Pick<DigestFacts, 'products'>,
  inSentence = (name: string) => name,
): string[] {
  return top.map(({ name, count }) => {
    const words = inSentence(name);
    return products === 1 ? words : `${words} (${countWords(count)})`;
  });
}

/** `Austria (40), Italy (31) and 2 others`; null for none. */
export function rankingWords(
  ranking: Ranking,
  facts: Pick<DigestFacts, 'products'>,
): string | null {
  const names = rankedNames(ranking, facts);
  const { names: others } = ranking.others;
  if (others > 0) names.push(amountWords(others, 'other'));
  return names.length === 0 ? null : listWords(names);
}

/** The two ends of a span, or one moment where both are the same; null where one has no words. */
export function spanWords(span: { fromUs: number; untilUs: number } | null): string[] | null {
  const from = dateWords(span?.fromUs ?? null);
  const until = dateWords(span?.untilUs ?? null);
  if (from === null || until === null) return null;
  return from === until ? [from] : [from, until];
}

/** A range in words. */
export interface RangeWords {
  min: string;
  /** Says so where it is that of a sample. */
  median: string;
  max: string;
  /** Whether both ends look alike. */
  isOne: boolean;
}

export function percentRange(range: Range | null): RangeWords | null {
  return rangeWords(range, percentWords);
}

/** What is shorter than a second counts as one: clocks do not agree more closely. */
export function durationRange(range: Range | null): RangeWords | null {
  return rangeWords(range, (us) => durationWords(Math.max(us, shortestUs)));
}

function rangeWords(
  range: Range | null,
  wordsOf: (value: number) => string | null,
): RangeWords | null {
  if (range === null) return null;
  const [min, median, max] = [range.min, range.median, range.max].map(wordsOf);
  if (min == null || median == null || max == null) return null;
  const isOne = min === max;
  return { min, median: range.isSampled ? `${median} (of a sample)` : median, max, isOne };
}
