/** Finds the place names of a footprint, from bundled data. */
import type { AnyGeometry, Position } from '../../domain/filter-tree.ts';
import { nearPlaces, openCities, suburbs } from './cities.ts';
import { crossingsAt, type Footprint, footprintOf, type Part } from './footprint.ts';
import {
  degreeKm,
  middleOf,
  type Place,
  type PlaceShare,
  radiansOf,
  ringAreaKm2,
} from './globe.ts';
import { openCountries, openSeas, otherCountryNames } from './regions.ts';

export interface Places {
  /** Null for an unusable geometry. */
  placeOf(geometry: AnyGeometry): Place | null;
  /**
   * Returns true if these words, in lower case, are the full name of a country, sea, ocean or city that placeOf
   * can return, of a suburb of 100,000 or more people, or another common name of a country. Ignores accents.
   */
  isPlaceName(lowerCaseWords: string): boolean;
}

const countriesMax = 6;
const seasMax = 4;

/** Smaller shares are ignored: a share is estimated from about 60 samples. */
const leastShare = 0.02;

/** Reads the data, in about 100 ms; keeps 10 MB in memory. */
export function openPlaces(): Places {
  const countries = openCountries();
  const seas = openSeas();
  const cities = openCities();
  const names = new Set(
    [
      ...[...countries.names, ...otherCountryNames, ...seas.names, ...suburbs],
      ...cities.flatMap(({ name, country }) => [name, country]),
    ].map(spelled),
  );
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
    isPlaceName: (words) => names.has(spelled(words)),
  };
}

/** Time without a call after which the data are released. */
const idleMs = 30_000;

/** Opens the data when they are needed, and releases them when they are not. Callers must not keep the result. */
export function lazyPlaces(): () => Places {
  let places: Places | undefined;
  let release: NodeJS.Timeout | undefined;
  return () => {
    places ??= openPlaces();
    release ??= setTimeout(() => {
      places = undefined;
      release = undefined;
    }, idleMs).unref();
    release.refresh();
    return places;
  };
}

/** Returns the square kilometres of all parts without their holes; 0 for points. */
function areaOf({ parts }: Footprint): number {
  return parts
    .flatMap(({ rings }) => rings.map((ring, i) => (i === 0 ? 1 : -1) * ringAreaKm2(ring)))
    .reduce((sum, part) => sum + part, 0);
}

/** Returns the shares, the largest first. */
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

/** Rounds to three decimals: about 100 metres in degrees. */
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Removes spelling variants: accents, apostrophes, hyphens. */
function spelled(name: string): string {
  const letters = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return letters
    .replaceAll(/['’‘ʻ`.,()]/g, '')
    .replaceAll(/[-–\s]+/g, ' ')
    .trim();
}

export interface Sample {
  position: Position;
  /** Relative to the sum of all weights. */
  weight: number;
}

/** Approximate number of samples; a shape in many pieces has more. */
const target = 60;

const rowsMin = 5;
const rowsMax = 60;

/** Maximum number of rows if fewer rows miss the footprint. */
const rowsAtLast = 300;

/** A tenth of a millimetre; smaller widths are rounding errors. */
const widthMin = 1e-9;

/** Maximum number of pieces; the widest are kept. */
const piecesMax = 300;

interface Piece {
  latitude: number;
  west: number;
  east: number;
  /** Width on the ground, in degrees of latitude. */
  width: number;
}

/** Returns at least one sample. A footprint without area is sampled along its edges. */
function samplesOf(footprint: Footprint, areaSquareKm: number): Sample[] {
  const { points, parts } = footprint;
  if (parts.length === 0) return points.map((position) => ({ position, weight: 1 }));
  const pieces = piecesOf(parts, areaSquareKm);
  if (pieces.length === 0) return alongEdges(parts);
  const sum = pieces.reduce((total, { width }) => total + width, 0);
  return pieces.flatMap(({ latitude, west, east, width }) => {
    const count = Math.max(1, Math.round((target * width) / sum));
    return Array.from({ length: count }, (_, i): Sample => {
      const longitude = west + ((i + 0.5) / count) * (east - west);
      return { position: [longitude, latitude], weight: width / count };
    });
  });
}

function piecesOf(parts: readonly Part[], areaSquareKm: number): Piece[] {
  const south = Math.min(...parts.map((part) => part.south));
  const north = Math.max(...parts.map((part) => part.north));
  const stepKm = Math.sqrt(areaSquareKm / target);
  const desired = Math.ceil(((north - south) * degreeKm) / stepKm);
  let rows = Math.min(rowsMax, Math.max(rowsMin, Number.isFinite(desired) ? desired : rowsMin));
  for (; rows <= rowsAtLast; rows *= 4) {
    const step = (north - south) / rows;
    const pieces = Array.from({ length: rows }, (_, i) => south + (i + 0.5) * step)
      .flatMap((latitude) => parts.flatMap((part) => piecesAt(part, latitude)))
      .filter(({ width }) => width > widthMin);
    if (pieces.length > piecesMax) pieces.sort((a, b) => b.width - a.width).splice(piecesMax);
    if (pieces.length > 0) return pieces;
  }
  return [];
}

function piecesAt(part: Part, latitude: number): Piece[] {
  if (latitude < part.south || latitude > part.north) return [];
  const crossings = crossingsAt(part, latitude).sort((a, b) => a - b);
  const pieces: Piece[] = [];
  for (let i = 1; i < crossings.length; i += 2) {
    const [west = 0, east = 0] = [crossings[i - 1], crossings[i]];
    pieces.push({ latitude, west, east, width: (east - west) * Math.cos(radiansOf(latitude)) });
  }
  return pieces;
}

function alongEdges(parts: readonly Part[]): Sample[] {
  const corners = parts.flatMap(({ rings }) => rings[0] ?? []);
  const samples: Sample[] = [];
  for (const { rings } of parts) {
    const ring = rings[0] ?? [];
    const between = Math.ceil(target / Math.max(1, corners.length));
    for (const [i, [x, y]] of ring.entries()) {
      const [nextX, nextY] = ring[i + 1] ?? [x, y];
      for (let k = 0; k < (i + 1 < ring.length ? between : 1); k += 1) {
        const [right, up] = [((nextX - x) * k) / between, ((nextY - y) * k) / between];
        samples.push({ position: [x + right, y + up], weight: 1 });
      }
    }
  }
  const every = Math.ceil(samples.length / (2 * target));
  return samples.filter((_, i) => i % every === 0);
}
