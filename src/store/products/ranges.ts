/** What the terms of an `and` say of a column together: the values it may have, or a range. */
import type { FilterTree } from '../../domain/filter-tree.ts';
import { columnOfCondition, sqlValue } from './column-condition.ts';
import type { SqlCondition } from './sql-condition.ts';

export interface ColumnRange {
  /** The only values it may have. */
  values?: readonly (string | number)[];
  /** Bounds, each included: for an index a bound too wide is as good. */
  from?: string | number;
  to?: string | number;
  /** The terms that say so. */
  terms: FilterTree[];
}

/** The ranges by the columns' names; conditions of any other kind are passed over. */
export function rangesOf(terms: readonly FilterTree[]): Map<string, ColumnRange> {
  const ranges = new Map<string, ColumnRange>();
  for (const term of terms) {
    const said = rangeOf(term);
    if (said === null) continue;
    const known = ranges.get(said.column);
    ranges.set(said.column, known === undefined ? said.range : narrowed(known, said.range));
  }
  return ranges;
}

/** A range as SQL over a column. */
export function rangeCondition(column: string, range: ColumnRange): SqlCondition {
  if (range.values !== undefined) {
    const marks = range.values.map(() => '?').join(', ');
    return { sql: `${column} IN (${marks})`, values: range.values };
  }
  const bounds = [
    ...(range.from === undefined ? [] : [{ sql: `${column} >= ?`, value: range.from }]),
    ...(range.to === undefined ? [] : [{ sql: `${column} <= ?`, value: range.to }]),
  ];
  return {
    sql: bounds.map(({ sql }) => sql).join(' AND '),
    values: bounds.map(({ value }) => value),
  };
}

function rangeOf(term: FilterTree): { column: string; range: ColumnRange } | null {
  if (term.node === 'or') return oneOf(term);
  const column = columnOfCondition(term);
  if (column === undefined) return null;
  const terms = [term];
  if (term.node === 'in') {
    const values = term.literals.map((literal) => sqlValue(column, literal));
    const known = values.filter((value) => value !== undefined);
    return known.length < values.length
      ? null
      : { column: column.name, range: { values: known, terms } };
  }
  if (term.node !== 'comparison' && term.node !== 'attribute') return null;
  const value = sqlValue(column, term.literal);
  if (value === undefined || term.operator === 'ne') return null;
  if (term.operator === 'eq') return { column: column.name, range: { values: [value], terms } };
  if (column.type === 'guid' || column.type === 'boolean') return null;
  const side = term.operator === 'gt' || term.operator === 'ge' ? 'from' : 'to';
  return { column: column.name, range: { [side]: value, terms } };
}

/** `a eq 1 or a eq 2`. */
function oneOf(term: Extract<FilterTree, { terms: unknown }>) {
  const said = term.terms.map(rangeOf);
  const [first] = said;
  if (first === null || first === undefined) return null;
  const values = said.flatMap((one) =>
    one?.column === first.column && one.range.values ? [one.range.values] : [],
  );
  if (values.length < said.length) return null;
  return { column: first.column, range: { values: values.flat(), terms: [term] } };
}

function narrowed(one: ColumnRange, other: ColumnRange): ColumnRange {
  const terms = [...one.terms, ...other.terms];
  // Values narrow more than bounds do; that both must hold is checked on each row.
  const values = one.values ?? other.values;
  if (values !== undefined) return { values, terms: one.values ? one.terms : other.terms };
  const from = [one.from, other.from].filter((bound) => bound !== undefined);
  const to = [one.to, other.to].filter((bound) => bound !== undefined);
  return {
    ...(from.length === 0 ? {} : { from: from.reduce((a, b) => (a > b ? a : b)) }),
    ...(to.length === 0 ? {} : { to: to.reduce((a, b) => (a < b ? a : b)) }),
    terms,
  };
}
