/** The orders in which products are walked, and where a walk resumes. */
import { AppError } from '../../../domain/app-error.ts';
import type { Direction } from '../../../domain/filter-tree.ts';
import {
  defaultOrderOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type ProductRow,
} from '../../../domain/products.ts';
import type { SqlCondition } from './conditions.ts';

const orders = {
  received: { column: 'id', index: null, value: 'position' },
  'ContentDate/Start': {
    column: 'sensing_start_us',
    index: 'product_by_sensing',
    value: 'sensingStartUs',
  },
  'ContentDate/End': {
    column: 'sensing_end_us',
    index: 'product_by_sensing_end',
    value: 'sensingEndUs',
  },
  PublicationDate: {
    column: 'publication_us',
    index: 'product_by_publication',
    value: 'publicationUs',
  },
  ModificationDate: {
    column: 'modification_us',
    index: 'product_by_modification',
    value: 'modificationUs',
  },
  DeletionDate: { column: 'deletion_us', index: 'product_by_deletion', value: 'deletionUs' },
} as const satisfies Record<ProductOrder, { value: keyof ProductRow; [key: string]: unknown }>;

/** An order with its column, and the index in this order; null for the table itself. */
export type Order = (typeof orders)[ProductOrder] & { direction: Direction };

/** The order of a query, or the one for its entity. Throws `invalid` for one that the entity lacks. */
export function orderOf({ entity, order }: Pick<ProductQuery, 'entity' | 'order'>): Order {
  const { by, direction } = order ?? defaultOrderOf(entity);
  if (by === 'DeletionDate' && entity === 'Products') {
    throw new AppError('invalid', 'Products that are not deleted have no order by DeletionDate.');
  }
  return { ...orders[by], direction };
}

export function keyOf(row: ProductRow, query: Pick<ProductQuery, 'entity' | 'order'>): ProductKey {
  return { value: row[orderOf(query).value], position: row.position };
}

/** A part of the order: rows with a value, or those without, which count as the smallest. */
export interface OrderPart {
  condition: SqlCondition;
  orderBy: string;
}

/** The parts that follow a key, in their order. Each can be walked along the order's index. */
export function partsAfter(
  { column, direction }: Order,
  after: ProductKey | undefined,
): OrderPart[] {
  const sign = direction === 'desc' ? '<' : '>';
  const name = `p.${column}`;
  const byId = (sql: string, values: number[] = []): OrderPart => ({
    condition: { sql, values },
    orderBy: `p.id ${direction}`,
  });
  const byValue = (sql: string, values: number[] = []): OrderPart => ({
    condition: { sql, values },
    orderBy: `${name} ${direction}, p.id ${direction}`,
  });
  if (column === 'id') {
    return [after === undefined ? byId('TRUE') : byId(`p.id ${sign} ?`, [after.position])];
  }
  const all = byValue(`${name} IS NOT NULL`);
  const allEmpty = byId(`${name} IS NULL`);
  if (after === undefined) return direction === 'desc' ? [all, allEmpty] : [allEmpty, all];
  if (after.value === null) {
    const rest = byId(`${name} IS NULL AND p.id ${sign} ?`, [after.position]);
    return direction === 'desc' ? [rest] : [rest, all];
  }
  const rest = byValue(`(${name}, p.id) ${sign} (?, ?)`, [after.value, after.position]);
  return direction === 'desc' ? [rest, allEmpty] : [rest];
}
