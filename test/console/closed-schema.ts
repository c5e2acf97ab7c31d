/** A schema of the OpenAPI document made strict: a field that it does not tell of is an error. */

type Schema = Record<string, unknown>;

/** The same schema, in which no object may have other fields. */
export function closedSchema(schema: Schema): Schema {
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, closed(value)]),
  );
  return schema.type === 'object' ? { ...inner, additionalProperties: false } : inner;
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  return closedSchema(value as Schema);
}
