/** JSON rows and documents for programs, shared by the command line and the private listener (design, section 4). */

import { z } from 'zod';
import { formatDateUs } from './dates.ts';
import type { NotificationRow, QuarantineRow } from './ports.ts';
import type { ProductRow } from './products.ts';

/** Fields of a row in every machine-readable format, in this order. */
export const notificationFields = [
  'position',
  'ackId',
  'productId',
  'productName',
  'event',
  'subscription',
  'subscriptionId',
  'notificationDate',
  'receivedAt',
  'source',
  'timesSeen',
] as const;

/** Converts a row to JSON according to the interface contract: times as ISO 8601 UTC, absent values null. */
export function toNotificationJson(row: NotificationRow) {
  const { notificationDateUs: date } = row;
  return {
    position: row.position,
    ackId: row.ackId,
    productId: row.productId,
    productName: row.productName,
    event: row.event,
    subscription: row.subscription,
    subscriptionId: row.subscriptionId,
    notificationDate: date === null ? null : formatDateUs(date),
    receivedAt: formatDateUs(row.receivedAtUs),
    source: row.source,
    timesSeen: row.timesSeen,
  } satisfies Record<(typeof notificationFields)[number], unknown>;
}

/** Converts a quarantined body to JSON, without headers and content. */
export function toQuarantineJson(row: QuarantineRow) {
  return {
    id: row.id,
    receivedAt: formatDateUs(row.receivedAtUs),
    subscription: row.subscription,
    source: row.source,
    reason: row.reason,
    faults: row.faults,
    bodyBytes: row.bodyBytes,
    releasedAt: row.releasedAtUs === null ? null : formatDateUs(row.releasedAtUs),
  };
}

/** Columns of the product index in CSV, and first properties of a GeoJSON feature, in this order. */
export const productFields = [
  'position',
  'productId',
  'productName',
  'collection',
  'platform',
  'productType',
  'processingLevel',
  'sensingStart',
  'sensingEnd',
  'publicationDate',
  'modificationDate',
  'sizeBytes',
  'online',
  'cloudCoverPercent',
  'orbitNumber',
  'relativeOrbitNumber',
  'orbitDirection',
  'tile',
  'processingBaseline',
  'receivedAt',
  'deletionDate',
  'deletionCause',
] as const;

/** Converts a row to JSON, with times as ISO 8601 UTC; unknown values are null. */
export function toProductJson(row: ProductRow) {
  const time = (us: number | null) => (us === null ? null : formatDateUs(us));
  return {
    position: row.position,
    productId: row.productId,
    productName: row.productName,
    collection: row.collection,
    platform: row.platform,
    productType: row.productType,
    processingLevel: row.processingLevel,
    sensingStart: time(row.sensingStartUs),
    sensingEnd: time(row.sensingEndUs),
    publicationDate: time(row.publicationUs),
    modificationDate: time(row.modificationUs),
    sizeBytes: row.sizeBytes,
    online: row.online,
    cloudCoverPercent: row.cloudCoverPercent,
    orbitNumber: row.orbitNumber,
    relativeOrbitNumber: row.relativeOrbitNumber,
    orbitDirection: row.orbitDirection,
    tile: row.tile,
    processingBaseline: row.processingBaseline,
    receivedAt: formatDateUs(row.receivedAtUs),
    deletionDate: time(row.deletionUs),
    deletionCause: row.deletionCause,
  } satisfies Record<(typeof productFields)[number], unknown>;
}

/** Fields that locate the data of a product. They follow the columns in CSV and GeoJSON. */
export const productLinkFields = ['s3Path', 'downloadUrl'] as const;

/** Returns the locations of a product. Null: the record has no path, or the product is deleted. */
export function toProductLinks(row: ProductRow, catalogueUrl: string) {
  const product = `Products(${encodeURIComponent(row.productId)})`;
  return {
    s3Path: row.s3Path,
    downloadUrl: row.deletionUs === null ? `${catalogueUrl}/odata/v1/${product}/$value` : null,
  } satisfies Record<(typeof productLinkFields)[number], unknown>;
}

/** Options of `csv-stringify`. Names come from outside: a spreadsheet must not evaluate one as a formula. */
export const csvOptions = { escape_formulas: true, cast: { boolean: String } };

/** A time in JSON: ISO 8601, UTC, microseconds. */
export const timeField = z.iso.datetime({ precision: 6 });

type JsonName<Key> = Key extends 'lifetimeUs'
  ? 'lifetimeSeconds'
  : Key extends `${infer Name}Us`
    ? Name
    : Key;

type JsonField<Key, Value> =
  JsonName<Key> extends Key | 'lifetimeSeconds' ? Json<Value> : string | Extract<Value, null>;

export type Json<Value> = Value extends readonly (infer One)[]
  ? Json<One>[]
  : Value extends object
    ? { [Key in keyof Value as JsonName<Key> & PropertyKey]: JsonField<Key, Value[Key]> }
    : Value;

/** Converts a value to JSON. Fields that are not in the schema are omitted. */
export function toJson<Schema extends z.ZodType>(
  schema: Schema,
  value: z.input<Schema>,
): Json<z.output<Schema>> {
  return jsonOf(schema, value) as Json<z.output<Schema>>;
}

function jsonOf(schema: unknown, value: unknown): unknown {
  if (value === null) return null;
  if (schema instanceof z.ZodNullable) return jsonOf(schema.unwrap(), value);
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((one) => jsonOf(schema.element, one));
  }
  if (!(schema instanceof z.ZodObject)) return value;
  const fields = Object.entries(schema.shape).map(([key, field]) => {
    const own: unknown = Object(value)[key];
    if (typeof own !== 'number' || !key.endsWith('Us')) return [nameOf(key), jsonOf(field, own)];
    return [nameOf(key), isLength(key) ? own / 1_000_000 : formatDateUs(own)];
  });
  return Object.fromEntries(fields);
}

/** Returns the schema of the JSON written by `toJson`. */
export function jsonSchemaOf<Schema extends z.ZodType>(
  schema: Schema,
): z.ZodType<Json<z.output<Schema>>> {
  return describedAs(schema, jsonTypeOf(schema, '')) as z.ZodType<Json<z.output<Schema>>>;
}

function jsonTypeOf(schema: unknown, key: string): z.ZodType {
  if (schema instanceof z.ZodNullable) return jsonTypeOf(schema.unwrap(), key).nullable();
  if (schema instanceof z.ZodArray) return z.array(jsonTypeOf(schema.element, ''));
  if (schema instanceof z.ZodObject) {
    const fields = Object.entries<z.ZodType>(schema.shape).map(([name, field]) => [
      nameOf(name),
      describedAs(field, jsonTypeOf(field, name)),
    ]);
    return z.object(Object.fromEntries(fields));
  }
  return key.endsWith('Us') && !isLength(key) ? timeField : (schema as z.ZodType);
}

const describedAs = ({ description }: z.ZodType, type: z.ZodType) =>
  description === undefined ? type : type.describe(description);

const isLength = (key: string) => key === 'lifetimeUs';

const nameOf = (key: string) => key.replace(/Us$/, isLength(key) ? 'Seconds' : '');
