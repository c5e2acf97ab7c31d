/** Values derived from a product record: the columns of the product index and of tables. */

import type { ProductView } from './product-view.ts';
import { asNumber, type ProductRecord, textOrNull } from './values.ts';

/** A column. Its type defines the comparison: as text, GUID, number, date (µs), or boolean (0 or 1). */
export interface Column {
  name: string;
  type: 'text' | 'guid' | 'number' | 'date' | 'boolean' | 'integer';
  /** Field or attribute of the filter language; the column has the value that evaluation would read. */
  field?: string;
  attribute?: string;
}

/**
 * Columns derived from a record, in the order of the table. Numeric attributes are REAL, because an Integer attribute
 * may have a fraction. A value of another type, such as a number in quotes, leaves the column empty.
 */
export const derivedDefinitions = [
  { name: 'name', type: 'text', field: 'Name' },
  { name: 'collection', type: 'text', field: 'Collection/Name' },
  { name: 'platform_name', type: 'text', attribute: 'platformShortName' },
  { name: 'platform_serial', type: 'text', attribute: 'platformSerialIdentifier' },
  { name: 'product_type', type: 'text', attribute: 'productType' },
  { name: 'processing_level', type: 'text', attribute: 'processingLevel' },
  { name: 'sensing_start_us', type: 'date', field: 'ContentDate/Start' },
  { name: 'sensing_end_us', type: 'date', field: 'ContentDate/End' },
  { name: 'publication_us', type: 'date', field: 'PublicationDate' },
  { name: 'modification_us', type: 'date', field: 'ModificationDate' },
  { name: 'size_bytes', type: 'integer' },
  { name: 'online', type: 'boolean', field: 'Online' },
  { name: 'cloud_cover', type: 'number', attribute: 'cloudCover' },
  { name: 'orbit_number', type: 'number', attribute: 'orbitNumber' },
  { name: 'relative_orbit_number', type: 'number', attribute: 'relativeOrbitNumber' },
  { name: 'orbit_direction', type: 'text', attribute: 'orbitDirection' },
  { name: 'tile', type: 'text', attribute: 'tileId' },
  { name: 'processing_baseline', type: 'text' },
  { name: 's3_path', type: 'text' },
] as const satisfies readonly Column[];

export type DerivedColumns = {
  -readonly [One in (typeof derivedDefinitions)[number] as One['name']]: One['type'] extends 'text'
    ? string | null
    : number | null;
};

export const derivedColumns = derivedDefinitions.map(({ name }) => name);

/** Derives the columns from a record. `name` is that of the notification, for a record without one. */
export function deriveColumns(
  view: ProductView,
  record: ProductRecord,
  name: string | null,
): DerivedColumns {
  const fullName = view.text('Name') ?? name;
  const { ContentLength: size } = record;
  const values = derivedDefinitions.map((column) => [column.name, recordValue(view, column)]);
  return {
    // Each value has the type of its column.
    ...(Object.fromEntries(values) as DerivedColumns),
    // SQLite's functions would cut it at a NUL.
    name: fullName?.replaceAll('\0', '\ufffd') ?? null,
    // The catalogue writes -1 for an unknown size (facts, catalogue 7).
    size_bytes: Number.isSafeInteger(size) && Number(size) >= 0 ? Number(size) : null,
    processing_baseline:
      textOrNull(view.attribute('processingBaseline')?.value) ?? baselineInName(fullName),
    s3_path: textOrNull(record.S3Path),
  };
}

function recordValue(
  view: ProductView,
  { type, field, attribute }: Column,
): string | number | null {
  if (attribute !== undefined) {
    const value = view.attribute(attribute)?.value;
    return type === 'number' ? asNumber(value) : textOrNull(value);
  }
  if (field === undefined) return null;
  if (type === 'boolean') return view.online === null ? null : Number(view.online);
  return type === 'date' ? view.dateUs(field) : view.text(field);
}

/** Reads `_N0511_` in a Sentinel-2 name as baseline 05.11 (facts, lessons 2, row 35). */
function baselineInName(name: string | null): string | null {
  const [, major, minor] = /_N(\d\d)(\d\d)_/.exec(name ?? '') ?? [];
  return major === undefined ? null : `${major}.${minor}`;
}
