/** What the index keeps of a record in columns, and which part of the filter language each one answers. */

import { textOrNull } from '../../filter/product-record.ts';
import type { ProductView } from '../../filter/product-view.ts';
import { asNumber } from '../../filter/values.ts';

/** How a column's values compare: as texts, numbers, dates (µs), booleans (0 or 1), or GUIDs. */
export type ColumnType = 'text' | 'number' | 'date' | 'boolean' | 'guid';

export interface Column {
  name: string;
  type: ColumnType;
}

/** By the filter's field. Each column holds just what evaluating the record would give. */
const fieldColumns: Readonly<Record<string, Column>> = {
  Id: { name: 'product_id', type: 'guid' },
  Name: { name: 'name', type: 'text' },
  'Collection/Name': { name: 'collection', type: 'text' },
  'ContentDate/Start': { name: 'sensing_start_us', type: 'date' },
  'ContentDate/End': { name: 'sensing_end_us', type: 'date' },
  PublicationDate: { name: 'publication_us', type: 'date' },
  ModificationDate: { name: 'modification_us', type: 'date' },
  DeletionDate: { name: 'deletion_us', type: 'date' },
  DeletionCause: { name: 'deletion_cause', type: 'text' },
  Online: { name: 'online', type: 'boolean' },
};

/** By the attribute's name; a value of another type, such as a number in quotes, leaves it empty. */
const attributeColumns: Readonly<Record<string, Column>> = {
  platformShortName: { name: 'platform_name', type: 'text' },
  platformSerialIdentifier: { name: 'platform_serial', type: 'text' },
  productType: { name: 'product_type', type: 'text' },
  processingLevel: { name: 'processing_level', type: 'text' },
  cloudCover: { name: 'cloud_cover', type: 'number' },
  orbitNumber: { name: 'orbit_number', type: 'number' },
  relativeOrbitNumber: { name: 'relative_orbit_number', type: 'number' },
  orbitDirection: { name: 'orbit_direction', type: 'text' },
  tileId: { name: 'tile', type: 'text' },
};

/** The column that answers questions about a field; undefined where there is none. */
export function columnOfField(field: string): Column | undefined {
  return Object.hasOwn(fieldColumns, field) ? fieldColumns[field] : undefined;
}

/** The column that answers questions about an attribute; undefined where there is none. */
export function columnOfAttribute(name: string): Column | undefined {
  return Object.hasOwn(attributeColumns, name) ? attributeColumns[name] : undefined;
}

export type ColumnValue = string | number | null;

/** The derived columns in the order of the table, from `name` on. */
export const derivedColumns = [
  'name',
  'collection',
  'platform_name',
  'platform_serial',
  'product_type',
  'processing_level',
  'sensing_start_us',
  'sensing_end_us',
  'publication_us',
  'modification_us',
  'size_bytes',
  'online',
  'cloud_cover',
  'orbit_number',
  'relative_orbit_number',
  'orbit_direction',
  'tile',
  'processing_baseline',
] as const;

export interface DerivedColumns extends Record<(typeof derivedColumns)[number], ColumnValue> {
  name: string | null;
  cloud_cover: number | null;
}

/** Derives the columns from a record. `name` is the notification's own, for a record without one. */
export function deriveColumns(
  view: ProductView,
  record: Readonly<Record<string, unknown>>,
  name: string | null,
): DerivedColumns {
  const text = (attribute: string) => textOrNull(view.attribute(attribute)?.value);
  const number = (attribute: string) => asNumber(view.attribute(attribute)?.value);
  const fullName = view.text('Name') ?? name;
  const { ContentLength: size } = record;
  return {
    // SQLite's functions would end it at a NUL.
    name: fullName?.replaceAll('\0', '\ufffd') ?? null,
    collection: view.text('Collection/Name'),
    platform_name: text('platformShortName'),
    platform_serial: text('platformSerialIdentifier'),
    product_type: text('productType'),
    processing_level: text('processingLevel'),
    sensing_start_us: view.dateUs('ContentDate/Start'),
    sensing_end_us: view.dateUs('ContentDate/End'),
    publication_us: view.dateUs('PublicationDate'),
    modification_us: view.dateUs('ModificationDate'),
    size_bytes: Number.isSafeInteger(size) ? Number(size) : null,
    online: view.online === null ? null : Number(view.online),
    cloud_cover: number('cloudCover'),
    orbit_number: number('orbitNumber'),
    relative_orbit_number: number('relativeOrbitNumber'),
    orbit_direction: text('orbitDirection'),
    tile: text('tileId'),
    processing_baseline: baselineOf(view) ?? baselineInName(fullName),
  };
}

function baselineOf(view: ProductView): string | null {
  return textOrNull(view.attribute('processingBaseline')?.value);
}

/** `_N0511_` in a Sentinel-2 name stands for baseline 05.11 (facts, lessons 2, row 35). */
function baselineInName(name: string | null): string | null {
  const [, major, minor] = /_N(\d\d)(\d\d)_/.exec(name ?? '') ?? [];
  return major === undefined ? null : `${major}.${minor}`;
}
