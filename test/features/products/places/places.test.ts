/** Texts about the places of footprints: tiles, swaths, orbits, points, and hostile shapes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sharedPlaces } from '../../../../src/features/products/places/places.ts';
import type { AnyGeometry, Position, Ring } from '../../../../src/filter/filter-tree.ts';
import {
  box,
  line,
  multi,
  parallel,
  point,
  polygon,
  ring,
} from '../../../filter/geometry/places.ts';
import { times } from '../../../helpers/thorough.ts';

const places = sharedPlaces();

/** A strip of 24 degrees from 80° S to 80° N. */
function orbit(): Ring {
  const side = (x: number) =>
    Array.from({ length: 41 }, (_, i): Position => [x + 30 - i, 4 * i - 80]);
  return [...side(-12), ...side(12).reverse()];
}

const tile = (west: number, south: number) => polygon(box(west, south, west + 1.4, south + 1));

const footprints: [place: string, footprint: AnyGeometry][] = [
  ['northern Italy', tile(10.3, 45)],
  ['north-western Italy', tile(8.5, 45)],
  ['central United States', tile(-99, 38)],
  ['western Russia', tile(37, 55)],
  ['eastern Russia', polygon(box(178, 66, 182, 67.5))],
  ['central Alaska', tile(-150, 64)],
  ['central Chile', tile(-71.8, -34)],
  ['Réunion and Indian Ocean', polygon(box(55, -21.5, 56, -20.7))],
  ['Caspian Sea off Azerbaijan', tile(50, 41)],
  ['Antarctica', polygon(box(100, -80, 105, -78))],
  ['Antarctica', polygon(parallel(-75))],
  ['Arctic Ocean', polygon(parallel(84))],
  ['Germany and Poland', polygon(box(13, 51.5, 16, 53.5))],
  ['Uganda and Tanzania', polygon(box(32, -2, 34, 0))],
  ['Germany, Italy and France', polygon(box(4, 44, 18, 54))],
  ['DR Congo', polygon(box(17, -5, 28, 5))],
  ['Hungary, Austria, Italy and 2 other countries', polygon(box(10, 44, 22, 50))],
  ['Fiji and South Pacific Ocean', polygon(box(177.3, -18.2, 178.7, -17.2))],
  ['South Pacific Ocean off Fiji', polygon(box(178, -18.5, 182, -16))],
  ['South Pacific Ocean off Fiji', polygon(ring('178 -18.5, -178 -18.5, -178 -16, 178 -16'))],
  ['northern Portugal and North Atlantic Ocean', tile(-9, 40.5)],
  ['North Atlantic Ocean off Portugal', tile(-11.5, 38)],
  ['Hawaii and North Pacific Ocean', tile(-156.2, 19)],
  ['North Sea off Denmark', tile(6, 55.5)],
  ['Baltic Sea off Sweden', polygon(box(18, 55.5, 20, 57))],
  ['Strait of Sicily off Malta', polygon(box(14.1, 35.7, 14.7, 36.1))],
  ['South Georgia, South Atlantic Ocean and Scotia Sea', tile(-37.5, -54.8)],
  ['South Atlantic Ocean', tile(-22.3, -45.2)],
  ['Algeria, Angola and South Atlantic Ocean', polygon(orbit())],
  ['northern France', point(2.35, 48.85)],
  ['France and Spain', line('2 49, 2 43, 2 41.6')],
  ['central Germany', polygon(ring('9 50, 12 50, 9 50'))],
  ['Australia and Germany', multi(box(8, 50, 9, 51), box(140.5, -25, 142, -24))],
  ['central Germany', { type: 'GeometryCollection', geometries: [point(-30, 40), tile(9, 50)] }],
];

describe('a footprint', () => {
  it.each(footprints)('is in: %s', (place, footprint) => {
    expect(places.placeOf(footprint)).toBe(place);
    expect(place.length).toBeLessThanOrEqual(50);
  });

  it.each<[title: string, AnyGeometry]>([
    ['without positions', { type: 'Polygon', coordinates: [[]] }],
    ['with numbers that are not finite', point(Number.NaN, 5)],
    ['with more than 600 corners', polygon(parallel(50, 0.5))],
    [
      'with more than 20 rings',
      multi(...Array.from({ length: 21 }, (_, i) => box(i, 0, i + 1, 1))),
    ],
    ['that crosses the antimeridian often', polygon(zigzag(100, 175, 185))],
  ])('%s has no place', (_title, footprint) => {
    expect(places.placeOf(footprint)).toBeNull();
  });

  it('has a place of known names, whatever its shape, in limited time', () => {
    const ordinates = (max: number) => fc.double({ min: -max, max, noNaN: true });
    const position = fc.tuple(ordinates(400), ordinates(100));
    const rings = fc.oneof(
      fc.array(position, { minLength: 1, maxLength: 12 }),
      fc.array(position, { minLength: 500, maxLength: 600 }),
      fc.tuple(fc.integer({ min: 3, max: 600 }), ordinates(180)).map(([n, x]) => zigzag(n, x, -x)),
    );
    const names = places.names.toSorted((a, b) => b.length - a.length);
    const text =
      /^(?:(?:central|[a-z-]+ern) )?#(?:(?:, | and | off )#)*(?: and \d+ other countr(?:y|ies))?$/;
    fc.assert(
      fc.property(rings, fc.constantFrom('Polygon', 'LineString'), (corners, type) => {
        const footprint = type === 'Polygon' ? polygon(corners) : { type, coordinates: corners };
        const start = process.cpuUsage();
        const place = places.placeOf(footprint as AnyGeometry);
        expect(process.cpuUsage(start).user / 1000).toBeLessThan(250);
        if (place === null) return;
        const plain = place.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
        expect(names.reduce((rest, name) => rest.replaceAll(name, '#'), plain)).toMatch(text);
      }),
      { numRuns: times(100, 1_000) },
    );
  });
});

/** Corners that alternate between two longitudes, from the south to the north. */
function zigzag(count: number, west: number, east: number): Ring {
  return Array.from({ length: count }, (_, i) => [i % 2 ? west : east, -85 + (170 * i) / count]);
}
