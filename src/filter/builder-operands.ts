/** What an expression can say about a field or an attribute, by the type of its values. */
import { AppError } from '../domain/app-error.ts';
import type {
  AttributeKind,
  ComparisonOperator,
  FilterTree,
  Literal,
  TextFunction,
} from '../domain/filter-tree.ts';
import { readFilterDate } from './parse-date.ts';
import { printFilter } from './print.ts';

/** A filter, or a part of one. As a text, also in JSON, it is what the catalogue reads. */
export interface Expression {
  readonly tree: FilterTree;
  toString(): string;
  toJSON(): string;
}

/** The comparisons that the language has. */
export interface Comparisons<Value> {
  eq(value: Value): Expression;
  ne(value: Value): Expression;
  lt(value: Value): Expression;
  le(value: Value): Expression;
  gt(value: Value): Expression;
  ge(value: Value): Expression;
}

/** Case matters everywhere. */
export interface TextField extends Comparisons<string> {
  contains(part: string): Expression;
  startsWith(part: string): Expression;
  endsWith(part: string): Expression;
}

/** A moment: a `Date`, or a text such as `2024-05-01` or `2024-05-01T12:00:00Z`; UTC without a zone. */
export type Moment = Date | string;

export interface DateField extends Comparisons<Moment> {
  /** At this moment or later. */
  from(moment: Moment): Expression;
  /** Before this moment. */
  until(moment: Moment): Expression;
}

/** What attributes of a kind are compared with. */
interface ValueOfKind {
  String: string;
  Double: number;
  Integer: number;
  DateTimeOffset: Moment;
  Boolean: boolean;
}

/** The comparisons of an attribute of a kind. */
export type AttributeOf<Kind extends AttributeKind> = Comparisons<ValueOfKind[Kind]>;

export function expression(tree: FilterTree): Expression {
  const text = () => printFilter(tree);
  return Object.freeze({ tree, toString: text, toJSON: text });
}

export function textField(field: string): TextField {
  const calling = (name: TextFunction) => (part: string) =>
    expression({ node: 'text', function: name, field, text: textOf(part, field) });
  return {
    ...fieldComparisons(field, textLiteral),
    contains: calling('contains'),
    startsWith: calling('startswith'),
    endsWith: calling('endswith'),
  };
}

export function dateField(field: string): DateField {
  const comparing = fieldComparisons(field, dateLiteral);
  return { ...comparing, from: comparing.ge, until: comparing.lt };
}

/** Comparisons of a field whose values become literals by `literalOf`. */
export function fieldComparisons<Value>(
  field: string,
  literalOf: (value: Value, what: string) => Literal,
): Comparisons<Value> {
  return comparisons((operator, value: Value) =>
    expression({ node: 'comparison', field, operator, literal: literalOf(value, field) }),
  );
}

export function attributeOf<Kind extends AttributeKind>(
  name: string,
  kind: Kind,
): AttributeOf<Kind> {
  return comparisons((operator, value: ValueOfKind[Kind]) => {
    const literal = literalOfKind[kind](value, name);
    return expression({ node: 'attribute', kind, name, valueKind: kind, operator, literal });
  });
}

function comparisons<Value>(
  compare: (operator: ComparisonOperator, value: Value) => Expression,
): Comparisons<Value> {
  return {
    eq: (value) => compare('eq', value),
    ne: (value) => compare('ne', value),
    lt: (value) => compare('lt', value),
    le: (value) => compare('le', value),
    gt: (value) => compare('gt', value),
    ge: (value) => compare('ge', value),
  };
}

// Values come from configuration files that may be plain JavaScript: types alone do not keep them right.

const literalOfKind: Readonly<Record<AttributeKind, (value: unknown, what: string) => Literal>> = {
  String: textLiteral,
  Double: numberLiteral,
  Integer: numberLiteral,
  DateTimeOffset: dateLiteral,
  Boolean: booleanLiteral,
};

export function textOf(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  return refuse(what, value, "a text, such as 'S2MSI2A'");
}

export function textLiteral(value: unknown, what: string): Literal {
  return { type: 'text', value: textOf(value, what) };
}

function numberLiteral(value: unknown, what: string): Literal {
  // Minus zero is zero, and has no way to be written.
  if (Number.isFinite(value)) return { type: 'number', value: Number(value) + 0 };
  return refuse(what, value, 'a number, such as 20');
}

function booleanLiteral(value: unknown, what: string): Literal {
  if (typeof value === 'boolean') return { type: 'boolean', value };
  return refuse(what, value, 'true or false');
}

function dateLiteral(value: unknown, what: string): Literal {
  const us = typeof value === 'string' ? readFilterDate(value) : usOfDate(value);
  if (us !== null) return { type: 'date', us };
  return refuse(what, value, "a valid Date, or a text such as '2024-05-01T12:00:00Z'");
}

/** Dates that microseconds cannot hold are the last or the first that they can. */
function usOfDate(value: unknown): number | null {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) return null;
  const us = value.getTime() * 1000;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, us));
}

function refuse(what: string, value: unknown, wanted: string): never {
  const isShort = typeof value === 'number' || typeof value === 'string';
  const given = isShort ? JSON.stringify(String(value).slice(0, 60)) : kindOfValue(value);
  throw new AppError('invalid', `${what} cannot be compared with ${given}. Give it ${wanted}.`);
}

function kindOfValue(value: unknown): string {
  if (value instanceof Date) return 'an invalid Date';
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  return `a value of type ${typeof value}`;
}
