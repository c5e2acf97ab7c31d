/** The texts of many products are looked up together, and the products stay a stream in its order. */
import { expect, it } from 'vitest';
import { withTexts } from '../../src/cli/product-output.ts';
import type { FoundProduct, Products } from '../../src/domain/products.ts';
import { collect } from '../helpers/deliveries.ts';
import { foundProduct } from '../summary/facts/found-product.ts';
import { nowUs } from './fake-io.ts';
import { createWorld } from './filled-store.ts';
import { guid } from './product-samples.ts';
import { putSummaries } from './summary-samples.ts';

const count = 150;

/** Products 1 to 3 have texts; none has other versions. */
async function openStream() {
  const { dataDir } = createWorld();
  await putSummaries(
    dataDir,
    [1, 2, 3].map((number) => ({ text: { text: `Text ${number}.` } })),
  );
  const state = { read: 0 };
  const found = async function* (): AsyncGenerator<FoundProduct> {
    // The last of them is a known one again.
    for (let number = 1; number <= count; number += 1) {
      state.read = number;
      yield foundProduct({ productId: guid(`${number === count ? 2 : number}`), position: number });
    }
  };
  const products = {} as Products;
  return { state, shown: withTexts(found(), products, { dataDir, nowUs: () => nowUs }) };
}

it('gives every product its own text, in their order', async () => {
  const { shown } = await openStream();
  const all = await collect(shown);
  expect(all.map(({ row }) => row.position)).toEqual(
    Array.from({ length: count }, (_, i) => i + 1),
  );
  const written = all.filter(({ summary }) => summary?.model === 'a/b');
  expect(written.map(({ row, summary }) => `${row.position} ${summary?.text}`)).toEqual([
    '1 Text 1.',
    '2 Text 2.',
    '3 Text 3.',
    `${count} Text 2.`,
  ]);
  expect(all.every(({ summary }) => summary !== undefined && summary.text !== '')).toBe(true);
});

it('reads as many products ahead as it looks up together, and no more', async () => {
  const { state, shown } = await openStream();
  await shown.next();
  expect(state.read).toBe(64);
  await shown.return(undefined);
  expect(state.read).toBe(64);
});
