/** Places made by hand. */
import type { NearPlace, Place } from '../../../src/summary/places/globe.ts';

type Shares = Readonly<Record<string, number>>;

export function place(countries: Shares, seas: Shares = {}, places: NearPlace[] = []): Place {
  return {
    countries: sharesOf(countries),
    seas: sharesOf(seas),
    near: places,
    areaSquareKm: 12_056,
    centre: { longitude: 0, latitude: 0 },
  };
}

export function near(
  name: string,
  country: string,
  distanceKm = 0,
  direction: string | null = null,
): NearPlace {
  return { name, country, population: 100_000, distanceKm, direction };
}

function sharesOf(shares: Shares) {
  return Object.entries(shares).map(([name, share]) => ({ name, share }));
}
