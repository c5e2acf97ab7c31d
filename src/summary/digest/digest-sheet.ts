/** The facts of a digest as labelled texts: what a model sees of it. */
import { countWords, type FactSheet, factSheet, listWords, sizeWords } from '../facts/phrases.ts';
import type { DigestFacts } from './digest-facts.ts';
import {
  amountWords,
  collectionsWords,
  durationRange,
  filterWords,
  percentRange,
  placeNames,
  placeNouns,
  productsWords,
  type RangeWords,
  spanWords,
  typesWords,
} from './digest-phrases.ts';

export function digestSheet(facts: DigestFacts): FactSheet {
  return factSheet('digest', [...scopeLines(facts), ...countLines(facts), ...productLines(facts)]);
}

type Line = [label: string, text: string | null];

function scopeLines(facts: DigestFacts): Line[] {
  const { scope } = facts;
  const { subscription, collection, area } = scope;
  const named = subscription === '' ? 'without a name' : subscription;
  return [
    ['time of receipt', spanWords(scope)?.join(' to ') ?? null],
    ['subscription', named ?? 'all subscriptions'],
    ['only the area', area === null ? null : `"${area}"`],
    ['only the collection', collection === '' ? 'none known from the names' : collection],
    ['only what matches', filterWords(facts)],
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
  const sensed = spanWords(facts.sensing)?.join(' to ') ?? null;
  const countries = placeNames(facts.countries, placeNouns.country, facts);
  const seas = placeNames(facts.seas, placeNouns.sea, facts);
  const published = durationRange(facts.publicationDelayUs);
  const received = durationRange(facts.receiptDelayUs);
  return [
    ['products by collection', collectionsWords(facts)],
    ['products by type', typesWords(facts)],
    ['time of sensing', sensed && ofHowMany(sensed, facts.sensing?.products, 'product')],
    [
      'countries, with the products over them',
      countries.length === 0 ? null : listWords(countries),
    ],
    ['seas, with the products over them', seas.length === 0 ? null : listWords(seas)],
    [
      'cloud cover',
      cloudCover && ofHowMany(spreadText(cloudCover), facts.cloudCoverPercent?.count, 'product'),
    ],
    ['total size', sized && ofHowMany(sized, size?.products, 'product')],
    [
      'largest product',
      large === null || largest === null
        ? null
        : [largest.name, large].filter((part) => part !== null).join(', '),
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
      withoutFootprint === 0 ? null : amountWords(withoutFootprint, 'product'),
    ],
    ['products whose records were looked at', isPartly ? amountWords(described, 'product') : null],
  ];
}

/** `2.2 GB (2 products)`. */
function ofHowMany(text: string, count: number | undefined, noun: string): string {
  return `${text} (${amountWords(count ?? 0, noun)})`;
}

function spreadText({ min, median, max, isOne }: RangeWords): string {
  return isOne ? min : `${min} to ${max}, median ${median}`;
}

function delayText({ median, max }: RangeWords): string {
  return median === max ? max : `median ${median}, longest ${max}`;
}
