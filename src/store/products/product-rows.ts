/** Reads rows of the table `product p`, and tells them in the words of the domain. */
import type { ProductRow } from '../../domain/products.ts';

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
  const platform = platformName === null ? null : `${platformName}${serialOf(platformSerial)}`;
  const { position, productId, productName, ...others } = rest;
  const boolean = online === null ? null : online === 1;
  return { position, productId, productName, collection, platform, ...others, online: boolean };
}

/** Auxiliary files of all satellites carry `_`. */
function serialOf(serial: string | null): string {
  return serial === null || !/^[A-Z0-9]+$/i.test(serial) ? '' : serial;
}
