/** Filters written in code. */
import { describe, expect, it } from 'vitest';
import {
  and,
  attribute,
  cloudCover,
  collection,
  deleted,
  intersects,
  name,
  not,
  online,
  or,
  productType,
  published,
  sensed,
} from '../../src/filter/builder.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { box, polygon, ring } from './geometry/places.ts';

const any = (kind: string, attributeName: string, rest: string) =>
  `Attributes/OData.CSC.${kind}Attribute/any(att:att/Name eq '${attributeName}' and att/OData.CSC.${kind}Attribute/Value ${rest})`;

describe('an expression', () => {
  it('equals the tree of its own text', () => {
    const built = and(
      collection('SENTINEL-2'),
      or(productType.eq('S2MSI1C'), and(productType.eq('S2MSI2A'), not(name.contains("it's")))),
      cloudCover.lt(20),
      sensed.from('2024-05-01'),
      sensed.until(new Date('2024-06-01T00:00:00Z')),
      online,
      intersects(polygon(ring('4 50, 5 50, 5 51, 4 50'))),
    );
    expect(parseFilter(String(built)).tree).toEqual(built.tree);
    expect(JSON.parse(JSON.stringify({ filter: built }))).toEqual({ filter: String(built) });
  });

  it.each([
    [collection('SENTINEL-2'), "Collection/Name eq 'SENTINEL-2'"],
    [deleted.from('2024-05-01'), 'DeletionDate ge 2024-05-01T00:00:00.000000Z'],
    [sensed.start.ge('2024-05-01'), 'ContentDate/Start ge 2024-05-01T00:00:00.000000Z'],
    [cloudCover.le(-0), any('Double', 'cloudCover', 'le 0')],
    [attribute('orbitNumber').eq(20), any('Integer', 'orbitNumber', 'eq 20')],
    [
      attribute('processingDate').lt('2024-05-01'),
      any('DateTimeOffset', 'processingDate', 'lt 2024-05-01T00:00:00.000000Z'),
    ],
    [attribute('sliceProductFlag').eq(false), any('Boolean', 'sliceProductFlag', 'eq false')],
    [attribute('newCover', 'Double').ge(5), any('Double', 'newCover', 'ge 5')],
    [
      attribute('relativeOrbitNumber', 'String').eq('15'),
      any('String', 'relativeOrbitNumber', "eq '15'"),
    ],
    [and(and(online, online), online), 'Online eq true and Online eq true and Online eq true'],
  ])('%s is written as %s', (built, text) => {
    expect(String(built)).toBe(text);
    expect(parseFilter(text).tree).toEqual(built.tree);
  });

  it.each([
    [
      'NaN',
      () => cloudCover.lt(Number.NaN),
      /cloudCover cannot be compared with "NaN"\. Use a number/,
    ],
    ['an invalid date', () => sensed.from(new Date('x')), /"Invalid Date"\. Use a valid Date/],
    [
      'a text that is not a date',
      () => published.from('soon'),
      /PublicationDate cannot be compared with "soon"/,
    ],
    ['no terms', () => and(), /and\(\) needs at least one expression/],
    [
      'a ring that is not closed',
      () => intersects(polygon(ring('4 50, 5 50, 5 51, 4 51'))),
      /would refuse this geometry/,
    ],
    // What the type checker refuses must be refused without it, too.
    // @ts-expect-error a text where a number belongs
    ['a text in place of a number', () => cloudCover.lt('20'), /Use a number/],
    // @ts-expect-error no kind, and not published
    ['an unknown name', () => attribute('cloudcover'), /Did you mean cloudCover\?.*pass its type/],
    // @ts-expect-error not an expression
    ['a text in place of an expression', () => and("Name eq 'a'"), /is not an expression/],
    // @ts-expect-error a number where a text belongs
    ['a number in place of a text', () => name.contains(5), /Use a string/],
  ] as const)('refuses %s and advises what to do', (_what, build, message) => {
    expect(build).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) }),
    );
  });
});

describe('an area with several features', () => {
  const square = (west: number, south: number) => ({
    type: 'Feature',
    properties: {},
    geometry: polygon(box(west, south, west + 2, south + 2)),
  });
  const features = (...all: unknown[]) => ({ type: 'FeatureCollection', features: all });

  it('becomes one geometry when the features are apart, and one condition each when they are not', () => {
    expect(intersects(features(square(0, 0), square(5, 5))).tree).toMatchObject({
      node: 'intersects',
      geometry: { type: 'MultiPolygon' },
    });
    const point = { type: 'Point', coordinates: [10, 10] };
    for (const other of [square(2, 0), square(1, 1), { ...square(0, 0), geometry: point }]) {
      expect(intersects(features(square(0, 0), other)).tree).toMatchObject({
        node: 'or',
        terms: [{ node: 'intersects' }, { node: 'intersects' }],
      });
    }
  });

  it('names the faulty feature, and the order of longitude and latitude', () => {
    const swapped = { ...square(0, 0), geometry: { type: 'Point', coordinates: [45, 120] } };
    expect(() => intersects(features(square(0, 0), swapped))).toThrow(
      expect.objectContaining({
        details: [expect.stringMatching(/^Geometry 2: .*longitude, the first number/)],
      }),
    );
  });
});
