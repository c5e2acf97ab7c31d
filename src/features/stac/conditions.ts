/**
 * Conditions of values that STAC writes differently from the catalogue: in lower case, with a prefix, or joined from
 * two attributes.
 */
import { AppError } from '../../core/terms/app-error.ts';
import { and, attributeOf, type Expression, not, or, textField } from '../../filter/builder.ts';
import type { ComparisonOperator } from '../../filter/filter-tree.ts';
import type { ProductView } from '../../filter/product-view.ts';

/** Matches all products, as every product has an id. */
export const everyProduct: Expression = textField('Id').ne('');
/** Matches no product. */
export const noProduct: Expression = textField('Id').eq('');

export interface MappedText {
  /** The value in an item; undefined for a product without one. */
  valueIn(view: ProductView): string | undefined;
  exists: Expression;
  /** Matches products whose value fulfils the comparison, and none without a value. Throws `invalid` for an order. */
  compare(operator: ComparisonOperator, text: string, name: string): Expression;
}

/** Compares with `=`, `<>` and IN only: the order of the values in the catalogue is another one. */
function compareEqual(
  exists: Expression,
  equals: (text: string) => Expression,
): MappedText['compare'] {
  return (operator, text, name) => {
    if (operator === 'eq') return equals(text);
    if (operator === 'ne') return and(exists, not(equals(text)));
    throw new AppError('invalid', `${name} can only be compared with =, <> and IN.`);
  };
}

const tests: Record<ComparisonOperator, <T>(one: T, other: T) => boolean> = {
  eq: (one, other) => one === other,
  ne: (one, other) => one !== other,
  lt: (one, other) => one < other,
  le: (one, other) => one <= other,
  gt: (one, other) => one > other,
  ge: (one, other) => one >= other,
};

/** Compares a value that is one of a few, given in any order; FALSE is less than TRUE. */
export function compareAmong<T>(
  values: readonly T[],
  equals: (value: T) => Expression,
): (operator: ComparisonOperator, value: T) => Expression {
  return (operator, value) => {
    const matching = values.filter((one) => tests[operator](one, value));
    return matching.length === 0 ? noProduct : or(...matching.map(equals));
  };
}

/** Texts of ASCII without lower-case letters, so that lower case can be reversed. */
export const isUpperCase = (text: unknown): text is string =>
  typeof text === 'string' && /^[ -`{-~]*$/.test(text);

/** An attribute with a few upper-case values. */
export function oneOfLowerCase(name: string, values: readonly string[]): MappedText {
  const attribute = attributeOf(name, 'String');
  const equals = (text: string) => attribute.eq(text.toUpperCase());
  return {
    valueIn: (view) => {
      const value = view.attribute(name)?.value;
      return isUpperCase(value) ? values.find((one) => one === value.toLowerCase()) : undefined;
    },
    exists: or(...values.map(equals)),
    compare: compareAmong(values, equals),
  };
}

/** An upper-case attribute. */
export function lowerCase(name: string): MappedText {
  const attribute = attributeOf(name, 'String');
  const exists = attribute.ge('');
  return {
    valueIn: (view) => {
      const value = view.attribute(name)?.value;
      return isUpperCase(value) ? value.toLowerCase() : undefined;
    },
    exists,
    compare: compareEqual(exists, (text) => lowerCaseEquals(name, text)),
  };
}

function lowerCaseEquals(name: string, text: string): Expression {
  const upper = text.toUpperCase();
  const isPossible = isUpperCase(upper) && text === upper.toLowerCase();
  return isPossible ? attributeOf(name, 'String').eq(upper) : noProduct;
}

/** An attribute with a prefix. Values that do not match the pattern are not shown. */
export function prefixed(name: string, prefix: string, pattern: RegExp): MappedText {
  const attribute = attributeOf(name, 'String');
  const exists = attribute.ge('');
  return {
    valueIn: (view) => {
      const value = view.attribute(name)?.value;
      return typeof value === 'string' && pattern.test(value) ? `${prefix}${value}` : undefined;
    },
    exists,
    compare: compareEqual(exists, (text) => {
      const rest = text.startsWith(prefix) ? text.slice(prefix.length) : '';
      return pattern.test(rest) ? attribute.eq(rest) : noProduct;
    }),
  };
}

/** An upper-case attribute, and then a letter, if the other attribute is one letter. */
export function lowerCaseWithLetter(name: string, letterName: string): MappedText {
  const attribute = attributeOf(name, 'String');
  const letter = attributeOf(letterName, 'String');
  const hasLetter = or(...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'].map((one) => letter.eq(one)));
  const exists = attribute.ge('');
  return {
    valueIn: (view) => {
      const value = view.attribute(name)?.value;
      const last = view.attribute(letterName)?.value;
      if (!isUpperCase(value)) return undefined;
      const isLetter = typeof last === 'string' && /^[A-Z]$/.test(last);
      return `${value}${isLetter ? last : ''}`.toLowerCase();
    },
    exists,
    compare: compareEqual(exists, (text) => {
      const whole = and(lowerCaseEquals(name, text), not(hasLetter));
      if (!/[a-z]$/.test(text)) return whole;
      const starts = lowerCaseEquals(name, text.slice(0, -1));
      return or(whole, and(starts, letter.eq(text.slice(-1).toUpperCase())));
    }),
  };
}
