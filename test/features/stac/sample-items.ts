/** Products of all kinds with their STAC items: recorded ones if the folder exists, and generated ones. */
import type { StacItem } from 'stac-ts';
import { toStacItem } from '../../../src/features/stac/item.ts';
import type { ProductRow } from '../../../src/filter/products.ts';
import {
  generatedRecords,
  realRecords,
  type TestRecord,
} from '../products/index-file/product-context.ts';

export interface SampleItem {
  record: TestRecord;
  item: StacItem;
}

/** Uses every n-th recorded product, n being `every`. */
export function sampleItems(every = 4): SampleItem[] {
  const records = [...realRecords(every), ...generatedRecords(24, 3)];
  return [...records, ...incompleteRadarRecords(records)].map((record) => ({
    record,
    item: itemOf(record),
  }));
}

/** Products of a radar without one of the values that the extension `sar` requires, or with an unknown one. */
function incompleteRadarRecords(records: readonly TestRecord[]): TestRecord[] {
  const radar = records.find(({ Name }) => Name?.startsWith('S1'));
  if (radar === undefined) throw new Error('There is no product of a radar.');
  const attributes: { Name: string }[] = Object(radar).Attributes;
  const without = (name: string) => attributes.filter(({ Name }) => Name !== name);
  const unknown = { Name: 'polarisationChannels', Value: 'RH&RV', ValueType: 'String' };
  return [
    ...['operationalMode', 'productType', 'polarisationChannels'].map(without),
    [...without('polarisationChannels'), unknown],
  ].map((Attributes, i) => ({ ...radar, Id: `${radar.Id.slice(0, -3)}bb${i}`, Attributes }));
}

export function itemOf(record: TestRecord): StacItem {
  // An item needs only these values of the row.
  const s3Path = typeof record.S3Path === 'string' ? record.S3Path : null;
  const row = { productId: record.Id, receivedAtUs: 0, deletionDateUs: null, s3Path } as ProductRow;
  const base = 'http://localhost:8080';
  return toStacItem({ row, record }, { catalogueUrl: 'https://catalogue.test', base });
}
