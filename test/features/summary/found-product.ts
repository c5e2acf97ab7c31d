/** Products as the index returns them: made by hand, or recorded ones read through a real index. */
import { existsSync, readFileSync } from 'node:fs';
import { parseDate } from '../../../src/core/terms/dates.ts';
import { productSchema } from '../../../src/core/terms/read-models.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import type { FoundProduct, ProductRow } from '../../../src/filter/products.ts';
import { delivery, withStore } from '../../helpers/filled-store.ts';

const fixtures = new URL('../../../../shared/fixtures/', import.meta.url);

/** Reason to skip tests of recorded products; false when they are available. */
export const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

/** Returns the recorded products of the catalogue from an index, received 46 s after their publication. */
export async function recordedProducts(dataDir: string): Promise<FoundProduct[]> {
  const lines = readFileSync(new URL('products.jsonl', fixtures), 'utf8').trim().split('\n');
  const records = lines.map((line) => JSON.parse(line));
  await withStore(dataDir, (store) =>
    Promise.all(
      records.map((value) => {
        const { Id: ProductId, Name: ProductName, PublicationDate } = value;
        const fields = { ProductId, ProductName, AckId: ProductId, value };
        return store.accept(delivery(fields, { receivedAtUs: us(PublicationDate) + 46_000_000 }));
      }),
    ),
  );
  await catchUpIndex({ dataDir });
  const products = openProducts(dataDir);
  const order = { by: 'received', direction: 'asc' } as const;
  const found = await Array.fromAsync(products.find({ entity: 'Products', filter: null, order }));
  await products.close();
  return found;
}

export function us(date: string): number {
  const read = parseDate(date);
  if (read === null) throw new Error(`${date} is no date.`);
  return read.us;
}

/** A product with only the given fields of its row and record. */
export function foundProduct(
  row: Partial<ProductRow>,
  record: Readonly<Record<string, unknown>> = {},
): FoundProduct {
  const fields = ['s3Path', ...Object.keys(productSchema.shape)];
  const empty = Object.fromEntries(fields.map((name) => [name, null]));
  const known = { position: 1, productId: '0ce0aaf7-9708-44e5-a35f-5171947aa748' };
  const receivedAtUs = us('2025-02-10T08:30:50Z');
  return { row: { ...empty, ...known, receivedAtUs, ...row } as ProductRow, record };
}
