/** Conditions on properties of products, and filters with a condition added or removed. */

import { and, attributeOf, type Expression, textField } from './builder.ts';
import type { FilterTree } from './filter-tree.ts';
import { printFilter } from './print.ts';
import { groupIn } from './product-types.ts';
import type { facetFields } from './products.ts';

export function attributeEquals(name: string, value: string): FilterTree {
  return attributeOf(name, 'String').eq(value).tree;
}

/** Matches one value, also if it is the name of a group of product types. */
export function attributeIs(name: string, value: string): Expression {
  const { eq, ge, le } = attributeOf(name, 'String');
  const { tree } = eq(value);
  const isGroup = tree.node === 'attribute' && groupIn(tree) !== null;
  return isGroup ? and(ge(value), le(value)) : eq(value);
}

/** Matches a satellite, such as `S2A`, or a mission. The serial letter is a separate attribute in the catalogue. */
export function platformCondition(name: string): FilterTree {
  const match = /^S(?:ENTINEL-?)?(\d)(P?)([A-Z]?)$/i.exec(name.toUpperCase());
  if (match === null) return attributeEquals('platformShortName', name);
  const [, number = '', p = '', serial = ''] = match;
  const all = attributeEquals('platformShortName', `SENTINEL-${number}${p}`);
  if (serial === '') return all;
  return { node: 'and', terms: [all, attributeEquals('platformSerialIdentifier', serial)] };
}

/** Conditions for the values of counted properties. */
const facetConditions: Record<(typeof facetFields)[number], (value: string) => FilterTree> = {
  collection: (value) => textField('Collection/Name').eq(value).tree,
  platform: platformCondition,
  productType: (value) => attributeEquals('productType', value),
  processingLevel: (value) => attributeEquals('processingLevel', value),
  orbitDirection: (value) => attributeEquals('orbitDirection', value),
  tile: (value) => attributeEquals('tileId', value),
};

/** Returns the condition for a value of a counted property. */
export function facetCondition(field: (typeof facetFields)[number], value: string): FilterTree {
  return facetConditions[field](value);
}

/** Returns true if a filter requires a condition: it is the filter, or joined to it by `and`. */
export function hasCondition(filter: FilterTree | null, condition: FilterTree): boolean {
  const texts = termsOf(filter).map(printFilter);
  return termsOf(condition).every((term) => texts.includes(printFilter(term)));
}

/** Adds a condition by `and`. Removes the conditions of the filter that it replaces. */
export function withCondition(
  filter: FilterTree | null,
  condition: FilterTree,
  replaces: (term: FilterTree) => boolean = () => false,
): FilterTree {
  const kept = termsOf(filter).filter((term) => !replaces(term));
  return allOf([...kept, ...termsOf(condition)]) ?? condition;
}

/** Removes a condition that `hasCondition` finds; null if none remain. */
export function withoutCondition(
  filter: FilterTree | null,
  condition: FilterTree,
): FilterTree | null {
  const texts = termsOf(condition).map(printFilter);
  return allOf(termsOf(filter).filter((term) => !texts.includes(printFilter(term))));
}

/** Returns the terms of an `and`; another condition is its own term. */
export function termsOf(tree: FilterTree | null): readonly FilterTree[] {
  if (tree === null) return [];
  return tree.node === 'and' ? tree.terms : [tree];
}

function allOf(terms: readonly FilterTree[]): FilterTree | null {
  const [only, ...others] = terms;
  if (only === undefined) return null;
  return others.length === 0 ? only : { node: 'and', terms };
}
