/** Orders of products, by a second implementation. */

import { orderTerms, type ProductKey, type ProductQuery } from '../../src/filter/products.ts';

type Value = ProductKey['values'][number];

/** Returns a comparison of keys: no value is the smallest, and positions order ties. */
export function keyComparison(
  query: Pick<ProductQuery, 'entity' | 'order'>,
): (a: ProductKey, b: ProductKey) => number {
  const terms = orderTerms(query);
  return (a, b) => {
    for (const [i, { by, direction }] of terms.entries()) {
      const sign = direction === 'asc' ? 1 : -1;
      const values = [a, b].map((key) => (by === 'received' ? key.position : key.values[i]));
      const compared = compare(values[0] ?? null, values[1] ?? null);
      if (compared !== 0) return sign * compared;
    }
    return (terms.at(-1)?.direction === 'asc' ? 1 : -1) * (a.position - b.position);
  };
}

function compare(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  // UTF-8, whose order is that of code points.
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}
