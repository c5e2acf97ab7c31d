/** A product record as a filter sees it: read field by field, of any age and with any part missing. */
import { type AttributeKind, attributeKinds } from '../domain/filter-tree.ts';
import type { Geometry, Position, Ring, Rings } from '../domain/geometry.ts';
import { toProductJson, toProductLinks } from '../domain/json-rows.ts';
import type { FoundProduct } from '../domain/products.ts';
import { toGeoJson } from './geometry/geojson.ts';
import { isEmptyShape, type Shape, toShape } from './geometry/shape.ts';
import { collectionOf, type ProductRecord, partOf, textOrNull } from './product-record.ts';
import { readFilterDate } from './values.ts';
import { readFootprintText } from './wkt.ts';

interface StoredAttribute {
  kind: AttributeKind;
  /** As in the record: a String attribute may hold a number. Never undefined. */
  value: unknown;
}

/** All values are null where the record does not say. */
export interface ProductView {
  /** `Name`, `Id`, `Collection/Name` or `DeletionCause`. */
  text(field: string): string | null;
  /** `ContentDate/Start`, `PublicationDate`, …: microseconds since 1970, UTC. */
  dateUs(field: string): number | null;
  readonly online: boolean | null;
  /** The first attribute of this name; case matters. */
  attribute(name: string): StoredAttribute | null;
  /** Read once; null also when it holds no place at all. */
  footprint(): Shape | null;
  geometry(): Geometry | null;
}

const textFields: ReadonlySet<string> = new Set(['Name', 'Id', 'DeletionCause']);

const dateFields: ReadonlySet<string> = new Set([
  'OriginDate',
  'PublicationDate',
  'ModificationDate',
  'DeletionDate',
]);

/** The view of a record. Never throws; parts are read when they are asked for. */
export function productView(record: ProductRecord): ProductView {
  const attributes = once(() => attributesOf(record));
  const geometry = once(() => geometryOf(record));
  // Some answers of the catalogue name it.
  const collection = once(
    () => textOrNull(partOf(record.Collection, 'Name')) ?? collectionOf(record),
  );
  return {
    text: (field) => {
      if (textFields.has(field)) return textOrNull(record[field]);
      return field === 'Collection/Name' ? collection() : null;
    },
    dateUs: (field) => {
      const text = textOrNull(dateValue(record, field));
      return text === null ? null : readFilterDate(text);
    },
    get online() {
      return typeof record.Online === 'boolean' ? record.Online : null;
    },
    attribute: (name) => attributes().get(name) ?? null,
    footprint: once(() => {
      const found = geometry();
      const shape = found === null ? null : toShape(found);
      return shape === null || isEmptyShape(shape) ? null : shape;
    }),
    geometry,
  };
}

function dateValue(record: ProductRecord, field: string): unknown {
  if (field === 'ContentDate/Start') return partOf(record.ContentDate, 'Start');
  if (field === 'ContentDate/End') return partOf(record.ContentDate, 'End');
  return dateFields.has(field) ? record[field] : null;
}

function attributesOf(record: ProductRecord): Map<string, StoredAttribute> {
  const found = new Map<string, StoredAttribute>();
  if (!Array.isArray(record.Attributes)) return found;
  for (const item of record.Attributes) {
    const name = partOf(item, 'Name');
    const kind = kindOf(partOf(item, '@odata.type')) ?? kindOf(partOf(item, 'ValueType'));
    if (typeof name !== 'string' || kind === null || found.has(name)) continue;
    found.set(name, { kind, value: partOf(item, 'Value') ?? null });
  }
  return found;
}

const kindByName: ReadonlyMap<string, AttributeKind> = new Map(
  attributeKinds.flatMap((kind) => [
    [kind, kind],
    [`#OData.CSC.${kind}Attribute`, kind],
  ]),
);

function kindOf(word: unknown): AttributeKind | null {
  return typeof word === 'string' ? (kindByName.get(word) ?? null) : null;
}

function geometryOf(record: ProductRecord): Geometry | null {
  const text = textOrNull(record.Footprint);
  return (
    (text === null ? null : readFootprintText(text)) ?? readFootprintObject(record.GeoFootprint)
  );
}

function once<Value>(read: () => Value): () => Value {
  let kept: { value: Value } | null = null;
  return () => {
    kept ??= { value: read() };
    return kept.value;
  };
}

/** Reads a record's GeoFootprint: GeoJSON. */
function readFootprintObject(value: unknown): Geometry | null {
  if (typeof value !== 'object' || value === null) return null;
  const { type, coordinates } = value as { type?: unknown; coordinates?: unknown };
  if (!hasPlaces(coordinates)) return null;
  if (type === 'Point' && isPosition(coordinates)) return { type, coordinates };
  if (type === 'MultiPoint' && isRing(coordinates)) return { type, coordinates };
  if (type === 'Polygon' && isRings(coordinates)) return { type, coordinates };
  if (type === 'MultiPolygon' && isListOf(coordinates, isRings)) return { type, coordinates };
  return null;
}

function hasPlaces(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function isPosition(value: unknown): value is Position {
  return Array.isArray(value) && Number.isFinite(value[0]) && Number.isFinite(value[1]);
}

function isRing(value: unknown): value is Ring {
  return isListOf(value, isPosition);
}

function isRings(value: unknown): value is Rings {
  return isListOf(value, isRing);
}

function isListOf<Item>(value: unknown, isItem: (item: unknown) => item is Item): value is Item[] {
  return Array.isArray(value) && value.every(isItem);
}

/** RFC 7946, 3.2; a product without a footprint has the geometry null. The product must have its record. */
export function toFeature(product: FoundProduct, catalogueUrl: string) {
  const { row, record } = product;
  const geometry = productView(record).geometry();
  return {
    type: 'Feature' as const,
    id: row.productId,
    geometry: geometry === null ? null : toGeoJson(geometry),
    properties: { ...toProductJson(row), ...toProductLinks(product, catalogueUrl) },
  };
}
