/**
 * Conditions of values that STAC writes differently from the catalogue: in lower case, with a prefix, or joined from
 * two attributes. Comparisons follow the order of the values that STAC shows.
 */
import type { ComparisonOperator } from '../../domain/filter-tree.ts';
import { and, attributeOf, type Expression, not, or, textField } from '../builder.ts';
import type { ProductView } from '../product-view.ts';

/** Matches all products, as every product has an id. */
export const everyProduct: Expression = textField('Id').ne('');
/** Matches no product. */
export const noProduct: Expression = textField('Id').eq('');

export interface MappedText {
  /** The value in an item; undefined for a product without one. */
  valueIn(view: ProductView): string | undefined;
  exists: Expression;
  /** Matches products whose value fulfils the comparison, and none without a value. */
  compare(operator: ComparisonOperator, text: string): Expression;
}

interface Ordered {
  exists: Expression;
  equals(text: string): Expression;
  /** Matches values before the text, in the order of STAC. */
  below(text: string): Expression;
}

function compareOrdered({ exists, equals, below }: Ordered): MappedText['compare'] {
  const others = (condition: Expression) => and(exists, not(condition));
  const comparisons: Record<ComparisonOperator, (text: string) => Expression> = {
    eq: equals,
    ne: (text) => others(equals(text)),
    lt: below,
    le: (text) => or(below(text), equals(text)),
    gt: (text) => others(or(below(text), equals(text))),
    ge: (text) => others(below(text)),
  };
  return (operator, text) => comparisons[operator](text);
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
    compare: compareOrdered({
      exists,
      equals: (text) => lowerCaseEquals(name, text),
      below: (text) => lowerCaseBelow(name, text),
    }),
  };
}

function lowerCaseEquals(name: string, text: string): Expression {
  const upper = text.toUpperCase();
  const isPossible = isUpperCase(upper) && text === upper.toLowerCase();
  return isPossible ? attributeOf(name, 'String').eq(upper) : noProduct;
}

/**
 * The order differs from that of upper-case texts, as `[`, `\`, `]`, `^`, `_` and the grave accent are after upper-case
 * letters and before lower-case ones. One term or two for each position in the text: the same start, and then a lower
 * character.
 */
function lowerCaseBelow(name: string, text: string): Expression {
  const attribute = attributeOf(name, 'String');
  const terms: Expression[] = [];
  for (const [i, character] of [...text].entries()) {
    const start = text.slice(0, i).toUpperCase();
    const between = (from: string, until: string) =>
      and(attribute.ge(start + from), attribute.lt(start + until));
    const isLetter = /[a-z]/.test(character);
    if (isLetter) terms.push(between('', character.toUpperCase()));
    else terms.push(between('', /[A-Z[-`]/.test(character) ? 'A' : character));
    if (isLetter || /[\\-`]/.test(character)) terms.push(between('[', isLetter ? 'a' : character));
    if (!/[ -@[-~]/.test(character)) break;
  }
  return terms.length === 0 ? noProduct : or(...terms);
}

/** An attribute with a prefix. Values that do not match the pattern are not shown. */
export function prefixed(name: string, prefix: string, pattern: RegExp): MappedText {
  const attribute = attributeOf(name, 'String');
  const exists = attribute.ge('');
  const startsSo = (text: string) => text.startsWith(prefix);
  return {
    valueIn: (view) => {
      const value = view.attribute(name)?.value;
      return typeof value === 'string' && pattern.test(value) ? `${prefix}${value}` : undefined;
    },
    exists,
    compare: compareOrdered({
      exists,
      equals: (text) => {
        const rest = startsSo(text) ? text.slice(prefix.length) : '';
        return pattern.test(rest) ? attribute.eq(rest) : noProduct;
      },
      below: (text) => {
        if (startsSo(text)) return attribute.lt(text.slice(prefix.length));
        return prefix < text ? exists : noProduct;
      },
    }),
  };
}

/** An upper-case attribute, and then a letter, if the other attribute is one letter. */
export function lowerCaseWithLetter(name: string, letterName: string): MappedText {
  const attribute = attributeOf(name, 'String');
  const letter = attributeOf(letterName, 'String');
  const hasLetter = or(...[...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'].map((one) => letter.eq(one)));
  const exists = attribute.ge('');
  /** Products whose attribute is the start of the text, and whose letter puts the value after it. */
  const startsThenAfter = (text: string) =>
    [...text, ''].map((character, i) => {
      const starts = lowerCaseEquals(name, text.slice(0, i));
      if (character < 'a') return starts;
      if (character > 'z') return noProduct;
      const upper = character.toUpperCase();
      const isLast = i === text.length - 1;
      return and(starts, isLast ? letter.ge(upper) : letter.gt(upper));
    });
  return {
    valueIn: (view) => {
      const value = view.attribute(name)?.value;
      const last = view.attribute(letterName)?.value;
      if (!isUpperCase(value)) return undefined;
      const isLetter = typeof last === 'string' && /^[A-Z]$/.test(last);
      return `${value}${isLetter ? last : ''}`.toLowerCase();
    },
    exists,
    compare: compareOrdered({
      exists,
      equals: (text) => {
        const whole = and(lowerCaseEquals(name, text), not(hasLetter));
        if (!/[a-z]$/.test(text)) return whole;
        const starts = lowerCaseEquals(name, text.slice(0, -1));
        return or(whole, and(starts, letter.eq(text.slice(-1).toUpperCase())));
      },
      below: (text) =>
        and(lowerCaseBelow(name, text), not(and(hasLetter, or(...startsThenAfter(text))))),
    }),
  };
}
