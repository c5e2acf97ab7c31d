/** The parts that a digest's sheet and its text share, so that the one repeats the other word by word. */
import { countWords, dateWords, durationWords, listWords, percentWords } from '../facts/phrases.ts';
import { type DigestFacts, distinctMax } from './digest-facts.ts';
import { type Range, type Ranking, standingOut } from './tally.ts';

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
function rankedNames(
  { top }: Ranking,
  { products }: Pick<DigestFacts, 'products'>,
  inSentence = (name: string) => name,
): string[] {
  return top.map(({ name, count }) => {
    const words = inSentence(name);
    return products === 1 ? words : `${words} (${countWords(count)})`;
  });
}

/** `Sentinel-1 (40), Sentinel-2 (31) and others (2)`; null where no collection is known. */
export function collectionsWords(facts: DigestFacts): string | null {
  const { collections, products } = facts;
  const told = collections.top.reduce((sum, { count }) => sum + count, 0);
  return countedWords(collections, products - told, 'others', facts);
}

/** `S2MSI2A (40) and other types (7)`; null where no type is known. */
export function typesWords(facts: DigestFacts): string | null {
  const { productTypes, otherTypes } = facts;
  return countedWords(productTypes, productTypes.others.count + otherTypes, 'other types', facts);
}

/** Adds up to all products. */
function countedWords(
  ranking: Ranking,
  others: number,
  othersName: string,
  facts: DigestFacts,
): string | null {
  const names = rankedNames(ranking, facts);
  if (names.length === 0) return null;
  return listWords(others > 0 ? [...names, `${othersName} (${countWords(others)})`] : names);
}

/** `country` and `countries`. */
export interface PlaceNoun {
  one: string;
  many: string;
}

export const placeNouns = {
  country: { one: 'country', many: 'countries' },
  sea: { one: 'sea', many: 'seas' },
} satisfies Record<string, PlaceNoun>;

/** `Mexico (6)`, `Peru (2)`, `12 other countries (1 each)`: those that stand out; of one product all. */
export function placeNames(
  ranking: Ranking,
  { one, many }: PlaceNoun,
  facts: Pick<DigestFacts, 'products'>,
  inSentence?: (name: string) => string,
): string[] {
  const told = facts.products === 1 ? ranking : standingOut(ranking);
  const named = rankedNames(told, facts, inSentence);
  const { names, count, most } = told.others;
  if (names === 0) return named;
  const kind = `${named.length === 0 ? '' : 'other '}${names === 1 ? one : many}`;
  const isEven = count === names * most && facts.products > 1;
  const each = isEven ? ` (${countWords(most)}${names === 1 ? '' : ' each'})` : '';
  return [...named, `${countWords(names)} ${kind}${each}`];
}

/** `the filter "…"`; null where there is none. */
export function filterWords({ scope: { filter } }: DigestFacts): string | null {
  if (filter === null) return null;
  return filter === '' ? 'a filter' : `the filter "${filter}"`;
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
