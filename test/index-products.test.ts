/** The library's products: searched by text and by expressions, always with the latest writes. */
import { describe, expect, it } from 'vitest';
import {
  and,
  cloudCover,
  collection,
  intersects,
  name,
  type ProductsQuestion,
  type Store,
} from '../src/index.ts';
import { recordOf, samples } from './features/products/product-samples.ts';
import { collect, delivery, notification } from './helpers/deliveries.ts';
import { openTestStore } from './helpers/mounted-receiver.ts';

/** Opens a store that has received the samples. */
async function filledStore(): Promise<Store> {
  const store = await openTestStore();
  for (const sample of samples) await store.accept(deliveryOf(sample));
  return store;
}

function deliveryOf(sample: (typeof samples)[number]) {
  const { id: ProductId, name: ProductName, event: SubscriptionEvent = 'created' } = sample;
  const value = recordOf(sample);
  return delivery(
    notification(1, { AckId: ProductId, ProductId, ProductName, SubscriptionEvent, value }),
  );
}

async function digits(store: Store, question?: ProductsQuestion): Promise<string> {
  const found = await collect(store.products.find(question));
  return found.map(({ row }) => row.productId.slice(-1)).join('');
}

describe('store.products', () => {
  it('finds by text and by expression, and counts', async () => {
    const store = await filledStore();
    expect(await digits(store)).toBe('4321');
    expect(await digits(store, { filter: "Collection/Name eq 'SENTINEL-2'" })).toBe('21');
    const filter = and(collection('SENTINEL-2'), cloudCover.lt(20));
    expect(await digits(store, { filter })).toBe('1');
    expect(await store.products.count({ filter })).toBe(1);
    const here = intersects({ type: 'Point', coordinates: [11.5, 45.5] });
    expect(await digits(store, { filter: here })).toBe('2');
    expect(await digits(store, { entity: 'DeletedProducts' })).toBe('5');
    const [found] = await collect(store.products.find({ filter }));
    expect(found?.record).toEqual(samples[0] && recordOf(samples[0]));
  });

  it('includes products stored a moment ago', async () => {
    const store = await openTestStore();
    expect(await store.products.count()).toBe(0);
    for (const [i, sample] of samples.slice(0, 3).entries()) {
      await store.accept(deliveryOf(sample));
      expect(await store.products.count()).toBe(i + 1);
    }
  });

  it('continues after a key', async () => {
    const store = await filledStore();
    const order = { by: 'ContentDate/Start', direction: 'asc' } as const;
    const filter = name.endsWith('.SAFE');
    const [first] = await collect(store.products.find({ filter, order, limit: 1 }));
    if (first === undefined) throw new Error('Nothing was found.');
    const after = store.products.keyOf(first.row, { order });
    const rest = await digits(store, { filter, order, after });
    expect(first.row.productId.slice(-1) + rest).toBe(await digits(store, { filter, order }));
  });

  it('refuses a faulty filter, with the place', async () => {
    const store = await openTestStore();
    for (const search of [
      store.products.count({ filter: "foo eq 'bar'" }),
      collect(store.products.find({ filter: "foo eq 'bar'" })),
    ]) {
      await expect(search).rejects.toMatchObject({
        code: 'invalid',
        details: [expect.stringContaining("foo eq 'bar'\n  ^^^")],
      });
    }
  });
});
