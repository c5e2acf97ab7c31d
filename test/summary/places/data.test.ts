/** The bundled data: countries, cities and seas are complete, consistent, fast and small. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openCities } from '../../../src/summary/places/cities.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';
import { openCountries, openSeas } from '../../../src/summary/places/regions.ts';
import { polygon, ring } from '../../filter/geometry/places.ts';
import { times } from '../../helpers/thorough.ts';
import { seaPoints } from './sea-points.ts';

const countries = openCountries();
const seas = openSeas();

describe('the map of countries', () => {
  it('has full names, each once except the islands of Australia', () => {
    expect(countries.names.length).toBeGreaterThan(230);
    expect(countries.names.filter((name) => /\.|^[a-z]/.test(name))).toEqual([]);
    expect(new Set(countries.names).size).toBe(countries.names.length);
  });

  it.each([
    ['France', 2.3, 48.8],
    ['Democratic Republic of the Congo', 23, -3],
    ['Republic of the Congo', 15.5, 0],
    ['Greenland', -40, 72],
    ['Bosnia and Herzegovina', 17.8, 44],
    ['Lesotho', 28.3, -29.6],
    ['South Africa', 25, -30],
    ['Fiji', 178, -17.8],
    ['Russia', 100, 66],
    ['Russia', 179.9, 67.5],
    ['Russia', -175, 66.8],
    ['Canada', -100, 66],
    ['Antarctica', 0, -90],
    ['Antarctica', 180, -85],
    ['Antarctica', -180, -85],
    ['Antarctica', 100, -75],
    // Lakes belong to their countries.
    ['Russia', 108, 53.5],
    ['Uganda', 33, -0.5],
    [null, -30, 66],
    [null, 179.9, 62.5],
    [null, 50.5, 42],
    [null, 0, 90],
  ])('finds %s', (name, longitude, latitude) => {
    expect(countries.countryAt([longitude, latitude])).toBe(name);
  });
});

describe('the cities', () => {
  const cities = openCities();

  it('are complete, the largest first', () => {
    expect(cities.length).toBeGreaterThan(3_500);
    const wrong = cities.filter(({ name, country, population, position: [x, y] }, i) => {
      const isOrdered = population <= (cities[i - 1]?.population ?? Infinity);
      const isOnGlobe = Math.abs(x) <= 180 && Math.abs(y) <= 90;
      const isNamed = /^'?[\p{L}][\p{L}\p{M} '.,()-]*$/u.test(name) && country.length > 2;
      return !(isOrdered && isOnGlobe && isNamed && population >= 100_000);
    });
    expect(wrong).toEqual([]);
  });

  it('lie in countries that have the same name on the map, with one exception', () => {
    const names = new Set(countries.names);
    const others = new Set(cities.map(({ country }) => country).filter((name) => !names.has(name)));
    // On the map it is a part of France.
    expect([...others]).toEqual(['Réunion']);
  });
});

describe('all places', () => {
  it('take little memory, and little time for a product', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    const before = process.memoryUsage().heapUsed;
    const places = openPlaces();
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(40e6);
    const times = Array.from({ length: 100 }, (_, i) => {
      const [x, y] = [i * 3 - 150, (i % 11) * 12 - 60];
      const slanting = `${x} ${y}, ${x + 12} ${y + 3}, ${x + 10} ${y + 15}, ${x - 2} ${y + 12}`;
      const footprint = polygon(ring(slanting));
      const start = performance.now();
      expect(places.placeOf(footprint)).not.toBeNull();
      return performance.now() - start;
    });
    // Half a millisecond on an idle machine.
    expect(times.toSorted((a, b) => a - b)[50]).toBeLessThan(20);
  });
});

describe('the seas', () => {
  it('contain the places that are known to lie in them', () => {
    expect(seaPoints.length).toBeGreaterThan(300);
    const wrong = seaPoints
      .map((point) => ({
        ...point,
        land: countries.countryAt(point.place),
        sea: seas.seaAt(point.place),
      }))
      .filter(({ name, land, sea }) => land !== null || sea !== name);
    expect(wrong).toEqual([]);
  });

  it('are more than 90 in addition to the oceans, each named once', () => {
    expect(new Set(seas.names).size).toBe(seas.names.length);
    expect(seas.names.filter((name) => !name.endsWith(' Ocean')).length).toBeGreaterThan(90);
    expect(seas.names.filter((name) => name.endsWith(' Ocean')).sort()).toEqual([
      'Arctic Ocean',
      'Indian Ocean',
      'North Atlantic Ocean',
      'North Pacific Ocean',
      'South Atlantic Ocean',
      'South Pacific Ocean',
      'Southern Ocean',
    ]);
    for (const { name } of seaPoints) expect(seas.names).toContain(name);
  });

  it('leave no point of the globe without a name', () => {
    const names = new Set(seas.names);
    const edges = ring('180 0, -180 0, 180 60, 0 90, 0 -90, -180 -90');
    const degrees = (most: number) => fc.double({ min: -most, max: most, noNaN: true });
    fc.assert(
      fc.property(degrees(180), degrees(90), (longitude, latitude) => {
        expect(names).toContain(seas.seaAt([longitude, latitude]));
      }),
      { numRuns: times(1_000, 10_000), examples: edges.map(([x, y]): [number, number] => [x, y]) },
    );
  });

  it('have correct outlines: no ocean appears far from its position', () => {
    const wrong: unknown[] = [];
    for (let x = -179.75; x < 180; x += 1) {
      for (let y = -79.75; y < 82; y += 1) {
        if (countries.countryAt([x, y]) !== null) continue;
        const sea = seas.seaAt([x, y]);
        if (!isPossible(sea, x, y)) wrong.push({ sea, x, y });
      }
    }
    expect(wrong).toEqual([]);
  });

  it('are found where their rough outlines do not quite meet', () => {
    expect(seas.seaAt([115.875, -3.875])).toBe('Java Sea');
    expect(seas.seaAt([79.875, 8.875])).toBe('Bay of Bengal');
    expect(seas.seaAt([10.375, 56.125])).toBe('Kattegat');
    expect(seas.seaAt([121.125, -5.375])).toBe('Banda Sea');
  });

  it('are the same on both sides of the antimeridian', () => {
    for (const y of [-70, -40, -10, 20, 53, 60, 69.5, 85]) {
      expect(seas.seaAt([180, y])).toBe(seas.seaAt([-180, y]));
      expect(seas.seaAt([179.9, y])).toBe(seas.seaAt([-179.9, y]));
    }
  });
});

/**
 * Rough positions of the oceans except the Arctic and the Southern: a box around each, with
 * longitudes from 20 degrees east.
 */
function isPossible(sea: string, x: number, y: number): boolean {
  const isEast = x >= 20 && x < 147;
  switch (sea) {
    case 'North Pacific Ocean':
      return y >= 0 && y < 60 && !(x > -77 && x < 120);
    case 'South Pacific Ocean':
      return y <= 0 && y >= -60 && !(x > -66 && x < 131);
    case 'Indian Ocean':
      return isEast && y < 20 && y >= -60;
    case 'North Atlantic Ocean':
      return !isEast && x > -85 && y >= 0 && y < 66;
    case 'South Atlantic Ocean':
      return !isEast && x > -72 && y <= 0 && y >= -60;
    case 'Southern Ocean':
      return y <= -60;
    case 'Arctic Ocean':
      return y >= 66;
    default:
      return true;
  }
}
