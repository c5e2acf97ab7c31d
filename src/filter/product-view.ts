/** View of a product record for filters; any part of the record may be missing, and old forms are read. */

import { readDateUs } from '../core/terms/dates.ts';
import { toProductJson, toProductLinks } from '../core/terms/read-models.ts';
import { findField, findMission, missionOfName } from './fields.ts';
import { type AnyGeometry, attributeKinds } from './filter-tree.ts';
import { toGeoJson } from './geometry/geojson.ts';
import { footprintOf } from './geometry/read-geometry.ts';
import { type Shape, toShape } from './geometry/shape.ts';
import type { FoundProduct } from './products.ts';
import { type ProductRecord, partOf, textOrNull } from './values.ts';

/** Values are null if the record does not have them. */
export interface ProductView {
  /** `Name`, `Id`, `Collection/Name` or `DeletionCause`. */
  text(field: string): string | null;
  /** `ContentDate/Start`, `PublicationDate`, …: microseconds since 1970, UTC. */
  dateUs(field: string): number | null;
  readonly online: boolean | null;
  /** Value of the first attribute of this name, as in the record: a String may be a number. Case-sensitive. */
  attribute(name: string): unknown;
  attributeNames(): Iterable<string>;
  /** Read once. */
  footprint(): Shape | null;
  geometry(): AnyGeometry | null;
}

/** Creates the view of a record. Never throws; parts are read on first use. */
export function productView(record: ProductRecord): ProductView {
  const attributes = once(() => attributesOf(record));
  const geometry = once(() => footprintOf(record));
  // Some responses of the catalogue contain it.
  const collection = once(
    () => textOrNull(partOf(record.Collection, 'Name')) ?? collectionOf(record),
  );
  return {
    text: (field) =>
      field === 'Collection/Name' ? collection() : textOrNull(valueAt(record, field)),
    dateUs: (field) => readDateUs(valueAt(record, field)),
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

/** Returns the value of a property of the filter language; undefined for another one. */
function valueAt(record: ProductRecord, field: string): unknown {
  if (findField(field) === undefined) return undefined;
  const [name = '', part] = field.split('/');
  return part === undefined ? record[name] : partOf(record[name], part);
}

function attributesOf(record: ProductRecord): Map<string, unknown> {
  const found = new Map<string, unknown>();
  if (!Array.isArray(record.Attributes)) return found;
  for (const item of record.Attributes) {
    const name = partOf(item, 'Name');
    const isTyped = ['@odata.type', 'ValueType'].some((part) => kindNames.has(partOf(item, part)));
    if (typeof name !== 'string' || !isTyped || found.has(name)) continue;
    found.set(name, partOf(item, 'Value') ?? null);
  }
  return found;
}

const kindNames: ReadonlySet<unknown> = new Set(
  attributeKinds.flatMap((kind) => [kind, `#OData.CSC.${kind}Attribute`]),
);

/**
 * Returns the published name of the collection, from the platform, else the folder in `S3Path`
 * (`/eodata/Sentinel-2/…`), else the prefix of the product name. Null if none is known.
 */
function collectionOf(record: ProductRecord): string | null {
  const path = textOrNull(record.S3Path) ?? '';
  const folder = findMission(path.split('/').find((part) => part !== '' && part !== 'eodata'));
  if (folder?.isDerived) return folder.collection;
  const byName = missionOfName(textOrNull(record.Name) ?? '');
  return (findMission(platformOf(record)) ?? folder ?? byName)?.collection ?? null;
}

/** Value of platformShortName; old records have attribute names in lower case. */
function platformOf({ Attributes: attributes }: ProductRecord): string | null {
  if (!Array.isArray(attributes)) return null;
  const found = attributes.find(
    (item) => textOrNull(partOf(item, 'Name'))?.toLowerCase() === 'platformshortname',
  );
  return textOrNull(partOf(found, 'Value'));
}
