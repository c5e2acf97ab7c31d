/** Indexed notifications with the newest state of their products, and counts of the values of products. */
import { describe, expect, it } from 'vitest';
import type { Entity } from '../../../../src/filter/filter-tree.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import { facetFields } from '../../../../src/filter/products.ts';
import {
  created,
  generatedRecords,
  openProductContext,
  type ProductContext,
  type TestRecord,
} from './product-context.ts';

const treeOf = (filter: string) => (filter === '' ? null : parseFilter(filter).tree);

type Query = Parameters<ProductContext['products']['events']>[0];

/** Positions on all pages, newest first. */
async function positionsOf(
  { products }: ProductContext,
  { filter = '', limit = 100, ...query }: Partial<Omit<Query, 'filter'>> & { filter?: string } = {},
): Promise<number[]> {
  const found: number[] = [];
  for (let beforePosition = query.beforePosition; ; ) {
    const page = await products.events({ ...query, beforePosition, filter: treeOf(filter), limit });
    expect(page.events.length).toBeLessThanOrEqual(limit);
    found.push(...page.events.map(({ position }) => position));
    if (page.next === null) return found;
    beforePosition = page.next;
  }
}

const [first, second, third] = generatedRecords(3, 1) as [TestRecord, TestRecord, TestRecord];

/** Positions 1 to 5. */
async function openWithEvents(): Promise<ProductContext> {
  const context = await openProductContext();
  await context.index(
    { event: 'created', record: first, subscription: 'east' },
    { event: 'created', record: second, subscription: 'west' },
    { event: 'Modified', record: first, subscription: 'west', notificationDate: null },
    {
      event: 'deleted',
      record: { Id: second.Id, Name: second.Name as string },
      subscription: null,
    },
    { event: 'created', record: third, source: 'reconcile', subscription: 'east' },
  );
  return context;
}

describe('the indexed notifications', () => {
  it('are returned newest first, each with the newest state of its product', async () => {
    const { products } = await openWithEvents();
    const { events, next } = await products.events({ filter: null, limit: 10 });
    expect(next).toBeNull();
    const of = ({ Id: productId }: TestRecord) => ({ product: { productId } });
    expect(events).toMatchObject([
      { position: 5, ...of(third) },
      { position: 4, ...of(second) },
      { position: 3, ...of(first) },
      { position: 2, ...of(second) },
      { position: 1, ...of(first) },
    ]);
    for (const { product } of events) expect(product).not.toHaveProperty('footprint');
  });

  it('are limited by each condition, and complete over pages of any size', async () => {
    const context = await openWithEvents();
    const ofFirst = `Name eq '${first.Name}'`;
    const cases: [query: Parameters<typeof positionsOf>[1], expected: number[]][] = [
      [{ subscription: 'west' }, [3, 2]],
      [{ events: ['modified', 'deleted'] }, [4, 3]],
      [{ events: [] }, []],
      [{ afterPosition: 1, beforePosition: 4 }, [3, 2]],
      [{ filter: ofFirst }, [3, 1]],
      [{ filter: ofFirst, subscription: 'west', events: ['modified'] }, [3]],
    ];
    for (const [query, expected] of cases) {
      expect(await positionsOf(context, query), JSON.stringify(query)).toEqual(expected);
    }
    for (const limit of [1, 2, 3, 5]) {
      expect(await positionsOf(context, { limit })).toEqual([5, 4, 3, 2, 1]);
    }
  });

  it('are read to the end although a page has a maximum', async () => {
    const context = await openProductContext();
    for (const part of ['a', 'b']) {
      const items = Array.from({ length: 5_500 }, (_, i) => ({
        AckId: `${part}-${i}`,
        ProductId: `product-${i % 5}`,
        SubscriptionEvent: 'modified',
      }));
      const body = Buffer.from(JSON.stringify(items));
      const delivery = { body, subscription: 'test', source: 'push', headers: [] } as const;
      await context.store.accept({ ...delivery, receivedAtUs: Date.UTC(2026, 0, 1) * 1000 });
    }
    await context.index();
    const positions = await positionsOf(context, { limit: 20_000 });
    expect(positions).toHaveLength(11_000);
    expect(new Set(positions).size).toBe(11_000);
  }, 20_000);
});

describe('the facets', () => {
  const records = generatedRecords(120, 3);

  it('count the values of the matching products, the most frequent first', async () => {
    const context = await openProductContext();
    await context.index(...created(...records));
    for (const filter of ['', "contains(Name,'S2')"]) {
      const found = await context.find('Products', filter);
      const facets = await context.products.facets({ entity: 'Products', filter: treeOf(filter) });
      expect(facets).toMatchObject({ counted: found.length, complete: true });
      for (const field of facetFields) {
        const values = found.flatMap(({ row }) => row[field] ?? []);
        const counts = [...Map.groupBy(values, (value) => value)].map(([value, all]) => ({
          value,
          count: all.length,
        }));
        const sorted = counts.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
        expect({ [field]: facets.values[field] }).toEqual({ [field]: sorted.slice(0, 20) });
      }
      expect(facets.values.collection.length).toBeGreaterThan(filter === '' ? 2 : 0);
    }
  });

  it('count deleted products, and products received in a period, separately', async () => {
    const context = await openProductContext();
    const receivedAtUs = Date.UTC(2026, 4, 2) * 1000;
    await context.index(
      ...created(...records.slice(0, 4)),
      { event: 'created', record: records[4] ?? null, receivedAtUs },
      ...records.slice(0, 2).map(({ Id, Name = '' }) => ({
        event: 'deleted',
        record: { Id, Name, DeletionDate: '2026-05-03T00:00:00Z' },
      })),
    );
    const countedIn = async (entity: Entity, received = {}) =>
      (await context.products.facets({ entity, filter: null, received })).counted;
    expect(await countedIn('Products')).toBe(3);
    expect(await countedIn('DeletedProducts')).toBe(2);
    expect(await countedIn('Products', { fromUs: receivedAtUs, untilUs: receivedAtUs + 1 })).toBe(
      1,
    );
  });
});
