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
import { positionsOf } from '../../src/filter/geometry/ring.ts';
import { boxesOf, shapesIntersect, toShape } from '../../src/filter/geometry/shape.ts';
import { productView } from '../../src/filter/product-view.ts';
import { times } from '../helpers/thorough.ts';
import { box, point, polygon, ring } from './geometry/places.ts';

const text = (wkt: string) => `geography'SRID=4326;${wkt}'`;

describe('a view of a record', () => {
  it.each([
    ['POLYGON ((0 0, 4 0, 4 4, 0 0))', 'Polygon'],
    ['MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((9 9, 8 8, 9 8, 9 9)))', 'MultiPolygon'],
    ['MULTIPOINT ((3 1), (5 5))', 'MultiPoint'],
    ['POINT (3e0 1.0 250)', 'Point'],
    ['POLYGON Z ((0 0 5, 4 0 5, 4 4 5, 0 0 5))', 'Polygon'],
    [
      'MULTIPOLYGON ZM (((0 0 1 2, 4 0 1 2, 4 4 1 2, 0 0 1 2)), ((9 9 1 2, 8 8 1 2, 9 8 1 2, 9 9 1 2)))',
      'MultiPolygon',
    ],
    ['LINESTRING M (0 1 7, 9 1 8)', 'LineString'],
    ['GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (0 1, 9 1))', 'GeometryCollection'],
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
    const broken = [
      [],
      [[1, 2]],
      [
        [1, 2],
        ['a', 3],
      ],
    ].map((coordinates) => ({
      ...{ type: 'LineString', coordinates },
    }));
    for (const geojson of [null, 5, ...broken, { type: 'GeometryCollection', geometries: [{}] }]) {
      const view = productView({ Footprint: text('POINT (3 1)'), GeoFootprint: geojson });
      expect(view.geometry()).toEqual(point(3, 1));
    }
  });

  it('has no place when neither can be parsed', () => {
    const nested = `${'GEOMETRYCOLLECTION ('.repeat(20_000)}POINT (1 2)${')'.repeat(20_000)}`;
    for (const wkt of [
      ...['POLYGON', 'POLYGON ()', 'POLYGON ((0 0, 1))', 'POINT (1 2', 'POLYGON EMPTY'],
      ...['POINT Z EMPTY', 'GEOMETRYCOLLECTION EMPTY', 'LINESTRING (1 2)', '[1]', nested],
      ...['CIRCULARSTRING (0 0, 1 1, 2 0)', 'POINT (1 2) POINT (3 4)', 'POINT (1e999 2)'],
    ]) {
      const view = productView({ Footprint: text(wkt), GeoFootprint: { type: 'Point' } });
      expect(view.geometry()).toBeNull();
    }
    expect(productView({ Footprint: "geography'SRID=3857;POINT (1 2)'" }).geometry()).toBeNull();
    expect(productView({ GeoFootprint: polygon([[0, Number.NaN]]) }).footprint()).toBeNull();
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
    ['blanks before the type', full(' ', '', 'x'), null],
    ['blanks and quotes at the end', full("' ", 'POINT (1 2)', 'x'), null],
    ['blanks without a meaning', full(' ', 'POINT (1 2)', "'"), 'Point'],
    ['one long number', full('1', 'POINT (', 'x)'), null],
    ['one long exponent', full('1', 'POINT (1e', ' 2)'), null],
    ['positions without an end', full('1 2,', 'POLYGON (('), null],
    ['parentheses', full('(', 'MULTIPOLYGON '), null],
    ['many points', full('(1 2),', 'MULTIPOINT (', '3 4)'), 'MultiPoint'],
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
    ['an exponent', full('1', '1e', 'x'), false],
    ['blanks', full(' ', '1', 'x'), false],
  ])('is compared with a number quickly: %s', (_name, value, expected) => {
    const attribute = { Name: 'cloudCover', ValueType: 'Double', Value: value };
    expect(timed(() => isMet(number, { Attributes: [attribute] }))).toBe(expected);
  });

  it.each<[string, string, boolean]>([
    ['blanks after a date', full(' ', '2024-01-01', 'x'), false],
    ['a fraction', full('1', '2024-01-01T00:00:00.'), false],
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
