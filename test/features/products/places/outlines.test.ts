/** The outlines of countries and seas: complete, with full names, and in the right places. */
import { describe, expect, it } from 'vitest';
import { openOutlines } from '../../../../src/features/products/places/outlines.ts';
import { ring } from '../../../filter/geometry/places.ts';
import { seaPoints } from './sea-points.ts';

const outlines = openOutlines();

describe('the countries', () => {
  it.each([
    ['France', 2.3, 48.8],
    ['DR Congo', 23, -3],
    ['Lesotho', 28.3, -29.6],
    ['South Africa', 25, -30],
    ['Fiji', 178, -17.8],
    ['Russia', 179.9, 67.5],
    ['Russia', -175, 66.8],
    ['Canada', -100, 66],
    ['Antarctica', 0, -90],
    ['Antarctica', 180, -85],
    ['Antarctica', -180, -85],
    ['Antarctica', 100, -75],
    // Regions far from their country.
    ['Alaska', -150, 65],
    ['Réunion', 55.5, -21.1],
    // Lakes belong to their countries.
    ['Russia', 108, 53.5],
    [null, -30, 66],
    [null, 179.9, 62.5],
    [null, 50.5, 42],
    [null, 0, 90],
  ])('contain %s', (name, longitude, latitude) => {
    expect(outlines.countryAt([longitude, latitude])).toBe(name);
  });

  it('include the nearest one of a position at sea, also across the antimeridian', () => {
    expect(outlines.nearestCountry([-11, 39])).toBe('Portugal');
    expect(outlines.nearestCountry([-178.9, -16.5])).toBe('Fiji');
    expect(outlines.nearestCountry([-25, -20])).toBeNull();
  });

  it('and the seas have full names', () => {
    expect(outlines.names.length).toBeGreaterThan(330);
    expect(outlines.names.filter((name) => /\.|^[a-z]|^$/.test(name))).toEqual([]);
  });
});

describe('the seas', () => {
  it('contain the places that are known to lie in them', () => {
    expect(seaPoints.length).toBeGreaterThan(300);
    const found = seaPoints.map(({ name, place }) => ({
      name,
      place,
      at: outlines.countryAt(place) ?? outlines.seaAt(place),
    }));
    expect(found.filter(({ name, at }) => at !== name)).toEqual([]);
  });

  it('are no oceans far from their position', () => {
    const wrong: unknown[] = [];
    for (let x = -179.75; x < 180; x += 2) {
      for (let y = -79.75; y < 82; y += 2) {
        if (outlines.countryAt([x, y]) !== null) continue;
        const sea = outlines.seaAt([x, y]);
        if (!isPossible(sea, x, y)) wrong.push({ sea, x, y });
      }
    }
    expect(wrong).toEqual([]);
  });

  it('include the gaps between their rough outlines', () => {
    for (const gap of ring('115.875 -3.875, 79.875 8.875, 10.375 56.125, 121.125 -5.375'))
      expect(outlines.seaAt(gap)).not.toMatch(/ Ocean$/);
  });

  it('are the same on both sides of the antimeridian', () => {
    for (const y of [-90, -70, -40, -10, 20, 53, 60, 69.5, 85, 90])
      expect(outlines.seaAt([180, y]), `${y}`).toBe(outlines.seaAt([-180, y]));
  });
});

/** Rough positions of the oceans except the Arctic and the Southern. */
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
