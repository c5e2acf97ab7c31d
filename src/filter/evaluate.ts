/** Turns a filter into a function that tells whether a product matches. */
import type {
  AttributeNode,
  ComparisonNode,
  FilterTree,
  InNode,
  IntersectsNode,
  Literal,
  TextNode,
} from '../domain/filter-tree.ts';
import { type FieldType, findField } from './fields.ts';
import { shapesIntersect } from './geometry/intersects.ts';
import { toShape } from './geometry/shape.ts';
import type { ProductView } from './product-view.ts';
import { asTruth, attributeReading, type Comparable, comparisonOf, literalDate } from './values.ts';

export type ProductTest = (product: ProductView) => boolean;

/**
 * Compiles a filter once, to be asked of many products. Logic has two values, after OData 4.01's rules
 * for absent values: a condition on an absent value is false, but for `ne`, which is true; `not`
 * simply negates. An unknown field is absent everywhere. The result never throws.
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
    case 'comparison':
      return compileComparison(tree);
    case 'in':
      return compileIn(tree);
    case 'text':
      return compileText(tree);
    case 'attribute':
      return compileAttribute(tree);
    case 'intersects':
      return compileIntersects(tree);
  }
}

function compileComparison({ field, operator, literal }: ComparisonNode): ProductTest {
  const type = findField(field)?.type ?? 'text';
  const read = fieldReader(field, type);
  const other = fieldLiteral(type, literal);
  const compare = comparisonOf(operator);
  const whenAbsent = operator === 'ne';
  if (other === null) return () => whenAbsent;
  return (product) => {
    const value = read(product);
    return value === null ? whenAbsent : compare(value, other);
  };
}

function compileIn({ field, literals }: InNode): ProductTest {
  const type = findField(field)?.type ?? 'text';
  const read = fieldReader(field, type);
  const wanted = new Set(literals.map((literal) => fieldLiteral(type, literal)));
  return (product) => {
    const value = read(product);
    return value !== null && wanted.has(value);
  };
}

function compileText({ function: name, field, text }: TextNode): ProductTest {
  const type = findField(field)?.type ?? 'text';
  const part = type === 'guid' ? text.toLowerCase() : text;
  if (type !== 'text' && type !== 'guid') return () => false;
  const read = fieldReader(field, type);
  const isMatch = textMatch[name];
  return (product) => {
    const value = read(product);
    return typeof value === 'string' && isMatch(value, part);
  };
}

const textMatch: Readonly<Record<TextNode['function'], (text: string, part: string) => boolean>> = {
  contains: (text, part) => text.includes(part),
  startswith: (text, part) => text.startsWith(part),
  endswith: (text, part) => text.endsWith(part),
};

/** `any` over the attributes: false where there is none of that name, whatever the operator. */
function compileAttribute(node: AttributeNode): ProductTest {
  const { literal, read } = attributeReading(node.valueKind, node.literal);
  const compare = comparisonOf(node.operator);
  return (product) => {
    const value = read(product.attribute(node.name)?.value);
    return value !== null && compare(value, literal);
  };
}

function compileIntersects({ geometry }: IntersectsNode): ProductTest {
  const area = toShape(geometry);
  return (product) => {
    const footprint = product.footprint();
    return footprint !== null && shapesIntersect(area, footprint);
  };
}

/** Reads a field as what it is compared as: ids in small letters, truths as 1 and 0. */
function fieldReader(field: string, type: FieldType): (product: ProductView) => Comparable | null {
  const name = findField(field)?.name ?? field;
  switch (type) {
    case 'text':
      return (product) => product.text(name);
    case 'guid':
      return (product) => product.text(name)?.toLowerCase() ?? null;
    case 'date':
      return (product) => product.dateUs(name);
    case 'boolean':
      return (product) => asTruth(product.online);
  }
}

/** A literal as a field's type; null for one that is of another. */
function fieldLiteral(type: FieldType, literal: Literal): Comparable | null {
  switch (type) {
    case 'text':
      return literal.type === 'text' ? literal.value : null;
    case 'guid':
      return literal.type === 'text' ? literal.value.toLowerCase() : null;
    case 'date':
      return literalDate(literal);
    case 'boolean':
      return literal.type === 'date' ? null : asTruth(literal.value);
  }
}
