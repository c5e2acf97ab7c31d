/** Counts the products that match each condition of a query, and explains an empty result by them. */
import { formatDateUs } from '../core/terms/dates.ts';
import { printable } from '../core/terms/text.ts';
import { describeFilter } from './describe.ts';
import { termsOf } from './product-conditions.ts';
import type { ProductCount, ProductSelection, Products } from './products.ts';

/** A condition of a query as text, with the number of products that match it alone. */
export interface ConditionCount extends ProductCount {
  condition: string;
}

interface Condition {
  condition: string;
  selection: ProductSelection;
}

/** Returns the conditions that are joined by "and", each as a query of its own. */
function conditionsOf({ entity, filter, received, subscription }: ProductSelection): Condition[] {
  const all = { entity, filter: null };
  const { fromUs, untilUs } = received ?? {};
  const times = [
    ...(fromUs === undefined ? [] : [`from ${formatDateUs(fromUs)}`]),
    ...(untilUs === undefined ? [] : [`before ${formatDateUs(untilUs)}`]),
  ];
  return [
    ...(times.length === 0
      ? []
      : [{ condition: `received ${times.join(', ')}`, selection: { ...all, received } }]),
    ...(subscription === undefined
      ? []
      : [
          {
            condition: `subscription is ${printable(subscription)}`,
            selection: { ...all, subscription },
          },
        ]),
    ...termsOf(filter).map((term) => {
      const [first = '', ...others] = describeFilter(term).map((line) => line.trim());
      const condition = others.length === 0 ? first : `${first} ${others.join(', ')}`;
      return { condition, selection: { entity, filter: term } };
    }),
  ];
}

/** Counts the products of the index, those that match each condition alone, and those that match all of them. */
export async function countConditions(
  products: Pick<Products, 'quickCount'>,
  selection: ProductSelection,
  signal?: AbortSignal,
): Promise<{ conditions: ConditionCount[]; matches: ProductCount; products: ProductCount }> {
  const conditions: ConditionCount[] = [];
  for (const { condition, selection: own } of conditionsOf(selection)) {
    conditions.push({ condition, ...(await products.quickCount(own, signal)) });
  }
  const all = { entity: selection.entity, filter: null };
  const matches = await products.quickCount(selection, signal);
  return { conditions, matches, products: await products.quickCount(all, signal) };
}

/** Explains in one sentence why no product matches: names the first condition that no product matches. */
export async function whyEmpty(
  products: Pick<Products, 'quickCount'>,
  selection: ProductSelection,
  signal?: AbortSignal,
): Promise<string> {
  const { entity } = selection;
  const product = entity === 'Products' ? 'product' : 'deleted product';
  const isEmpty = async (one: ProductSelection) => {
    const { count, isMinimum } = await products.quickCount(one, signal);
    return count === 0 && !isMinimum;
  };
  if (await isEmpty({ entity, filter: null })) return `No ${product} was received yet.`;
  for (const { condition, selection: own } of conditionsOf(selection)) {
    if (await isEmpty(own)) return `No ${product} matches this condition: ${condition}.`;
  }
  return `No ${product} matches all conditions together; each condition alone matches some.`;
}
