/** Paths below `/odata/v1` that lead to products: a list, or one record by its id. */
import { type Entity, entities } from '../../domain/filter-tree.ts';

export interface ProductPath {
  readonly entity: Entity;
  /** Null for the list. */
  readonly id: string | null;
}

const form = /^\/(\w+)(?:(?:\(|%28)([\w-]{1,100})(?:\)|%29))?$/;

/** Reads what follows `/odata/v1`; an id stands bare, without quotes. Null when it is none of these. */
export function readProductPath(resource: string): ProductPath | null {
  const [, name, id = null] = form.exec(resource) ?? [];
  const entity = entities.find((one) => one === name);
  return entity === undefined ? null : { entity, id };
}

/** The collection of `/Attributes(<collection>)`; null for any other path. */
export function readAttributesPath(resource: string): string | null {
  return /^\/Attributes(?:\(|%28)([\w-]{1,100})(?:\)|%29)$/.exec(resource)?.[1] ?? null;
}

/** The message of a collection without published attributes. */
export function unknownAttributes(collection: string): string {
  return `No attributes of the collection ${collection} are known.`;
}

/** What is said of an id that is none, as the catalogue does of subscriptions (facts, catalogue 1.4). */
export function unknownProduct(id: string): string {
  return `Product with id ${id} not found.`;
}
