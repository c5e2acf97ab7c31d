/** The orders in which products are walked, and where a walk goes on. */
import { AppError } from '../../domain/app-error.ts';
import type { Direction } from '../../domain/filter-tree.ts';
import {
  defaultOrderOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type ProductRow,
} from '../../domain/products.ts';
import type { SqlCondition } from './sql-condition.ts';

const orderColumns = {
  received: { column: 'id', index: null, value: (row: ProductRow) => row.position },
  'ContentDate/Start': {
    column: 'sensing_start_us',
    index: 'product_by_sensing',
    value: (row: ProductRow) => row.sensingStartUs,
  },
  'ContentDate/End': {
    column: 'sensing_end_us',
    index: 'product_by_sensing_end',
    value: (row: ProductRow) => row.sensingEndUs,
  },
  PublicationDate: {
    column: 'publication_us',
    index: 'product_by_publication',
    value: (row: ProductRow) => row.publicationUs,
  },
  ModificationDate: {
    column: 'modification_us',
    index: 'product_by_modification',
    value: (row: ProductRow) => row.modificationUs,
  },
  DeletionDate: {
    column: 'deletion_us',
    index: 'product_by_deletion',
    value: (row: ProductRow) => row.deletionUs,
  },
} as const satisfies Record<ProductOrder, unknown>;

export interface Order {
  by: ProductOrder;
  direction: Direction;
  column: string;
  /** The index in this order; null for the table itself. */
  index: string | null;
}

/** The order of a query, or the one for its entity. */
export function orderOf({ entity, order }: Pick<ProductQuery, 'entity' | 'order'>): Order {
  const { by, direction } = order ?? defaultOrderOf(entity);
  if (by === 'DeletionDate' && entity === 'Products') {
    throw new AppError('invalid', 'Products that are not deleted have no order by DeletionDate.');
  }
  const { column, index } = orderColumns[by];
  return { by, direction, column, index };
}

export function keyOf(row: ProductRow, query: Pick<ProductQuery, 'entity' | 'order'>): ProductKey {
  return { value: orderColumns[orderOf(query).by].value(row), position: row.position };
}

/** A part of the order: rows with a value, or those without, which count as the smallest. */
export interface OrderPart {
  condition: SqlCondition;
  /** `ORDER BY` of the part. */
  orderBy: string;
}

/** The parts that follow a key, in their order. Each can be walked along the order's index. */
export function partsAfter(order: Order, after: ProductKey | undefined): OrderPart[] {
  const { column, direction } = order;
  const sign = direction === 'desc' ? '<' : '>';
  const orderBy = (columns: string[]) => columns.map((one) => `${one} ${direction}`).join(', ');
  if (column === 'id') {
    const condition = after
      ? { sql: `p.id ${sign} ?`, values: [after.position] }
      : { sql: 'TRUE', values: [] };
    return [{ condition, orderBy: orderBy(['p.id']) }];
  }
  const name = `p.${column}`;
  const valued = (condition: SqlCondition) => ({
    condition,
    orderBy: orderBy([name, 'p.id']),
  });
  const all = valued({ sql: `${name} IS NOT NULL`, values: [] });
  const empty = (sql: string, values: number[]) => ({
    condition: { sql: `${name} IS NULL${sql}`, values },
    orderBy: orderBy(['p.id']),
  });
  const allEmpty = empty('', []);
  if (after === undefined) return direction === 'desc' ? [all, allEmpty] : [allEmpty, all];
  if (after.value === null) {
    const rest = empty(` AND p.id ${sign} ?`, [after.position]);
    return direction === 'desc' ? [rest] : [rest, all];
  }
  const rest = valued({
    sql: `(${name}, p.id) ${sign} (?, ?)`,
    values: [after.value, after.position],
  });
  return direction === 'desc' ? [rest, allEmpty] : [rest];
}
