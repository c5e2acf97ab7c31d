/** Fact sheet of a digest, for a model, and phrases shared with the template text. */
import {
  countPhrase,
  datePhrase,
  durationPhrase,
  type FactSheet,
  factSheet,
  listPhrase,
  percentPhrase,
  present,
  sizePhrase,
} from '../facts/phrases.ts';
import { type DigestFacts, distinctMax } from './digest-facts.ts';
import { type Range, type Ranking, withoutTies } from './tally.ts';

export function digestSheet(facts: DigestFacts): FactSheet {
  return factSheet('digest', [...scopeLines(facts), ...countLines(facts), ...productLines(facts)]);
}

type Line = [label: string, text: string | null];

function scopeLines(facts: DigestFacts): Line[] {
  const { scope } = facts;
  const { subscription, collection, area } = scope;
  const named = subscription === '' ? 'without a name' : subscription;
  return [
    ['time of receipt', spanPhrase(scope)?.join(' to ') ?? null],
    ['subscription', named ?? 'all subscriptions'],
    ['only the area', area === null ? null : `"${area}"`],
    ['only the collection', collection === '' ? 'none known from the names' : collection],
    ['only products matching', filterPhrase(facts)],
  ];
}

function countLines(facts: DigestFacts): Line[] {
  const { notifications, events, otherDeletions, deletionCauses, products } = facts;
  const kinds = Object.entries(events).filter(([, count]) => count > 0);
  const causes = deletionCauses.top.map(({ name, count }) => `${name} (${countPhrase(count)})`);
  if (otherDeletions > 0) causes.push(`other or unknown causes (${countPhrase(otherDeletions)})`);
  return [
    ['notifications', countPhrase(notifications)],
    ['products', products === 0 ? null : productsPhrase(facts)],
    [
      'notifications by event',
      kinds.length === 0
        ? null
        : listPhrase(kinds.map(([kind, count]) => `${kind} (${countPhrase(count)})`)),
    ],
    ['deleted products by cause', causes.length === 0 ? null : listPhrase(causes)],
  ];
}

function productLines(facts: DigestFacts): Line[] {
  const { size, largest, products, described, withoutFootprint } = facts;
  const cloudCover = percentRange(facts.cloudCoverPercent);
  const sized = size === null ? null : sizePhrase(size.totalBytes);
  const large = largest === null ? null : sizePhrase(largest.sizeBytes);
  const isPartly = products > 0 && described < products;
  const sensed = spanPhrase(facts.sensing)?.join(' to ') ?? null;
  const countries = placeNames('countries', facts);
  const seas = placeNames('seas', facts);
  const published = durationRange(facts.publicationDelayUs);
  const received = durationRange(facts.receiptDelayUs);
  return [
    ['products by collection', collectionsPhrase(facts)],
    ['products by type', typesPhrase(facts)],
    ['time of sensing', sensed && ofHowMany(sensed, facts.sensing?.products, 'product')],
    [
      'countries, with the products over them',
      countries.length === 0 ? null : listPhrase(countries),
    ],
    ['seas, with the products over them', seas.length === 0 ? null : listPhrase(seas)],
    [
      'cloud cover',
      cloudCover && ofHowMany(spreadText(cloudCover), facts.cloudCoverPercent?.count, 'product'),
    ],
    ['total size', sized && ofHowMany(sized, size?.products, 'product')],
    [
      'largest product',
      large === null || largest === null ? null : present(largest.name, large).join(', '),
    ],
    [
      'time from sensing to publication',
      published && ofHowMany(delayText(published), facts.publicationDelayUs?.count, 'product'),
    ],
    [
      'time from publication to receipt',
      received && ofHowMany(delayText(received), facts.receiptDelayUs?.count, 'notification'),
    ],
    [
      'products without a footprint',
      withoutFootprint === 0 ? null : amountPhrase(withoutFootprint, 'product'),
    ],
    ['products whose records were read', isPartly ? amountPhrase(described, 'product') : null],
  ];
}

/** Returns `2.2 GB (2 products)`. */
function ofHowMany(text: string, count: number | undefined, noun: string): string {
  return `${text} (${amountPhrase(count ?? 0, noun)})`;
}

function spreadText({ min, median, max, isOne }: RangePhrase): string {
  return isOne ? min : `${min} to ${max}, median ${median}`;
}

function delayText({ median, max }: RangePhrase): string {
  return median === max ? max : `median ${median}, longest ${max}`;
}

const shortestUs = 1_000_000;

/** Returns `380 products`, `1 product` or `more than 200,000 products`. */
export function productsPhrase({ products, isExact }: DigestFacts): string {
  return isExact
    ? amountPhrase(products, 'product')
    : `more than ${amountPhrase(distinctMax, 'product')}`;
}

/** Returns `1 product` or `12 products`. */
export function amountPhrase(count: number, noun: string): string {
  return `${countPhrase(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Returns names such as `Austria (40)`, the most frequent first; without counts for a single product. */
function rankedNames(
  { top }: Ranking,
  { products }: DigestFacts,
  inSentence = (name: string) => name,
): string[] {
  return top.map(({ name, count }) => {
    const text = inSentence(name);
    return products === 1 ? text : `${text} (${countPhrase(count)})`;
  });
}

/** Returns `Sentinel-1 (40), Sentinel-2 (31) and others (2)`; null if no collection is known. */
export function collectionsPhrase(facts: DigestFacts): string | null {
  const { collections, products } = facts;
  const total = collections.top.reduce((sum, { count }) => sum + count, 0);
  return countedText(collections, products - total, 'others', facts);
}

/** Returns `S2MSI2A (40) and other types (7)`; null if no type is known. */
export function typesPhrase(facts: DigestFacts): string | null {
  const { productTypes, otherTypes } = facts;
  return countedText(productTypes, productTypes.others.count + otherTypes, 'other types', facts);
}

/** The counts sum up to all products. */
function countedText(
  ranking: Ranking,
  others: number,
  othersName: string,
  facts: DigestFacts,
): string | null {
  const names = rankedNames(ranking, facts);
  if (names.length === 0) return null;
  return listPhrase(others > 0 ? [...names, `${othersName} (${countPhrase(others)})`] : names);
}

const placeNouns = { countries: 'country', seas: 'sea' } as const;

/** Returns `Mexico (6)`, `Peru (2)`, `12 other countries (1 each)`: the most frequent ones; all for one product. */
export function placeNames(
  kinds: keyof typeof placeNouns,
  facts: DigestFacts,
  inSentence?: (name: string) => string,
): string[] {
  const shown = facts.products === 1 ? facts[kinds] : withoutTies(facts[kinds]);
  const named = rankedNames(shown, facts, inSentence);
  const { names, count, most } = shown.others;
  if (names === 0) return named;
  const kind = `${named.length === 0 ? '' : 'other '}${names === 1 ? placeNouns[kinds] : kinds}`;
  const isEven = count === names * most && facts.products > 1;
  const each = isEven ? ` (${countPhrase(most)}${names === 1 ? '' : ' each'})` : '';
  return [...named, `${countPhrase(names)} ${kind}${each}`];
}

/** Returns `the filter "…"`; null without a filter. */
export function filterPhrase({ scope: { filter } }: DigestFacts): string | null {
  if (filter === null) return null;
  return filter === '' ? 'a filter' : `the filter "${filter}"`;
}

/** Formats the two ends of a span, or one date if they are equal; null if one is implausible. */
export function spanPhrase(span: { fromUs: number; untilUs: number } | null): string[] | null {
  const from = datePhrase(span?.fromUs ?? null);
  const until = datePhrase(span?.untilUs ?? null);
  if (from === null || until === null) return null;
  return from === until ? [from] : [from, until];
}

/** Formatted range. */
export interface RangePhrase {
  min: string;
  /** Marked if computed from a sample. */
  median: string;
  max: string;
  /** True if both ends are formatted alike. */
  isOne: boolean;
}

export function percentRange(range: Range | null): RangePhrase | null {
  return rangeText(range, percentPhrase);
}

/** Shows at least one second: clocks do not agree more closely. */
export function durationRange(range: Range | null): RangePhrase | null {
  return rangeText(range, (us) => durationPhrase(Math.max(us, shortestUs)));
}

function rangeText(
  range: Range | null,
  format: (value: number) => string | null,
): RangePhrase | null {
  if (range === null) return null;
  const [min, median, max] = [range.min, range.median, range.max].map(format);
  if (min == null || median == null || max == null) return null;
  const isOne = min === max;
  return { min, median: range.isSampled ? `${median} (of a sample)` : median, max, isOne };
}
