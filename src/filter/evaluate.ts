/** Evaluates a filter on product records (decision 35). */

import { type FieldType, findField } from './fields.ts';
import type { FilterTree, Literal, TextNode } from './filter-tree.ts';
import { shapesIntersect, toShape } from './geometry/shape.ts';
import { groupedTypes } from './product-conditions.ts';
import type { ProductView } from './product-view.ts';
import { asTruth, attributeReading, type Comparable, comparisonOf, literalDate } from './values.ts';

export type ProductTest = (product: ProductView) => boolean;

/**
 * Compiles a filter for many products. Conditions are true or false, by the rules of OData 4.01 for absent values: a
 * condition on an absent value is false, except `ne`, which is true; `not` negates. An unknown property is always
 * absent. The result never throws.
 */
export function compileFilter(tree: FilterTree): ProductTest {
  switch (tree.node) {
    case 'and': {
      const tests = tree.terms.map(compileFilter);
      return (product) => tests.every((test) => test(product));
    }
    case 'or': {
      const tests = tree.terms.map(compileFilter);
      return (product) => tests.some((test) => test(product));
    }
    case 'not': {
      const test = compileFilter(tree.term);
      return (product) => !test(product);
    }
    case 'comparison': {
      const { read, literalOf } = fieldReading(tree.field);
      const other = literalOf(tree.literal);
      const compare = comparisonOf[tree.operator];
      const whenAbsent = tree.operator === 'ne';
      if (other === null) return () => whenAbsent;
      return (product) => {
        const value = read(product);
        return value === null ? whenAbsent : compare(value, other);
      };
    }
    case 'in': {
      const { read, literalOf } = fieldReading(tree.field);
      const accepted = new Set(tree.literals.map(literalOf));
      return (product) => {
        const value = read(product);
        return value !== null && accepted.has(value);
      };
    }
    case 'text':
      return compileText(tree);
    case 'attribute': {
      // `any` over the attributes is false without one of that name, for every operator.
      const { literal, read } = attributeReading(tree.valueKind, tree.literal);
      const compare = comparisonOf[tree.operator];
      const grouped: ReadonlySet<Comparable> = groupedTypes(tree);
      return (product) => {
        const value = read(product.attribute(tree.name));
        return value !== null && (compare(value, literal) || grouped.has(value));
      };
    }
    case 'intersects': {
      const area = toShape(tree.geometry);
      return (product) => {
        const footprint = product.footprint();
        return footprint !== null && shapesIntersect(area, footprint);
      };
    }
  }
}

type TextTest = (text: string) => boolean;

const textTests: Readonly<Record<TextNode['function'], (part: string) => TextTest>> = {
  contains: (part) => (text) => text.includes(part),
  startswith: (part) => (text) => text.startsWith(part),
  endswith: (part) => (text) => text.endsWith(part),
  like: compilePattern,
};

function compileText({ function: name, field, text }: TextNode): ProductTest {
  const { type, read } = fieldReading(field);
  if (type !== 'text' && type !== 'guid') return () => false;
  const isMatch = textTests[name](type === 'guid' ? text.toLowerCase() : text);
  return (product) => {
    const value = read(product);
    return typeof value === 'string' && isMatch(value);
  };
}

/** Conversion of values and literals for comparison: ids in lower case, Booleans as 1 and 0. */
interface TypeReading {
  readonly read: (product: ProductView, name: string) => Comparable | null;
  /** Null for a literal of a different type. */
  readonly literalOf: (literal: Literal) => Comparable | null;
}

const typeReadings: Readonly<Record<FieldType, TypeReading>> = {
  text: {
    read: (product, name) => product.text(name),
    literalOf: (literal) => (literal.type === 'text' ? literal.value : null),
  },
  guid: {
    read: (product, name) => product.text(name)?.toLowerCase() ?? null,
    literalOf: (literal) => (literal.type === 'text' ? literal.value.toLowerCase() : null),
  },
  date: {
    read: (product, name) => product.dateUs(name),
    literalOf: literalDate,
  },
  boolean: {
    read: (product) => asTruth(product.online),
    literalOf: (literal) => (literal.type === 'date' ? null : asTruth(literal.value)),
  },
};

function fieldReading(field: string) {
  const { name, type } = findField(field) ?? { name: field, type: 'text' as const };
  const { read, literalOf } = typeReadings[type];
  return { type, literalOf, read: (product: ProductView) => read(product, name) };
}

/**
 * Splits a pattern of `LIKE` in CQL2 at `%`, which is any text. `one` replaces `_`, which is any character; null: splits
 * there, too. A backslash escapes the following character.
 */
function partsOf(pattern: string, one: string | null, literal: (character: string) => string) {
  const parts = [''];
  for (const written of pattern.match(/\\.|[^\\]/gsu) ?? []) {
    if (written === '%' || (written === '_' && one === null)) parts.push('');
    else if (written === '_') parts.push(`${parts.pop()}${one}`);
    else parts.push(`${parts.pop()}${literal(written.replace(/^\\/, ''))}`);
  }
  return parts;
}

/** Returns the literal texts between wildcards, in order; empty ones between neighbouring wildcards. */
export function literalsIn(pattern: string): string[] {
  return partsOf(pattern, null, String);
}

/** Converts to a pattern of `GLOB` in SQLite. */
export function globOf(pattern: string): string {
  const literal = (text: string) => (/[*?[]/.test(text) ? `[${text}]` : text);
  return partsOf(pattern, '?', literal).join('*');
}

/** Compiles a pattern. The time of a test is proportional to the lengths of pattern and text, at most their product. */
export function compilePattern(pattern: string): (text: string) => boolean {
  const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&');
  const [first = '', ...others] = partsOf(pattern, '.', literal);
  const last = others.pop();
  const start = new RegExp(`^${first}${last === undefined ? '$' : ''}`, 'su');
  const middle = others.map((part) => new RegExp(part, 'su'));
  const end = new RegExp(`${last ?? ''}$`, 'su');
  return (text) => {
    let rest = text;
    // The first place of a part leaves the most text for the others.
    for (const part of [start, ...middle]) {
      const found = part.exec(rest);
      if (found === null) return false;
      rest = rest.slice(found.index + found[0].length);
    }
    return end.test(rest);
  };
}
