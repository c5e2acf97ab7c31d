/** Explains filters line by line, and an empty result by its conditions. */

import { formatDateUs } from '../core/terms/dates.ts';
import { lengthText, printable } from '../core/terms/text.ts';
import type { FilterTree, Geometry, Literal } from './filter-tree.ts';
import { positionsOf } from './geometry/ring.ts';
import { bboxOf, toShape } from './geometry/shape.ts';
import { showLiteral, showText } from './print.ts';
import { describeGroup, groupIn, termsOf } from './product-conditions.ts';
import type { ProductSelection, Products } from './products.ts';

/**
 * Returns one line for each condition, indented under its group: `all of:`, `  Collection/Name = 'SENTINEL-2'`. The lines
 * contain only printable characters.
 */
export function describeFilter(tree: FilterTree): string[] {
  switch (tree.node) {
    case 'and':
    case 'or':
      return [tree.node === 'and' ? 'all of:' : 'any of:', ...tree.terms.flatMap(indented)];
    case 'not':
      return ['not:', ...indented(tree.term)];
    case 'comparison':
      return [printable(`${tree.field} ${signs[tree.operator]} ${valueText(tree.literal)}`)];
    case 'in':
      return [printable(`${tree.field} is one of ${tree.literals.map(valueText).join(', ')}`)];
    case 'text':
      return [printable(`${tree.field} ${textVerbs[tree.function]} ${showText(tree.text)}`)];
    case 'attribute': {
      const { name, operator, literal } = tree;
      const group = operator === 'eq' ? groupIn(tree) : null;
      const types = group === null ? '' : `, or one of its types: ${describeGroup(group)}`;
      return [printable(`${name} ${signs[operator]} ${valueText(literal)}${types}`)];
    }
    case 'intersects':
      return [describeArea(tree.geometry)];
  }
}

function indented(tree: FilterTree): string[] {
  return describeFilter(tree).map((line) => `  ${line}`);
}

const signs = { eq: '=', ne: '!=', lt: '<', le: '<=', gt: '>', ge: '>=' } as const;

const textVerbs = {
  contains: 'contains',
  startswith: 'starts with',
  endswith: 'ends with',
  like: 'matches the pattern',
} as const;

function valueText(literal: Literal): string {
  if (literal.type !== 'date') return showLiteral(literal);
  return formatDateUs(literal.us)
    .replace('T', ' ')
    .replace(/(?:\.0+|(\.\d*?)0*)Z$/, '$1 UTC');
}

/** `footprint intersects POLYGON with 5 points in the box 4,50,5,51`: as in `--bbox`, to about ten metres. */
function describeArea(geometry: Geometry): string {
  const { length } = positionsOf(geometry);
  const sides = bboxOf(toShape(geometry)).map((side) => Number(side.toFixed(4)));
  const place =
    length === 1 ? `at ${sides.slice(0, 2)}` : `with ${length} points in the box ${sides}`;
  return `footprint intersects ${geometry.type.toUpperCase()} ${place}`;
}

/** Returns the conditions that are joined by "and", each as a query of its own. */
function conditionsOf({ entity, filter, received, subscription, maxAgeUs }: ProductSelection) {
  const all = { entity, filter: null };
  const { fromUs, untilUs } = received ?? {};
  const times = [
    ...(fromUs === undefined ? [] : [`from ${formatDateUs(fromUs)}`]),
    ...(untilUs === undefined ? [] : [`before ${formatDateUs(untilUs)}`]),
  ];
  const found: { condition: string; selection: ProductSelection }[] = [];
  if (times.length > 0) {
    found.push({ condition: `received ${times.join(', ')}`, selection: { ...all, received } });
  }
  if (subscription !== undefined) {
    const condition = `subscription = ${printable(subscription)}`;
    found.push({ condition, selection: { ...all, subscription } });
  }
  if (maxAgeUs !== undefined) {
    const condition = `published within ${lengthText(maxAgeUs)} of sensing`;
    found.push({ condition, selection: { ...all, maxAgeUs } });
  }
  for (const term of termsOf(filter)) {
    const [first, ...others] = describeFilter(term).map((line) => line.trim());
    const condition = [first, others.join(', ')].filter(Boolean).join(' ');
    found.push({ condition, selection: { entity, filter: term } });
  }
  return found;
}

/** Explains in one sentence why no product matches: names the first condition that no product matches. */
export async function whyEmpty(
  products: Pick<Products, 'quickCount'>,
  selection: ProductSelection,
  signal?: AbortSignal,
): Promise<string> {
  const { entity } = selection;
  const product = entity === 'Products' ? 'product' : 'deleted product';
  const isNone = async (own: ProductSelection) => {
    const { count, isMinimum } = await products.quickCount(own, signal);
    return count === 0 && !isMinimum;
  };
  if (await isNone({ entity, filter: null })) return `No ${product} was received yet.`;
  for (const { condition, selection: own } of conditionsOf(selection)) {
    if (await isNone(own)) return `No ${product} matches this condition: ${condition}.`;
  }
  return `No ${product} matches all conditions together; each condition alone matches some.`;
}
