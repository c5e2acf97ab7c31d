/** What becomes of a published product: its record after a change, and after its deletion. */
import type { Random } from '../random.ts';
import {
  type CatalogueProduct,
  type Checksum,
  type DeletedProduct,
  deletedProductContext,
  deletionCauses,
} from './catalogue-product.ts';
import { toTimestamp } from './timestamp.ts';

/**
 * The record after a change at `atMs` (whole ms since 1970): a new cloud cover where there was one, or
 * else corrected checksums. A record without either only gets the new ModificationDate.
 */
export function modifiedProduct<Product extends CatalogueProduct>(
  product: Product,
  atMs: number,
  random: Random,
): Product {
  const modificationDate = toTimestamp(atMs, random.integer(0, 999));
  const assessedAnew = random.chance(0.5) ? withNewCloudCover(product, random) : undefined;
  return {
    ...product,
    ...(assessedAnew ?? withNewChecksums(product, atMs, random)),
    ModificationDate: modificationDate,
  };
}

/**
 * The record with its checksums put right at `atMs`: the first ones of a product can be wrong (facts,
 * catalogue 2). Without checksums it only gets the new ModificationDate.
 */
export function correctedProduct<Product extends CatalogueProduct>(
  product: Product,
  atMs: number,
  random: Random,
): Product {
  const modificationDate = toTimestamp(atMs, random.integer(0, 999));
  const corrected = withNewChecksums(product, atMs, random);
  return { ...product, ...corrected, ModificationDate: modificationDate };
}

/** What a deleted product keeps of its record, in the order of the documented bodies. */
const keptFields = [
  '@odata.mediaContentType',
  'Id',
  'Name',
  'ContentType',
  'ContentLength',
  'OriginDate',
  'Checksum',
  'Footprint',
  'GeoFootprint',
  'ContentDate',
  'Attributes',
] as const;

/** The record as DeletedProducts shows it after a deletion at `atMs`; the cause is drawn if not given. */
export function deletedProduct(
  product: CatalogueProduct,
  atMs: number,
  random: Random,
  cause: string = random.pick(deletionCauses),
): DeletedProduct {
  const kept = keptFields.filter((field) => field in product);
  return {
    '@odata.context': deletedProductContext,
    ...Object.fromEntries(kept.map((field) => [field, product[field]])),
    // Already there; told again for the type.
    Id: product.Id,
    Name: product.Name,
    DeletionDate: toTimestamp(atMs, random.integer(0, 999)),
    DeletionCause: cause,
  };
}

function withNewCloudCover(
  { Attributes = [] }: CatalogueProduct,
  random: Random,
): Pick<CatalogueProduct, 'Attributes'> | undefined {
  if (!Attributes.some(({ Name }) => Name === 'cloudCover')) return undefined;
  const value = random.between(0, 100);
  return {
    Attributes: Attributes.map((attribute) =>
      attribute.Name === 'cloudCover' ? { ...attribute, Value: value } : attribute,
    ),
  };
}

/** Corrects the sums of the folder; the archive keeps its own. Without sums there is nothing to correct. */
function withNewChecksums(
  { Checksum: sums, Locations }: CatalogueProduct,
  atMs: number,
  random: Random,
): Pick<CatalogueProduct, 'Checksum' | 'Locations'> {
  const corrected = sums?.map((sum) => correctedChecksum(sum, atMs, random));
  if (corrected === undefined) return {};
  return {
    Checksum: corrected,
    ...(Locations && {
      Locations: Locations.map((location) =>
        location.FormatType === 'Extracted' ? { ...location, Checksum: corrected } : location,
      ),
    }),
  };
}

function correctedChecksum(sum: Checksum, atMs: number, random: Random): Checksum {
  // An empty entry of an old record stays empty.
  if (sum.Value === undefined) return sum;
  return {
    ...sum,
    Value: random.hex(sum.Value.length),
    ChecksumDate: toTimestamp(atMs - random.integer(200, 3000), random.integer(0, 999)),
  };
}
