/** Values derived from a product record: the columns of the product index, the facts of a row, and the cells of lists. */
import { shortDateUs } from '../core/terms/dates.ts';
import { printable } from '../core/terms/text.ts';
import { satelliteOf } from './fields.ts';
import { type NamedProduct, parseProductName } from './product-name.ts';
import { type ProductView, productView } from './product-view.ts';
import type { ProductRow } from './products.ts';
import { asNumber, type ProductRecord, textOrNull } from './values.ts';

/** A column. Its type defines the comparison: as text, GUID, number, date (µs), or boolean (0 or 1). */
export interface Column {
  name: string;
  type: 'text' | 'guid' | 'number' | 'date' | 'boolean' | 'integer';
  /** Field or attribute of the filter language; the column has the value that evaluation would read. */
  field?: string;
  attribute?: string;
  /** Name in a product's row. */
  fact?: string;
}

/**
 * Columns derived from a record, in the order of the table. Numeric attributes are REAL, because an Integer attribute
 * may have a fraction. A value of another type, such as a number in quotes, leaves the column empty.
 */
export const derivedDefinitions = [
  { name: 'name', type: 'text', field: 'Name', fact: 'productName' },
  { name: 'collection', type: 'text', field: 'Collection/Name', fact: 'collection' },
  { name: 'platform_name', type: 'text', attribute: 'platformShortName' },
  { name: 'platform_serial', type: 'text', attribute: 'platformSerialIdentifier' },
  { name: 'product_type', type: 'text', attribute: 'productType', fact: 'productType' },
  { name: 'processing_level', type: 'text', attribute: 'processingLevel', fact: 'processingLevel' },
  { name: 'sensing_start_us', type: 'date', field: 'ContentDate/Start', fact: 'sensingStartUs' },
  { name: 'sensing_end_us', type: 'date', field: 'ContentDate/End', fact: 'sensingEndUs' },
  { name: 'publication_us', type: 'date', field: 'PublicationDate', fact: 'publicationDateUs' },
  { name: 'modification_us', type: 'date', field: 'ModificationDate', fact: 'modificationDateUs' },
  { name: 'size_bytes', type: 'integer', fact: 'sizeBytes' },
  { name: 'online', type: 'boolean', field: 'Online' },
  { name: 'cloud_cover', type: 'number', attribute: 'cloudCover', fact: 'cloudCoverPercent' },
  { name: 'orbit_number', type: 'number', attribute: 'orbitNumber', fact: 'orbitNumber' },
  {
    name: 'relative_orbit_number',
    type: 'number',
    attribute: 'relativeOrbitNumber',
    fact: 'relativeOrbitNumber',
  },
  { name: 'orbit_direction', type: 'text', attribute: 'orbitDirection', fact: 'orbitDirection' },
  { name: 'tile', type: 'text', attribute: 'tileId', fact: 'tile' },
  { name: 'processing_baseline', type: 'text', fact: 'processingBaseline' },
  { name: 's3_path', type: 'text', fact: 's3Path' },
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
      textOrNull(view.attribute('processingBaseline')) ?? baselineInName(fullName),
    s3_path: textOrNull(record.S3Path),
  };
}

function recordValue(
  view: ProductView,
  { type, field, attribute }: Column,
): string | number | null {
  if (attribute !== undefined) {
    const value = view.attribute(attribute);
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

/** Values of a product's row that come from its record. */
export type RecordFacts = Omit<
  ProductRow,
  'position' | 'productId' | 'receivedAtUs' | 'deletionDateUs' | 'deletionCause'
>;

/** Returns the values that the index has for a record. `name` is that of the notification. */
export function factsOfRecord(record: ProductRecord, name: string | null): RecordFacts {
  const columns = deriveColumns(productView(record), record, name);
  const { platform_name: platformName, platform_serial: platformSerial, collection } = columns;
  const named = derivedDefinitions.flatMap((column) =>
    'fact' in column ? [[column.fact, columns[column.name]] as const] : [],
  );
  return withNamedFacts({
    // Each fact has the type of its column.
    ...(Object.fromEntries(named) as Omit<RecordFacts, 'platform' | 'online'>),
    platform: satelliteOf({ platformName, platformSerial, productName: columns.name, collection }),
    online: columns.online === null ? null : columns.online === 1,
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

/** Facts of a product for lists, from its row or from a record that is not indexed yet. */
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

/** Unknown values are null. */
export interface ProductCells {
  /** `S2A`, `S5P`, `L8`. */
  mission: string | null;
  /** Product type, or processing level if the name has no type. */
  type: string | null;
  sensed: string | null;
  /** `32TQM R108`, `60000 R022`; path and row of Landsat as `190/027`. */
  tile: string | null;
  cloud: string | null;
  /** `northern Italy`, `North Sea off Denmark`. */
  place: string | null;
}

/** Describes a product by its facts, its name, and the place of its footprint. */
export function productCells(facts: ProductFacts, place: string | null): ProductCells {
  const named = parseProductName(facts.productName ?? '');
  const { tile, orbitNumber, relativeOrbitNumber, cloudCoverPercent } = facts;
  const [, path, row] = /^path (\d+), row (\d+)$/.exec(named?.tile ?? '') ?? [];
  const square = tile ?? (path === undefined ? null : `${pad(path)}/${pad(row)}`);
  const relative = relativeOrbitNumber === null ? null : `R${pad(relativeOrbitNumber)}`;
  const parts = [square ?? orbitNumber, relative].filter((part) => part !== null);
  const sensed = toMinute(facts.sensingStartUs ?? named?.startUs ?? null);
  const cloud = cloudCoverPercent === null ? null : percentBelow(cloudCoverPercent);
  return {
    mission: facts.platform === null ? null : shortMission(facts.platform),
    type: facts.productType ?? named?.level ?? facts.processingLevel,
    sensed,
    tile: parts.length === 0 ? null : parts.join(' '),
    cloud: cloud === null ? null : `${cloud} %`,
    place,
  };
}

/** Longest name shown in lists. Names of the catalogue have about 100 characters. */
const nameMax = 300;

/** Returns the name of a product, or its id: bounded, with control characters and direction marks replaced. */
export function productNameText({
  productId,
  productName,
}: Pick<ProductRow, 'productId' | 'productName'>): string {
  const name = printable(productName ?? productId);
  return name.length > nameMax ? `${name.slice(0, nameMax)}…` : name;
}

/** `2026-11-20 06:00`; null for no time. */
export function toMinute(us: number | null): string | null {
  return us === null || Number.isNaN(us) ? null : shortDateUs(us);
}

function pad(number: number | string = ''): string {
  return String(number).padStart(3, '0');
}

/** Shortens `SENTINEL-2A` to `S2A` and `LANDSAT-8` to `L8`; other platforms are unchanged. */
function shortMission(platform: string): string {
  return platform.replace(/^SENTINEL-(?=\d)/i, 'S').replace(/^LANDSAT-(?=\d)/i, 'L');
}

/** Rounds down to one decimal: 19.96 must not appear as 20 in a list of less than 20 percent. */
function percentBelow(percent: number): string {
  const rounded = percent.toFixed(1);
  return Number(rounded) > percent ? (Number(rounded) - 0.1).toFixed(1) : rounded;
}
