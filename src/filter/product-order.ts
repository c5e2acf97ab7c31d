/** Orders of products, and keys that mark a place in an order. */
import { z } from 'zod';
import { jsonOf } from '../core/terms/text.ts';
import type { Direction, Entity } from './filter-tree.ts';

/** Orders of lists; `received` is the order of the first notifications. */
export const productOrders = [
  'received',
  'ContentDate/Start',
  'ContentDate/End',
  'PublicationDate',
  'ModificationDate',
  'DeletionDate',
] as const;
export type ProductOrder = (typeof productOrders)[number];

/** Further orders of STAC items; `datetime` is the start of sensing, else the time of publication, else of receipt. */
type ItemOrder = 'datetime' | 'Name' | 'Id' | 'cloudCover';

/** Products without a value count as those with the smallest: they are first in ascending order. */
export interface OrderTerm {
  by: ProductOrder | ItemOrder;
  direction: Direction;
}

interface OrderedQuery {
  entity: Entity;
  /** Terms, one or two. Products that are equal in all of them are in the order of receipt, in the last direction. */
  order?: OrderTerm | readonly OrderTerm[] | undefined;
}

/** Default order. */
export function defaultOrderOf(entity: Entity): { by: ProductOrder; direction: Direction } {
  return { by: entity === 'Products' ? 'received' : 'DeletionDate', direction: 'desc' };
}

/** Returns the terms of an order, by default that of the entity. */
export function orderTerms({ entity, order }: OrderedQuery): readonly OrderTerm[] {
  const terms = [order ?? []].flat();
  return terms.length === 0 ? [defaultOrderOf(entity)] : terms;
}

/** Place of a product in an order: its values of the terms (without `received`), and its position. */
export interface ProductKey {
  values: readonly (string | number | null)[];
  position: number;
}

const keySchema = z.tuple([
  z.enum(['Products', 'DeletedProducts']),
  z.string(),
  z.array(z.union([z.string(), z.number(), z.null()])),
  z.int().min(0),
]);

/** Formats a key for URLs and flags: letters, digits, `-` and `_`. Includes the order, as other orders have other keys. */
export function writeKey({ values, position }: ProductKey, query: OrderedQuery): string {
  const parts: z.input<typeof keySchema> = [query.entity, orderText(query), [...values], position];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Reads the key of any query; null for an invalid one. */
export function parseKey(text: string): { entity: Entity; order: string; key: ProductKey } | null {
  const parts = keySchema.safeParse(jsonOf(Buffer.from(text, 'base64url').toString())).data;
  if (parts === undefined) return null;
  const [entity, order, values, position] = parts;
  return { entity, order, key: { values, position } };
}

/** Reads a key; null for an invalid one, and for one of another order. */
export function readKey(text: string, query: OrderedQuery): ProductKey | null {
  const read = parseKey(text);
  const isSame = read?.entity === query.entity && read.order === orderText(query);
  return isSame ? read.key : null;
}

/** Formats an order as in `--orderby`. */
export function orderText(query: OrderedQuery): string {
  return orderTerms(query)
    .map(({ by, direction }) => `${by} ${direction}`)
    .join(', ');
}
