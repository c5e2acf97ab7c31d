/** The facts of a digest as labelled texts: what a model sees of it. */
import type { Fact, FactSheet } from '../facts/fact-sheet.ts';
import { countWords, listWords, sizeWords } from '../facts/phrases.ts';
import type { DigestFacts } from './digest-facts.ts';
import {
  amountWords,
  durationRange,
  percentRange,
  productsWords,
  type RangeWords,
  rankingWords,
  spanWords,
} from './digest-phrases.ts';

/** What is not known has no line. */
export function digestSheet(facts: DigestFacts): FactSheet {
  return {
    kind: 'digest',
    facts: [...scopeLines(facts), ...countLines(facts), ...productLines(facts)].flatMap(
      ([label, text]): Fact[] => (text === null ? [] : [{ label, text }]),
    ),
  };
}

type Line = [label: string, text: string | null];

function scopeLines({ scope }: DigestFacts): Line[] {
  const { subscription, collection, area } = scope;
  const named = subscription === '' ? 'without a name' : subscription;
  return [
    ['time of receipt', spanWords(scope)?.join(' to ') ?? null],
    ['subscription', named ?? 'all subscriptions'],
    ['only the area', area === null ? null : `"${area}"`],
    ['only the collection', collection],
  ];
}

function countLines(facts: DigestFacts): Line[] {
  const { notifications, events, otherDeletions, deletionCauses, products } = facts;
  const kinds = Object.entries(events).filter(([, count]) => count > 0);
  const causes = deletionCauses.top.map(({ name, count }) => `${name} (${countWords(count)})`);
  if (otherDeletions > 0) causes.push(`other or unknown causes (${countWords(otherDeletions)})`);
  return [
    ['notifications', countWords(notifications)],
    ['products', products === 0 ? null : productsWords(facts)],
    [
      'notifications by event',
      kinds.length === 0
        ? null
        : listWords(kinds.map(([kind, count]) => `${kind} (${countWords(count)})`)),
    ],
    ['deleted products by cause', causes.length === 0 ? null : listWords(causes)],
  ];
}

function productLines(facts: DigestFacts): Line[] {
  const { size, largest, products, described, withoutFootprint } = facts;
  const cloudCover = percentRange(facts.cloudCoverPercent);
  const sized = size === null ? null : sizeWords(size.totalBytes);
  const large = largest === null ? null : sizeWords(largest.sizeBytes);
  const isPartly = products > 0 && described < products;
  return [
    ['products by collection', rankingWords(facts.collections, facts)],
    ['products by type', rankingWords(facts.productTypes, facts)],
    ['time of sensing', spanWords(facts.sensing)?.join(' to ') ?? null],
    ['countries, with the products over them', rankingWords(facts.countries, facts)],
    ['seas, with the products over them', rankingWords(facts.seas, facts)],
    ['cloud cover', cloudCover && withProducts(cloudCover, facts.cloudCoverPercent?.count ?? 0)],
    [
      'total size',
      sized === null || size === null
        ? null
        : `${sized} (${amountWords(size.products, 'product')})`,
    ],
    [
      'largest product',
      large === null || largest === null
        ? null
        : [largest.name, large].filter((part) => part !== null).join(', '),
    ],
    ['time from sensing to publication', delayText(durationRange(facts.publicationDelayUs))],
    ['time from publication to receipt', delayText(durationRange(facts.receiptDelayUs))],
    [
      'products without a footprint',
      withoutFootprint === 0 ? null : amountWords(withoutFootprint, 'product'),
    ],
    ['products whose records were looked at', isPartly ? amountWords(described, 'product') : null],
  ];
}

function withProducts({ min, median, max, isOne }: RangeWords, products: number): string {
  const values = isOne ? min : `${min} to ${max}, median ${median}`;
  return `${values} (${amountWords(products, 'product')})`;
}

function delayText(range: RangeWords | null): string | null {
  if (range === null) return null;
  return range.median === range.max ? range.max : `median ${range.median}, longest ${range.max}`;
}
