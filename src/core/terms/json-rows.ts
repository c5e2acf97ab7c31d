/** JSON of read models, shared by the command line and the private listener (design, section 4). */
import { z } from 'zod';
import { formatDateUs } from './dates.ts';

/** Options of `csv-stringify`. Names come from outside: a spreadsheet must not evaluate one as a formula. */
export const csvOptions = { escape_formulas: true, cast: { boolean: String } };

/** A time in JSON: ISO 8601, UTC, microseconds. */
const timeField = z.iso.datetime({ precision: 6 });

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

/** Converts a value to JSON: times become ISO 8601 UTC. Fields that are not in the schema are omitted. */
export function toJson<Schema extends z.ZodType>(
  schema: Schema,
  value: z.input<Schema>,
): Json<z.output<Schema>> {
  return converterOf(schema)(value) as Json<z.output<Schema>>;
}

type Converter = (value: unknown) => unknown;

/** By schema: a query may convert a million rows. */
const converters = new WeakMap<z.ZodType, Converter>();

function converterOf(schema: unknown): Converter {
  if (!(schema instanceof z.ZodType)) return (value) => value;
  const converter = converters.get(schema) ?? newConverter(schema);
  converters.set(schema, converter);
  return converter;
}

function newConverter(schema: z.ZodType): Converter {
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) {
    const own = converterOf(schema.unwrap());
    return (value) => (value == null ? value : own(value));
  }
  if (schema instanceof z.ZodArray) {
    const own = converterOf(schema.element);
    return (value) => (value as unknown[]).map(own);
  }
  if (!(schema instanceof z.ZodObject)) return (value) => value;
  const fields = Object.entries(schema.shape).map(([key, field]) => {
    return { key, name: nameOf(key), convert: timeConverter(key) ?? converterOf(field) };
  });
  return (value) => {
    const json: Record<string, unknown> = {};
    for (const { key, name, convert } of fields) {
      const own = (value as Record<string, unknown>)[key];
      if (own !== undefined) json[name] = convert(own);
    }
    return json;
  };
}

function timeConverter(key: string): Converter | null {
  if (!key.endsWith('Us')) return null;
  const convert = isLength(key) ? (us: number) => us / 1_000_000 : formatDateUs;
  return (value) => (typeof value === 'number' ? convert(value) : value);
}

/** Returns the names of the fields that `toJson` writes, in their order. */
export function jsonFields<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
): (JsonName<keyof Shape> & string)[] {
  return Object.keys(schema.shape).map(nameOf) as (JsonName<keyof Shape> & string)[];
}

type JsonType<Key, Type> =
  Type extends z.ZodOptional<infer Inner>
    ? z.ZodOptional<z.ZodType<JsonField<Key, z.output<Inner>>>>
    : z.ZodType<JsonField<Key, z.output<Type>>>;

type JsonShape<Shape extends z.ZodRawShape> = {
  [Key in keyof Shape as JsonName<Key> & string]: JsonType<Key, Shape[Key]>;
};

/** Returns the schema of the JSON written by `toJson`. */
export function jsonSchemaOf<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
): z.ZodObject<JsonShape<Shape>> {
  return describedAs(schema, jsonTypeOf(schema, '')) as z.ZodObject<JsonShape<Shape>>;
}

function jsonTypeOf(schema: unknown, key: string): z.ZodType {
  if (schema instanceof z.ZodNullable) return jsonTypeOf(schema.unwrap(), key).nullable();
  if (schema instanceof z.ZodOptional) return jsonTypeOf(schema.unwrap(), key).optional();
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

interface ListLimits {
  /** Minimum and maximum length. */
  min?: number;
  max: number;
  /** Message for a longer list. */
  tooLong?: string;
}

/** Returns the schema of a list. Its length is checked first: thousands of invalid items would take seconds. */
export function listSchema<Item extends z.ZodType>(
  item: Item,
  { min = 0, max, tooLong }: ListLimits,
) {
  return z.array(z.custom<z.input<Item>>()).min(min).max(max, tooLong).pipe(z.array(item));
}
