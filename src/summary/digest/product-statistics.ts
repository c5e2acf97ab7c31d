/** What the products of a digest have in common: where, when, how cloudy, how large, how fast. */
import type { FoundProduct, ProductRow } from '../../domain/products.ts';
import { collectionOf } from '../../filter/product-record.ts';
import { deletedStateWords } from '../facts/deletion-cause.ts';
import { isKnownName } from '../facts/known-name.ts';
import type { DigestEvent } from './digest-event.ts';
import { collectionInWords, typeCode } from './digest-names.ts';
import { createTally, type Ranking } from './tally.ts';
import { createValueSample, type Range } from './value-sample.ts';

export interface ProductStatistics {
  /** Products whose records were looked at: all else but the collections is told of these alone. */
  described: number;
  /** In words: `Sentinel-2`. Products of no known collection are left out. */
  collections: Ranking;
  /** Known types: `IW_GRDH_1S-COG`. */
  productTypes: Ranking;
  /** Those of the described that have no known type. */
  otherTypes: number;
  /** Of products with a footprint: the dates of others are no times of sensing. */
  sensing: { fromUs: number; untilUs: number; products: number } | null;
  countries: Ranking;
  seas: Ranking;
  cloudCoverPercent: Range | null;
  /** Of the products that are still there. */
  size: { products: number; totalBytes: number } | null;
  /** Without its name where that has no known form. */
  largest: { name: string | null; sizeBytes: number } | null;
  /** From the start of sensing, as for a single product, of those with a footprint. */
  publicationDelayUs: Range | null;
  /** From publication, of notifications of new products. */
  receiptDelayUs: Range | null;
  /** In words: `duplicated`. */
  deletionCauses: Ranking;
  /** Deletions for a cause that is not known. */
  otherDeletions: number;
  withoutFootprint: number;
}

export interface StatisticsCount {
  /** Once for each product. */
  addProduct(event: DigestEvent): void;
  /** Once for each notification of a new product. */
  addReceipt(event: DigestEvent): void;
  /** Once for each product that was deleted. */
  addDeletion(event: DigestEvent): void;
  facts(): ProductStatistics;
}

const dayUs = 86_400_000_000;
/** Larger ones are errors: products have some gigabytes. */
const sizeBytesMax = 1e13;
const namesMax = 500;
const valuesMax = 20_000;

/** How many of each are named. */
const shown = { types: 6, places: 5 };

/** Every value may be missing or absurd; such ones are left out. */
export function createProductStatistics(): StatisticsCount {
  const places = createPlaceCount();
  const sizes = createSizeCount();
  const times = createTimeCount();
  const collections = createTally(namesMax);
  const productTypes = createTally(namesMax);
  const causes = createTally(namesMax);
  const cloudCover = createValueSample(valuesMax);
  const count = { described: 0, otherTypes: 0, otherDeletions: 0 };
  return {
    addProduct: ({ product, productName, receivedAtUs, place }) => {
      const collection = collectionInWords(
        product?.row.collection ?? collectionOf({ Name: productName }) ?? '',
      );
      if (collection !== null) collections.add(collection);
      if (product === null) return;
      const { row } = product;
      count.described += 1;
      const type = typeCode(row.productType, row.productName);
      if (type === null) count.otherTypes += 1;
      else productTypes.add(type);
      const cover = row.cloudCoverPercent;
      if (cover !== null && cover >= 0 && cover <= 100) cloudCover.add(cover);
      places.add(place);
      sizes.add(product);
      if (place !== null) times.addSensing(row, receivedAtUs);
    },
    addReceipt: ({ product, receivedAtUs }) => {
      if (product !== null) times.addReceipt(product.row, receivedAtUs);
    },
    addDeletion: ({ product }) => {
      const cause = deletedStateWords(product?.row.deletionCause ?? null);
      if (cause === null) count.otherDeletions += 1;
      else causes.add(cause);
    },
    facts: () => ({
      ...count,
      collections: collections.ranking(shown.types),
      productTypes: productTypes.ranking(shown.types),
      cloudCoverPercent: cloudCover.range(),
      deletionCauses: causes.ranking(shown.types),
      ...places.facts(),
      ...sizes.facts(),
      ...times.facts(),
    }),
  };
}

function createPlaceCount() {
  const countries = createTally(namesMax);
  const seas = createTally(namesMax);
  let withoutFootprint = 0;
  return {
    add: (place: DigestEvent['place']) => {
      if (place === null) withoutFootprint += 1;
      for (const { name } of place?.countries ?? []) countries.add(name);
      for (const { name } of place?.seas ?? []) seas.add(name);
    },
    facts: () => ({
      countries: countries.ranking(shown.places),
      seas: seas.ranking(shown.places),
      withoutFootprint,
    }),
  };
}

function createSizeCount() {
  let products = 0;
  let totalBytes = 0;
  let largest = null as ProductStatistics['largest'];
  return {
    add: ({ row: { productName: name, sizeBytes, deletionUs } }: FoundProduct) => {
      if (sizeBytes === null || sizeBytes <= 0 || sizeBytes > sizeBytesMax) return;
      if (deletionUs !== null) return;
      products += 1;
      totalBytes += sizeBytes;
      const shown = name !== null && isKnownName(name) ? name : null;
      const isLarger = largest === null || sizeBytes > largest.sizeBytes;
      const isFirst = sizeBytes === largest?.sizeBytes && (shown ?? '') < (largest.name ?? '');
      if (isLarger || isFirst) largest = { name: shown, sizeBytes };
    },
    facts: () => ({ size: products === 0 ? null : { products, totalBytes }, largest }),
  };
}

function createTimeCount() {
  const publication = createValueSample(valuesMax);
  const receipt = createValueSample(valuesMax);
  let sensing = null as ProductStatistics['sensing'];
  return {
    addSensing: (row: ProductRow, receivedAtUs: number) => {
      const { sensingStartUs: fromUs, sensingEndUs: untilUs, publicationUs } = row;
      if (fromUs === null || untilUs === null || fromUs <= 0 || untilUs < fromUs) return;
      // Nobody can have sensed what is still to come; a day is for clocks that are wrong.
      if (untilUs > receivedAtUs + dayUs) return;
      sensing = {
        fromUs: Math.min(sensing?.fromUs ?? fromUs, fromUs),
        untilUs: Math.max(sensing?.untilUs ?? untilUs, untilUs),
        products: (sensing?.products ?? 0) + 1,
      };
      if (publicationUs !== null && publicationUs >= untilUs && publicationUs <= receivedAtUs) {
        publication.add(publicationUs - fromUs);
      }
    },
    addReceipt: ({ publicationUs }: ProductRow, receivedAtUs: number) => {
      if (publicationUs === null || publicationUs <= 0 || publicationUs > receivedAtUs) return;
      receipt.add(receivedAtUs - publicationUs);
    },
    facts: () => ({
      sensing,
      publicationDelayUs: publication.range(),
      receiptDelayUs: receipt.range(),
    }),
  };
}
