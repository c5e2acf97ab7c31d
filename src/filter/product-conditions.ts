/**
 * Conditions on properties of products, and filters with a condition added or removed. Groups of Sentinel-1 types that a
 * filter can name (facts, filters 1).
 */

import { and, attributeOf, type Expression, textField } from './builder.ts';
import { type AttributeNode, type FilterTree, joined } from './filter-tree.ts';
import { printFilter } from './print.ts';
import { typesInNames } from './product-name.ts';
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

/** Attributes of counted properties. */
const facetAttributes = {
  productType: 'productType',
  processingLevel: 'processingLevel',
  orbitDirection: 'orbitDirection',
  tile: 'tileId',
};

/** Returns the condition for a value of a counted property. */
export function facetCondition(field: (typeof facetFields)[number], value: string): FilterTree {
  if (field === 'collection') return textField('Collection/Name').eq(value).tree;
  return field === 'platform'
    ? platformCondition(value)
    : attributeEquals(facetAttributes[field], value);
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
  return joined('and', [...kept, condition]) ?? condition;
}

/** Removes a condition that `hasCondition` finds; null if none remain. */
export function withoutCondition(
  filter: FilterTree | null,
  condition: FilterTree,
): FilterTree | null {
  const texts = termsOf(condition).map(printFilter);
  const kept = termsOf(filter).filter((term) => !texts.includes(printFilter(term)));
  return joined('and', kept);
}

/** Returns the terms of an `and`; another condition is its own term. */
export function termsOf(tree: FilterTree | null): readonly FilterTree[] {
  if (tree === null) return [];
  return tree.node === 'and' ? tree.terms : [tree];
}

const numbered = (prefix: string) => [1, 2, 3, 4, 5, 6].map((number) => `${prefix}${number}`);

const modes = ['IW', 'EW', 'WV', 'EN', 'SM', ...numbered('S'), ...numbered('N')];

const grd = ['GRDF', 'GRDH', 'GRDM'].flatMap((form) => [`${form}_1S`, `${form}_1A`]);

/** Types of each group, without the mode. */
const forms: ReadonlyMap<string, readonly string[]> = new Map([
  ['GRD', grd],
  ['GRD-COG', grd.map((form) => `${form}-COG`)],
  ['SLC', ['SLC__1S', 'SLC__1A']],
  ['RAW', ['RAW__0S', 'RAW__0A', 'RAW__0C', 'RAW__0N']],
  ['OCN', ['OCN__2S', 'OCN__2A']],
]);

const typesByGroup: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...forms].map(([group, own]) => [
    group,
    new Set(modes.flatMap((mode) => own.map((form) => `${mode}_${form}`))),
  ]),
);

const noTypes: ReadonlySet<string> = new Set();

/** Returns the name of the group in a condition on product types, with any operator; null for others. */
export function groupIn({ name, literal }: Pick<AttributeNode, 'name' | 'literal'>): string | null {
  const isGroup = name === 'productType' && literal.type === 'text' && forms.has(literal.value);
  return isGroup ? literal.value : null;
}

/**
 * Returns the types that a condition matches in addition to its literal: those of a group. Only `eq` compares with a
 * group; the other operators compare its name.
 */
export function groupedTypes(node: AttributeNode): ReadonlySet<string> {
  const group = node.operator === 'eq' ? groupIn(node) : null;
  return typesByGroup.get(group ?? '') ?? noTypes;
}

/** Describes the types of a group: `<mode>_SLC__1S, <mode>_SLC__1A (mode: IW, EW, …)`. */
export function describeGroup(group: string): string {
  const types = forms.get(group)?.map((form) => `<mode>_${form}`) ?? [];
  return `${types.join(', ')} (mode: ${modes.join(', ')})`;
}

/** Types and groups that are known from naming conventions; others exist. */
export const knownProductTypes: readonly string[] = [
  ...typesInNames,
  ...forms.keys(),
  ...[...typesByGroup.values()].flatMap((types) => [...types]),
  ...modes.map((mode) => `${mode}_ETA__AX`),
];
