/** Products of all kinds with their STAC items: recorded ones if the folder exists, and generated ones. */
import type { StacItem } from 'stac-ts';
import type { ProductRow } from '../../../src/domain/products.ts';
import { toStacItem } from '../../../src/filter/stac/item.ts';
import {
  generatedRecords,
  realRecords,
  type TestRecord,
} from '../../store/products/product-context.ts';

export interface SampleItem {
  record: TestRecord;
  item: StacItem;
}

/** Uses every n-th recorded product, n being `every`. */
export function sampleItems(every = 4, origin: string | null = null): SampleItem[] {
  return [...realRecords(every), ...generatedRecords(12, 3)].map((record) => ({
    record,
    item: itemOf(record, origin),
  }));
}

export function itemOf(record: TestRecord, origin: string | null = null): StacItem {
  // An item needs only these values of the row.
  const s3Path = typeof record.S3Path === 'string' ? record.S3Path : null;
  const row = { productId: record.Id, receivedAtUs: 0, deletionUs: null, s3Path } as ProductRow;
  return toStacItem({ row, record }, { catalogueUrl: 'https://catalogue.test', origin });
}
