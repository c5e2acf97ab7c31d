/** Sort orders of products in SQL, and how a scan resumes after a key. */

import { AppError } from '../../../../core/terms/app-error.ts';
import type { Direction } from '../../../../filter/filter-tree.ts';
import {
  type OrderTerm,
  orderTerms,
  type ProductKey,
  type ProductQuery,
  type ProductRow,
} from '../../../../filter/products.ts';
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

/** Formats the order for SQL. SQLite, too, sorts rows without a value before others. */
export function orderBy({ terms, direction }: Order): string {
  const all = [...terms, { sql: 'p.id', direction }];
  return all.map((one) => `${one.sql} ${one.direction}`).join(', ');
}

const signOf = (direction: Direction) => (direction === 'desc' ? '<' : '>');

/** Returns the condition of the rows after a key. */
export function rowsAfter({ terms, direction }: Order, after: ProductKey): SqlCondition {
  const byId = { sql: `p.id ${signOf(direction)} ?`, values: [after.position] };
  return terms.reduceRight<SqlCondition>((rest, term, i) => {
    const value = after.values[i] ?? null;
    const equal = { sql: `${term.sql} IS ?`, values: [value] };
    return joined('OR', [further(term, value), joined('AND', [equal, rest])]);
  }, byId);
}

function further({ sql, direction }: Order['terms'][number], value: string | number | null) {
  if (value === null)
    return { sql: direction === 'desc' ? 'FALSE' : `${sql} IS NOT NULL`, values: [] };
  const orEmpty = direction === 'desc' ? ` OR ${sql} IS NULL` : '';
  return { sql: `(${sql} ${signOf(direction)} ?${orEmpty})`, values: [value] };
}

/**
 * Returns statements that read ids after a key from the index of the order: of rows with and without a value, in order.
 * Their last parameter is a limit. Returns null if no index has the order.
 */
export function scansAfter(order: Order, after: ProductKey | undefined): SqlCondition[] | null {
  const { terms, direction } = order;
  const [term, second] = terms;
  if (term?.index === undefined || term.direction !== direction || second !== undefined)
    return null;
  const scan = (sql: string, ...values: SqlCondition['values']): SqlCondition => ({
    sql: `SELECT p.id FROM product p INDEXED BY ${term.index}
      WHERE ${term.where ?? 'TRUE'} AND ${sql} ORDER BY ${orderBy(order)} LIMIT ?`,
    values,
  });
  const all = scan(`${term.sql} IS NOT NULL`);
  const allEmpty = scan(`${term.sql} IS NULL`);
  if (after === undefined) return direction === 'desc' ? [all, allEmpty] : [allEmpty, all];
  const [value = null] = after.values;
  const sign = signOf(direction);
  if (value === null) {
    const rest = scan(`${term.sql} IS NULL AND p.id ${sign} ?`, after.position);
    return direction === 'desc' ? [rest] : [rest, all];
  }
  const rest = scan(`(${term.sql}, p.id) ${sign} (?, ?)`, value, after.position);
  return direction === 'desc' ? [rest, allEmpty] : [rest];
}
