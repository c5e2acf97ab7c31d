/** Counts the notifications of a window for the facts of a digest. */

import { findMission } from '../../domain/missions.ts';
import { parseProductName } from '../../domain/naming/conventions.ts';
import type { FoundProduct, ProductRow } from '../../domain/products.ts';
import { subscriptionNamePattern } from '../../domain/subscription.ts';
import type { DigestScope, DigestWindow } from '../../domain/summaries.ts';
import { collectionOf } from '../../filter/product-record.ts';
import { unsafeReason } from '../check/unsafe-answer.ts';
import { contentOfType } from '../facts/attribute-codes.ts';
import { deletedStatePhrase, isKnownName } from '../facts/product-facts.ts';
import type { Place } from '../places/globe.ts';
import { createTally, createValueSample, type Range, type Ranking } from './tally.ts';

export interface DigestFacts extends ProductStatistics {
  /**
   * Sanitized for display: a collection such as `Sentinel-2`, or '' for products of no known collection; the filter
   * unless there is an area, or '' if its text must not be shown.
   */
  scope: DigestScope;
  notifications: number;
  /** Notifications by event. */
  events: { created: number; modified: number; deleted: number; other: number };
  /** Distinct products of the notifications. */
  products: number;
  /** False above `distinctMax` products: from there on each creation counts as a product. */
  isExact: boolean;
}

/** About 30 MB of ids: two days of all products of the catalogue (facts, catalogue 7). */
export const distinctMax = 200_000;

/** Counts in bounded memory. */
export function createDigestCount() {
  /** Product ids; true if the deletion of the product was counted. */
  const seen = new Map<string, boolean>();
  const counted = new ProductCount();
  const events = { created: 0, modified: 0, deleted: 0, other: 0 };
  let notifications = 0;
  let beyond = 0;
  return {
    /** Takes notifications in any order; those of one product must have the same state of it. */
    add: (event: DigestEvent) => {
      const { productId } = event;
      const kind = kindOf(event.event);
      notifications += 1;
      events[kind] += 1;
      const isNew = !seen.has(productId);
      const isFull = seen.size >= distinctMax;
      if (isNew && !isFull) seen.set(productId, false);
      if (isNew && isFull && kind === 'created') beyond += 1;
      if (isNew && (!isFull || kind === 'created')) counted.addProduct(event);
      if (kind === 'created') counted.addReceipt(event);
      if (kind === 'deleted' && seen.get(productId) !== true) {
        counted.addDeletion(event);
        if (seen.has(productId)) seen.set(productId, true);
      }
    },
    facts: (scope: DigestScope): DigestFacts => ({
      scope: cleanScope(scope),
      notifications,
      events: { ...events },
      products: seen.size + beyond,
      isExact: seen.size < distinctMax,
      ...counted.facts(),
    }),
  };
}

function kindOf(event: string): keyof DigestFacts['events'] {
  const word = event.toLowerCase();
  return word === 'created' || word === 'modified' || word === 'deleted' ? word : 'other';
}

export interface DigestEvent {
  /** `created`, `modified`, `deleted`, or any other text of the catalogue. */
  event: string;
  /** Null if only the name is known. */
  product: FoundProduct | null;
  productId: string;
  productName: string | null;
  receivedAtUs: number;
  /** Null without a footprint. */
  place: Place | null;
}

interface ProductStatistics {
  /** Number of products whose records were read: all other facts except collections cover only these. */
  described: number;
  /** Such as `Sentinel-2`. Excludes products of no known collection. */
  collections: Ranking;
  /** Known types: `IW_GRDH_1S-COG`. */
  productTypes: Ranking;
  /** Number of described products of no known type. */
  otherTypes: number;
  /** Products with a footprint: the dates of others are not sensing times. */
  sensing: { fromUs: number; untilUs: number; products: number } | null;
  countries: Ranking;
  seas: Ranking;
  cloudCoverPercent: Range | null;
  /** Excludes deleted products. */
  size: { products: number; totalBytes: number } | null;
  /** `name` is null if it has no known form. */
  largest: { name: string | null; sizeBytes: number } | null;
  /** Delay from sensing start, as for a single product; products with a footprint. */
  publicationDelayUs: Range | null;
  /** Delay from publication; notifications of new products. */
  receiptDelayUs: Range | null;
  /** Such as `duplicated`. */
  deletionCauses: Ranking;
  /** Number of deletions with an unknown cause. */
  otherDeletions: number;
  withoutFootprint: number;
}

const dayUs = 86_400_000_000;

/** Larger sizes are errors: products have a few gigabytes. */
const sizeBytesMax = 1e13;

const namesMax = 500;
const valuesMax = 20_000;

/** Maximum number of names of each kind. */
const shown = { types: 6, places: 5 };

/** Counts values of products; skips missing and implausible ones. */
class ProductCount {
  readonly #tallies = {
    collections: createTally(namesMax),
    productTypes: createTally(namesMax),
    deletionCauses: createTally(namesMax),
    countries: createTally(namesMax),
    seas: createTally(namesMax),
  };
  readonly #samples = {
    cloudCoverPercent: createValueSample(valuesMax),
    publicationDelayUs: createValueSample(valuesMax),
    receiptDelayUs: createValueSample(valuesMax),
  };
  readonly #counts = { described: 0, otherTypes: 0, otherDeletions: 0, withoutFootprint: 0 };
  readonly #size = { products: 0, totalBytes: 0 };
  #largest: ProductStatistics['largest'] = null;
  #sensing: ProductStatistics['sensing'] = null;

  /** Call once for each product. */
  addProduct({ product, productName, receivedAtUs, place }: DigestEvent): void {
    const { collections, productTypes, countries, seas } = this.#tallies;
    const mission = findMission(product?.row.collection ?? collectionOf({ Name: productName }));
    if (mission?.title) collections.add(mission.title);
    if (product === null) return;
    const { row } = product;
    this.#counts.described += 1;
    const type = typeCode(row.productType, row.productName);
    if (type === null) this.#counts.otherTypes += 1;
    else productTypes.add(type);
    const cover = row.cloudCoverPercent;
    if (cover !== null && cover >= 0 && cover <= 100) this.#samples.cloudCoverPercent.add(cover);
    for (const { name } of place?.countries ?? []) countries.add(name);
    for (const { name } of place?.seas ?? []) seas.add(name);
    if (place === null) this.#counts.withoutFootprint += 1;
    else this.#addSensing(row, receivedAtUs);
    this.#addSize(row);
  }

  #addSize({ productName: name, sizeBytes, deletionUs }: ProductRow): void {
    if (sizeBytes === null || sizeBytes <= 0 || sizeBytes > sizeBytesMax) return;
    if (deletionUs !== null) return;
    this.#size.products += 1;
    this.#size.totalBytes += sizeBytes;
    const shown = name !== null && isKnownName(name) ? name : null;
    const largest = this.#largest;
    const isLarger = largest === null || sizeBytes > largest.sizeBytes;
    const isFirst = sizeBytes === largest?.sizeBytes && (shown ?? '') < (largest.name ?? '');
    if (isLarger || isFirst) this.#largest = { name: shown, sizeBytes };
  }

  #addSensing(row: ProductRow, receivedAtUs: number): void {
    const { sensingStartUs: fromUs, sensingEndUs: untilUs, publicationUs } = row;
    if (fromUs === null || untilUs === null || fromUs <= 0 || untilUs < fromUs) return;
    // Sensing cannot end in the future; a day allows for wrong clocks.
    if (untilUs > receivedAtUs + dayUs) return;
    const sensing = this.#sensing ?? { fromUs, untilUs, products: 0 };
    this.#sensing = {
      fromUs: Math.min(sensing.fromUs, fromUs),
      untilUs: Math.max(sensing.untilUs, untilUs),
      products: sensing.products + 1,
    };
    if (publicationUs !== null && publicationUs >= untilUs && publicationUs <= receivedAtUs) {
      this.#samples.publicationDelayUs.add(publicationUs - fromUs);
    }
  }

  /** Call once for each notification of a new product. */
  addReceipt({ product, receivedAtUs }: DigestEvent): void {
    const publicationUs = product?.row.publicationUs ?? 0;
    if (publicationUs <= 0 || publicationUs > receivedAtUs) return;
    this.#samples.receiptDelayUs.add(receivedAtUs - publicationUs);
  }

  /** Call once for each deleted product. */
  addDeletion({ product }: DigestEvent): void {
    const cause = deletedStatePhrase(product?.row.deletionCause ?? null);
    if (cause === null) this.#counts.otherDeletions += 1;
    else this.#tallies.deletionCauses.add(cause);
  }

  facts(): ProductStatistics {
    const { collections, productTypes, deletionCauses, countries, seas } = this.#tallies;
    const { cloudCoverPercent, publicationDelayUs, receiptDelayUs } = this.#samples;
    return {
      ...this.#counts,
      collections: collections.ranking(shown.types),
      productTypes: productTypes.ranking(shown.types),
      deletionCauses: deletionCauses.ranking(shown.types),
      countries: countries.ranking(shown.places),
      seas: seas.ranking(shown.places),
      cloudCoverPercent: cloudCoverPercent.range(),
      publicationDelayUs: publicationDelayUs.range(),
      receiptDelayUs: receiptDelayUs.range(),
      size: this.#size.products === 0 ? null : { ...this.#size },
      largest: this.#largest,
      sensing: this.#sensing,
    };
  }
}

const areaMax = 60;
const filterMax = 120;

/** Sanitizes the user's own names too, because a configuration file may contain any text. */
function cleanScope(scope: DigestScope): DigestScope {
  const { subscription, collection, area, filter } = scope;
  const isName = subscription === null || subscriptionNamePattern.test(subscription);
  return {
    ...scope,
    subscription: isName ? subscription : '',
    collection: collection === null ? null : (findMission(collection)?.title ?? ''),
    area: area === null ? null : cleanName(area),
    filter: filter === null || area !== null ? null : shownFilter(filter),
  };
}

/** Returns the filter if it is short, plain and allowed in an answer, else ''. */
function shownFilter(filter: string): string {
  const text = filter.trim();
  const isPlain = text.length <= filterMax && /^[A-Za-z0-9 .,:;=+/()'_-]+$/.test(text);
  return isPlain && unsafeReason(text, 'digest') === null ? text : '';
}

/** Returns one line of at most 60 characters, without quotation marks and markup. */
function cleanName(name: string): string {
  const oneLine = name
    .slice(0, 10 * areaMax)
    .replaceAll(/[^\p{L}\p{M}\p{N} .,:;+&/()'_-]/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return [...oneLine].slice(0, areaMax).join('').trim();
}

/**
 * Returns a product type with known content, such as `IW_GRDH_1S-COG`, of the record or else of a name in a known
 * form; null otherwise. Removes trailing `_`, which Markdown would drop.
 */
function typeCode(productType: string | null, productName: string | null): string | null {
  const named = productName === null ? null : (parseProductName(productName)?.type ?? null);
  const type = contentOfType(productType) === null ? named : productType;
  return type?.replace(/_+$/, '') ?? null;
}

/** Microseconds since 1970, UTC: from (inclusive), until (exclusive). */
export interface WindowSpan {
  fromUs: number;
  untilUs: number;
}

const lengthsUs: Readonly<Record<DigestWindow, number>> = {
  hour: dayUs / 24,
  day: dayUs,
  week: 7 * dayUs,
};

/** A Monday: 1 January 1970 was a Thursday. */
const firstWindowUs = -3 * dayUs;

/** Returns the window that contains a time. */
export function windowAt(window: DigestWindow, atUs: number): WindowSpan {
  const lengthUs = lengthsUs[window];
  const fromUs = Math.floor((atUs - firstWindowUs) / lengthUs) * lengthUs + firstWindowUs;
  return { fromUs, untilUs: fromUs + lengthUs };
}

/** Returns the windows that overlap a span, clipped to it, earliest first; none for an empty span. */
export function windowsIn(window: DigestWindow, fromUs: number, untilUs: number): WindowSpan[] {
  const windows: WindowSpan[] = [];
  let startUs = fromUs;
  while (startUs < untilUs) {
    const endUs = Math.min(windowAt(window, startUs).untilUs, untilUs);
    windows.push({ fromUs: startUs, untilUs: endUs });
    startUs = endUs;
  }
  return windows;
}
