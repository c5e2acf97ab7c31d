/** Known product types, and the groups of Sentinel-1 types that a filter can name (facts, filters 1). */
import type { AttributeNode } from './filter-tree.ts';
import { typesInNames } from './product-name.ts';

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
