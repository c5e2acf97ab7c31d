/** View of a product record for filters; any part of the record may be missing, and old forms are read. */
import { readDateUs } from '../domain/dates.ts';
import {
  type AttributeKind,
  attributeKinds,
  type Geometry,
  type Position,
  type Ring,
  type Rings,
} from '../domain/filter-tree.ts';
import { toProductJson, toProductLinks } from '../domain/json-rows.ts';
import type { FoundProduct } from '../domain/products.ts';
import { toGeoJson } from './geometry/geojson.ts';
import { isEmptyShape, type Shape, toShape } from './geometry/shape.ts';
import { collectionOf, type ProductRecord, partOf, textOrNull } from './product-record.ts';
import { asNumber } from './values.ts';

interface StoredAttribute {
  kind: AttributeKind;
  /** As in the record: a String attribute may contain a number. Never undefined. */
  value: unknown;
}

/** Values are null if the record does not have them. */
export interface ProductView {
  /** `Name`, `Id`, `Collection/Name` or `DeletionCause`. */
  text(field: string): string | null;
  /** `ContentDate/Start`, `PublicationDate`, …: microseconds since 1970, UTC. */
  dateUs(field: string): number | null;
  readonly online: boolean | null;
  /** The first attribute of this name; case-sensitive. */
  attribute(name: string): StoredAttribute | null;
  attributeNames(): Iterable<string>;
  /** Read once; also null for an empty geometry. */
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

/** Creates the view of a record. Never throws; parts are read on first use. */
export function productView(record: ProductRecord): ProductView {
  const attributes = once(() => attributesOf(record));
  const geometry = once(
    () =>
      readFootprintText(textOrNull(record.Footprint) ?? '') ??
      readFootprintObject(record.GeoFootprint),
  );
  // Some responses of the catalogue contain it.
  const collection = once(
    () => textOrNull(partOf(record.Collection, 'Name')) ?? collectionOf(record),
  );
  return {
    text: (field) => {
      if (textFields.has(field)) return textOrNull(record[field]);
      return field === 'Collection/Name' ? collection() : null;
    },
    dateUs: (field) => readDateUs(dateValue(record, field)),
    // Not a getter: V8 would create a hidden class for each view, which only a full collection removes.
    online: typeof record.Online === 'boolean' ? record.Online : null,
    attribute: (name) => attributes().get(name) ?? null,
    attributeNames: () => attributes().keys(),
    footprint: once(() => {
      const found = geometry();
      const shape = found === null ? null : toShape(found);
      return shape === null || isEmptyShape(shape) ? null : shape;
    }),
    geometry,
  };
}

/** A product as a GeoJSON feature (RFC 7946, 3.2); without a footprint the geometry is null. Requires the record. */
export function toFeature(product: FoundProduct, catalogueUrl: string) {
  const { row, record } = product;
  const geometry = productView(record).geometry();
  return {
    type: 'Feature' as const,
    id: row.productId,
    geometry: geometry === null ? null : toGeoJson(geometry),
    properties: { ...toProductJson(row), ...toProductLinks(row, catalogueUrl) },
  };
}

function once<Value>(read: () => Value): () => Value {
  let kept: { value: Value } | null = null;
  return () => {
    kept ??= { value: read() };
    return kept.value;
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
    const kind =
      kindByName.get(partOf(item, '@odata.type')) ?? kindByName.get(partOf(item, 'ValueType'));
    if (typeof name !== 'string' || kind === undefined || found.has(name)) continue;
    found.set(name, { kind, value: partOf(item, 'Value') ?? null });
  }
  return found;
}

const kindByName: ReadonlyMap<unknown, AttributeKind> = new Map(
  attributeKinds.flatMap((kind) => [
    [kind, kind],
    [`#OData.CSC.${kind}Attribute`, kind],
  ]),
);

const footprintForm =
  /^\s*(?:geography'\s*)?(?:SRID=4326;\s*)?(MULTIPOINT|POINT|MULTIPOLYGON|POLYGON)([^']*)(?:'\s*)?$/i;
const geoJsonTypes: Readonly<Record<string, Geometry['type']>> = {
  POINT: 'Point',
  MULTIPOINT: 'MultiPoint',
  POLYGON: 'Polygon',
  MULTIPOLYGON: 'MultiPolygon',
};

/**
 * Parses `geography'SRID=4326;POLYGON ((…))'` from a record, in time linear in its length; null if it cannot be
 * parsed. Rings may be open, self-intersecting or out of range; coordinates after the first two are ignored.
 */
function readFootprintText(text: string): Geometry | null {
  const [, word = '', body = ''] = footprintForm.exec(text) ?? [];
  const type = geoJsonTypes[word.toUpperCase()];
  const lists = listsIn(body);
  if (type === 'Point') return readFootprintObject({ type, coordinates: lists?.[0] });
  // Each point may be in parentheses.
  const coordinates = type === 'MultiPoint' ? lists?.map(onlyItem) : lists;
  return readFootprintObject({ type, coordinates });
}

const tokens = /[(),]|[^\s(),]+/g;

/** Parses the position lists of well-known text; null for malformed text, and if a list is empty. */
function listsIn(body: string): unknown[] | null {
  // The open lists, the outermost first.
  const open: unknown[][] = [[]];
  let position: number[] | null = null;
  let needsItem = true;
  for (const token of body.match(tokens) ?? []) {
    const list = open.at(-1);
    if (token === '(') {
      if (!needsItem) return null;
      open.push([]);
    } else if (token === ',' || token === ')') {
      if (needsItem || list === undefined) return null;
      if (position !== null) list.push(position);
      position = null;
      needsItem = token === ',';
      if (token === ')') {
        open.pop();
        if (open.length === 0) return null;
        open.at(-1)?.push(list);
      }
    } else {
      const value = asNumber(token);
      if (value === null || !(needsItem || position)) return null;
      needsItem = false;
      position ??= [];
      if (position.length < 2) position.push(value);
    }
  }
  const [lists, ...others] = open[0] ?? [];
  const isComplete = open.length === 1 && others.length === 0 && !needsItem && position === null;
  return isComplete && Array.isArray(lists) ? lists : null;
}

function onlyItem(list: unknown): unknown {
  return Array.isArray(list) && list.length === 1 ? list[0] : list;
}

/** Reads the GeoFootprint (GeoJSON) of a record without validation; null if it cannot be read. */
function readFootprintObject(value: unknown): Geometry | null {
  const [type, coordinates] = [partOf(value, 'type'), partOf(value, 'coordinates')];
  if (!Array.isArray(coordinates) || coordinates.length === 0) return null;
  if (type === 'Point' && isPosition(coordinates)) return { type, coordinates };
  if (type === 'MultiPoint' && isRing(coordinates)) return { type, coordinates };
  if (type === 'Polygon' && isRings(coordinates)) return { type, coordinates };
  if (type === 'MultiPolygon' && isListOf(coordinates, isRings)) return { type, coordinates };
  return null;
}

function isPosition(value: unknown): value is Position {
  return Array.isArray(value) && Number.isFinite(value[0]) && Number.isFinite(value[1]);
}

const isRing = (value: unknown): value is Ring => isListOf(value, isPosition);
const isRings = (value: unknown): value is Rings => isListOf(value, isRing);

function isListOf<Item>(value: unknown, isItem: (item: unknown) => item is Item): value is Item[] {
  return Array.isArray(value) && value.every(isItem);
}
