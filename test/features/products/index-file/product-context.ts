/** A store, its index, and records of all kinds for tests of the index. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished } from 'vitest';
import type { Logger } from '../../../../src/core/terms/ports.ts';
import {
  afterPruning,
  catchUpIndex,
  startIndexing,
} from '../../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../../src/features/products/index-file/products.ts';
import type { Entity } from '../../../../src/filter/filter-tree.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import {
  type FoundProduct,
  type ProductQuery,
  type Products,
  readKey,
  writeKey,
} from '../../../../src/filter/products.ts';
import { createProductGenerator } from '../../../../src/sandbox/products/product-generator.ts';
import type { Store } from '../../../../src/store/store.ts';
import { silentLog } from '../../../helpers/recording-log.ts';
import { openSqliteStore } from '../../../store/sqlite-store.ts';

export type TestRecord = Readonly<Record<string, unknown>> & { Id: string; Name?: string };

/** Input for a notification; missing fields get default values. */
export interface TestEvent {
  event: string;
  record: TestRecord | null;
  /** True for a notification without a record. */
  productId?: string;
  productName?: string;
  /** Null for no subscription. */
  notificationDate?: string | null;
  subscription?: string | null;
  source?: 'push' | 'reconcile';
  receivedAtUs?: number;
}

export interface ProductContext {
  dataDir: string;
  store: Store;
  products: Products;
  /** Stores notifications in order, one delivery each. */
  deliver(...events: TestEvent[]): Promise<void>;
  /** Stores and indexes notifications. */
  index(...events: TestEvent[]): Promise<void>;
  /** Indexes new notifications until the test has finished. */
  follow(log?: Logger): void;
  /** Returns all products that match a filter; all products for an empty filter. */
  find(entity: Entity, filter?: string, options?: Partial<ProductQuery>): Promise<FoundProduct[]>;
}

export async function openProductContext(): Promise<ProductContext> {
  const { store, dataDir } = await openSqliteStore();
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  let count = 0;
  const deliver = async (...events: TestEvent[]) => {
    // Sent at once; they are stored in this order.
    const receipts = events.map((one) => {
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
    index: async (...events) => {
      await deliver(...events);
      await catchUpIndex({ dataDir });
    },
    follow: (log = silentLog) => {
      const indexing = startIndexing({ dataDir, log, store });
      onTestFinished(() => indexing.stop());
    },
    find: (entity, filter = '', options = {}) => {
      const tree = filter === '' ? null : parseFilter(filter).tree;
      return Array.fromAsync(products.find({ entity, filter: tree, ...options }));
    },
  };
}

/** Removes the index: the next update builds it from the log. */
export function removeIndex(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith('products-')) rmSync(join(dataDir, name));
  }
}

/** Overwrites every page except the first, so that the file still opens. */
export function damageInside(file: string): void {
  const index = new Sqlite(file);
  index.pragma('wal_checkpoint(TRUNCATE)');
  index.close();
  const bytes = readFileSync(file);
  bytes.fill(0x5a, 4096 * 4);
  writeFileSync(file, bytes);
}

/** Removes the events that were pruned from the log. */
export function pruneIndex(dataDir: string): Promise<void> {
  const { signal } = new AbortController();
  return afterPruning({ dataDir, signal, onProgress: () => {} });
}

export async function rebuildIndex(dataDir: string): Promise<void> {
  removeIndex(dataDir);
  await catchUpIndex({ dataDir });
}

/** Events that create products. */
export const created = (...records: TestRecord[]): TestEvent[] =>
  records.map((record) => ({ event: 'created', record }));

/** Reads a query page by page, each from the key of the last row, as a client sends it. */
export async function inPages(
  products: Products,
  query: ProductQuery & { limit: number },
): Promise<FoundProduct[]> {
  const found: FoundProduct[] = [];
  for (let after = query.after; ; ) {
    const page = await Array.fromAsync(products.find({ ...query, after }));
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < query.limit) return found;
    const key = products.keyOf(last.row, query);
    after = readKey(writeKey(key, query), query) ?? undefined;
    expect(after).toEqual(key);
  }
}

function notificationOf(input: TestEvent, ackId: string) {
  const { event, record, productId = record?.Id, productName = record?.Name } = input;
  const { notificationDate = '2026-01-01T00:00:00.000Z' } = input;
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

const realFile = new URL('../../../../../shared/fixtures/products.jsonl', import.meta.url);

/** Products as the sandbox generates them, one per minute. */
export function generatedRecords(count: number, seed: number): TestRecord[] {
  const generator = createProductGenerator({ seed });
  const firstMs = Date.UTC(2026, 4, 1);
  return Array.from({ length: count }, (_, i) => ({ ...generator.next(firstMs + i * 60_000) }));
}

/** Some recorded products of all missions and ages; none when the folder does not exist. */
export function realRecords(every: number): TestRecord[] {
  if (!existsSync(realFile)) return [];
  const lines = readFileSync(realFile, 'utf8').trim().split('\n');
  return lines.filter((_, i) => i % every === 0).map((line) => JSON.parse(line));
}

/** Records on which columns and evaluation could disagree. */
export const oddRecords: TestRecord[] = [
  { Id: '00000000-0000-4000-8000-000000000001' },
  { Id: '00000000-0000-4000-8000-000000000002', Name: '', Online: null, Footprint: null },
  {
    Id: '00000000-0000-4000-8000-00000000000A',
    Name: 'S2A_MSIL1C_strange "quotes" and \'others\' %_*[]',
    Online: false,
    ContentDate: { Start: '2026-05-01T00:10:00', End: '2026-05-01T00:10:00.123456789+02:00' },
    PublicationDate: 'yesterday',
    Attributes: [
      { Name: 'cloudCover', Value: '12.5', ValueType: 'Double' },
      { Name: 'orbitNumber', Value: 12.5, '@odata.type': '#OData.CSC.IntegerAttribute' },
      { Name: 'relativeOrbitNumber', Value: 15, ValueType: 'String' },
      { Name: 'productType', Value: 5, ValueType: 'String' },
      { Name: 'productType', Value: 'S2MSI1C', ValueType: 'String' },
    ],
    Footprint:
      "geography'SRID=4326;MULTIPOLYGON (((179 10, 180 10, 180 12, 179 12, 179 10)), ((-180 10, -178 10, -178 12, -180 12, -180 10)))'",
  },
  {
    Id: '00000000-0000-4000-8000-00000000000b',
    Name: 'ÄÖÜ_S2B_MSIL2A_😀_end',
    Online: 'true',
    Attributes: [
      { Name: 'cloudCover', Value: 'much', ValueType: 'Double' },
      { Name: 'productType', Value: { nested: true }, ValueType: 'String' },
      { Name: 'tileId', Value: true, ValueType: 'String' },
    ],
    Footprint: "geography'SRID=4326;POLYGON ((170 80, -100 80, -10 80, 80 80, 170 80))'",
  },
  {
    Id: '00000000-0000-4000-8000-00000000000d',
    Attributes: [
      { Name: 'cloudCover', Value: 12, ValueType: 'Integer' },
      { Name: 'orbitNumber', Value: '12', ValueType: 'Integer' },
      { Name: 'relativeOrbitNumber', Value: '15', ValueType: 'String' },
      { Name: 'productType', Value: '5', ValueType: 'Integer' },
      { Name: 'tileId', Value: '2026-05-01T00:00:00Z', ValueType: 'DateTimeOffset' },
    ],
  },
  {
    Id: '00000000-0000-4000-8000-00000000000e',
    Name: 'ends never',
    ContentDate: { Start: '0000-01-01T00:00:00.000001Z', End: '9999-12-31T23:59:59.999999Z' },
    PublicationDate: '2255-06-05T23:47:34.740992Z',
    ModificationDate: '1684-07-28T00:12:25.259Z',
    Attributes: [{ Name: 'cloudCover', Value: 1e300, ValueType: 'Double' }],
  },
  {
    Id: '00000000-0000-4000-8000-000000000010',
    Footprint: "geography'SRID=4326;LINESTRING (170 -10, -170 20)'",
  },
  {
    Id: '00000000-0000-4000-8000-00000000000f',
    GeoFootprint: {
      type: 'GeometryCollection',
      geometries: [
        { type: 'MultiPoint', coordinates: [[10, 45, 3]] },
        {
          type: 'LineString',
          coordinates: [
            [11, 45],
            [12, 47],
          ],
        },
      ],
    },
  },
  { Id: '00000000-0000-4000-8000-00000000000c', Footprint: "geography'SRID=4326;POLYGON ((1 2'" },
];
