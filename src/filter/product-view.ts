/** View of a product record for filters; any part of the record may be missing, and old forms are read. */

import { readDateUs } from '../core/terms/dates.ts';
import { toProductJson, toProductLinks } from '../core/terms/read-models.ts';
import { type AnyGeometry, type AttributeKind, attributeKinds } from './filter-tree.ts';
import { toGeoJson } from './geometry/geojson.ts';
import { footprintOf } from './geometry/read-geometry.ts';
import { type Shape, toShape } from './geometry/shape.ts';
import { collectionOf, type ProductRecord, partOf, textOrNull } from './product-record.ts';
import type { FoundProduct } from './products.ts';

export interface StoredAttribute {
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
  /** Read once. */
  footprint(): Shape | null;
  geometry(): AnyGeometry | null;
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
  const geometry = once(() => footprintOf(record));
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
      return found === null ? null : toShape(found);
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
