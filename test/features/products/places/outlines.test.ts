/** The outlines of countries and seas: complete, with full names, and in the right places. */
import { describe, expect, it } from 'vitest';
import { openOutlines } from '../../../../src/features/products/places/outlines.ts';
import { ring } from '../../../filter/geometry/places.ts';

const outlines = openOutlines();

/** Points in the middle of a sea, and near its usual limits. */
const inSeas = `
North Atlantic Ocean: -30 40, -45 20, -60 35, -25 5, -15 50, -70 33, -18 28, -50 45
South Atlantic Ocean: -15 -20, 5 -35, -40 -40, 10 -10, -30 -5, -62 -45, 17 -34, -55 -50
North Pacific Ocean: -150 30, 170 35, -120 20, 180 10, -95 5, 150 30, -126 42, -160 45
South Pacific Ocean: -120 -20, -80 -30, 180 -40, -150 -50, -178 -22, -90 -10, -76 -45
Indian Ocean: 80 -20, 60 -30, 100 -35, 45 -5, 110 -15, 90 -5, 35 -38, 112 -30
Southern Ocean: 60 -63, -140 -65, 110 -62, 20 -66, 0 -62
Arctic Ocean: 0 88, 180 85, -140 80, 90 84, -100 85
Mediterranean Sea: 18 34.5, 6 39, 20 33.5, 5 37.5
Tyrrhenian Sea: 12 40, 11 41.5, 14 39, 15.3 39, 10.2 42.2
Adriatic Sea: 15 43, 13 44.8, 18 42, 18.8 41, 12.6 45.2
Ionian Sea: 18 38, 17 39.5, 20 38.3, 16.3 37.5
Aegean Sea: 25 38.5, 24.5 36.5, 25 40, 26.5 36.5, 23.6 37.6
Levantine Sea: 32 34, 29 33, 34.5 32.5, 30 35.5, 35.3 36
Black Sea: 34 43, 30 44, 39.5 42.5, 29.5 41.8, 32 45.3
Caspian Sea: 51 41, 50 44, 52 38, 50.5 39.5
North Sea: 3 56, 1 54, 6 54.5, 2 60, 0 58, 3 52.5, 4.5 58.8
Baltic Sea: 19 56, 16 55.2, 20 58.5, 18.8 54.8, 11 54.4, 19.5 59.2
Gulf of Bothnia: 20 62, 22 64.5, 18.5 61, 24 65.3
English Channel: -2 50, 0.5 50.4, -4 49.5, 1 50.7
Bay of Biscay: -4 45, -2 44, -5 46.5, -3 43.8
Norwegian Sea: 3 67, 8 65, 0 64, 10 72, -5 66
Greenland Sea: -5 76, -12 72, 0 79, -16 68.5
Barents Sea: 38 74, 45 72, 30 71.5, 50 77, 52 70
Kara Sea: 75 76, 65 72, 90 77, 73 73.5
Labrador Sea: -53 57, -50 54, -58 59, -55 53
Hudson Bay: -86 60, -92 59, -80 58, -83 56.5
Gulf of Mexico: -90 25, -85 27, -96 26, -94 20, -84 24
Caribbean Sea: -75 15, -65 15, -82 18, -80 11, -86 19, -70 17, -62.5 14
Gulf of Alaska: -145 57, -150 58.5, -140 58, -153 56
Bering Sea: 180 58, -170 60, 170 57, -165 58, -178 54, -175 63
Sea of Okhotsk: 150 55, 145 48, 147 58, 153 53
Sea of Japan: 135 40, 132 37, 138 43, 130.5 39, 137 38, 140.5 48
East China Sea: 125 29, 123 27, 127 31, 123.5 31
South China Sea: 114 15, 111 8, 117 19, 112 5, 118.5 14, 108 3, 113 20.5
Philippine Sea: 133 20, 128 12, 125 22, 138 28, 130 6, 124 18
Banda Sea: 127 -5.5, 125 -6, 129.5 -6.5, 124.5 -4
Java Sea: 111 -5, 108 -5, 114 -5.5, 117 -5.3
Coral Sea: 155 -18, 150 -15, 158 -25, 165 -17, 147 -12
Tasman Sea: 160 -40, 155 -35, 165 -45, 170 -38
Bay of Bengal: 88 15, 85 10, 90 20, 82 12
Arabian Sea: 65 15, 60 20, 70 18, 55 13, 68 22.5, 63 8
Red Sea: 38 20, 35.5 25, 41 16, 34.5 27
`;

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
    const points = inSeas
      .trim()
      .split('\n')
      .map((line) => line.split(': '))
      .flatMap(([name, places = '']) => ring(places).map((place) => ({ name, place })));
    const found = points.map(({ place }) => outlines.countryAt(place) ?? outlines.seaAt(place));
    expect(points.filter(({ name }, i) => found[i] !== name)).toEqual([]);
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
