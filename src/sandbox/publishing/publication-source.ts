/** Where the published products come from: made up by the generator, or read from a file of records. */
import type { CatalogueProduct, DeletedProduct } from '../products/catalogue-product.ts';

export interface PublicationSource {
  /** The next product, published at `publicationMs` (ms since 1970); undefined when there are no more. */
  next(publicationMs: number): CatalogueProduct | undefined;
  /** The same product as it looks after a change at `atMs`. */
  modified(product: CatalogueProduct, atMs: number): CatalogueProduct;
  /** The same product with its checksums put right at `atMs`. */
  corrected(product: CatalogueProduct, atMs: number): CatalogueProduct;
  /** What the catalogue says of a product deleted at `atMs`. */
  deleted(product: CatalogueProduct, atMs: number): DeletedProduct;
}

/**
 * Gives the records one after the other, untouched: their own dates stay. What happens to them later
 * is left to `changes`.
 */
export function createRecordSource(
  records: readonly CatalogueProduct[],
  changes: Omit<PublicationSource, 'next'>,
): PublicationSource {
  const remaining = records.values();
  return {
    next: () => remaining.next().value,
    modified: (product, atMs) => changes.modified(product, atMs),
    corrected: (product, atMs) => changes.corrected(product, atMs),
    deleted: (product, atMs) => changes.deleted(product, atMs),
  };
}
