/** Reaches into records whose parts may be missing, or not be what they should be. */

/** JSON of the catalogue; nothing in it is certain to be there. */
export type ProductRecord = Readonly<Record<string, unknown>>;

/** A member of an object; undefined where it has none, or is no object. */
export function partOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as ProductRecord)[name];
}

/** The record in a body (`value`, or `Value` as in old ones), or null when it came without one. */
export function recordIn(document: unknown, index: number): ProductRecord | null {
  const item: unknown = Array.isArray(document) ? document[index] : document;
  if (!isRecord(item)) return null;
  const { value, Value } = item;
  if (isRecord(value)) return value;
  return isRecord(Value) ? Value : null;
}

function isRecord(value: unknown): value is ProductRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
