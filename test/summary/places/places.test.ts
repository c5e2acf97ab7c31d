/** Places of footprints: tiles, swaths, orbits, points, and degenerate shapes. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { AnyGeometry, Position } from '../../../src/domain/filter-tree.ts';
import { lazyPlaces, openPlaces } from '../../../src/summary/places/places.ts';
import {
  box as boxRing,
  line,
  multi,
  point,
  ring,
  polygon as shape,
} from '../../filter/geometry/places.ts';
import { times } from '../../helpers/thorough.ts';

const places = openPlaces();

const box = (...sides: Parameters<typeof boxRing>) => shape(boxRing(...sides));
const polygon = (...corners: Position[]) => shape(corners);

function placeOf(geometry: AnyGeometry) {
  const place = places.placeOf(geometry);
  if (place === null) throw new Error('no place');
  return place;
}

const names = (shares: readonly { name: string }[]) => shares.map(({ name }) => name);

describe('a footprint lies', () => {
  it('in the one country of a tile, around its largest cities', () => {
    const place = placeOf(box(2, 48.2, 3.3, 49.1));
    expect(place.countries).toEqual([{ name: 'France', share: 1 }]);
    expect(place.seas).toEqual([]);
    expect(place.near[0]).toEqual({
      name: 'Paris',
      country: 'France',
      population: 2138551,
      distanceKm: 0,
      direction: null,
    });
    expect(place.centre.longitude).toBeCloseTo(2.65, 1);
    expect(place.centre.latitude).toBeCloseTo(48.65, 1);
  });

  it('in all countries of a swath, the largest share first, and in its seas', () => {
    const place = placeOf(polygon([7, 54], [10.5, 54.4], [12.5, 42.4], [9.5, 42], [7, 54]));
    expect(names(place.countries).slice(0, 2)).toEqual(['Germany', 'Italy']);
    expect(place.seas.length).toBeGreaterThan(0);
    const shares = [...place.countries, ...place.seas].map(({ share }) => share);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeGreaterThan(0.93);
    expect(place.near).toHaveLength(3);
    const populations = place.near.map(({ population }) => population);
    expect(populations).toEqual(populations.toSorted((a, b) => b - a));
  });

  it('along a line, and in the area of a collection', () => {
    const track = placeOf(line('2 49, 2 43, 2 41.6'));
    expect(names(track.countries)).toEqual(['France', 'Spain']);
    expect(track.areaSquareKm).toBe(0);
    expect(track.near[0]?.name).not.toBe('Paris');
    expect(names(placeOf(line('179 10, -179 12')).seas)).toEqual(['North Pacific Ocean']);
    const tile = box(2, 48.2, 3.3, 49.1);
    const both = placeOf({ type: 'GeometryCollection', geometries: [point(-30, 40), tile] });
    expect(both.countries).toEqual([{ name: 'France', share: 1 }]);
  });

  it('half on either side of a border that is a parallel', () => {
    const { countries } = placeOf(box(-105, 48, -103, 50));
    expect(names(countries).sort()).toEqual(['Canada', 'United States']);
    for (const { share } of countries) expect(share).toBeCloseTo(0.5, 1);
  });

  it('by the area on the ground, which shrinks towards the poles', () => {
    const { seas } = placeOf(box(-150, -75, -140, -45));
    expect(names(seas)).toEqual(['South Pacific Ocean', 'Southern Ocean']);
    // (sin 75° - sin 60°) / (sin 75° - sin 45°); by degrees it would be a half.
    expect(seas[1]?.share).toBeCloseTo(0.386, 1);
    expect(seas[1]?.share).toBeLessThan(0.43);
  });

  it('only slightly in a country where only a thin part of it is', () => {
    const spiked = '-10 2, -10 -8, 0 -8, 0 2, -5 2, -5 14, -5.01 14, -5.01 2, -10 2';
    const place = placeOf(shape(ring(spiked)));
    expect(place.countries).toEqual([]);
    expect(names(place.seas)).toEqual(['South Atlantic Ocean', 'North Atlantic Ocean']);
  });

  it('across the antimeridian, in either notation', () => {
    const place = placeOf(box(178, -18.5, 182, -16));
    expect(names(place.countries)).toEqual(['Fiji']);
    expect(names(place.seas)).toEqual(['South Pacific Ocean']);
    expect(Math.abs(place.centre.longitude)).toBeCloseTo(180, 0);
    const written = polygon([178, -18.5], [-178, -18.5], [-178, -16], [178, -16], [178, -18.5]);
    expect(placeOf(written)).toEqual(place);
  });

  it('around a pole', () => {
    const south = placeOf(polygon([-135, -75], [-45, -75], [45, -75], [135, -75], [-135, -75]));
    expect(south.countries[0]?.name).toBe('Antarctica');
    expect(south.centre.latitude).toBeLessThan(-85);
    // The spherical cap beyond 75 degrees: 2 pi R² (1 - sin 75°).
    expect(south.areaSquareKm / 8.69e6).toBeCloseTo(1, 1);
    const north = placeOf(polygon([0, 84], [90, 84], [180, 84], [270, 84], [0, 84]));
    expect(north).toMatchObject({ countries: [], seas: [{ name: 'Arctic Ocean', share: 1 }] });
  });

  it('on an orbit around the globe', () => {
    const west: Position[] = [];
    const east: Position[] = [];
    for (let y = -80; y <= 80; y += 4) {
      west.push([10 - y / 4 - 12, y]);
      east.push([10 - y / 4 + 12, y]);
    }
    const place = placeOf(polygon(...west, ...east.reverse(), west[0] ?? [0, 0]));
    expect(place.countries.length).toBeLessThanOrEqual(6);
    expect(place.seas.length).toBeLessThanOrEqual(4);
    expect(names(place.seas)).toContain('South Atlantic Ocean');
    expect(place.areaSquareKm).toBeGreaterThan(2e7);
  });

  it('at a point', () => {
    const paris = placeOf({ type: 'Point', coordinates: [2.5, 48.85] });
    expect(paris).toMatchObject({ countries: [{ name: 'France', share: 1 }], areaSquareKm: 0 });
    expect(paris.near).toMatchObject([{ name: 'Paris', distanceKm: 11, direction: 'east' }]);
    expect(paris.centre).toEqual({ longitude: 2.5, latitude: 48.85 });
    const two: AnyGeometry = { type: 'MultiPoint', coordinates: ring('2.5 48.85, 18 34.5') };
    const shared = { countries: [{ name: 'France', share: 0.5 }], seas: [{ share: 0.5 }] };
    expect(placeOf(two)).toMatchObject(shared);
  });

  it('on a narrow strip in any direction, and on a shape without an interior', () => {
    const strip = polygon([-5, 40], [3, 46], [3.05, 46], [-4.95, 40], [-5, 40]);
    expect(names(placeOf(strip).countries)).toEqual(['Spain', 'France']);
    expect(names(placeOf(polygon([9, 50], [12, 50], [9, 50])).countries)).toEqual(['Germany']);
    expect(names(placeOf(polygon([9, 50], [9, 50], [9, 50])).countries)).toEqual(['Germany']);
  });

  it('on two distant parts', () => {
    const place = placeOf(multi(boxRing(8, 50, 9, 51), boxRing(140.5, -25, 141, -24)));
    expect(names(place.countries).sort()).toEqual(['Australia', 'Germany']);
  });

  it('nowhere without positions, or with positions that are not numbers', () => {
    expect(places.placeOf({ type: 'Polygon', coordinates: [] })).toBeNull();
    expect(places.placeOf({ type: 'Polygon', coordinates: [[]] })).toBeNull();
    expect(places.placeOf({ type: 'MultiPoint', coordinates: [] })).toBeNull();
    expect(places.placeOf({ type: 'Point', coordinates: [Number.NaN, 5] })).toBeNull();
  });

  it('somewhere, whatever its shape: with possible shares, and without an error', () => {
    const position = fc.tuple(
      fc.double({ min: -400, max: 400, noNaN: true }),
      fc.double({ min: -100, max: 100, noNaN: true }),
    );
    const check = (ring: Position[]) => {
      const place = placeOf(polygon(...ring));
      const shares = [...place.countries, ...place.seas].map(({ share }) => share);
      expect(shares.length).toBeGreaterThan(0);
      for (const share of shares) expect(share > 0 && share <= 1).toBe(true);
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeLessThan(1.01);
      expect(Math.abs(place.centre.longitude)).toBeLessThanOrEqual(180);
      expect(Math.abs(place.centre.latitude)).toBeLessThanOrEqual(90);
      expect(place.areaSquareKm).toBeGreaterThanOrEqual(0);
      expect(place.areaSquareKm).toBeLessThan(5.2e8);
    };
    fc.assert(fc.property(fc.array(position, { minLength: 1, maxLength: 12 }), check), {
      numRuns: times(100, 500),
    });
  });
});

describe('the nearest large city', () => {
  it('has a distance and a direction when none lies within', () => {
    // West of Ireland: out to sea from Galway or Limerick.
    const { near } = placeOf(box(-12, 52, -11, 53));
    expect(near).toHaveLength(1);
    expect(near[0]).toMatchObject({ country: 'Ireland', direction: 'west' });
    expect(near[0]?.distanceKm).toBeGreaterThan(100);
    expect((near[0]?.distanceKm ?? 1) % 10).toBe(0);
  });

  it('has the direction from its edge, not from its centre', () => {
    const { near } = placeOf(box(12.4, 45.95, 13.9, 46.9));
    expect(near).toMatchObject([{ name: 'Trieste', distanceKm: 35, direction: 'north' }]);
  });

  it('is found on the other side of the antimeridian', () => {
    const { near } = placeOf(box(-179.98, -37, -179.5, -36.5));
    expect(near).toMatchObject([{ name: 'Tauranga', direction: 'east' }]);
    expect(near[0]?.distanceKm).toBeGreaterThan(300);
  });

  it('is the city, not its suburb', () => {
    expect(placeOf(box(11.2, 41, 12, 41.6)).near).toMatchObject([
      { name: 'Rome', direction: 'south-west' },
    ]);
  });

  it('is not within a slanting footprint if only the bounding box contains it', () => {
    // From the south-west to the north-east, past Paris.
    const { near } = placeOf(polygon([1, 48], [4, 49.6], [4, 49.5], [1, 47.9], [1, 48]));
    expect(near).toMatchObject([{ name: 'Paris', distanceKm: 12, direction: 'south-east' }]);
  });

  it('is at most 500 km away', () => {
    expect(placeOf(box(-35, 30, -34, 31)).near).toEqual([]);
    expect(placeOf(box(-60, -80, -50, -75)).near).toEqual([]);
  });
});

describe('the area', () => {
  it('is correct for the globe, for a degree, and across the antimeridian', () => {
    expect(placeOf(box(-180, -90, 180, 90)).areaSquareKm / 5.1e8).toBeCloseTo(1, 1);
    // A degree by a degree at the equator.
    expect(placeOf(box(0, 0, 1, 1)).areaSquareKm / 12_360).toBeCloseTo(1, 1);
    expect(placeOf(box(179, 0, 181, 1)).areaSquareKm / 24_720).toBeCloseTo(1, 1);
  });

  it('does not depend on the direction of the ring, and excludes holes', () => {
    const outline = boxRing(0, 0, 4, 4);
    const whole = placeOf(shape(outline)).areaSquareKm;
    expect(placeOf(shape(outline.toReversed())).areaSquareKm).toBeCloseTo(whole, 3);
    const pierced = placeOf(shape(outline, boxRing(1, 1, 3, 3))).areaSquareKm;
    expect(pierced / whole).toBeCloseTo(0.75, 2);
  });
});

describe('names of places', () => {
  const listOf = (text: string) => text.split(';').map((name) => name.trim());

  it.each(
    listOf(`
      france; black sea; gulf of mexico; south pacific ocean; paris; new york city; newark;
      democratic republic of the congo; south georgia and the south sandwich islands; scotland;
      sao paulo; são paulo; xi'an; xi’an; turkey; türkiye; united states of america; rome;
      cote d'ivoire; antarctica; saint petersburg; guinea-bissau; usa
    `),
  )('hold %s', (name) => {
    expect(places.isPlaceName(name)).toBe(true);
  });

  it.each([
    '',
    ' ',
    ...listOf('sea; black; the; of; france and; cloud cover; new york city hall; sentinel'),
  ])('do not include "%s"', (words) => {
    expect(places.isPlaceName(words)).toBe(false);
  });

  it('include every name that a footprint lies in or near', () => {
    for (let x = -170; x < 180; x += 20) {
      for (let y = -80; y < 90; y += 20) {
        const { countries, seas, near } = placeOf(box(x, y, x + 15, y + 15));
        const found = [...countries, ...seas, ...near].map(({ name }) => name);
        for (const name of [...found, ...near.map(({ country }) => country)])
          expect(places.isPlaceName(name.toLowerCase()), name).toBe(true);
      }
    }
  });
});

it('the data are released after thirty seconds without use', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const lazy = lazyPlaces();
  const opened = lazy();
  vi.advanceTimersByTime(29_000);
  expect(lazy()).toBe(opened);
  vi.advanceTimersByTime(29_000);
  expect(lazy()).toBe(opened);
  vi.advanceTimersByTime(30_000);
  expect(lazy()).not.toBe(opened);
});
