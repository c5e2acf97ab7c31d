/**
 * Products as the index returns them, and places: made by hand, or recorded ones read through a
 * real index.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseDate } from '../../../src/domain/dates.ts';
import type { FoundProduct, ProductRow } from '../../../src/domain/products.ts';
import { catchUpIndex } from '../../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../../src/store/products/products.ts';
import type { NearPlace, Place } from '../../../src/summary/places/globe.ts';
import { delivery, withStore } from '../../cli/filled-store.ts';

type ProductJson = Readonly<Record<string, unknown>> & { Id: string; Name?: string };

/** A product and its time of receipt. */
export interface ReceivedProduct {
  record: ProductJson;
  receivedUs: number;
}

const fixtures = new URL('../../../../shared/fixtures/', import.meta.url);
/** Reason to skip tests of recorded products; false when they are available. */
export const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

/** The recorded products, in order. Their times of receipt are not recorded. */
export function recordedProducts(): ReceivedProduct[] {
  const lines = readFileSync(new URL('products.jsonl', fixtures), 'utf8').trim().split('\n');
  return lines.map((line) => received(JSON.parse(line)));
}

/**
 * Sets the time of receipt to 46 s after publication, as in the documented examples (facts,
 * catalogue 1.1).
 */
export function received(record: ProductJson): ReceivedProduct {
  return { record, receivedUs: us(String(record.PublicationDate)) + 46_000_000 };
}

/** Recorded and notified products. */
export function allProducts(): ReceivedProduct[] {
  return [
    ...recordedProducts(),
    ...notifiedProducts('doc-push-created-s2-l2a.elided.json'),
    ...notifiedProducts('doc-push-deleted-s1-slc.elided.json'),
    ...notifiedProducts('pull-read-after-3-days.json'),
  ];
}

/** The products of the documented notifications in a file, received when they were sent. */
export function notifiedProducts(file: string): ReceivedProduct[] {
  const read = JSON.parse(readFileSync(new URL(`notifications/${file}`, fixtures), 'utf8'));
  return [read].flat().map(({ value, Value, ProductId: Id, ProductName, NotificationDate }) => {
    const name = ProductName === undefined ? {} : { Name: ProductName };
    return { record: { ...(value ?? Value), Id, ...name }, receivedUs: us(NotificationDate) };
  });
}

/** A product with only the given fields of its row and record. */
export function foundProduct(
  row: Partial<ProductRow>,
  record: Readonly<Record<string, unknown>> = {},
): FoundProduct {
  return { row: { ...emptyRow, ...row }, record };
}

/** Attributes of a record, with values of any type. */
export function attributes(values: Readonly<Record<string, unknown>>) {
  return Object.entries(values).map(([Name, Value]) => ({ Name, Value, ValueType: 'String' }));
}

export function us(date: string): number {
  const read = parseDate(date);
  if (read === null) throw new Error(`${date} is no date.`);
  return read.us;
}

/** Stores and indexes the products, and returns them by id. */
export async function indexed(all: readonly ReceivedProduct[]): Promise<Map<string, FoundProduct>> {
  const dir = mkdtempSync(join(tmpdir(), 'earshot-facts-'));
  try {
    await withStore(dir, (store) => Promise.all(all.map((news) => store.accept(deliveryOf(news)))));
    await catchUpIndex({ dataDir: dir });
    const products = openProducts(dir);
    const found = new Map<string, FoundProduct>();
    for (const entity of ['Products', 'DeletedProducts'] as const) {
      for await (const one of products.find({ entity, filter: null })) {
        found.set(one.row.productId, one);
      }
    }
    await products.close();
    return found;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function deliveryOf({ record, receivedUs }: ReceivedProduct) {
  const hasRecord = Object.keys(record).length > 2;
  return delivery(
    {
      SubscriptionEvent: record.DeletionDate === undefined ? 'created' : 'deleted',
      ProductId: record.Id,
      ProductName: record.Name,
      AckId: `ack-${record.Id}`,
      value: hasRecord ? record : undefined,
    },
    { receivedAtUs: receivedUs },
  );
}

const emptyRow: ProductRow = {
  position: 1,
  productId: '0ce0aaf7-9708-44e5-a35f-5171947aa748',
  productName: null,
  collection: null,
  platform: null,
  productType: null,
  processingLevel: null,
  sensingStartUs: null,
  sensingEndUs: null,
  publicationUs: null,
  modificationUs: null,
  sizeBytes: null,
  online: null,
  cloudCoverPercent: null,
  orbitNumber: null,
  relativeOrbitNumber: null,
  orbitDirection: null,
  tile: null,
  processingBaseline: null,
  receivedAtUs: us('2025-02-10T08:30:50Z'),
  deletionUs: null,
  deletionCause: null,
  s3Path: null,
};

type Shares = Readonly<Record<string, number>>;

export function place(countries: Shares, seas: Shares = {}, places: NearPlace[] = []): Place {
  return {
    countries: sharesOf(countries),
    seas: sharesOf(seas),
    near: places,
    areaSquareKm: 12_056,
    centre: { longitude: 0, latitude: 0 },
  };
}

export function near(
  name: string,
  country: string,
  distanceKm = 0,
  direction: string | null = null,
): NearPlace {
  return { name, country, population: 100_000, distanceKm, direction };
}

function sharesOf(shares: Shares) {
  return Object.entries(shares).map(([name, share]) => ({ name, share }));
}
