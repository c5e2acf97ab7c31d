/** A piece of SQL with the values of its parameters, and how pieces are joined. */

export interface SqlCondition {
  sql: string;
  values: readonly (string | number | bigint)[];
}

/**
 * Joins conditions as a balanced tree: SQLite bounds the depth of an expression, and a filter may have
 * thousands of terms. At least one.
 */
export function joined(operator: 'AND' | 'OR', conditions: readonly SqlCondition[]): SqlCondition {
  const [first, ...others] = conditions;
  if (first === undefined) throw new Error('There is nothing to join.');
  if (others.length === 0) return first;
  const middle = Math.ceil(conditions.length / 2);
  const left = joined(operator, conditions.slice(0, middle));
  const right = joined(operator, conditions.slice(middle));
  return {
    sql: `(${left.sql} ${operator} ${right.sql})`,
    values: [...left.values, ...right.values],
  };
}
