/** The key under which a page of products goes on, as one word for the command line. */
import { z } from 'zod';
import { AppError } from '../../domain/app-error.ts';
import type { Entity } from '../../domain/filter-tree.ts';
import { jsonOf } from '../../domain/json-of.ts';
import type { ProductKey } from '../../domain/products.ts';
import type { Order } from './product-order.ts';

/** Entity, field and direction of the order, value, position. */
const keySchema = z.tuple([
  z.string(),
  z.string(),
  z.string(),
  z.int().nullable(),
  z.int().nonnegative(),
]);

/** A word of letters, digits, `-` and `_`. It says the order, too, as it means nothing in another one. */
export function writePageKey(
  { value, position }: ProductKey,
  entity: Entity,
  order: Order,
): string {
  const parts = [entity, order.by, order.direction, value, position];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Throws `usage` for what is no key, or one of another order. */
export function readPageKey(text: string, entity: Entity, order: Order): ProductKey {
  const parts = keySchema.safeParse(jsonOf(Buffer.from(text, 'base64url').toString())).data;
  if (parts === undefined) {
    throw new AppError(
      'usage',
      `--after ${text} is no key: use the one that the page before printed.`,
    );
  }
  const [ofEntity, by, direction, value, position] = parts;
  if (ofEntity === entity && by === order.by && direction === order.direction) {
    return { value, position };
  }
  const deleted = ofEntity === 'DeletedProducts' ? ' --deleted' : '';
  throw new AppError(
    'usage',
    `The key after --after belongs to --orderby "${by} ${direction}"${deleted}: use the same with it.`,
  );
}
