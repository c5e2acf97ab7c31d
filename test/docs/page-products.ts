/** Generates the products of the examples in docs/reference/filter-examples.md; the same in every run. */
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';

export type PageRecord = Readonly<Record<string, unknown>> & { Id: string; Name: string };

export interface PageProducts {
  /** Notifications, in order. */
  news: { event: 'created' | 'modified' | 'deleted'; record: PageRecord }[];
  /** Remaining products afterwards. */
  alive: PageRecord[];
  tombstones: PageRecord[];
}

const count = 2_000;
const seed = 7;
const minuteMs = 60_000;
const dayMs = 86_400_000;
const firstMs = Date.UTC(2026, 4, 1);

/**
 * 2,000 products, one published each minute from 2026-05-01T00:00Z on. A day after publication,
 * every 20th is modified, and every 20th from the tenth on is deleted. Every 20th from the
 * fifth on is not online.
 */
export function makePageProducts(): PageProducts {
  const generator = createProductGenerator({ seed });
  const products: PageProducts = { news: [], alive: [], tombstones: [] };
  for (let i = 0; i < count; i += 1) {
    const publishedMs = firstMs + i * minuteMs;
    const created = { ...generator.next(publishedMs), Online: i % 20 !== 4 };
    products.news.push({ event: 'created', record: created });
    if (i % 20 === 9) {
      const record = { ...generator.deleted(created, publishedMs + dayMs) };
      products.news.push({ event: 'deleted', record });
      products.tombstones.push(record);
    } else if (i % 20 === 19) {
      const record = { ...generator.modified(created, publishedMs + dayMs) };
      products.news.push({ event: 'modified', record });
      products.alive.push(record);
    } else products.alive.push(created);
  }
  return products;
}
