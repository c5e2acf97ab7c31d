/** Converts rows of the table `product p` to domain rows. */

import { satelliteOf } from '../../../filter/missions.ts';
import { withNamedFacts } from '../../../filter/product-facts.ts';
import type { ProductRow } from '../../../filter/products.ts';
import { fullPath } from './product-schema.ts';

/** Columns selected by a search. */
export const rowColumns = `p.id AS position, p.product_id AS productId, p.name AS productName,
  p.collection, p.platform_name AS platformName, p.platform_serial AS platformSerial,
  p.product_type AS productType, p.processing_level AS processingLevel,
  p.sensing_start_us AS sensingStartUs, p.sensing_end_us AS sensingEndUs,
  p.publication_us AS publicationDateUs, p.modification_us AS modificationDateUs,
  p.size_bytes AS sizeBytes, p.online, p.cloud_cover AS cloudCoverPercent,
  p.orbit_number AS orbitNumber, p.relative_orbit_number AS relativeOrbitNumber,
  p.orbit_direction AS orbitDirection, p.tile, p.processing_baseline AS processingBaseline,
  p.received_at_us AS receivedAtUs, p.deletion_us AS deletionDateUs,
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
  const { position, productId, productName, s3Path, ...others } = rest;
  const platform = satelliteOf({ platformName, platformSerial, productName, collection });
  return withNamedFacts({
    ...{ position, productId, productName, collection, platform, ...others },
    online: online === null ? null : online === 1,
    s3Path: s3Path === null ? null : fullPath(s3Path, productName),
  });
}
