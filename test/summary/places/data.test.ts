/** The data that come along: complete, in agreement with each other, quick and small. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { openCities } from '../../../src/summary/places/cities.ts';
import { openCountries } from '../../../src/summary/places/countries.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';

describe('the map of countries', () => {
  const countries = openCountries();

  it('has full names, each once but for the islands of Australia', () => {
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
    // Lakes are their countries'.
    ['Russia', 108, 53.5],
    ['Uganda', 33, -0.5],
    [null, -30, 66],
    [null, 179.9, 62.5],
    [null, 50.5, 42],
    [null, 0, 90],
  ])('tells %s', (name, longitude, latitude) => {
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

  it('lie in countries that have the same name on the map, but for one', () => {
    const names = new Set(openCountries().names);
    const others = new Set(cities.map(({ country }) => country).filter((name) => !names.has(name)));
    // On the map it is a part of France.
    expect([...others]).toEqual(['Réunion']);
  });
});

describe('all of it', () => {
  it('takes little memory, and little time for a product', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    const before = process.memoryUsage().heapUsed;
    const places = openPlaces();
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(40e6);
    const times = Array.from({ length: 100 }, (_, i) => {
      const [x, y] = [i * 3 - 150, (i % 11) * 12 - 60];
      const ring = [
        [x, y],
        [x + 12, y + 3],
        [x + 10, y + 15],
        [x - 2, y + 12],
      ] as const;
      const start = performance.now();
      expect(places.placeOf({ type: 'Polygon', coordinates: [ring] })).not.toBeNull();
      return performance.now() - start;
    });
    // Half a millisecond on a quiet machine.
    expect(times.toSorted((a, b) => a - b)[50]).toBeLessThan(20);
  });
});
