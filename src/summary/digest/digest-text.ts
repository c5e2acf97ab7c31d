/** Template text of a digest: two to six sentences built from its facts. */
import { countPhrase, listPhrase, present, sizePhrase } from '../facts/phrases.ts';
import { withArticle } from '../facts/place-phrases.ts';
import type { DigestFacts } from './digest-facts.ts';
import {
  amountPhrase,
  collectionsPhrase,
  durationRange,
  filterPhrase,
  percentRange,
  placeNames,
  productsPhrase,
  type RangePhrase,
  spanPhrase,
  typesPhrase,
} from './digest-sheet.ts';
import type { Ranking } from './tally.ts';

/** Returns a text whose numbers, dates and names are all in the sheet; one sentence if nothing arrived. */
export function digestText(facts: DigestFacts): string {
  const first = arrivalSentence(facts);
  if (facts.notifications === 0) return first;
  return present(
    first,
    kindSentence(facts),
    placeSentence(facts),
    sentenceOf(cloudText(facts), ...sizeParts(facts)),
    delaySentence(facts),
    remainderSentence(facts),
  ).join(' ');
}

function arrivalSentence(facts: DigestFacts): string {
  const { scope, notifications, events, products, isExact } = facts;
  const [from = '', until = ''] = spanPhrase(scope) ?? [];
  const when = `Between ${from} and ${until},`;
  const arrived = `arrived for ${recipient(scope.subscription)}`;
  if (isExact && products > 0 && notifications === products && notifications === events.created) {
    const all = products === 1 ? '' : 'all ';
    return `${when} ${productsClause(facts)} ${arrived}, ${all}newly created.`;
  }
  const kinds = Object.entries(events).filter(([, count]) => count > 0);
  const [only] = kinds.length === 1 && events.other === 0 ? kinds : [];
  const tail = only === undefined && kinds.length > 0 ? `: ${eventText(events)}` : '';
  const what =
    notifications === 0 ? 'no notification' : amountPhrase(notifications, 'notification');
  const isAny = notifications === 0 && productsClause(facts) === 'products';
  const about = isAny ? '' : ` about ${productsClause(facts, only?.[0])}`;
  return `${when} ${what}${about} ${arrived}${tail}.`;
}

/** Returns `12 created Sentinel-2 products in the area "Alps"`; without a number if there are none. */
function productsClause(facts: DigestFacts, event?: string): string {
  const { scope, notifications, products } = facts;
  const { collection, area } = scope;
  const isOne = notifications > 0 && products === 1;
  const filter = filterPhrase(facts);
  return present(
    notifications === 0 ? null : productsPhrase(facts).replace(/ products?$/, ''),
    event ?? null,
    collection || null,
    isOne ? 'product' : 'products',
    collection === '' ? `with no collection in ${isOne ? 'its name' : 'their names'}` : null,
    area === null ? null : `in the area "${area}"`,
    filter === null ? null : `that ${isOne ? 'matches' : 'match'} ${filter}`,
  ).join(' ');
}

function recipient(subscription: string | null): string {
  if (subscription === null) return 'all subscriptions';
  return subscription === ''
    ? 'the subscription without a name'
    : `the subscription "${subscription}"`;
}

/** Returns `200 about created, 180 about modified and 32 about deleted products`. */
function eventText({ created, modified, deleted, other }: DigestFacts['events']): string {
  const kinds = Object.entries({ created, modified, deleted }).filter(([, count]) => count > 0);
  const parts = kinds.map(([kind, count], index) => {
    const noun = index === kinds.length - 1 ? ' products' : '';
    return `${countPhrase(count)} about ${kind}${noun}`;
  });
  if (other > 0) parts.push(`${countPhrase(other)} about something else`);
  return listPhrase(parts);
}

function kindSentence(facts: DigestFacts): string | null {
  const { collections, productTypes, scope, products } = facts;
  const types = typesPhrase(facts);
  const sameType = commonName(productTypes, facts);
  const ofType = sameType === null ? '' : ` of the type ${sameType}`;
  const they = products === 1 ? 'It is' : 'All of them are';
  const others = types === null || sameType !== null ? '' : `the types are ${types}`;
  // If the name has no collection, the record may have one.
  const isInScope = scope.collection !== null && scope.collection !== '';
  if (isInScope || collections.top.length === 0) {
    if (sameType !== null) return `${they}${ofType}.`;
    return others === '' ? null : `${capitalized(others)}.`;
  }
  const same = commonName(collections, facts);
  const noun = products === 1 ? 'product' : 'products';
  const whose =
    same === null
      ? `By collection they are ${collectionsPhrase(facts)}`
      : `${they} ${products !== 1 ? '' : /^[AEIOU]/.test(same) ? 'an ' : 'a '}${same} ${noun}`;
  if (others !== '') return `${whose}; ${others}.`;
  if (same !== null || sameType === null) return `${whose}${ofType}.`;
  return `${whose}; all are${ofType}.`;
}

/** Returns the name that all products share; null if they differ, or if some are unknown. */
function commonName({ top }: Ranking, { products, isExact }: DigestFacts): string | null {
  const [first] = top;
  return first !== undefined && first.count === products && isExact ? first.name : null;
}

function placeSentence(facts: DigestFacts): string | null {
  const { products, sensing } = facts;
  const span = spanPhrase(sensing);
  const [from, until] = span ?? [];
  const when = until === undefined ? `on ${from}` : `between ${from} and ${until}`;
  const names = [
    ...placeNames('countries', facts, withArticle),
    ...placeNames('seas', facts, withArticle),
  ];
  // "over 12 countries" would mean more than 12.
  const where = `${/^\d/.test(names[0] ?? '') ? 'across' : 'over'} ${listPhrase(names)}`;
  if (span === null) {
    return names.length === 0 ? null : `${sensedOnes(products, products)} sensed ${where}.`;
  }
  const they = sensedOnes(sensing?.products ?? 0, products);
  return `${they} sensed ${when}${names.length === 0 ? '' : `, ${where}`}.`;
}

/** Returns the subject of a sentence about sensing; auxiliary files have no sensing times. */
function sensedOnes(sensed: number, products: number): string {
  if (sensed === products) return products === 1 ? 'It was' : 'They were';
  return sensed === 1
    ? 'The only one with a sensing time was'
    : `The ${countPhrase(sensed)} with a sensing time were`;
}

/** Joins parts with semicolons; null if there are none. */
function sentenceOf(...parts: (string | null)[]): string | null {
  const text = present(...parts).join('; ');
  return text === '' ? null : `${capitalized(text)}.`;
}

function cloudText({ cloudCoverPercent, products }: DigestFacts): string | null {
  const range = percentRange(cloudCoverPercent);
  if (range === null || cloudCoverPercent === null) return null;
  const known = cloudCoverPercent.count;
  const whose = known < products ? `, known for ${amountPhrase(known, 'product')},` : '';
  return range.isOne
    ? `cloud cover${whose} is ${range.min}`
    : `cloud cover${whose} ranges from ${range.min} to ${range.max} with a median of ${range.median}`;
}

function sizeParts({ size, largest, products }: DigestFacts): string[] {
  const total = size === null ? null : sizePhrase(size.totalBytes);
  const large = largest === null ? null : sizePhrase(largest.sizeBytes);
  if (size === null || total === null) return [];
  if (products === 1) return [`it has a size of ${total}`];
  const isAll = size.products === products;
  const known = `${amountPhrase(size.products, 'product')} of known size`;
  if (size.products === 1) return [`${known} is ${total}`];
  const sum = `${isAll ? 'the products' : known} are ${total} in total`;
  if (large === null) return [sum];
  const name = largest?.name ?? null;
  return [`${sum}, and the largest${name === null ? '' : `, ${name},`} is ${large}`];
}

function delaySentence({ products, ...facts }: DigestFacts): string | null {
  const publication = durationRange(facts.publicationDelayUs);
  const receipt = durationRange(facts.receiptDelayUs);
  const they = publishedOnes(facts.publicationDelayUs?.count ?? 0, products);
  const news = notificationsClause(facts.receiptDelayUs?.count ?? 0, facts.events.created);
  return sentenceOf(
    publication && `${they} published ${afterText(publication, 'sensing')}`,
    receipt && `${news} came ${afterText(receipt, 'publication')}`,
  );
}

function publishedOnes(known: number, products: number): string {
  if (known === products) return products === 1 ? 'it was' : 'they were';
  return `${amountPhrase(known, 'product')}, whose times are known, ${known === 1 ? 'was' : 'were'}`;
}

function notificationsClause(known: number, created: number): string {
  if (known === created)
    return created === 1 ? 'the notification' : 'notifications of new products';
  return `${countPhrase(known)} of the notifications of new products`;
}

function afterText({ median, max }: RangePhrase, moment: string): string {
  if (median === max) return `${max} after ${moment}`;
  return `a median of ${median} after ${moment}, and ${max} at the longest`;
}

function remainderSentence(facts: DigestFacts): string | null {
  const { withoutFootprint, described, products } = facts;
  const have = withoutFootprint === 1 ? 'has' : 'have';
  return sentenceOf(
    causeText(facts),
    withoutFootprint === 0
      ? null
      : `${amountPhrase(withoutFootprint, 'product')} ${have} no footprint`,
    described === 0 ? 'nothing else is known, because no record was read' : null,
    described > 0 && described < products
      ? `types, places, times and sizes are those of the ${amountPhrase(described, 'product')} whose records were read`
      : null,
  );
}

/** Returns `the deleted products were duplicated (20), obsolete (12) and deleted for other or unknown causes (2)`. */
function causeText({ deletionCauses, otherDeletions }: DigestFacts): string | null {
  const { top } = deletionCauses;
  if (top.length === 0) return null;
  if (top.length === 1 && top[0]?.count === 1 && otherDeletions === 0) {
    return `the deleted product was ${top[0].name}`;
  }
  const causes = top.map(({ name, count }) => `${name} (${countPhrase(count)})`);
  if (otherDeletions > 0) {
    causes.push(`deleted for other or unknown causes (${countPhrase(otherDeletions)})`);
  }
  return `the deleted products were ${listPhrase(causes)}`;
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
