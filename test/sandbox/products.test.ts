/** The products of the sandbox: names, attributes, footprints and delays of the real collections. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { polygonsOf } from '../../src/filter/geometry/ring.ts';
import { parseProductName } from '../../src/filter/product-name.ts';
import {
  createProductGenerator,
  readProductRecords,
} from '../../src/sandbox/products/product-generator.ts';
import { isReferenceValid } from '../filter/geometry/reference.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { missing, recorded, recordedText } from './set-up.ts';

const firstMs = Date.UTC(2026, 1, 3, 4, 5, 6);
const timeOf = (index: number) => firstMs + index * 1_300;

function publish(count: number, seed: number) {
  const generator = createProductGenerator({ seed });
  return Array.from({ length: count }, (_, index) => generator.next(timeOf(index)));
}

const sample = publish(2_000, 7);
type Product = (typeof sample)[number];
const attribute = ({ Attributes }: Product, name: string) =>
  Attributes.find(({ Name }) => Name === name)?.Value;
const typeOf = (product: Product) => String(attribute(product, 'productType'));
const cornersOf = ({ GeoFootprint }: Product) =>
  GeoFootprint === null ? [] : polygonsOf(GeoFootprint).flat(2);

describe('a product', () => {
  it.each([
    ['SENTINEL-1', ['IW_GRDH_1S', 'IW_GRDH_1S-COG', 'IW_SLC__1S'], 0.8, 5],
    ['SENTINEL-2', ['S2MSI1C', 'S2MSI2A'], 2, 14],
    ['SENTINEL-3', ['OL_1_EFR___', 'SR_2_LAN___'], 1, 48],
    ['SENTINEL-5P', ['L2__NO2___', 'L2__AER_AI', 'L2__CH4___'], 1, 150],
    ['an auxiliary file', ['AUX_POEORB'], 480, 560],
  ])('of %s has a name of the mission, some hours after sensing', (_, types, from, to) => {
    const own = sample.filter((product) => types.includes(typeOf(product)));
    expect(new Set(own.map(typeOf))).toEqual(new Set(types));
    for (const product of own) {
      const { Name, PublicationDate, ContentDate, S3Path } = product;
      const named = parseProductName(Name);
      expect(named, Name).not.toBeNull();
      for (const field of ['orbitNumber', 'relativeOrbitNumber'] as const)
        expect(named?.[field] ?? attribute(product, field)).toBe(attribute(product, field));
      expect(Name).toContain(ContentDate.Start.replaceAll(/[-:]|\..*/g, ''));
      const hours = (Date.parse(PublicationDate) - Date.parse(ContentDate.Start)) / 3_600_000;
      expect(hours, Name).toBeGreaterThan(from);
      expect(hours, Name).toBeLessThan(to);
      expect(S3Path).toMatch(new RegExp(`^/eodata/Sentinel-.*/20\\d\\d/.*/${Name}$`));
    }
  });

  it('has the keys of real records, and attributes of the published table, with their types', (context) => {
    if (missing) return context.skip('there is no folder with real records');
    const table = recorded('attributes/attributes-by-collection.json');
    const lines = recordedText('products.jsonl');
    const real = JSON.parse(/.*"S1C_IW_GRDH_1SDV_2026.*/.exec(lines)?.[0] ?? '{}');
    for (const product of sample) {
      expect(Object.keys(product)).toEqual(Object.keys(real));
      const collection = attribute(product, 'platformShortName');
      for (const { Name, ValueType, ...rest } of product.Attributes) {
        expect(rest['@odata.type']).toBe(`#OData.CSC.${ValueType}Attribute`);
        // In all real records, but not in the table.
        if (/^(beginning|ending)DateTime$/.test(Name)) continue;
        const { Type, Collections } = table[Name] ?? {};
        expect([Type, Collections], Name).toEqual([
          ValueType,
          expect.arrayContaining([collection]),
        ]);
      }
    }
  });

  it('has dates in order, a unique id, and the real size', () => {
    expect(new Set(sample.map(({ Id }) => Id)).size).toBe(sample.length);
    for (const [index, product] of sample.entries()) {
      const { ContentDate, OriginDate, PublicationDate, EvictionDate, Footprint } = product;
      const { Start, End } = ContentDate;
      const made = String(attribute(product, 'processingDate') ?? End);
      const dates = [Start, End, made, OriginDate, PublicationDate, EvictionDate];
      expect(dates.toSorted()).toEqual(dates);
      for (const date of dates) expect(date).toMatch(/^\d{4}(-\d\d){2}T\d\d(:\d\d){2}\.\d{6}Z$/);
      expect(Date.parse(PublicationDate)).toBe(timeOf(index));
      const bytes = JSON.stringify(product).length;
      if (Footprint !== null) expect(Math.abs(bytes - 5_250), product.Name).toBeLessThan(1_750);
    }
  });

  it('has a valid footprint, the same as WKT and GeoJSON; only auxiliary files have none', () => {
    for (const product of sample) {
      const { GeoFootprint, Footprint, Name } = product;
      expect(GeoFootprint === null, Name).toBe(Name.includes('_AUX_'));
      if (GeoFootprint === null) continue;
      expect(isReferenceValid(GeoFootprint), Name).toBe(true);
      const numbers = Footprint?.match(/-?[\d.]+(?=[ ,)])/g)?.map(Number);
      expect(numbers).toEqual(cornersOf(product).flat());
      expect(Footprint).toContain(`SRID=4326;${GeoFootprint.type.toUpperCase()} (`);
    }
    expect(sample.some(({ GeoFootprint }) => GeoFootprint?.type === 'MultiPolygon')).toBe(true);
  });

  it('is the same for the same seed and time, regardless of changes, which keep its other fields', () => {
    const generator = createProductGenerator({ seed: 7 });
    for (const [index, before] of sample.slice(0, 200).entries()) {
      const product = generator.next(timeOf(index));
      expect(product).toEqual(before);
      const after = generator.modified(product, timeOf(9_000));
      const { ModificationDate } = product;
      expect({ ...after, ModificationDate }).toEqual(product);
      expect(Date.parse(after.ModificationDate)).toBe(timeOf(9_000));
      const gone = generator.deleted(after, timeOf(9_001));
      expect(Object.keys(gone)).not.toContain('PublicationDate');
      const { Id } = product;
      expect(gone).toMatchObject({
        Id,
        Checksum: after.Checksum,
        DeletionCause: expect.any(String),
      });
    }
    expect(publish(5, 8)).not.toEqual(publish(5, 7));
  });
});

it.each([
  ['nonsense\n', /line 1: not a JSON object/],
  ['{"Id":"a","Name":"A"}\n{"Id":"b"}', /line 2: not a JSON object with the texts Id and Name/],
  ['\n', /no product records/],
])('a file of records with the text %j is refused', (text, problem) => {
  const file = join(temporaryDirectory(), 'records.jsonl');
  writeFileSync(file, text);
  expect(() => readProductRecords(file)).toThrow(problem);
});
