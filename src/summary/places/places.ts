/** Tells in words of the map where a footprint lies, from data that come along. */
import type { Geometry } from '../../domain/geometry.ts';
import { nearPlaces, openCities } from './cities.ts';
import { openCountries } from './countries.ts';
import { type Footprint, footprintOf } from './footprint.ts';
import { middleOf, ringAreaKm2 } from './globe.ts';
import type { Place, PlaceShare } from './place.ts';
import { openPlaceNames } from './place-names.ts';
import { type Sample, samplesOf } from './samples.ts';
import { openSeas } from './seas.ts';

export interface Places {
  /** Null for a geometry without any place. */
  placeOf(geometry: Geometry): Place | null;
  /**
   * Whether these words, in lower case, are the whole name of a country, a sea, an ocean or a large
   * place: of any that placeOf can tell, with or without accents, of suburbs of 100,000 people and
   * more, and other names of countries that people use.
   */
  isPlaceName(lowerCaseWords: string): boolean;
}

const countriesMax = 6;
const seasMax = 4;

/** Less is as good as nothing, as a share is of some 60 places. */
const leastShare = 0.02;

/** Reads the data: some 100 ms, and 10 MB that stay. To be called once. */
export function openPlaces(): Places {
  const countries = openCountries();
  const seas = openSeas();
  const cities = openCities();
  const nameOf = (sample: Sample) => {
    const country = countries.countryAt(sample.position);
    return country === null ? `sea ${seas.seaAt(sample.position)}` : `land ${country}`;
  };
  return {
    placeOf: (geometry) => {
      const footprint = footprintOf(geometry);
      if (footprint === null) return null;
      const areaSquareKm = areaOf(footprint);
      const samples = samplesOf(footprint, areaSquareKm);
      const shares = sharesOf(samples, nameOf);
      const centre = middleOf(samples) ?? samples[0]?.position ?? [0, 0];
      return {
        countries: ofKind(shares, 'land ').slice(0, countriesMax),
        seas: ofKind(shares, 'sea ').slice(0, seasMax),
        near: nearPlaces(cities, footprint, centre),
        areaSquareKm,
        centre: { longitude: rounded(centre[0]), latitude: rounded(centre[1]) },
      };
    },
    isPlaceName: openPlaceNames({ countries, seas, cities }),
  };
}

/** The map, opened with the first call. */
export function lazyPlaces(): () => Places {
  let places: Places | undefined;
  return () => {
    places ??= openPlaces();
    return places;
  };
}

/** Square kilometres of all parts, without their holes; 0 for points. */
function areaOf({ parts }: Footprint): number {
  return parts
    .flatMap(({ rings }) => rings.map((ring, i) => (i === 0 ? 1 : -1) * ringAreaKm2(ring)))
    .reduce((sum, part) => sum + part, 0);
}

/** The largest first. */
function sharesOf(samples: readonly Sample[], nameOf: (sample: Sample) => string): PlaceShare[] {
  const weights = new Map<string, number>();
  let sum = 0;
  for (const sample of samples) {
    const name = nameOf(sample);
    weights.set(name, (weights.get(name) ?? 0) + sample.weight);
    sum += sample.weight;
  }
  const shares = [...weights].map(([name, weight]) => ({ name, share: weight / sum }));
  const large = shares.filter(({ share }) => share >= leastShare);
  return (large.length > 0 ? large : shares).sort((a, b) => b.share - a.share);
}

function ofKind(shares: readonly PlaceShare[], kind: string): PlaceShare[] {
  return shares
    .filter(({ name }) => name.startsWith(kind))
    .map(({ name, share }) => ({ name: name.slice(kind.length), share: rounded(share) }));
}

/** Three decimals: some 100 metres, for a place. */
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
