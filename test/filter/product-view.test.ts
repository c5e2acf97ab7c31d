/** Records of any age, read field by field. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shapesIntersect } from '../../src/filter/geometry/intersects.ts';
import { toShape } from '../../src/filter/geometry/shape.ts';
import { collectionOf } from '../../src/filter/product-record.ts';
import { productView } from '../../src/filter/product-view.ts';

const attribute = (name: string, value: unknown, kind = 'String') => ({
  '@odata.type': `#OData.CSC.${kind}Attribute`,
  Name: name,
  Value: value,
  ValueType: kind,
});
const text = (wkt: string) => `geography'SRID=4326;${wkt}'`;

describe('a view of a record', () => {
  it('has its texts, dates and state', () => {
    const view = productView({
      Id: 'a-B',
      Name: 'S2A_X',
      Online: false,
      ContentDate: { Start: '2024-01-02T03:04:05.000006Z', End: '2024-01-02T05:04:06+02:00' },
      PublicationDate: '2024-01-02',
      DeletionCause: 'Reprocessed product',
    });
    expect(['Id', 'Name', 'DeletionCause', 'Nonsense', 'PublicationDate'].map(view.text)).toEqual([
      'a-B',
      'S2A_X',
      'Reprocessed product',
      null,
      null,
    ]);
    const start = Date.UTC(2024, 0, 2, 3, 4, 5) * 1000;
    expect(view.dateUs('ContentDate/Start')).toBe(start + 6);
    expect(view.dateUs('ContentDate/End')).toBe(start + 1_000_000);
    expect(view.dateUs('PublicationDate')).toBe(Date.UTC(2024, 0, 2) * 1000);
    expect([view.dateUs('ModificationDate'), view.dateUs('Name')]).toEqual([null, null]);
    expect(view.online).toBe(false);
  });

  it('has attributes by their name, the first of each, as stored', () => {
    const view = productView({
      Attributes: [
        attribute('relativeOrbitNumber', 15),
        { Name: 'cloudCover', Value: 3, ValueType: 'Double' },
        attribute('cloudCover', 99),
        attribute('none', null),
        null,
        { Name: 'kindless', Value: 1 },
      ],
    });
    expect(view.attribute('relativeOrbitNumber')).toEqual({ kind: 'String', value: 15 });
    expect(view.attribute('cloudCover')).toEqual({ kind: 'Double', value: 3 });
    expect(view.attribute('none')).toEqual({ kind: 'String', value: null });
    expect(view.attribute('kindless')).toBeNull();
    expect(view.attribute('CloudCover')).toBeNull();
  });

  it.each([
    ['POLYGON ((0 0, 4 0, 4 4, 0 0))', 'Polygon'],
    ['polygon((0 0,4 0,4 4))', 'Polygon'],
    ['MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((9 9, 8 8, 9 8, 9 9)))', 'MultiPolygon'],
    ['MULTIPOINT ((3 1), (5 5))', 'MultiPoint'],
    ['MULTIPOINT (3 1, 5 5)', 'MultiPoint'],
    ['POINT (3 1)', 'Point'],
    ['POINT (3e0 1.0 250)', 'Point'],
  ])('reads the footprint %s', (wkt, type) => {
    const view = productView({ Footprint: text(wkt) });
    const place = toShape({ type: 'Point', coordinates: [3, 1] });
    expect(view.geometry()?.type).toBe(type);
    const footprint = view.footprint();
    expect(footprint !== null && shapesIntersect(footprint, place)).toBe(true);
  });

  it('takes GeoFootprint where the text cannot be read', () => {
    const point = { type: 'Point', coordinates: [1, 2] };
    for (const footprint of [
      null,
      undefined,
      7,
      '',
      text('POINT (x)'),
      text('LINESTRING (0 0, 1 1)'),
    ]) {
      expect(productView({ Footprint: footprint, GeoFootprint: point }).geometry()).toEqual(point);
    }
  });

  it('has no place where none can be read', () => {
    const broken = [
      null,
      5,
      {},
      { type: 'Polygon', coordinates: [] },
      { type: 'Point', coordinates: ['a'] },
    ];
    for (const geojson of [...broken, { type: 'Polygon', coordinates: [[[0, null]]] }]) {
      expect(productView({ GeoFootprint: geojson }).footprint()).toBeNull();
    }
    for (const wkt of [
      'POLYGON',
      'POLYGON ()',
      'POLYGON ((0 0, 1))',
      'POLYGON EMPTY',
      'POINT (1 2',
      '[1]',
    ]) {
      expect(productView({ Footprint: text(wkt) }).footprint()).toBeNull();
    }
  });

  it('bears any JSON at all', () => {
    const names = [
      'Id',
      'Name',
      'Collection',
      'ContentDate',
      'Attributes',
      'Footprint',
      'GeoFootprint',
      'S3Path',
    ];
    const member = fc.constantFrom(...names);
    fc.assert(
      fc.property(fc.dictionary(member, fc.jsonValue()), (record) => {
        const view = productView(record);
        expect([view.text('Collection/Name'), view.dateUs('ContentDate/Start')]).toHaveLength(2);
        expect([view.footprint(), view.attribute('a'), view.online]).toHaveLength(3);
      }),
    );
  });
});

describe('the collection of a record', () => {
  it('is the one that it names, if it names one', () => {
    const view = productView({ Collection: { Name: 'SENTINEL-9' }, Name: 'S2A_X' });
    expect(view.text('Collection/Name')).toBe('SENTINEL-9');
  });

  it.each([
    [{ Attributes: [attribute('platformShortName', 'SENTINEL-3')], Name: 'S2A_X' }, 'SENTINEL-3'],
    [{ Attributes: [attribute('platformshortname', 'Sentinel-3')] }, 'SENTINEL-3'],
    [{ S3Path: '/eodata/Sentinel-5P/TROPOMI/x', Name: 'S2A_X' }, 'SENTINEL-5P'],
    [
      {
        S3Path: '/eodata/Sentinel-1-RTC/x',
        Attributes: [attribute('platformShortName', 'SENTINEL-1')],
      },
      'SENTINEL-1-RTC',
    ],
    [{ S3Path: '/eodata/CLMS/x' }, 'CLMS'],
    [{ Name: 'S1A_IW_GRDH_1SDV_20240101' }, 'SENTINEL-1'],
    [{ Name: 'S1__AUX_WND_V2024' }, 'SENTINEL-1'],
    [{ Name: 'S2B_MSIL1C_20240101' }, 'SENTINEL-2'],
    [{ Name: 'S3A_SL_1_RBT____2024' }, 'SENTINEL-3'],
    [{ Name: 'S5P_OFFL_L2__NO2____2024' }, 'SENTINEL-5P'],
    [{ Name: 'S6A_P4_1B_LR_STD' }, 'SENTINEL-6'],
    [{ Name: 'LC08_L1TP_190024_2024' }, 'LANDSAT-8'],
    [{ Name: 'LO08_L1TP_190024_2024' }, 'LANDSAT-8'],
    [{ Name: 'LC09_L2SP_190024_2024' }, 'LANDSAT-9'],
    [{ Name: 'LE07_L1TP_190024' }, 'LANDSAT-7'],
    [{ Name: 'SM_OPER_MIR_SMUDP2' }, 'SMOS'],
    [{ Name: 'ASA_IMP_1PNESA2011' }, 'ENVISAT'],
    [{ Name: 'SENTINEL something' }, null],
    [{ S3Path: '/eodata/Unheard-Of/x', Name: 5 }, null],
    [{}, null],
  ])('%j: %s', (record, collection) => {
    expect(collectionOf(record)).toBe(collection);
    expect(productView(record).text('Collection/Name')).toBe(collection);
  });
});
