/**
 * Records of any age, read field by field. Those made to stall the index are read quickly: as a
 * place or a value, or as absent.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFilter } from '../../src/filter/check.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import type { AnyGeometry, Position } from '../../src/filter/filter-tree.ts';
import { toGeoJson } from '../../src/filter/geometry/geojson.ts';
import { shapesIntersect } from '../../src/filter/geometry/intersects.ts';
import { positionsOf } from '../../src/filter/geometry/ring.ts';
import { boxesOf, toShape } from '../../src/filter/geometry/shape.ts';
import { collectionOf } from '../../src/filter/product-record.ts';
import { productView } from '../../src/filter/product-view.ts';
import { times } from '../helpers/thorough.ts';
import { box, point, polygon, ring } from './geometry/places.ts';

const attribute = (name: string, value: unknown, kind = 'String') => ({
  '@odata.type': `#OData.CSC.${kind}Attribute`,
  Name: name,
  Value: value,
  ValueType: kind,
});
const text = (wkt: string) => `geography'SRID=4326;${wkt}'`;

describe('a view of a record', () => {
  it('has the texts, dates and state of the record', () => {
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

  it('has attributes by name, the first of each, as stored', () => {
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
    ['LINESTRING (0 1, 9 1)', 'LineString'],
    ['linestring(2 0,4 2)', 'LineString'],
    ['MULTILINESTRING ((0 9, 9 9), (3 1, 3 2))', 'MultiLineString'],
    ['POLYGON Z ((0 0 5, 4 0 5, 4 4 5, 0 0 5))', 'Polygon'],
    ['POLYGONZ((0 0 5, 4 0 5, 4 4 5, 0 0 5))', 'Polygon'],
    [
      'MULTIPOLYGON ZM (((0 0 1 2, 4 0 1 2, 4 4 1 2, 0 0 1 2)), ((9 9 1 2, 8 8 1 2, 9 8 1 2, 9 9 1 2)))',
      'MultiPolygon',
    ],
    ['LINESTRING M (0 1 7, 9 1 8)', 'LineString'],
    ['MULTIPOINT Z ((3 1 0), (5 5 0))', 'MultiPoint'],
    ['GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (0 1, 9 1))', 'GeometryCollection'],
    [
      'GEOMETRYCOLLECTION Z (POINT Z (9 9 1), POLYGON Z ((0 0 1, 4 0 1, 4 4 1, 0 0 1)))',
      'GeometryCollection',
    ],
    [
      'GEOMETRYCOLLECTION (POINT (9 9), POINT EMPTY, GEOMETRYCOLLECTION (POINT (3 1)))',
      'MultiPoint',
    ],
    ['GEOMETRYCOLLECTION (POLYGON ((0 0, 4 0, 4 4, 0 0)), LINESTRING EMPTY)', 'Polygon'],
  ])('reads the footprint %s', (wkt, type) => {
    const view = productView({ Footprint: text(wkt) });
    const place = toShape({ type: 'Point', coordinates: [3, 1] });
    expect(view.geometry()?.type).toBe(type);
    const footprint = view.footprint();
    expect(footprint !== null && shapesIntersect(footprint, place)).toBe(true);
  });

  it.each([
    "geography'SRID=4326;LINESTRING (10 45, 12 47)'",
    "  geography'srid = 4326 ; LINESTRING(10 45,12 47)' ",
    "geometry'SRID=4326;LINESTRING (10 45, 12 47)'",
    'SRID=4326;LINESTRING (10 45, 12 47)',
    'LINESTRING (10 45, 12 47)',
  ])('reads the text %s', (Footprint) => {
    const coordinates = ring('10 45, 12 47');
    expect(productView({ Footprint }).geometry()).toEqual({ type: 'LineString', coordinates });
  });

  it.each<AnyGeometry>([
    point(1, 2),
    { type: 'LineString', coordinates: ring('10 45, 12 47') },
    { type: 'MultiLineString', coordinates: [ring('10 45, 12 47'), ring('0 0, 1 1, 2 0')] },
    { type: 'MultiPoint', coordinates: ring('10 45, 12 47') },
    { type: 'GeometryCollection', geometries: [point(1, 2), polygon(box(0, 0, 1, 1))] },
  ])('uses GeoFootprint %j, whatever the text is', (geojson) => {
    for (const footprint of [null, undefined, 7, '', text('POINT (x)'), text('POINT (50 50)')]) {
      const view = productView({ Footprint: footprint, GeoFootprint: geojson });
      expect(view.geometry()).toEqual(geojson);
    }
  });

  it('uses the text when GeoFootprint cannot be read', () => {
    const lists = [
      [],
      [[1, 2]],
      [
        [1, 2],
        ['a', 3],
      ],
    ];
    const broken = lists.map((coordinates) => ({ type: 'LineString', coordinates }));
    for (const geojson of [null, 5, ...broken, { type: 'GeometryCollection', geometries: [{}] }]) {
      const view = productView({ Footprint: text('POINT (3 1)'), GeoFootprint: geojson });
      expect(view.geometry()).toEqual(point(3, 1));
    }
  });

  it('has no place when neither can be parsed', () => {
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
    const cut = ['POLYGON', 'POLYGON ()', 'POLYGON ((0 0, 1))', 'POINT (1 2'];
    const empty = [
      'POLYGON EMPTY',
      'POINT Z EMPTY',
      'GEOMETRYCOLLECTION EMPTY',
      'LINESTRING (1 2)',
    ];
    const other = [
      '[1]',
      'CIRCULARSTRING (0 0, 1 1, 2 0)',
      'POINT (1 2) POINT (3 4)',
      'POINT (1e999 2)',
    ];
    const nested = `${'GEOMETRYCOLLECTION ('.repeat(20_000)}POINT (1 2)${')'.repeat(20_000)}`;
    for (const wkt of [...cut, ...empty, ...other, nested]) {
      expect(productView({ Footprint: text(wkt) }).geometry()).toBeNull();
    }
    expect(productView({ Footprint: "geography'SRID=3857;POINT (1 2)'" }).geometry()).toBeNull();
  });

  it('accepts any JSON', () => {
    const names = 'Id Name Collection ContentDate Attributes Footprint GeoFootprint S3Path';
    const member = fc.constantFrom(...names.split(' '));
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
  it('is the one that the record names, if any', () => {
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
    [{ Name: 'S1D_IW_GRDH_1SDV_20260101' }, 'SENTINEL-1'],
    [{ Name: 'S1E_IW_SLC__1SDV_20300101' }, 'SENTINEL-1'],
    [{ Name: 'S3C_SR_2_LAN' }, 'SENTINEL-3'],
    [{ S3Path: '/eodata/COP-DEM/x' }, 'COP-DEM'],
    [{ S3Path: '/eodata/S2GLC/x', Name: 'S2GLC_T32TQM.tif' }, 'S2GLC'],
    [{ Attributes: [attribute('platformShortName', 'TERRA')] }, 'TERRA'],
    [{ S3Path: '/eodata/Aqua/x' }, 'AQUA'],
    [{ S3Path: '/eodata/TERRAAQUA/x' }, 'TERRAAQUA'],
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
    [{ S3Path: '/eodata/Unknown-Mission/x', Name: 5 }, null],
    [{}, null],
  ])('%j: %s', (record, collection) => {
    expect(collectionOf(record)).toBe(collection);
    expect(productView(record).text('Collection/Name')).toBe(collection);
  });
});

const size = times(200_000, 1_000_000);
/** A text of about that size, between two others. */
const full = (text: string, start = '', end = '') => start + text.repeat(size / text.length) + end;
/** Processor time. Generous: correct code takes milliseconds, a quadratic fault with a megabyte minutes. */
const boundMs = times(1_500, 12_000);

function timed<Value>(run: () => Value): Value {
  const before = process.cpuUsage();
  const value = run();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(boundMs);
  return value;
}

function isMet(filter: string, record: Readonly<Record<string, unknown>>): boolean {
  const { tree, findings } = checkFilter(filter, 'Products');
  if (tree === null) throw new Error(findings[0]?.message);
  return compileFilter(tree)(productView(record));
}

describe('a footprint made to stall', () => {
  it.each<[string, string, string | null]>([
    ['only blanks', full(' '), null],
    ['blanks before the type', full(' ', '', 'x'), null],
    ['blanks in the prefix', full(' ', "geography' SRID=4326;", 'x'), null],
    ['blanks before the parenthesis', full(' ', 'POLYGON', 'x'), null],
    ['blanks in a position', full(' ', 'POINT (1', 'x)'), null],
    ['blanks after a position', full(' ', 'POINT (1 2', 'x)'), null],
    ['blanks at the end', full(' ', 'POINT (1 2)', 'x'), null],
    ['blanks and quotes at the end', full("' ", 'POINT (1 2)', 'x'), null],
    ['blanks without a meaning', full(' ', 'POINT (1 2)', "'"), 'Point'],
    ['one long number', full('1', 'POINT (', 'x)'), null],
    ['one long number and nothing more', full('1', 'POINT (', ')'), null],
    ['one long fraction', full('1', 'POINT (1.', 'x 2)'), null],
    ['one long valid fraction', full('1', 'POINT (1.', ' 2)'), 'Point'],
    ['one long exponent', full('1', 'POINT (1e', ' 2)'), null],
    ['signs', full('+-', 'POINT ('), null],
    ['dots', full('1.', 'POINT ('), null],
    ['numbers without commas', full('1 ', 'POLYGON ((', '))'), 'Polygon'],
    ['numbers without an end', full('1 2 ', 'POLYGON (('), null],
    ['positions without an end', full('1 2,', 'POLYGON (('), null],
    ['parentheses', full('(', 'MULTIPOLYGON '), null],
    ['points in parentheses', full('(', 'MULTIPOINT ', full(')')), null],
    ['empty lists', full('(),', 'MULTIPOLYGON (', '())'), null],
    ['many points', full('(1 2),', 'MULTIPOINT (', '3 4)'), 'MultiPoint'],
    ['many points in a ring', full('1 2,3 4,', 'POLYGON ((', '1 2))'), 'Polygon'],
    ['many rings', full('(1 2,3 4,5 0),', 'POLYGON (', '(1 2))'), 'Polygon'],
    ['many parts', full('((1 2,3 4,5 0)),', 'MULTIPOLYGON (', '((1 2)))'), 'MultiPolygon'],
  ])('is read quickly: %s', (_name, text, type) => {
    const geometry = timed(() => {
      const view = productView({ Footprint: text });
      const footprint = view.footprint();
      if (footprint !== null) boxesOf(footprint);
      return view.geometry();
    });
    expect(geometry?.type ?? null).toBe(type);
  });

  it('is read quickly as a seam around the globe', () => {
    const side = (x: number) =>
      Array.from({ length: 40_000 }, (_, i): Position => [x, (i % 2) + i / 1000]);
    const ring = [[-180, 50], [0, 50], ...side(180), [0, 60], ...side(-180)];
    const record = { GeoFootprint: { type: 'Polygon', coordinates: [ring] } };
    expect(timed(() => productView(record).footprint())).not.toBeNull();
  });

  it('is compared with a place quickly', () => {
    const filter = `MULTIPOINT(${Array(15_000).fill('9 9').join(',')})`;
    const text = `OData.CSC.Intersects(area=geography'SRID=4326;${filter}')`;
    const points = full('(1 2),', 'MULTIPOINT (', '3 4)');
    expect(timed(() => isMet(text, { Footprint: points }))).toBe(false);
    expect(isMet(text, { Footprint: points.replace('3 4', '9 9') })).toBe(true);
  });

  it('is written as GeoJSON quickly, also with many positions across the antimeridian', () => {
    const count = size / 5;
    const north = (i: number): Position => [i % 2 === 0 ? 179 : -179, (i / count) * 50];
    const once = Array.from({ length: count }, (_, i): Position => {
      const x = 179 + (20 * i) / count;
      return [x > 180 ? x - 360 : x, i % 2];
    });
    const often = Array.from({ length: count }, (_, i) => north(i));
    const end = ring('-170 60, 170 60');
    for (const positions of [once, often]) {
      const coordinates = [[...positions, ...end, ...positions.slice(0, 1)]];
      const written = timed(() => toGeoJson({ type: 'Polygon', coordinates }));
      expect(written.type).toBe('MultiPolygon');
      expect(positionsOf(written).length).toBeGreaterThan(count);
    }
  });
});

describe('a value made to stall', () => {
  const number =
    "Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt 9)";
  const date = number.replace('Double', 'DateTimeOffset').replace('lt 9', 'gt 2020-01-01');

  it.each<[string, string, boolean]>([
    ['digits', full('1', '', 'x'), false],
    ['digits of a number that is too large', full('1'), false],
    ['a fraction', full('1', '1.', 'x'), false],
    ['a valid fraction', full('1', '1.'), true],
    ['zeros', full('0', '', '1'), true],
    ['an exponent', full('1', '1e', 'x'), false],
    ['blanks', full(' ', '1', 'x'), false],
    ['dots', full('1.'), false],
  ])('is compared with a number quickly: %s', (_name, value, expected) => {
    const attribute = { Name: 'cloudCover', ValueType: 'Double', Value: value };
    expect(timed(() => isMet(number, { Attributes: [attribute] }))).toBe(expected);
  });

  it.each<[string, string, boolean]>([
    ['blanks after a date', full(' ', '2024-01-01', 'x'), false],
    ['blanks around a date', full(' ', full(' '), '2024-01-01'), true],
    ['a fraction', full('1', '2024-01-01T00:00:00.'), false],
    ['a distant year', full('1', '9999-01-01'), false],
    ['line breaks', full('\n', '9999-01-01', 'x'), false],
  ])('is compared with a date quickly: %s', (_name, value, expected) => {
    const attribute = { Name: 'cloudCover', ValueType: 'DateTimeOffset', Value: value };
    expect(timed(() => isMet(date, { Attributes: [attribute] }))).toBe(expected);
    const record = { ContentDate: { Start: value } };
    expect(timed(() => isMet('ContentDate/Start gt 2020-01-01', record))).toBe(expected);
  });

  it('is read quickly with thousands of attributes, folders and long names', () => {
    const attributes = Array.from({ length: 20_000 }, (_, i) => ({
      Name: `name ${i}`,
      ValueType: 'Double',
      Value: 1,
    }));
    const record = {
      Attributes: [...attributes, { Name: 'cloudCover', ValueType: 'Double', Value: 5 }],
      S3Path: full('/eodata'),
      Name: full('S2A_'),
    };
    expect(timed(() => isMet(number, record))).toBe(true);
    expect(timed(() => isMet("Collection/Name eq 'SENTINEL-2'", record))).toBe(true);
  });
});
