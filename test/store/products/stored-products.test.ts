/** The library's products look at the log before each answer. */
import { expect, it, onTestFinished } from 'vitest';
import { openStoredProducts } from '../../../src/store/products/stored-products.ts';
import { openStore } from '../../../src/store/store.ts';
import { samples, told } from '../../cli/product-samples.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

it('index what is new even where the log ends before what they had indexed, as a restored one does', async () => {
  const dataDir = temporaryDirectory();
  const store = await openStore({ dataDir, nowUs: () => 0 });
  onTestFinished(() => store.close());
  let lastPosition = 2;
  const { products, close } = openStoredProducts(dataDir, {
    lastPosition: async () => lastPosition,
  });
  onTestFinished(close);
  for (const sample of samples.slice(0, 2)) await store.accept(told(sample));
  expect(await products.count()).toBe(2);
  for (const sample of samples.slice(2, 4)) await store.accept(told(sample));
  expect(await products.count()).toBe(2);
  lastPosition = 1;
  expect(await products.count()).toBe(4);
});
