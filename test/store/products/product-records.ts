/** Records for the tests of the index: made-up ones of all kinds, and real ones where they are at hand. */
import { existsSync, readFileSync } from 'node:fs';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import type { TestRecord } from './product-world.ts';

const realFile = new URL('../../../../shared/fixtures/products.jsonl', import.meta.url);

/** Products as the sandbox makes them, at one a minute. */
export function generatedRecords(count: number, seed: number): TestRecord[] {
  const generator = createProductGenerator({ seed });
  const firstMs = Date.UTC(2026, 4, 1);
  return Array.from({ length: count }, (_, i) => ({ ...generator.next(firstMs + i * 60_000) }));
}

/** Some of the recorded products, of all missions and ages; none when the folder is not there. */
export function realRecords(every: number): TestRecord[] {
  if (!existsSync(realFile)) return [];
  const lines = readFileSync(realFile, 'utf8').trim().split('\n');
  return lines.filter((_, i) => i % every === 0).map((line) => JSON.parse(line));
}

/** Records with what makes columns and evaluation differ if either is careless. */
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
  { Id: '00000000-0000-4000-8000-00000000000c', Footprint: "geography'SRID=4326;POLYGON ((1 2'" },
];
