/** Compares values of one type by the operators of the language. */
import type { ComparisonOperator } from '../domain/filter-tree.ts';

/** Values that can be compared: two texts, or two numbers (also dates and booleans as such). */
export type Comparable = string | number;

/** How two values that are both there compare. Texts go by code points, and case matters. */
export function comparisonOf(
  operator: ComparisonOperator,
): (value: Comparable, other: Comparable) => boolean {
  switch (operator) {
    case 'eq':
      return (value, other) => value === other;
    case 'ne':
      return (value, other) => value !== other;
    case 'lt':
      return (value, other) => order(value, other) < 0;
    case 'le':
      return (value, other) => order(value, other) <= 0;
    case 'gt':
      return (value, other) => order(value, other) > 0;
    case 'ge':
      return (value, other) => order(value, other) >= 0;
  }
}

function order(value: Comparable, other: Comparable): number {
  if (typeof value === 'number' && typeof other === 'number') return value - other;
  return codePointOrder(String(value), String(other));
}

/** Negative, 0 or positive. JavaScript itself orders by UTF-16 units, SQLite by code points. */
function codePointOrder(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const [unit, other] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (unit !== other) return rank(unit) - rank(other);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all other units. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
