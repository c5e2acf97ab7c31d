/** Generates products of several missions, and their later changes. */
import { createRandom, type Random } from '../clock.ts';
import { pickWeighted, type Table } from './orbit.ts';
import {
  assembleRecord,
  type CatalogueProduct,
  type Checksum,
  type DeletedProduct,
  drawTimeline,
  drawTimestamp,
  type ProductSource,
  type PublishedProduct,
} from './record.ts';
import { auxiliarySource, createSentinel1Source } from './sentinel-1.ts';
import { sentinel2Source } from './sentinel-2.ts';
import { sentinel3Source } from './sentinel-3.ts';
import { sentinel5pSource } from './sentinel-5p.ts';

export type ProductGenerator = ReturnType<typeof createProductGenerator>;

/** Documented causes of deletion, and one that only real answers contain. */
export const deletionCauses = [
  'Duplicated product',
  'Missing checksum',
  'Corrupted product',
  'Obsolete product',
  'Other',
  'Reprocessed product',
] as const;

/** Fields that a deleted product keeps, in the order of the documented bodies. */
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

/** Creates a generator. `seed` is a 32-bit integer. All times are ms since 1970, truncated. */
export function createProductGenerator({ seed }: { seed: number }) {
  const random = createRandom(seed);
  const changes = createRandom(~seed);
  // Shares of daily publications; Sentinel-2 tiles are by far the most.
  const missions: Table<{ weight: number; source: ProductSource }> = [
    { weight: 56, source: sentinel2Source },
    { weight: 18, source: createSentinel1Source() },
    { weight: 13, source: sentinel3Source },
    { weight: 10, source: sentinel5pSource },
    { weight: 3, source: auxiliarySource },
  ];
  return {
    /**
     * Generates a product published at a time, from 2018 on. Equal seeds and sequences of times give equal
     * records, regardless of modifications and deletions in between.
     */
    next: (publicationMs: number): PublishedProduct => {
      const { source } = pickWeighted(random, missions);
      const timeline = drawTimeline(random, Math.floor(publicationMs));
      return assembleRecord(source(random, timeline), timeline, random);
    },
    /**
     * Returns the modified product: ModificationDate is `atMs`, and cloud cover or checksums are new.
     */
    modified: <Product extends CatalogueProduct>(product: Product, atMs: number): Product => {
      const ModificationDate = drawTimestamp(changes, Math.floor(atMs));
      const cloudCover = changes.chance(0.5) ? newCloudCover(product, changes) : undefined;
      const change = cloudCover ?? newChecksums(product, atMs, changes);
      return { ...product, ...change, ModificationDate };
    },
    /** Returns the product with corrected checksums: the first ones can be wrong (facts, catalogue 2). */
    corrected: <Product extends CatalogueProduct>(product: Product, atMs: number): Product => {
      const ModificationDate = drawTimestamp(changes, Math.floor(atMs));
      return { ...product, ...newChecksums(product, atMs, changes), ModificationDate };
    },
    /** Returns the record of the deleted product. The cause is drawn by default. */
    deleted: (
      product: CatalogueProduct,
      atMs: number,
      cause: string = changes.pick(deletionCauses),
    ): DeletedProduct => {
      const kept = keptFields.filter((field) => field in product);
      return {
        '@odata.context': '$metadata#DeletedProducts(Attributes())/$entity',
        ...Object.fromEntries(kept.map((field) => [field, product[field]])),
        // Repeated for the type check.
        Id: product.Id,
        Name: product.Name,
        DeletionDate: drawTimestamp(changes, Math.floor(atMs)),
        DeletionCause: cause,
      };
    },
  };
}

function newCloudCover({ Attributes = [] }: CatalogueProduct, random: Random) {
  if (!Attributes.some(({ Name }) => Name === 'cloudCover')) return undefined;
  const Value = random.between(0, 100);
  return {
    Attributes: Attributes.map((one) => (one.Name === 'cloudCover' ? { ...one, Value } : one)),
  };
}

/** Replaces the checksums of the folder, if any; the archive keeps its own. */
function newChecksums(
  { Checksum: sums, Locations }: CatalogueProduct,
  atMs: number,
  random: Random,
): Pick<CatalogueProduct, 'Checksum' | 'Locations'> {
  const corrected = sums?.map((sum) => correctedChecksum(sum, Math.floor(atMs), random));
  if (corrected === undefined) return {};
  const locations = Locations?.map((location) =>
    location.FormatType === 'Extracted' ? { ...location, Checksum: corrected } : location,
  );
  return { Checksum: corrected, ...(locations && { Locations: locations }) };
}

function correctedChecksum(sum: Checksum, atMs: number, random: Random): Checksum {
  // An empty entry of an old record stays empty.
  if (sum.Value === undefined) return sum;
  const Value = random.hex(sum.Value.length);
  const dateMs = atMs - random.integer(200, 3000);
  return { ...sum, Value, ChecksumDate: drawTimestamp(random, dateMs) };
}
