/** Tests the product generator against the published conventions, and the reader of record files. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Position, swathRing } from '../../src/sandbox/products/orbit.ts';
import {
  createProductGenerator,
  deletionCauses,
} from '../../src/sandbox/products/product-generator.ts';
import {
  type CatalogueProduct,
  type PublishedProduct,
  readProductRecords,
} from '../../src/sandbox/products/record.ts';
import { sentinel1 } from '../../src/sandbox/products/sentinel-1.ts';

import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const hasFixtures = existsSync(fixtures);
const readFixture = (path: string) => readFileSync(new URL(path, fixtures), 'utf8');
const firstMs = Date.UTC(2026, 1, 3, 4, 5, 6);
const timeOf = (index: number) => firstMs + index * 1300;
function publish(count: number, seed: number): PublishedProduct[] {
  const generator = createProductGenerator({ seed });
  return Array.from({ length: count }, (_, index) => generator.next(timeOf(index)));
}

const sample = publish(2000, 7);
const located = sample.filter(({ Footprint }) => Footprint !== null);
const attribute = (product: CatalogueProduct, name: string) =>
  product.Attributes?.find(({ Name }) => Name === name)?.Value;

/** Returns the closed rings of a footprint; auxiliary files have none. */
function ringsOf({ GeoFootprint: geometry }: PublishedProduct): readonly (readonly Position[])[] {
  if (geometry === null) return [];
  return geometry.type === 'Polygon' ? geometry.coordinates : geometry.coordinates.flat();
}

/** Returns the lowest and highest longitude (axis 0) or latitude (axis 1). */
function extent(ring: readonly Position[], axis: 0 | 1): readonly [min: number, max: number] {
  const values = ring.map((point) => point[axis]);
  return [Math.min(...values), Math.max(...values)];
}

const time = (name: string) => String.raw`(?<${name}>\d{8}T\d{6})`;
const nameTime = (timestamp: unknown) => String(timestamp).replaceAll(/[-:]|\..*/g, '');

// biome-ignore format: a table of patterns
const conventions: Record<string, RegExp> = {
  slice: RegExp(String.raw`^S1(?<serial>[AC])_IW_(SLC__1S|GRDH_1S|RAW__0S|OCN__2S)(DV|SV|DH)_${time('start')}_${time('end')}_(?<orbit>\d{6})_(?<datatake>[0-9A-F]{6})_[0-9A-F]{4}(_COG)?\.SAFE$`),
  'orbit file': RegExp(String.raw`^S1(?<serial>[AC])_OPER_(?<type>AUX_(POE|RES)ORB)_OPOD_\d{8}T\d{6}_V${time('start')}_${time('end')}\.EOF$`),
  tile: RegExp(String.raw`^S2(?<serial>[BC])_MSIL(1C|2A)_${time('start')}_N0511_R(?<relative>\d{3})_T(?<tile>\d\d[C-HJ-NP-X][A-Z]{2})_${time('made')}\.SAFE$`),
  frame: RegExp(String.raw`^S3(?<serial>[AB])_(?<type>OL_1_EFR___|OL_2_LFR___|SL_1_RBT___|SR_2_LAN___)_${time('start')}_${time('end')}_${time('made')}_\d{4}_(?<cycle>\d{3})_(?<relative>\d{3})_(\d{4}|____)_\w{3}_O_(?<timeliness>N[RT])_\d{3}\.SEN3$`),
  granule: RegExp(String.raw`^S5P_(NRTI|OFFL)_(?<type>L2__\w{6})_${time('start')}_${time('end')}_(?<orbit>\d{5})_03_\d{6}_${time('made')}\.nc$`),
};

describe('the published products', () => {
  it('are the same for the same seed and times, regardless of modifications and deletions', () => {
    const generator = createProductGenerator({ seed: 7 });
    const again = sample.slice(0, 200).map((_, index) => {
      const product = generator.next(timeOf(index));
      generator.deleted(generator.modified(product, firstMs), firstMs);
      return product;
    });
    expect(again).toEqual(sample.slice(0, 200));
    expect(publish(5, 8)).not.toEqual(publish(5, 7));
  });

  it('have 19 types, names that follow the conventions, GRD partly in both forms, and unique ids', () => {
    expect(new Set(sample.map((product) => attribute(product, 'productType'))).size).toBe(19);
    const ids = new Set(sample.map(({ Id }) => Id));
    expect(ids.size).toBe(sample.length);
    expect([...ids].filter((id) => !z.uuidv4().safeParse(id).success)).toEqual([]);
    const names = sample.map(({ Name }) => Name);
    const isKnown = (name: string) => Object.values(conventions).some((each) => each.test(name));
    expect(names.filter((name) => !isKnown(name))).toEqual([]);
    const twins = names.filter((name) => names.includes(name.replace('.SAFE', '_COG.SAFE')));
    expect(twins.filter((name) => name.includes('GRDH')).length).toBeGreaterThan(10);
  });

  it.each(Object.entries(conventions))(
    'have attributes that agree with their name: %s',
    (_, pattern) => {
      const matching = sample.filter(({ Name }) => pattern.test(Name));
      expect(matching.length).toBeGreaterThan(10);
      for (const product of matching) {
        const nameParts = pattern.exec(product.Name)?.groups ?? {};
        const known = (name: string) => attribute(product, name);
        const padded = (name: string, digits = 0) => String(known(name)).padStart(digits, '0');
        const actual: Record<string, unknown> = {
          serial: known('platformSerialIdentifier'),
          start: nameTime(product.ContentDate.Start),
          end: nameTime(product.ContentDate.End),
          made: nameTime(known('processingDate')),
          orbit: padded('orbitNumber', nameParts.orbit?.length),
          relative: padded('relativeOrbitNumber', 3),
          cycle: padded('cycleNumber', 3),
          datatake: Number(known('datatakeID')).toString(16).toUpperCase().padStart(6, '0'),
          tile: known('tileId'),
          timeliness: known('timeliness'),
          type: known('productType'),
        };
        for (const [part, text] of Object.entries(nameParts)) expect(actual[part], part).toBe(text);
        const folder = /^\/eodata\/Sentinel-[\w/-]+\/2026\/\d\d\/\d\d\//;
        expect(product.S3Path.replace(folder, '')).toBe(product.Name);
      }
    },
  );

  it('have 3.5 to 7 kB of compact JSON, with a median near 4.6 kB; orbit files are smaller', () => {
    const sizes = located.map((product) => JSON.stringify(product).length).sort((a, b) => a - b);
    expect(sizes.filter((bytes) => bytes < 3500 || bytes > 7000)).toEqual([]);
    expect(Math.abs((sizes[Math.floor(sizes.length / 2)] ?? 0) - 4600)).toBeLessThan(400);
  });

  it('have dates with six fractional digits, ordered from sensing to modification', () => {
    for (const [index, product] of sample.entries()) {
      const { ContentDate, OriginDate, PublicationDate, ModificationDate, EvictionDate } = product;
      const madeDate = String(attribute(product, 'processingDate') ?? ContentDate.End);
      const sensed = [ContentDate.Start, ContentDate.End, madeDate];
      const all = [...sensed, OriginDate, PublicationDate, ModificationDate, EvictionDate];
      expect([...all].sort()).toEqual(all);
      expect(all.every((date) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(date))).toBe(true);
      expect(Date.parse(PublicationDate)).toBe(timeOf(index));
      expect(OriginDate < PublicationDate).toBe(true);
    }
  });

  it.each([
    ['_MSIL', 2, 6],
    ['_O_NR_', 1, 3],
    ['_O_NT_', 20, 48],
    ['_NRTI_', 1, 3],
    ['_IW_', 0.8, 24],
    ['_POEORB_', 20 * 24, 22 * 24],
  ])(
    'with %s in the name are published %d to %d hours after sensing',
    (part, minHours, maxHours) => {
      const hours = sample
        .filter(({ Name }) => Name.includes(part))
        .map(
          (product) => Date.parse(product.PublicationDate) - Date.parse(product.ContentDate.Start),
        )
        .map((delayMs) => delayMs / 3_600_000);
      expect(hours.length).toBeGreaterThan(5);
      expect(hours.filter((each) => each < minHours || each > maxHours)).toEqual([]);
    },
  );

  it('have both checksums shortly after publication, and an archive if they are radar slices', () => {
    for (const { Checksum, Locations, Name, PublicationDate } of sample) {
      const sums = Checksum.map(({ Algorithm, Value }) => `${Algorithm} ${Value}`).join();
      expect(sums).toMatch(/^MD5 [0-9a-f]{32},BLAKE3 [0-9a-f]{64}$/);
      const delayMs = Date.parse(String(Checksum[1]?.ChecksumDate)) - Date.parse(PublicationDate);
      expect(delayMs > 0 && delayMs < 60_000).toBe(true);
      const formats = Locations.map(({ FormatType }) => FormatType).sort();
      expect(formats).toEqual(Name.includes('_IW_') ? ['Compressed', 'Extracted'] : ['Extracted']);
    }
  });

  it('have attributes of the published table', (context) => {
    if (!hasFixtures) return context.skip('there is no folder with real records');
    const table = z
      .record(z.string(), z.object({ Type: z.string(), Collections: z.array(z.string()) }))
      .parse(JSON.parse(readFixture('attributes/attributes-by-collection.json')));
    for (const product of sample) {
      for (const { Name, ValueType, ...rest } of product.Attributes) {
        expect(rest['@odata.type']).toBe(`#OData.CSC.${ValueType}Attribute`);
        // Present in all real records but missing in the table.
        if (Name === 'beginningDateTime' || Name === 'endingDateTime') continue;
        expect(table[Name]?.Type, Name).toBe(ValueType);
        expect(table[Name]?.Collections, Name).toContain(attribute(product, 'platformShortName'));
      }
    }
  });

  it('have the keys and attributes of a real GRD', (context) => {
    if (!hasFixtures) return context.skip('there is no folder with real records');
    const line = /.*"S1C_IW_GRDH_1SDV_2026.*/.exec(readFixture('products.jsonl'))?.[0] ?? '{}';
    const real = JSON.parse(line);
    const made = sample.find((product) => attribute(product, 'productType') === 'IW_GRDH_1S');
    expect(Object.keys(made ?? {})).toEqual(Object.keys(real));
    const names = (product?: CatalogueProduct) => product?.Attributes?.map(({ Name }) => Name);
    expect(names(made)).toEqual(names(real));
  });
});

describe('a footprint', () => {
  it('is missing only for orbit files, which are about 3 % of the products', () => {
    const without = sample.filter((product) => !located.includes(product));
    expect(without.every(({ GeoFootprint }) => GeoFootprint === null)).toBe(true);
    expect(without).toEqual(sample.filter(({ Name }) => Name.includes('_AUX_')));
    expect(Math.abs(without.length / sample.length - 0.03)).toBeLessThan(0.02);
  });

  it('is closed, within valid coordinates, of plausible width, and the same as WKT and as GeoJSON', () => {
    for (const product of located) {
      const rings = ringsOf(product);
      for (const ring of rings) {
        expect(ring.length).toBeGreaterThanOrEqual(4);
        expect(ring.at(-1)).toEqual(ring[0]);
        const [[west, east], [south, north]] = [extent(ring, 0), extent(ring, 1)];
        expect(Math.min(west + 180, 180 - east, south + 84, 84 - north)).toBeGreaterThanOrEqual(0);
        expect(east - west).toBeLessThan(/CH4|SR_2/.test(product.Name) ? 90 : 40);
      }
      const texts = rings.map((ring) => `((${ring.map((point) => point.join(' ')).join(', ')}))`);
      const wkt = rings.length === 1 ? `POLYGON ${texts}` : `MULTIPOLYGON (${texts.join(', ')})`;
      expect(product.Footprint).toBe(`geography'SRID=4326;${wkt}'`);
    }
  });

  it('that crosses the antimeridian is split there into two parts', () => {
    const cut = located.filter(({ GeoFootprint }) => GeoFootprint?.type === 'MultiPolygon');
    expect(cut.length).toBeGreaterThan(5);
    for (const product of cut) {
      const [east = [], west = []] = ringsOf(product).map((ring) => extent(ring, 0));
      expect([east[1], west[0]]).toEqual([180, -180]);
      expect((east[0] ?? 0) > 0 && (west[1] ?? 0) < 0).toBe(true);
    }
  });

  it('computed for the time of a real Sentinel-1C slice matches its position within 0.5 degrees', () => {
    const [, satellite = sentinel1[0]] = sentinel1;
    const startMs = Date.UTC(2026, 0, 1, 0, 10, 52, 74);
    const seen = { satellite, startMs, endMs: startMs + 25_000 };
    const ring = swathRing(seen, { leftKm: 340, rightKm: 590, alongSteps: 1, acrossSteps: 1 });
    // biome-ignore format: one corner after the other
    const real = [[-76.218, -53.149], [-75.313, -54.589], [-71.695, -53.709], [-72.7, -52.296]];
    const away = ring.flat().map((degrees, index) => Math.abs(degrees - (real.flat()[index] ?? 0)));
    expect(Math.max(...away)).toBeLessThan(0.5);
  });
});

describe('a change of a product', () => {
  const generator = createProductGenerator({ seed: 3 });

  it('corrects the checksums or the cloud cover, but never identity and publication date', () => {
    const corrected = new Set<string>();
    for (const product of sample.slice(0, 300)) {
      const after = generator.modified(product, timeOf(90_000));
      expect(Date.parse(after.ModificationDate)).toBe(timeOf(90_000));
      const { ModificationDate, Checksum, Attributes, Locations } = product;
      expect({ ...after, ModificationDate, Checksum, Attributes, Locations }).toEqual(product);
      const sums = after.Checksum[0]?.Value !== Checksum[0]?.Value;
      const cover = attribute(after, 'cloudCover') !== attribute(product, 'cloudCover');
      expect(sums).not.toBe(cover);
      const extracted = after.Locations.find(({ FormatType }) => FormatType === 'Extracted');
      expect(extracted?.Checksum).toEqual(after.Checksum);
      corrected.add(sums ? 'checksums' : 'cloud cover');
    }
    expect(corrected.size).toBe(2);
  });

  it('that deletes it produces the form of DeletedProducts, with a random documented cause by default', () => {
    const causes = sample.slice(0, 100).map((product) => {
      const after = generator.deleted(product, firstMs);
      expect(Object.keys(after).join()).toBe(
        '@odata.context,@odata.mediaContentType,Id,Name,ContentType,ContentLength,OriginDate,' +
          'Checksum,Footprint,GeoFootprint,ContentDate,Attributes,DeletionDate,DeletionCause',
      );
      expect(after['@odata.context']).toBe('$metadata#DeletedProducts(Attributes())/$entity');
      expect(product).toMatchObject({ Id: after.Id, Name: after.Name, Checksum: after.Checksum });
      expect(Date.parse(after.DeletionDate)).toBe(firstMs);
      return after.DeletionCause;
    });
    expect(new Set(causes)).toEqual(new Set(deletionCauses));
    expect(generator.deleted({ Id: 'a', Name: 'b' }, firstMs, 'Other').DeletionCause).toBe('Other');
  });
});

describe('a file of product records', () => {
  function write(text: string): string {
    const file = join(temporaryDirectory(), 'records.jsonl');
    writeFileSync(file, text);
    return file;
  }

  it('is read line by line, skipping blank lines and keeping unknown fields', () => {
    const lines = [...sample.slice(0, 20), { Id: 'a', Name: 'b', Extra: [1] }];
    const text = lines.map((product) => `${JSON.stringify(product)}\r\n\n`).join('  \n');
    expect(readProductRecords(write(text))).toEqual(lines);
  });

  it('can contain all the real records', (context) => {
    if (!hasFixtures) return context.skip('there is no folder with real records');
    const text = readFixture('products.jsonl');
    const records = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(readProductRecords(write(text))).toEqual(records);
  });

  it.each([
    ['is not JSON', '{"Id":"a",', /records\.jsonl, line 3 is not valid JSON\. .*one line.*remove/],
    ['is no object', '[]', /records\.jsonl, line 3 is not a product record \(.*\)\. Correct/],
    ['lacks the id', '{"Name":"b"}', /records\.jsonl, line 3 .*\(Id: .*Id and Name are required/],
    ['has a number for a name', '{"Id":"a","Name":5}', /line 3 .*\(Name: .*string/],
    ['has no list of attributes', '{"Id":"a","Name":"b","Attributes":1}', /line 3 .*Attributes/],
  ])('is refused with file, line and remedy when a line %s', (_, line, message) => {
    const file = write(`{"Id":"a","Name":"b"}\n\n${line}\n`);
    expect(() => readProductRecords(file)).toThrow(message);
  });

  it('is refused when it has no records or does not exist', () => {
    expect(() => readProductRecords(write('\n\n'))).toThrow(
      /records\.jsonl contains no product.*Put/,
    );
    expect(() => readProductRecords('/no/such')).toThrow(/Cannot read .*such: .*Check/);
  });
});
