/** A store, its index, and products to ask for, as the tests of the index need them. */
import { onTestFinished } from 'vitest';
import type { Entity } from '../../../src/domain/filter-tree.ts';
import type { FoundProduct, ProductQuery, Products } from '../../../src/domain/products.ts';
import { parseFilter } from '../../../src/filter/parse.ts';
import { catchUpIndex } from '../../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../../src/store/products/products.ts';
import type { Store } from '../../../src/store/store.ts';
import { openSqliteStore } from '../sqlite-store.ts';

export type TestRecord = Readonly<Record<string, unknown>> & { Id: string; Name?: string };

/** A notification that is delivered; what is left out is made up. */
export interface TestNews {
  event: string;
  record: TestRecord | null;
  /** For a notification without a record. */
  productId?: string;
  productName?: string;
  /** Null for none. */
  notificationDate?: string | null;
  subscription?: string | null;
  source?: 'push' | 'reconcile';
  receivedAtUs?: number;
}

export interface ProductWorld {
  dataDir: string;
  store: Store;
  products: Products;
  /** Stores notifications, one delivery each, in their order. */
  deliver(...news: TestNews[]): Promise<void>;
  /** Stores and indexes. */
  index(...news: TestNews[]): Promise<void>;
  /** All that matches a filter's text; everything for an empty one. */
  find(entity: Entity, filter?: string, options?: Partial<ProductQuery>): Promise<FoundProduct[]>;
}

export async function openProductWorld(): Promise<ProductWorld> {
  const { store, dataDir } = await openSqliteStore();
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  let count = 0;
  const deliver = async (...news: TestNews[]) => {
    // Sent at once; they are stored in this order.
    const receipts = news.map((one) => {
      count += 1;
      const ackId = `${dataDir}-${count}`;
      const body = Buffer.from(JSON.stringify(notificationOf(one, ackId)));
      const { subscription = 'test', source = 'push' } = one;
      const { receivedAtUs = Date.UTC(2026, 0, 1) * 1000 + count } = one;
      return store.accept({ body, subscription, source, headers: [], receivedAtUs });
    });
    for (const { outcome } of await Promise.all(receipts)) {
      if (outcome !== 'stored') throw new Error(`it was ${outcome}`);
    }
  };
  return {
    dataDir,
    store,
    products,
    deliver,
    index: async (...news) => {
      await deliver(...news);
      await catchUpIndex({ dataDir });
    },
    find: (entity, filter = '', options = {}) => {
      const tree = filter === '' ? null : parseFilter(filter).tree;
      return all(products.find({ entity, filter: tree, ...options }));
    },
  };
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

function notificationOf(news: TestNews, ackId: string) {
  const { event, record, productId = record?.Id, productName = record?.Name } = news;
  const { notificationDate = '2026-01-01T00:00:00.000Z' } = news;
  return {
    AckId: ackId,
    ProductId: productId,
    ProductName: productName,
    SubscriptionId: '6f1f7f9a-1a0c-4a52-8c0a-5d6f0c1b2a3d',
    SubscriptionEvent: event,
    ...(notificationDate === null ? {} : { NotificationDate: notificationDate }),
    ...(record === null ? {} : { value: record }),
  };
}
