/** The port `Products` over arrays, each query answered by evaluating every record. */

import { parseDate } from '../../src/domain/dates.ts';
import type { Entity } from '../../src/domain/filter-tree.ts';
import {
  defaultOrderOf,
  type FoundProduct,
  type IndexState,
  type ProductKey,
  type ProductQuery,
  type ProductRow,
  type Products,
  type PushedEvent,
  type SubscriptionDelays,
} from '../../src/domain/products.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import { productView } from '../../src/filter/product-view.ts';

type ProductRecord = FoundProduct['record'];

export interface MemoryProducts extends Products {
  add(entity: Entity, ...records: ProductRecord[]): void;
  state: IndexState;
  /** What pushes told, by subscription, and how late it was. */
  events: Map<string, PushedEvent[]>;
  late: SubscriptionDelays[];
  /** Set to make every call fail with it. */
  failure: Error | null;
}

export function createMemoryProducts(): MemoryProducts {
  const found: Record<Entity, FoundProduct[]> = { Products: [], DeletedProducts: [] };
  let position = 0;
  const memory: MemoryProducts = {
    state: { indexedPosition: 0, lastPosition: 0, products: 0, tombstones: 0, skipped: 0 },
    events: new Map(),
    late: [],
    failure: null,
    add: (entity, ...records) => {
      for (const record of records) {
        position += 1;
        found[entity].push({ row: rowOf(record, position), record });
      }
      memory.state.indexedPosition = position;
      memory.state.lastPosition = position;
    },
    async *find(query) {
      if (memory.failure) throw memory.failure;
      const { skip = 0, limit = Number.POSITIVE_INFINITY } = query;
      const rest = matching(found[query.entity], query.filter).filter(isAfter(query));
      yield* rest.sort(comparison(query)).slice(skip, skip + limit);
    },
    count: async ({ entity, filter }) => {
      if (memory.failure) throw memory.failure;
      return matching(found[entity], filter).length;
    },
    keyOf,
    explain: () => Promise.reject(new Error('nobody asks')),
    indexState: async () => {
      if (memory.failure) throw memory.failure;
      return { ...memory.state };
    },
    indexedPosition: async () => memory.state.indexedPosition,
    pushedEvents: async ({ subscription, productIds }) => {
      if (memory.failure) throw memory.failure;
      const asked = new Map(productIds.map((id) => [id.toLowerCase(), id]));
      return (memory.events.get(subscription) ?? []).flatMap((event) => {
        const productId = asked.get(event.productId.toLowerCase());
        return productId === undefined ? [] : [{ ...event, productId }];
      });
    },
    delays: async ({ subscription }) => {
      if (memory.failure) throw memory.failure;
      return memory.late.filter(
        (one) => subscription === undefined || one.subscription === subscription,
      );
    },
  };
  return memory;
}

function matching(all: readonly FoundProduct[], filter: ProductQuery['filter']): FoundProduct[] {
  const matches = filter === null ? () => true : compileFilter(filter);
  return all.filter(({ record }) => matches(productView(record)));
}

function keyOf(row: ProductRow, { entity, order }: Pick<ProductQuery, 'entity' | 'order'>) {
  const by = order?.by ?? defaultOrderOf(entity).by;
  const values = {
    received: row.position,
    'ContentDate/Start': row.sensingStartUs,
    'ContentDate/End': row.sensingEndUs,
    PublicationDate: row.publicationUs,
    ModificationDate: row.modificationUs,
    DeletionDate: row.deletionUs,
  };
  return { value: values[by], position: row.position };
}

function compareKeys(a: ProductKey, b: ProductKey): number {
  const [first, second] = [a.value ?? -Infinity, b.value ?? -Infinity];
  return first === second ? a.position - b.position : first - second;
}

function comparison(query: ProductQuery) {
  const sign = query.order?.direction === 'asc' ? 1 : -1;
  return (a: FoundProduct, b: FoundProduct) =>
    sign * compareKeys(keyOf(a.row, query), keyOf(b.row, query));
}

function isAfter(query: ProductQuery) {
  const sign = query.order?.direction === 'asc' ? 1 : -1;
  const { after } = query;
  return ({ row }: FoundProduct) =>
    after === undefined || sign * compareKeys(keyOf(row, query), after) > 0;
}

function rowOf(record: ProductRecord, position: number): ProductRow {
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const dateUs = (value: unknown) => parseDate(text(value) ?? '')?.us ?? null;
  const { Start, End } = Object(record.ContentDate);
  return {
    position,
    productId: String(record.Id),
    productName: text(record.Name),
    collection: null,
    platform: null,
    productType: null,
    processingLevel: null,
    sensingStartUs: dateUs(Start),
    sensingEndUs: dateUs(End),
    publicationUs: dateUs(record.PublicationDate),
    modificationUs: dateUs(record.ModificationDate),
    sizeBytes: Number(record.ContentLength ?? 0),
    online: record.Online === true,
    cloudCoverPercent: 12.5,
    orbitNumber: null,
    relativeOrbitNumber: null,
    orbitDirection: null,
    tile: null,
    processingBaseline: null,
    receivedAtUs: 1_700_000_000_000_000 + position,
    deletionUs: dateUs(record.DeletionDate),
    deletionCause: text(record.DeletionCause),
  };
}
