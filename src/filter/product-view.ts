/** A product record as a filter sees it: read field by field, of any age and with any part missing. */
import { type AttributeKind, attributeKinds } from '../domain/filter-tree.ts';
import type { Geometry } from '../domain/geometry.ts';
import { collectionOf } from './collection.ts';
import { readFootprintObject } from './footprint-object.ts';
import { readFootprintText } from './footprint-text.ts';
import { isEmptyShape, type Shape, toShape } from './geometry/shape.ts';
import { readFilterDate } from './parse-date.ts';
import { type ProductRecord, partOf, textOrNull } from './record-parts.ts';

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
