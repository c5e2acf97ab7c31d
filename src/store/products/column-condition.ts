/** One condition of a filter as SQL over the columns of `product p`, where they can answer it. */
import type { ComparisonOperator, FilterTree, Literal } from '../../domain/filter-tree.ts';
import { attributeReading, literalDate } from '../../filter/values.ts';
import { type Column, columnOfAttribute, columnOfField } from './product-columns.ts';
import type { SqlCondition } from './sql-condition.ts';

const sqlOperators: Record<Exclude<ComparisonOperator, 'eq' | 'ne'>, string> = {
  lt: '<',
  le: '<=',
  gt: '>',
  ge: '>=',
};

/** The condition, exact but for NULL where evaluation says false; null where records must be read. */
export function columnCondition(tree: FilterTree): SqlCondition | null {
  switch (tree.node) {
    case 'comparison': {
      const column = columnOfField(tree.field);
      // A field that is absent is unlike any value.
      return column ? compared(column, tree.operator, tree.literal, 'IS NOT') : null;
    }
    case 'attribute': {
      const { operator, literal } = tree;
      const column = columnOfCondition(tree);
      // An attribute that is absent has no value that could be unlike.
      return column ? compared(column, operator, literal, '<>') : null;
    }
    case 'in': {
      const column = columnOfField(tree.field);
      const values = tree.literals.map((literal) => column && sqlValue(column, literal));
      if (column === undefined || !values.every((value) => value !== undefined)) return null;
      return { sql: `p.${column.name} IN (${values.map(() => '?').join(', ')})`, values };
    }
    case 'text':
      return tree.field === 'Name' && isWholeInSql(tree.text)
        ? nameCondition(tree.function, tree.text)
        : null;
    default:
      return null;
  }
}

/** The column that holds what a condition compares; undefined where records must be read. */
export function columnOfCondition(tree: FilterTree): Column | undefined {
  if (tree.node === 'comparison' || tree.node === 'in') return columnOfField(tree.field);
  if (tree.node !== 'attribute') return undefined;
  const column = columnOfAttribute(tree.name);
  return column?.type === attributeReading(tree.valueKind, tree.literal).type ? column : undefined;
}

/** The value of a literal in a column; undefined where evaluation compares in another way. */
export function sqlValue({ type }: Column, literal: Literal): string | number | undefined {
  switch (type) {
    case 'text':
    case 'guid':
      return literal.type === 'text' && isWholeInSql(literal.value) ? literal.value : undefined;
    case 'number':
      return literal.type === 'number' ? literal.value : undefined;
    case 'boolean':
      return literal.type === 'boolean' ? Number(literal.value) : undefined;
    case 'date':
      return literalDate(literal) ?? undefined;
  }
}

/** SQLite's functions end a text at a NUL, and half a surrogate pair becomes another character. */
export function isWholeInSql(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

function compared(
  column: Column,
  operator: ComparisonOperator,
  literal: Literal,
  unlike: 'IS NOT' | '<>',
): SqlCondition | null {
  const value = sqlValue(column, literal);
  if (value === undefined) return null;
  if (operator === 'eq') return { sql: `p.${column.name} = ?`, values: [value] };
  if (operator === 'ne') return { sql: `p.${column.name} ${unlike} ?`, values: [value] };
  // The order of GUIDs, and of true and false, is nobody's question.
  if (column.type === 'guid' || column.type === 'boolean') return null;
  return { sql: `p.${column.name} ${sqlOperators[operator]} ?`, values: [value] };
}

function nameCondition(
  operation: 'contains' | 'startswith' | 'endswith',
  text: string,
): SqlCondition {
  if (text === '') return { sql: 'p.name IS NOT NULL', values: [] };
  if (operation === 'contains') return { sql: 'instr(p.name, ?) > 0', values: [text] };
  const characters = Array.from(text).length;
  const part = operation === 'startswith' ? `1, ${characters}` : `-${characters}`;
  return { sql: `substr(p.name, ${part}) = ?`, values: [text] };
}
