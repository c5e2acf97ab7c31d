/** Sort orders of products, and how a scan resumes after a key. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../../domain/app-error.ts';
import type { Direction } from '../../../domain/filter-tree.ts';
import {
  defaultOrderOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type ProductRow,
} from '../../../domain/products.ts';
import { joined, type SqlCondition } from './conditions.ts';

/** Column of each order, its index (null for the table itself), and its field in a row. */
const orders = {
  received: ['id', null, 'position'],
  'ContentDate/Start': ['sensing_start_us', 'product_by_sensing', 'sensingStartUs'],
  'ContentDate/End': ['sensing_end_us', 'product_by_sensing_end', 'sensingEndUs'],
  PublicationDate: ['publication_us', 'product_by_publication', 'publicationUs'],
  ModificationDate: ['modification_us', 'product_by_modification', 'modificationUs'],
  DeletionDate: ['deletion_us', 'product_by_deletion', 'deletionUs'],
} as const satisfies Record<ProductOrder, readonly [string, string | null, keyof ProductRow]>;

export interface Order {
  column: string;
  index: string | null;
  value: (typeof orders)[ProductOrder][2];
  direction: Direction;
}

/** Returns the order of a query, by default that of its entity. Throws `invalid` if the entity does not have it. */
export function orderOf({ entity, order }: Pick<ProductQuery, 'entity' | 'order'>): Order {
  const { by, direction } = order ?? defaultOrderOf(entity);
  if (by === 'DeletionDate' && entity === 'Products') {
    throw new AppError(
      'invalid',
      'Products cannot be ordered by DeletionDate. Only DeletedProducts have this property.',
    );
  }
  const [column, index, value] = orders[by];
  return { column, index, value, direction };
}

export function keyOf(row: ProductRow, query: Pick<ProductQuery, 'entity' | 'order'>): ProductKey {
  return { value: row[orderOf(query).value], position: row.position };
}

/** Part of an order: the rows with a value, or those without, which count as the smallest. */
export interface OrderPart {
  condition: SqlCondition;
  orderBy: string;
}

/** Returns the parts after a key, in order. Each can be scanned with the order's index. */
export function partsAfter(
  { column, direction }: Order,
  after: ProductKey | undefined,
): OrderPart[] {
  const sign = direction === 'desc' ? '<' : '>';
  const name = `p.${column}`;
  const part = (columns: string[], sql: string, values: number[]): OrderPart => ({
    condition: { sql, values },
    orderBy: columns.map((one) => `${one} ${direction}`).join(', '),
  });
  const byId = (sql: string, ...values: number[]) => part(['p.id'], sql, values);
  const byValue = (sql: string, ...values: number[]) => part([name, 'p.id'], sql, values);
  if (column === 'id') {
    return [after === undefined ? byId('TRUE') : byId(`p.id ${sign} ?`, after.position)];
  }
  const all = byValue(`${name} IS NOT NULL`);
  const allEmpty = byId(`${name} IS NULL`);
  if (after === undefined) return direction === 'desc' ? [all, allEmpty] : [allEmpty, all];
  if (after.value === null) {
    const rest = byId(`${name} IS NULL AND p.id ${sign} ?`, after.position);
    return direction === 'desc' ? [rest] : [rest, all];
  }
  const rest = byValue(`(${name}, p.id) ${sign} (?, ?)`, after.value, after.position);
  return direction === 'desc' ? [rest, allEmpty] : [rest];
}

/**
 * Returns the first rows of a part, and the key of the last of them; without a key if there are no more rows. `path`
 * names the index of the order.
 */
export function splitPart(
  database: Database,
  { order: { column, direction }, path }: { order: Order; path: string },
  part: OrderPart,
  rowsMax: number,
): { first: OrderPart; end: ProductKey | undefined } {
  const last = `SELECT p.${column} AS value, p.id AS position FROM product p ${path}
    WHERE ${part.condition.sql} ORDER BY ${part.orderBy} LIMIT 1 OFFSET ?`;
  const end = database
    .prepare<unknown[], ProductKey>(last)
    .get(...part.condition.values, rowsMax - 1);
  if (end === undefined) return { first: part, end };
  const sign = direction === 'desc' ? '>=' : '<=';
  const before: SqlCondition =
    end.value === null
      ? { sql: `p.id ${sign} ?`, values: [end.position] }
      : { sql: `(p.${column}, p.id) ${sign} (?, ?)`, values: [end.value, end.position] };
  return { first: { ...part, condition: joined('AND', [part.condition, before]) }, end };
}
