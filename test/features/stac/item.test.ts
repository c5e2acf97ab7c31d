/** Items and their collections, checked with the validator of the STAC community and the published schemas. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { collectionId, readCollectionId } from '../../../src/features/stac/collections.ts';
import { line as lineOf } from '../../filter/geometry/places.ts';
import type { TestRecord } from '../products/index-file/product-context.ts';
import { itemOf, sampleItems } from './sample-items.ts';
import { schemaFolder, validateStac } from './schemas.ts';

const record = (fields: object): TestRecord => ({
  Id: '00000000-0000-4000-8000-000000000001',
  ...fields,
});
const kindOf = (value: unknown) => {
  if (typeof value === 'number') return Number.isInteger(value) ? 'Integer' : 'Double';
  return /^\d{4}-\d\d-/.test(String(value)) ? 'DateTimeOffset' : 'String';
};

describe('an item', () => {
  it('of any product is valid against the published schemas of STAC and its extensions', async (context) => {
    if (!existsSync(schemaFolder))
      context.skip('the folder ../shared/fixtures/stac-schemas is not there');
    const items = sampleItems(1).map(({ item }) => item);
    expect(await validateStac(items)).toEqual({ faults: [], checked: items.length });
    const extensions = new Set(items.flatMap((item) => item.stac_extensions));
    const known = ['eo', 'sat', 'sar', 'grid', 'processing'].map((name) =>
      expect.stringContaining(`/${name}/`),
    );
    expect([...extensions]).toEqual(expect.arrayContaining(known));
  });

  it('has assets with types, so that clients show the quicklook', async () => {
    const { default: create } = await import(createRequire(import.meta.url).resolve('stac-js'));
    const items = sampleItems().map(({ item }) => item);
    for (const { assets } of items) {
      for (const asset of Object.values(assets)) expect(asset.type).toMatch(/^\w+\/[\w-]+$/);
      const shown = create({ ...items[0], assets }).getThumbnails();
      expect(shown).toHaveLength('quicklook' in assets ? 1 : 0);
    }
    expect(items.some(({ assets }) => 'quicklook' in assets)).toBe(true);
  });

  it('has the values of the record under the names of the extensions', () => {
    const item = itemOf(
      record({
        Name: 'S1C_IW_GRDH_1SDV.SAFE',
        S3Path: '/eodata/Sentinel-1/one.SAFE',
        ContentDate: { Start: '2026-01-01T00:10:22.776Z', End: '2026-01-01T00:10:52Z' },
        PublicationDate: '2026-01-01T01:17:06.629578Z',
        ModificationDate: '2026-01-02T01:17:06Z',
        Assets: [{ Type: 'QUICKLOOK', DownloadLink: 'https://catalogue.test/quicklook' }],
        Attributes: Object.entries({
          ...{ platformShortName: 'SENTINEL-1', platformSerialIdentifier: 'C' },
          ...{ instrumentShortName: 'SAR', productType: 'IW_GRDH_1S', operationalMode: 'IW' },
          ...{ orbitDirection: 'ASCENDING', orbitNumber: 5702, relativeOrbitNumber: 106 },
          ...{ polarisationChannels: 'VV&VH', processingLevel: 'LEVEL1', offNadir: 1.5 },
          ...{ processorName: 'Sentinel-1 IPF', processorVersion: '004.02', sunAzimuthAngle: 120 },
          processingDate: '2026-01-01T01:05:30.106+00:00',
        }).map(([Name, Value]) => ({ Name, Value, ValueType: kindOf(Value) })),
      }),
    );
    expect(item.collection).toBe('SENTINEL-1.IW_GRDH_1S');
    expect(item.properties).toEqual({
      datetime: '2026-01-01T00:10:22.776000Z',
      start_datetime: '2026-01-01T00:10:22.776000Z',
      end_datetime: '2026-01-01T00:10:52.000000Z',
      title: 'S1C_IW_GRDH_1SDV.SAFE',
      created: '2026-01-01T01:17:06.629578Z',
      updated: '2026-01-02T01:17:06.000000Z',
      platform: 'sentinel-1c',
      constellation: 'sentinel-1',
      instruments: ['sar'],
      'sat:absolute_orbit': 5702,
      'sat:relative_orbit': 106,
      'sat:orbit_state': 'ascending',
      'sar:instrument_mode': 'IW',
      'sar:product_type': 'IW_GRDH_1S',
      'sar:frequency_band': 'C',
      'sar:polarizations': ['VV', 'VH'],
      'view:off_nadir': 1.5,
      'view:sun_azimuth': 120,
      'processing:level': 'LEVEL1',
      'processing:version': '004.02',
      'processing:datetime': '2026-01-01T01:05:30.106000Z',
      'processing:software': { 'Sentinel-1 IPF': '004.02' },
    });
    const { download, s3, quicklook } = item.assets;
    expect([download?.href, s3?.href, quicklook?.href]).toEqual([
      `https://catalogue.test/odata/v1/Products(${item.id})/$value`,
      's3://eodata/Sentinel-1/one.SAFE',
      'https://catalogue.test/quicklook',
    ]);
    const links = Object.fromEntries(item.links.map(({ rel, href }) => [rel, href]));
    expect(links).toMatchObject({
      self: `http://localhost:8080/stac/collections/SENTINEL-1.IW_GRDH_1S/items/${item.id}`,
      via: `https://catalogue.test/odata/v1/Products(${item.id})`,
      alternate: `http://localhost:8080/odata/v1/Products(${item.id})`,
      'version-history': `http://localhost:8080/api/notifications?productId=${item.id}`,
      describedby: `http://localhost:8080/api/summaries?productId=${item.id}`,
    });
  });

  it('has a geometry and a box for lines, points and collections, cut at the antimeridian, and is valid', async (context) => {
    const text = (wkt: string) => itemOf(record({ Footprint: `geography'SRID=4326;${wkt}'` }));
    const line = text('LINESTRING (10 45, 12 47)');
    expect([line.geometry, line.bbox]).toEqual([lineOf('10 45, 12 47'), [10, 45, 12, 47]]);
    const across = text('LINESTRING (179 0, -179 2)');
    expect([across.geometry?.type, across.bbox]).toEqual(['MultiLineString', [179, 0, -179, 2]]);
    const lines = text('MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))');
    const points = text('MULTIPOINT ((0 0), (3 1))');
    const height = text('POLYGON Z ((0 0 9, 1 0 9, 1 1 9, 0 0 9))');
    expect([lines, points, height].map(({ geometry }) => geometry?.type)).toEqual([
      ...['MultiLineString', 'MultiPoint', 'Polygon'],
    ]);
    // The schema of items permits no collection; the box contains all parts.
    const tile = text('POLYGON ((179.5 10, -179 10, -179 12.25, 179.5 12.25, 179.5 10))');
    expect([tile.geometry?.type, tile.bbox]).toEqual(['MultiPolygon', [179.5, 10, -179, 12.25]]);
    const mixed = text('GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (0 0, 1 1))');
    expect([mixed.geometry?.type, mixed.bbox]).toEqual(['LineString', [0, 0, 9, 9]]);
    if (!existsSync(schemaFolder))
      context.skip('the folder ../shared/fixtures/stac-schemas is not there');
    const items = [line, across, lines, points, height, tile, mixed];
    expect(await validateStac(items)).toEqual({ faults: [], checked: items.length });
  });

  it('of a product with few values has no geometry, and the time of publication or receipt', () => {
    const item = itemOf(record({ PublicationDate: '2026-01-01T01:17:06.629578Z' }));
    expect(item).toMatchObject({ geometry: null, collection: 'unknown.untyped' });
    expect(item).not.toHaveProperty('bbox');
    expect(item.properties.datetime).toBe('2026-01-01T01:17:06.629578Z');
    expect(itemOf(record({})).properties.datetime).toBe('1970-01-01T00:00:00.000000Z');
  });
});

describe('the id of a collection', () => {
  it.each([
    ['SENTINEL-2', 'S2MSI2A', 'SENTINEL-2.S2MSI2A'],
    ['SENTINEL-1', null, 'SENTINEL-1.untyped'],
    [null, null, 'unknown.untyped'],
    [null, 'untyped', 'unknown.%75ntyped'],
    ['unknown', 'a.b/c d', '%75nknown.a.b%2Fc%20d'],
    ['a.b', 'c', 'a%2Eb.c'],
  ])('of %s and %s is %s', (mission, productType, id) => {
    expect(collectionId({ mission, productType })).toBe(id);
    expect(readCollectionId(id)).toEqual({ mission, productType });
  });

  it.each(['', 'SENTINEL-2', '.a', 'a.', 'a b.c', '%.a', 'x.%75'])('is not %j', (id) => {
    expect(readCollectionId(id)).toBeNull();
  });
});
