/**
 * JSON of documents that a zod schema describes: a field `…Us` is a time in microseconds, and becomes ISO 8601 UTC under
 * its name without the suffix; `lifetimeUs` is a duration, and becomes `lifetimeSeconds`. Fields have the schema's order.
 */
import { z } from 'zod';
import { formatDateUs } from './dates.ts';

/** A time as every answer writes it: ISO 8601, UTC, microseconds. */
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

/** Converts a value. Fields that the schema does not have are left out. */
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

/** The schema of that JSON. */
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
