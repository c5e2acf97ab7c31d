/** Sort orders of products in SQL, and how a scan resumes after a key. */

import { AppError } from '../../../../core/terms/app-error.ts';
import type { Direction } from '../../../../filter/filter-tree.ts';
import { type OrderTerm, orderTerms, type ProductKey } from '../../../../filter/product-order.ts';
import type { ProductQuery, ProductRow } from '../../../../filter/products.ts';
import type { Database } from '../../../../store/engine/database.ts';
import { joined, type SqlCondition } from './conditions.ts';

/** Value of a row in an order. */
interface OrderValue {
  sql: string;
  /** Index of the values, if any, and the condition of its rows. */
  index?: string;
  where?: string;
  read(row: ProductRow): string | number | null;
}

const orders: Readonly<Record<Exclude<OrderTerm['by'], 'received'>, OrderValue>> = {
  datetime: {
    sql: 'p.datetime_us',
    index: 'product_by_datetime',
    read: (row) => row.sensingStartUs ?? row.publicationDateUs ?? row.receivedAtUs,
  },
  'ContentDate/Start': {
    sql: 'p.sensing_start_us',
    index: 'product_by_sensing',
    read: (row) => row.sensingStartUs,
  },
  'ContentDate/End': {
    sql: 'p.sensing_end_us',
    index: 'product_by_sensing_end',
    read: (row) => row.sensingEndUs,
  },
  PublicationDate: {
    sql: 'p.publication_us',
    index: 'product_by_publication',
    read: (row) => row.publicationDateUs,
  },
  ModificationDate: {
    sql: 'p.modification_us',
    index: 'product_by_modification',
    read: (row) => row.modificationDateUs,
  },
  DeletionDate: {
    sql: 'p.deletion_us',
    index: 'product_by_deletion',
    where: 'p.deleted = 1',
    read: (row) => row.deletionDateUs,
  },
  Name: { sql: 'p.name', index: 'product_by_name', read: (row) => row.productName },
  Id: { sql: 'p.product_id', index: 'product_by_id', read: (row) => row.productId },
  cloudCover: { sql: 'p.cloud_cover', read: (row) => row.cloudCoverPercent },
};

export interface Order {
  /** Without `received`, which is the order of the ids. */
  terms: readonly (OrderValue & { direction: Direction })[];
  /** Direction of the ids. */
  direction: Direction;
}

/** Returns the order of a query, by default that of its entity. Throws `invalid` if the entity does not have it. */
export function orderOf(query: Pick<ProductQuery, 'entity' | 'order'>): Order {
  const order: Order = { terms: [], direction: 'desc' };
  for (const { by, direction } of orderTerms(query)) {
    order.direction = direction;
    // No two products were received at the same position.
    if (by === 'received') break;
    if (by === 'DeletionDate' && query.entity === 'Products') {
      throw new AppError(
        'invalid',
        'Products cannot be ordered by DeletionDate. Only DeletedProducts have this property.',
      );
    }
    order.terms = [...order.terms, { ...orders[by], direction }];
  }
  return order;
}

export function keyOf(row: ProductRow, query: Pick<ProductQuery, 'entity' | 'order'>): ProductKey {
  const values = orderOf(query).terms.map(({ read }) => read(row));
  return { values, position: row.position };
}

/** True if an index, or the table, has the order. */
export function isScanned({ terms: [term, second], direction }: Order): boolean {
  if (term === undefined) return true;
  return term.index !== undefined && term.direction === direction && second === undefined;
}

/** Names the index of an order that is scanned, for SQL. */
export function pathOf({ terms: [term] }: Order): string {
  return term?.index === undefined ? 'NOT INDEXED' : `INDEXED BY ${term.index}`;
}

/** Part of an order: the rows that fulfil a condition. */
export interface OrderPart {
  condition: SqlCondition;
  orderBy: string;
}

/** Returns all rows in order, or those after a key. SQLite, too, sorts rows without a value before others. */
export function rowsAfter({ terms, direction }: Order, after?: ProductKey): OrderPart {
  const orderBy = [...terms, { sql: 'p.id', direction }]
    .map((one) => `${one.sql} ${one.direction}`)
    .join(', ');
  if (after === undefined) return { condition: { sql: 'TRUE', values: [] }, orderBy };
  const byId = { sql: `p.id ${signOf(direction)} ?`, values: [after.position] };
  const condition = terms.reduceRight<SqlCondition>((rest, term, i) => {
    const value = after.values[i] ?? null;
    const equal = { sql: `${term.sql} IS ?`, values: [value] };
    return joined('OR', [further(term, value), joined('AND', [equal, rest])]);
  }, byId);
  return { condition, orderBy };
}

const signOf = (direction: Direction) => (direction === 'desc' ? '<' : '>');

function further({ sql, direction }: Order['terms'][number], value: string | number | null) {
  if (value === null)
    return { sql: direction === 'desc' ? 'FALSE' : `${sql} IS NOT NULL`, values: [] };
  const orEmpty = direction === 'desc' ? ` OR ${sql} IS NULL` : '';
  return { sql: `(${sql} ${signOf(direction)} ?${orEmpty})`, values: [value] };
}

/** Returns the parts after a key of an order that is scanned: rows with and without a value, in order. */
export function partsAfter(order: Order, after: ProductKey | undefined): OrderPart[] {
  const { terms, direction } = order;
  const [term] = terms;
  if (term === undefined) return [rowsAfter(order, after)];
  const { orderBy } = rowsAfter(order);
  const part = (sql: string, ...values: SqlCondition['values']) => ({
    condition: { sql, values },
    orderBy,
  });
  const all = part(`${term.sql} IS NOT NULL`);
  const allEmpty = part(`${term.sql} IS NULL`);
  if (after === undefined) return direction === 'desc' ? [all, allEmpty] : [allEmpty, all];
  const [value = null] = after.values;
  if (value === null) {
    const rest = part(`${term.sql} IS NULL AND p.id ${signOf(direction)} ?`, after.position);
    return direction === 'desc' ? [rest] : [rest, all];
  }
  const rest = part(`(${term.sql}, p.id) ${signOf(direction)} (?, ?)`, value, after.position);
  return direction === 'desc' ? [rest, allEmpty] : [rest];
}

/** Returns the first rows of a part, and the key of the last of them; without a key if there are no more rows. */
export function splitPart(
  database: Database,
  order: Order,
  part: OrderPart,
  rowsMax: number,
): { first: OrderPart; end: ProductKey | undefined } {
  const [term] = order.terms;
  const last = `SELECT ${term?.sql ?? 'NULL'} AS value, p.id AS position
    FROM product p ${pathOf(order)}
    WHERE ${term?.where ?? 'TRUE'} AND ${part.condition.sql}
    ORDER BY ${part.orderBy} LIMIT 1 OFFSET ?`;
  const end = database
    .prepare<unknown[], { value: string | number | null; position: number }>(last)
    .get(...part.condition.values, rowsMax - 1);
  if (end === undefined) return { first: part, end };
  const { value, position } = end;
  const sign = order.direction === 'desc' ? '>=' : '<=';
  const before: SqlCondition =
    term === undefined || value === null
      ? { sql: `p.id ${sign} ?`, values: [position] }
      : { sql: `(${term.sql}, p.id) ${sign} (?, ?)`, values: [value, position] };
  return {
    first: { ...part, condition: joined('AND', [part.condition, before]) },
    end: { values: term === undefined ? [] : [value], position },
  };
}
