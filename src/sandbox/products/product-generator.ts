/** Publishes products as the catalogue does: a mix of missions, one record after the other. */
import { createRandom, type Random } from '../random.ts';
import { auxiliarySource } from './auxiliary.ts';
import type { CatalogueProduct, DeletedProduct, PublishedProduct } from './catalogue-product.ts';
import { pickWeighted, type Table } from './choice.ts';
import { correctedProduct, deletedProduct, modifiedProduct } from './product-changes.ts';
import { assembleRecord, drawTimeline, type ProductSource } from './record.ts';
import { createSentinel1Source } from './sentinel-1.ts';
import { sentinel2Source } from './sentinel-2.ts';
import { sentinel3Source } from './sentinel-3.ts';
import { sentinel5pSource } from './sentinel-5p.ts';

/** Makes product records. All times are ms since 1970; fractions are cut off. */
export interface ProductGenerator {
  /**
   * A new product that is published at the given time, from 2018 on. Equal seeds and equal sequences of times give
   * equal records, whatever is modified or deleted in between.
   */
  next(publicationMs: number): PublishedProduct;
  /**
   * The same product after a change: ModificationDate is `atMs`, and the cloud cover or the checksums
   * are new. Draws from `random`, by default from a sequence of the generator's own.
   */
  modified<Product extends CatalogueProduct>(
    product: Product,
    atMs: number,
    random?: Random,
  ): Product;
  /** The same product with its checksums put right: ModificationDate is `atMs`. */
  corrected<Product extends CatalogueProduct>(product: Product, atMs: number): Product;
  /** The same product as the catalogue shows it once deleted; a cause that is not given is drawn. */
  deleted(product: CatalogueProduct, atMs: number, cause?: string): DeletedProduct;
}

/** Creates a generator; `seed` is a 32-bit integer. */
export function createProductGenerator({ seed }: { seed: number }): ProductGenerator {
  const random = createRandom(seed);
  const changes = createRandom(~seed);
  // Shares of what is published in a day: tiles of Sentinel-2 are by far the most.
  const missions: Table<{ weight: number; source: ProductSource }> = [
    { weight: 56, source: sentinel2Source },
    { weight: 18, source: createSentinel1Source() },
    { weight: 13, source: sentinel3Source },
    { weight: 10, source: sentinel5pSource },
    { weight: 3, source: auxiliarySource },
  ];
  return {
    next: (publicationMs) => {
      const { source } = pickWeighted(random, missions);
      const timeline = drawTimeline(random, Math.floor(publicationMs));
      return assembleRecord(source(random, timeline), timeline, random);
    },
    modified: (product, atMs, ownRandom = changes) =>
      modifiedProduct(product, Math.floor(atMs), ownRandom),
    corrected: (product, atMs) => correctedProduct(product, Math.floor(atMs), changes),
    deleted: (product, atMs, cause) => deletedProduct(product, Math.floor(atMs), changes, cause),
  };
}
