/** Reads rows of the table `product p` as rows of the domain; completes them from the product's name. */

import { parseProductName } from '../../domain/naming/conventions.ts';
import type { NamedProduct } from '../../domain/naming/product-name.ts';
import type { ProductRow } from '../../domain/products.ts';
import type { ProductRecord } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import { deriveColumns } from './product-schema.ts';

/** The columns that a search selects. */
export const rowColumns = `p.id AS position, p.product_id AS productId, p.name AS productName,
  p.collection, p.platform_name AS platformName, p.platform_serial AS platformSerial,
  p.product_type AS productType, p.processing_level AS processingLevel,
  p.sensing_start_us AS sensingStartUs, p.sensing_end_us AS sensingEndUs,
  p.publication_us AS publicationUs, p.modification_us AS modificationUs,
  p.size_bytes AS sizeBytes, p.online, p.cloud_cover AS cloudCoverPercent,
  p.orbit_number AS orbitNumber, p.relative_orbit_number AS relativeOrbitNumber,
  p.orbit_direction AS orbitDirection, p.tile, p.processing_baseline AS processingBaseline,
  p.received_at_us AS receivedAtUs, p.deletion_us AS deletionUs,
  p.deletion_cause AS deletionCause, p.record_position AS recordPosition`;

/** A row as SQLite gives it. */
export type SelectedRow = Omit<ProductRow, 'platform' | 'online'> & {
  platformName: string | null;
  platformSerial: string | null;
  online: number | null;
  recordPosition: number | null;
};

export function toProductRow(selected: SelectedRow): ProductRow {
  const { platformName, platformSerial, online, recordPosition: _, collection, ...rest } = selected;
  const platform = platformOf(platformName, platformSerial);
  const { position, productId, productName, ...others } = rest;
  return withNamedFacts({
    ...{ position, productId, productName, collection, platform, ...others },
    online: online === null ? null : online === 1,
  });
}

/** What lists show of a product, from its row or from a record that is not indexed yet. */
export type ProductFacts = Pick<
  ProductRow,
  | 'productName'
  | 'platform'
  | 'productType'
  | 'processingLevel'
  | 'sensingStartUs'
  | 'cloudCoverPercent'
  | 'orbitNumber'
  | 'relativeOrbitNumber'
  | 'tile'
>;

/** The facts that a row would have once the record is indexed; `name` is the notification's own. */
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

/** The satellite. Auxiliary files of all satellites carry the serial `_`. */
function platformOf(name: string | null, serial: string | null): string | null {
  if (name === null) return null;
  return serial !== null && /^[A-Z0-9]+$/i.test(serial) ? `${name}${serial}` : name;
}

/**
 * Fills what the attributes leave open from the name. The columns of the file stay empty, because
 * they answer `$filter`, and an absent attribute matches nothing there (decision 45).
 */
function withNamedFacts<Row extends ProductFacts>(row: Row): Row {
  const { platform, productType, processingLevel, orbitNumber, relativeOrbitNumber, tile } = row;
  const hasOrbit = orbitNumber !== null || relativeOrbitNumber !== null;
  // Most records have their attributes: reading a name takes longer than all else of a row.
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

/** The level as the attribute of the mission spells it: `LEVEL1`, `S2MSI2A`, `1`; null for other missions. */
function levelAttribute({ satellite, level, type }: NamedProduct): string | null {
  if (level === null) return null;
  if (satellite.startsWith('Sentinel-1')) return level.toUpperCase().replace('-', '');
  if (satellite.startsWith('Sentinel-2')) return type;
  return satellite.startsWith('Sentinel-3') ? level.replace('Level-', '') : null;
}

/** A square of the Sentinel-2 grid. Paths and rows of Landsat are not tiles of the catalogue. */
function squareOf({ tile }: NamedProduct): string | null {
  return tile !== null && /^\d\d[A-Z]{3}$/.test(tile) ? tile : null;
}
