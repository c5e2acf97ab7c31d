/** Reaches into records whose parts may be missing, or not be what they should be. */

/** JSON of the catalogue; nothing in it is certain to be there. */
export type ProductRecord = Readonly<Record<string, unknown>>;

/** A member of an object; undefined where it has none, or is no object. */
export function partOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as ProductRecord)[name];
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
