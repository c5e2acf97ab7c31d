/** Lookup of the products that a filter requests for a time: in batches, in the order of the log. */
import { expect, it, onTestFinished } from 'vitest';
import { productsReceived } from '../../src/cli/summaries/jobs.ts';
import type { Products } from '../../src/domain/products.ts';
import { requireFilter } from '../../src/filter/check.ts';
import { catchUpIndex } from '../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../src/store/products/products.ts';
import { openStoreReader } from '../../src/store/store.ts';
import { nowUs } from './fake-io.ts';
import { createContext, hourUs } from './filled-store.ts';
import { deliveryOf, guid } from './product-samples.ts';

const count = 150;
const clear = requireFilter(
  "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value lt 50)",
  'Products',
);
const span = { sinceUs: nowUs - 2 * hourUs };

/** Every second product is clear; the first 20 have a second notification with ids in capitals. */
async function openSources() {
  const { dataDir, fill } = createContext();
  const all = Array.from({ length: count }, (_, i) =>
    deliveryOf({ id: guid(`a${i}`), name: `product ${i}`, cloud: i % 2 === 0 ? 1 : 99 }),
  );
  const again = all.slice(0, 20).map((one) => ({
    ...one,
    body: Buffer.from(
      one.body
        .toString()
        .replace('"AckId":"ack-', '"AckId":"again-')
        .replaceAll(/0{6,}a\d+/g, (digits) => digits.toUpperCase()),
    ),
  }));
  await fill([...all, ...again]);
  await catchUpIndex({ dataDir });
  const store = openStoreReader(dataDir);
  const products = openProducts(dataDir);
  onTestFinished(async () => {
    await products.close();
    await store.close();
  });
  const asked: unknown[] = [];
  const find: Products['find'] = (query, signal) => {
    asked.push(query);
    return products.find(query, signal);
  };
  const stopper = new AbortController();
  const { signal } = stopper;
  const sources = { store, products: { ...products, find }, nowUs, signal, print: () => undefined };
  return { asked, stopper, sources };
}

const numbersOf = (jobs: readonly { productName: string | null }[]) =>
  jobs.map(({ productName }) => Number(productName?.replace('product ', '')));
const even = (from: number, downTo: number) =>
  Array.from({ length: (from - downTo) / 2 + 1 }, (_, i) => from - 2 * i);

it('finds the matching products, newest first, each once, with few queries', async () => {
  const { asked, sources } = await openSources();
  const jobs = await productsReceived(span, clear, {}, sources);
  expect(numbersOf(jobs)).toEqual([...even(18, 0), ...even(148, 20)]);
  // Three batches, each queried for existing and for deleted products.
  expect(asked).toHaveLength(6);
});

it('stops at the requested number of products', async () => {
  const { asked, sources } = await openSources();
  const jobs = await productsReceived(span, clear, { limit: 12 }, sources);
  expect(numbersOf(jobs)).toEqual([...even(18, 0), 148, 146]);
  expect(asked).toHaveLength(2);
  expect(await productsReceived(span, null, { limit: 3 }, sources)).toHaveLength(3);
});

it('ends on request', async () => {
  const { stopper, sources } = await openSources();
  stopper.abort();
  const jobs = productsReceived(span, clear, {}, sources);
  await expect(jobs).rejects.toMatchObject({ code: 'cancelled' });
});
