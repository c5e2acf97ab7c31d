/** Converts rows of the table `product p` to domain rows, and completes them from the product's name. */

import { parseProductName } from '../../domain/naming/conventions.ts';
import type { NamedProduct } from '../../domain/naming/product-name.ts';
import type { ProductFacts } from '../../domain/product-cells.ts';
import type { ProductRow } from '../../domain/products.ts';
import type { ProductRecord } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import { deriveColumns, fullPath } from './product-schema.ts';

/** Columns selected by a search. */
export const rowColumns = `p.id AS position, p.product_id AS productId, p.name AS productName,
  p.collection, p.platform_name AS platformName, p.platform_serial AS platformSerial,
  p.product_type AS productType, p.processing_level AS processingLevel,
  p.sensing_start_us AS sensingStartUs, p.sensing_end_us AS sensingEndUs,
  p.publication_us AS publicationUs, p.modification_us AS modificationUs,
  p.size_bytes AS sizeBytes, p.online, p.cloud_cover AS cloudCoverPercent,
  p.orbit_number AS orbitNumber, p.relative_orbit_number AS relativeOrbitNumber,
  p.orbit_direction AS orbitDirection, p.tile, p.processing_baseline AS processingBaseline,
  p.received_at_us AS receivedAtUs, p.deletion_us AS deletionUs,
  p.deletion_cause AS deletionCause, p.s3_path AS s3Path, p.record_position AS recordPosition`;

/** A row as returned by SQLite. */
export type SelectedRow = Omit<ProductRow, 'platform' | 'online'> & {
  platformName: string | null;
  platformSerial: string | null;
  online: number | null;
  recordPosition: number | null;
};

export function toProductRow(selected: SelectedRow): ProductRow {
  const { platformName, platformSerial, online, recordPosition: _, collection, ...rest } = selected;
  const platform = platformOf(platformName, platformSerial);
  const { position, productId, productName, s3Path, ...others } = rest;
  return withNamedFacts({
    ...{ position, productId, productName, collection, platform, ...others },
    online: online === null ? null : online === 1,
    s3Path: s3Path === null ? null : fullPath(s3Path, productName),
  });
}

/** Returns the facts of a record that is not indexed yet; `name` is that of the notification. */
export function factsOfRecord(record: ProductRecord, name: string | null): ProductFacts {
  const columns = deriveColumns(productView(record), record, name);
  return withNamedFacts({
    productName: columns.name,
    platform: platformOf(columns.platform_name, columns.platform_serial),
    productType: columns.product_type,
    processingLevel: columns.processing_level,
    sensingStartUs: columns.sensing_start_us,
    cloudCoverPercent: columns.cloud_cover,
    orbitNumber: columns.orbit_number,
    relativeOrbitNumber: columns.relative_orbit_number,
    tile: columns.tile,
  });
}

/** Returns the satellite. Auxiliary files for all satellites have the serial `_`. */
function platformOf(name: string | null, serial: string | null): string | null {
  if (name === null) return null;
  return serial !== null && /^[A-Z0-9]+$/i.test(serial) ? `${name}${serial}` : name;
}

/**
 * Fills facts without an attribute from the name. The columns of the index stay empty, because they answer
 * `$filter`, where an absent attribute matches nothing (decision 45).
 */
function withNamedFacts<Row extends ProductFacts>(row: Row): Row {
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
