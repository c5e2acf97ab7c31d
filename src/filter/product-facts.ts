/** Facts of a product from its record, completed from its name. */
import { satelliteOf } from './missions.ts';
import { parseProductName } from './naming/conventions.ts';
import type { NamedProduct } from './naming/product-name.ts';
import type { ProductFacts } from './product-cells.ts';
import { deriveColumns } from './product-columns.ts';
import { productView } from './product-view.ts';
import type { ProductRow } from './products.ts';
import type { ProductRecord } from './values.ts';

/** Values of a product's row that come from its record. */
export type RecordFacts = Omit<
  ProductRow,
  'position' | 'productId' | 'receivedAtUs' | 'deletionDateUs' | 'deletionCause'
>;

/** Returns the values that the index has for a record. `name` is that of the notification. */
export function factsOfRecord(record: ProductRecord, name: string | null): RecordFacts {
  const columns = deriveColumns(productView(record), record, name);
  return withNamedFacts({
    productName: columns.name,
    collection: columns.collection,
    platform: satelliteOf({
      platformName: columns.platform_name,
      platformSerial: columns.platform_serial,
      productName: columns.name,
      collection: columns.collection,
    }),
    productType: columns.product_type,
    processingLevel: columns.processing_level,
    sensingStartUs: columns.sensing_start_us,
    sensingEndUs: columns.sensing_end_us,
    publicationDateUs: columns.publication_us,
    modificationDateUs: columns.modification_us,
    sizeBytes: columns.size_bytes,
    online: columns.online === null ? null : columns.online === 1,
    cloudCoverPercent: columns.cloud_cover,
    orbitNumber: columns.orbit_number,
    relativeOrbitNumber: columns.relative_orbit_number,
    orbitDirection: columns.orbit_direction,
    tile: columns.tile,
    processingBaseline: columns.processing_baseline,
    s3Path: columns.s3_path,
  });
}

/**
 * Fills facts without an attribute from the name. The columns of the index stay empty, because they answer
 * `$filter`, where an absent attribute matches nothing (decision 45).
 */
export function withNamedFacts<Row extends ProductFacts>(row: Row): Row {
  const { platform, productType, processingLevel, orbitNumber, relativeOrbitNumber, tile } = row;
  const hasOrbit = orbitNumber !== null || relativeOrbitNumber !== null;
  // Skips the name, which is the slowest part of a row: most records have their attributes.
  if (platform !== null && productType !== null && hasOrbit) return row;
  const named = parseProductName(row.productName ?? '');
  if (named === null) return row;
  return {
    ...row,
    platform: platform ?? named.satellite.toUpperCase(),
    productType: productType ?? named.type,
    processingLevel: processingLevel ?? levelAttribute(named),
    orbitNumber: orbitNumber ?? named.orbitNumber,
    relativeOrbitNumber: relativeOrbitNumber ?? named.relativeOrbitNumber,
    tile: tile ?? squareOf(named),
  };
}

/** Returns the level as in the mission's attribute: `LEVEL1`, `S2MSI2A`, `1`; null for other missions. */
function levelAttribute({ satellite, level, type }: NamedProduct): string | null {
  if (level === null) return null;
  if (satellite.startsWith('Sentinel-1')) return level.toUpperCase().replace('-', '');
  if (satellite.startsWith('Sentinel-2')) return type;
  return satellite.startsWith('Sentinel-3') ? level.replace('Level-', '') : null;
}

/** Returns the Sentinel-2 grid square. Paths and rows of Landsat are not tiles of the catalogue. */
function squareOf({ tile }: NamedProduct): string | null {
  return tile !== null && /^\d\d[A-Z]{3}$/.test(tile) ? tile : null;
}
