/** Translates filters to SQL over the columns of `product p`. Every matching product fulfils the condition. */

import { AppError } from '../../../../core/terms/app-error.ts';
import { globOf } from '../../../../filter/evaluate.ts';
import type {
  ComparisonOperator,
  Direction,
  FilterTree,
  IntersectsNode,
  Literal,
  TextNode,
} from '../../../../filter/filter-tree.ts';
import { boxesOf, toShape } from '../../../../filter/geometry/shape.ts';
import { groupedTypes } from '../../../../filter/product-conditions.ts';
import type { Column } from '../../../../filter/product-facts.ts';
import {
  type OrderTerm,
  orderTerms,
  type ProductKey,
  type ProductQuery,
  type ProductRow,
} from '../../../../filter/products.ts';
import { asTruth, attributeReading, literalDate } from '../../../../filter/values.ts';
import { type Database, prepared } from '../../../../store/engine/database.ts';
import { columnsByAttribute, columnsByField, productIndexes } from '../product-schema.ts';

/** An SQL expression or statement, with the values of its parameters. */
export interface SqlCondition {
  sql: string;
  values: readonly (string | number | bigint | null)[];
}

/** Values of a column that a condition allows: a list, or a range with inclusive bounds. An index finds them. */
interface ColumnRange {
  column: string;
  values?: readonly (string | number)[];
  from?: string | number;
  to?: string | number;
}

/** A condition that every match fulfils. If `exact`, only matches fulfil it, and no record needs to be read. */
export interface Prefilter extends SqlCondition {
  exact: boolean;
  range?: ColumnRange;
}

/**
 * Joins one or more conditions as a balanced tree: SQLite limits the depth of an expression, and a filter may have
 * thousands of terms.
 */
export function joined(operator: 'AND' | 'OR', conditions: readonly SqlCondition[]): SqlCondition {
  const [first, ...others] = conditions;
  if (first === undefined) throw new Error('No conditions to join.');
  if (others.length === 0) return first;
  const middle = Math.ceil(conditions.length / 2);
  const left = joined(operator, conditions.slice(0, middle));
  const right = joined(operator, conditions.slice(middle));
  return {
    sql: `(${left.sql} ${operator} ${right.sql})`,
    values: [...left.values, ...right.values],
  };
}

/** Returns the condition for a value that a query sets; none for an absent value. */
export function conditionIf(sql: string, value: string | number | undefined): SqlCondition[] {
  return value === undefined ? [] : [{ sql, values: [value] }];
}

/** Returns null if no part of the filter can be answered without records. */
export function prefilterOf(tree: FilterTree, index: Database): Prefilter | null {
  switch (tree.node) {
    case 'and':
    case 'or': {
      const prefilters = tree.terms.map((term) => prefilterOf(term, index));
      const known = prefilters.filter((prefilter) => prefilter !== null);
      const isWhole = known.length === prefilters.length;
      if (known.length === 0 || (tree.node === 'or' && !isWhole)) return null;
      const exact = isWhole && known.every((prefilter) => prefilter.exact);
      const merged = tree.node === 'or' ? anyValue(known, exact) : null;
      return merged ?? { ...joined(tree.node === 'and' ? 'AND' : 'OR', known), exact };
    }
    case 'not': {
      const prefilter = prefilterOf(tree.term, index);
      if (prefilter === null || !prefilter.exact) return null;
      // NULL counts as false, and its negation as true.
      return { sql: `(${prefilter.sql}) IS NOT TRUE`, values: prefilter.values, exact: true };
    }
    case 'intersects':
      return { ...boxCondition(tree), exact: false };
    case 'attribute': {
      // The index lists the names of the attributes of all records.
      const sql = 'SELECT 1 FROM product_attribute WHERE name = ?';
      const isKnown = prepared(index, sql).get(tree.name) !== undefined;
      return isKnown ? columnCondition(tree) : decided(false);
    }
    default:
      return columnCondition(tree);
  }
}

/** Joins conditions on values of one column, such as `a eq 1 or a eq 2`; null for others. */
function anyValue(conditions: readonly Prefilter[], exact: boolean): Prefilter | null {
  const column = conditions[0]?.range?.column;
  const values = conditions.map(({ range }) => (range?.column === column ? range?.values : null));
  if (column === undefined || !values.every((list) => list != null)) return null;
  return oneOf(column, [...new Set(values.flat())], exact);
}

/** Compares the boxes of the product's footprint. */
function boxCondition({ geometry }: IntersectsNode): SqlCondition {
  const conditions = boxesOf(toShape(geometry)).map(({ west, south, east, north }) => ({
    sql: 'b.west <= ? AND b.east >= ? AND b.south <= ? AND b.north >= ?',
    values: [east, west, north, south],
  }));
  if (conditions.length === 0) return { sql: 'FALSE', values: [] };
  const { sql, values } = joined('OR', conditions);
  return {
    sql: `EXISTS (SELECT 1 FROM product_box b WHERE b.id IN (p.box_id, p.box_id + 128) AND (${sql}))`,
    values,
  };
}

/** The same for all products. */
const decided = (truth: boolean): Prefilter => ({
  ...{ sql: truth ? 'TRUE' : 'FALSE', values: [] },
  exact: true,
});

/** Returns a condition that is NULL where evaluation returns false; null if records must be read. */
function columnCondition(tree: FilterTree): Prefilter | null {
  if (tree.node === 'text') return nameCondition(tree);
  const column = columnOfCondition(tree);
  if (column === undefined) return null;
  switch (tree.node) {
    case 'comparison':
      // No product has a value of another type. An absent field is unequal to any value.
      if (sqlValue(column, tree.literal) === undefined) return decided(tree.operator === 'ne');
      return compared(column, tree, 'IS NOT');
    case 'attribute':
      // An absent attribute matches no comparison, not even `ne`.
      return compared(column, tree, '<>', [...groupedTypes(tree)]);
    case 'in': {
      const values = tree.literals.flatMap((literal) => sqlValue(column, literal) ?? []);
      return oneOf(column.name, values, tree.literals.every(isExact));
    }
    default:
      return null;
  }
}

/** Returns the column that a condition compares; undefined if records must be read. */
function columnOfCondition(tree: FilterTree): Column | undefined {
  if (tree.node === 'comparison' || tree.node === 'in') return columnsByField.get(tree.field);
  if (tree.node !== 'attribute') return undefined;
  const column = columnsByAttribute.get(tree.name);
  return column?.type === attributeReading(tree.valueKind, tree.literal).type ? column : undefined;
}

/** Returns the column value of a literal; undefined for a literal of another type. */
function sqlValue(column: Column, literal: Literal): string | number | undefined {
  const { type } = column;
  if (type === 'date') return literalDate(literal) ?? undefined;
  if (type === 'boolean') {
    return literal.type === 'date' ? undefined : (asTruth(literal.value) ?? undefined);
  }
  if (literal.type !== (type === 'guid' ? 'text' : type)) return undefined;
  if (literal.type === 'number') return literal.value;
  return literal.type === 'text' ? storedText(column.name, literal.value) : undefined;
}

/** Returns a text as it is in its column. Different texts may be the same there: see `isExact`. */
function storedText(column: string, text: string): string {
  const wellFormed = text.toWellFormed();
  return column === 'name' ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed;
}

/** Returns false for a text that may be equal to the column of a product with another text. */
function isExact(literal: Literal): boolean {
  return literal.type !== 'text' || isWholeInSql(literal.value);
}

function oneOf(column: string, values: readonly (string | number)[], exact: boolean): Prefilter {
  const isWhole = values.every((value) => typeof value === 'string' && isWholeInSql(value));
  // One parameter for many texts: SQLite limits their number.
  const isListed = values.length > 1 && isWhole;
  const marks = isListed ? 'SELECT value FROM json_each(?)' : values.map(() => '?').join(', ');
  const given = isListed ? [JSON.stringify(values)] : values;
  return { sql: `p.${column} IN (${marks})`, values: given, exact, range: { column, values } };
}

/** SQLite's functions cut a text at a NUL, and change half a surrogate pair to another character. */
export function isWholeInSql(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** `others`: values that are equal, too. */
function compared(
  column: Column,
  { operator, literal }: { operator: ComparisonOperator; literal: Literal },
  unequal: 'IS NOT' | '<>',
  others: readonly string[] = [],
): Prefilter | null {
  const value = sqlValue(column, literal);
  if (value === undefined) return null;
  const exact = isExact(literal);
  if (operator === 'eq') return oneOf(column.name, [value, ...others], exact);
  // GUIDs and booleans have no order.
  const isOrdered = column.type !== 'guid' && column.type !== 'boolean';
  if (!exact || (operator !== 'ne' && !isOrdered)) return null;
  const sqlOperators = { ne: unequal, lt: '<', le: '<=', gt: '>', ge: '>=' };
  const condition = { sql: `p.${column.name} ${sqlOperators[operator]} ?`, values: [value], exact };
  if (operator === 'ne') return condition;
  const bound = operator === 'gt' || operator === 'ge' ? { from: value } : { to: value };
  return { ...condition, range: { column: column.name, ...bound } };
}

function nameCondition({ field, function: operation, text }: TextNode): Prefilter | null {
  // Half a surrogate pair may be a part of a character in a name.
  if (field !== 'Name' || !text.isWellFormed()) return null;
  if (text === '') return { sql: 'p.name IS NOT NULL', values: [], exact: true };
  const [stored, exact] = [storedText('name', text), isWholeInSql(text)];
  if (operation === 'contains') return { sql: 'instr(p.name, ?) > 0', values: [stored], exact };
  if (operation === 'like') return { sql: 'p.name GLOB ?', values: [globOf(stored)], exact };
  const characters = Array.from(text).length;
  const part = operation === 'startswith' ? `1, ${characters}` : `-${characters}`;
  return { sql: `substr(p.name, ${part}) = ?`, values: [stored], exact };
}

/** Value of a row in an order, and the index of the values, if any. */
interface OrderValue {
  sql: string;
  index: (typeof productIndexes)[number] | undefined;
  read(row: ProductRow): string | number | null;
}

function orderValue(column: string, read: OrderValue['read']): OrderValue {
  const index = productIndexes.find(({ columns }) => columns.join() === column);
  return { sql: `p.${column}`, index, read };
}

const orders: Readonly<Record<Exclude<OrderTerm['by'], 'received'>, OrderValue>> = {
  datetime: orderValue(
    'datetime_us',
    (row) => row.sensingStartUs ?? row.publicationDateUs ?? row.receivedAtUs,
  ),
  'ContentDate/Start': orderValue('sensing_start_us', (row) => row.sensingStartUs),
  'ContentDate/End': orderValue('sensing_end_us', (row) => row.sensingEndUs),
  PublicationDate: orderValue('publication_us', (row) => row.publicationDateUs),
  ModificationDate: orderValue('modification_us', (row) => row.modificationDateUs),
  DeletionDate: orderValue('deletion_us', (row) => row.deletionDateUs),
  Name: orderValue('name', (row) => row.productName),
  Id: orderValue('product_id', (row) => row.productId),
  cloudCover: orderValue('cloud_cover', (row) => row.cloudCoverPercent),
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
  const { index } = term ?? {};
  if (index === undefined || term?.direction !== direction || second !== undefined) return null;
  const scan = (sql: string, ...values: SqlCondition['values']): SqlCondition => ({
    sql: `SELECT p.id FROM product p INDEXED BY ${index.name}
      WHERE ${index.where ?? 'TRUE'} AND ${sql} ORDER BY ${orderBy(order)} LIMIT ?`,
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
