/** Describes where a footprint is: country, sea or ocean, and a direction, from bundled data. */
import { andList } from '../../../core/terms/text.ts';
import type { AnyGeometry, Box, Position } from '../../../filter/filter-tree.ts';
import { toGeoJson } from '../../../filter/geometry/geojson.ts';
import {
  linesOf,
  pointsOf,
  polygonsOf,
  positionsOf,
  snappedLongitude,
} from '../../../filter/geometry/ring.ts';
import { centreOf } from '../../../filter/geometry/shape.ts';
import {
  cosine,
  crossingsAt,
  type Outline,
  type Outlines,
  openOutlines,
  outlineOf,
} from './outlines.ts';

export interface Places {
  /** `northern Italy`, `Poland and Germany`, `North Sea off Denmark`; null for an unusable or too complex geometry. */
  placeOf(geometry: AnyGeometry): string | null;
  /** In lower case without accents: names of all countries, seas and oceans, and other common names of countries. */
  readonly names: readonly string[];
}

/** Footprints whose places are kept, because most rows of a refreshed list are the former ones; and their size as JSON. */
const keptMax = { footprints: 1_000, characters: 4_000 };

/** Reads the data, in about 100 ms. */
function openPlaces(): Places {
  const outlines = openOutlines();
  const kept = new Map<string, string | null>();
  return {
    placeOf: (geometry) => {
      const key = JSON.stringify(geometry);
      const known = kept.get(key);
      if (known !== undefined) return known;
      const place = describe(geometry, outlines);
      if (kept.size >= keptMax.footprints) kept.clear();
      if (key.length <= keptMax.characters) kept.set(key, place);
      return place;
    },
    names: outlines.names.map((name) =>
      name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase(),
    ),
  };
}

/** Time without a call after which the data are released. */
const idleMs = 30_000;

let places: Places | undefined;
let release: NodeJS.Timeout | undefined;

/** Opens the data of this process when they are needed, and releases them later. Callers must not keep the result. */
export function sharedPlaces(): Places {
  places ??= openPlaces();
  release ??= setTimeout(() => {
    places = undefined;
    release = undefined;
  }, idleMs).unref();
  release.refresh();
  return places;
}

/** Describes a footprint for lists; null without a footprint. */
export function placeOf(footprint: AnyGeometry | null | undefined): string | null {
  return footprint ? sharedPlaces().placeOf(footprint) : null;
}

/** Texts must fit in a table. */
const textMax = 50;

/** Parts with this share are named, and smaller ones until the names cover half of the footprint. */
const largeShare = 0.15;

/** A country or a sea, and the samples in it. */
interface Part {
  name: string;
  isSea: boolean;
  share: number;
  positions: Position[];
}

function describe(geometry: AnyGeometry, outlines: Outlines): string | null {
  const parts = partsOf(samplesOf(geometry), outlines);
  if (parts.length === 0) return null;
  let covered = 0;
  const large = parts.filter(({ share }) => {
    const isLarge = share >= largeShare || covered < 0.5;
    covered += share;
    return isLarge;
  });
  const texts = [3, 2, 1].map((count) => namesOf(large, count));
  const [all] = texts;
  const [country, ...others] = large.filter(({ isSea }) => !isSea);
  if (country !== undefined && others.length === 0) {
    const direction = directionIn(outlines.mainPart(country.name), country.positions);
    if (direction !== '') texts.unshift(`${direction} ${all}`);
  } else if (large.length === 1) {
    const land = parts.find(({ isSea }) => !isSea)?.name;
    const centre = centreOf(geometry);
    const near = land ?? (centre && outlines.nearestCountry(centre));
    if (near !== null) texts.unshift(`${all} off ${near}`);
  }
  return texts.find((text) => text.length <= textMax) ?? texts.at(-1) ?? null;
}

/** Lists the largest parts, countries first. */
function namesOf(large: readonly Part[], count: number): string {
  const some = large.slice(0, count).sort((a, b) => Number(a.isSea) - Number(b.isSea));
  const names = some.map(({ name }) => name);
  const others = large.slice(count).filter(({ isSea }) => !isSea).length;
  if (others > 0 && some.at(-1)?.isSea === false) {
    names.push(`${others} other ${others === 1 ? 'country' : 'countries'}`);
  }
  return andList(names);
}

/** Returns the parts, the largest first. */
function partsOf(samples: readonly Sample[], outlines: Outlines): Part[] {
  const parts = new Map<string, Part>();
  const sum = samples.reduce((total, { weight }) => total + weight, 0);
  for (const { position, weight } of samples) {
    const country = outlines.countryAt(position);
    const name = country ?? outlines.seaAt(position);
    const part = parts.get(name) ?? { name, isSea: country === null, share: 0, positions: [] };
    part.share += weight / sum;
    part.positions.push(position);
    parts.set(name, part);
  }
  return [...parts.values()].sort((a, b) => b.share - a.share);
}

/** Returns `northern`, `south-eastern` or `central`; empty if the positions are not clearly in one part of the box. */
function directionIn(box: Box | undefined, positions: readonly Position[]): string {
  // At a pole, all directions are the same.
  if (box === undefined || box.east - box.west > 180) return '';
  const [width, height] = [box.east - box.west, box.north - box.south];
  const [x, y] = [box.west + width / 2, box.south + height / 2];
  const rights = positions.map(([longitude]) => snappedLongitude(longitude - x));
  const ups = positions.map(([, latitude]) => latitude - y);
  // A narrow country has only two ends.
  const side = 3 * width * cosine(y) < height ? null : sideOf(rights, width);
  const end = sideOf(ups, height);
  if (side === null && end === null) return '';
  const names = [end && (end > 0 ? 'north' : 'south'), side && (side > 0 ? 'east' : 'west')];
  const direction = names.filter((name) => typeof name === 'string').join('-');
  return direction === '' ? 'central' : `${direction}ern`;
}

/** Returns -1, 0 or 1 for the lower end, the middle or the upper end; null if the extent is too small for that. */
function sideOf(offsets: readonly number[], extent: number): number | null {
  const [least, most] = [Math.min(...offsets), Math.max(...offsets)];
  if (extent < 1 || most - least > 0.4 * extent) return null;
  const middle = (least + most) / extent;
  return Math.abs(middle) < 0.4 ? 0 : Math.sign(middle);
}

interface Sample {
  position: Position;
  /** Relative to the sum of all weights. */
  weight: number;
}

/** Real footprints have some hundreds of corners and up to four parts; more would block the process for too long. */
const limits = { corners: 600, rings: 20, points: 100 };

/** Approximate number of samples. */
const target = 40;

/** Returns samples within the polygons, otherwise corners and points; none beyond the limits. */
function samplesOf(geometry: AnyGeometry): Sample[] {
  const corners = positionsOf(geometry);
  const rings = polygonsOf(geometry).flat().length + linesOf(geometry).length;
  if (corners.length > limits.corners || rings > limits.rings) return [];
  if (!corners.every((position) => position.every(Number.isFinite))) return [];
  const clean = toGeoJson(geometry);
  const polygons = polygonsOf(clean);
  // A footprint that crosses the antimeridian many times is cut into many parts.
  if (polygons.length > limits.rings || pointsOf(clean).length > limits.points) return [];
  const rows = Math.max(2, Math.ceil(8 / polygons.length));
  const pieces = polygons.flatMap((rings) => piecesOf(outlineOf('', rings), rows));
  if (pieces.length > 0) return withinPieces(pieces);
  const step = Math.ceil(corners.length / (2 * target));
  const positions = positionsOf(clean).filter((_, i) => i % step === 0);
  return positions.map((position) => ({ position, weight: 1 }));
}

/** Returns the pieces of some parallels within a part of the footprint, and the areas of the strips around them. */
function piecesOf(part: Outline, rows: number) {
  const height = (part.north - part.south) / rows;
  return Array.from({ length: rows }, (_, row) => part.south + (row + 0.5) * height)
    .flatMap((latitude) => {
      const ends = crossingsAt(part, latitude).sort((a, b) => a - b);
      return ends.map((west, i) => {
        const width = i % 2 === 0 ? (ends[i + 1] ?? west) - west : 0;
        return { latitude, west, width, weight: width * height * cosine(latitude) };
      });
    })
    .filter(({ width }) => width > 1e-9); // Smaller widths are rounding errors.
}

/** Spreads samples over the largest pieces, at other longitudes in each. */
function withinPieces(pieces: ReturnType<typeof piecesOf>): Sample[] {
  const largest = pieces.toSorted((a, b) => b.weight - a.weight).slice(0, target);
  const count = Math.ceil(target / largest.length);
  return largest.flatMap(({ latitude, west, width, weight }, row) => {
    const offset = (0.5 + row * 0.618) % 1;
    return Array.from({ length: count }, (_, i): Sample => {
      return { position: [west + ((i + offset) / count) * width, latitude], weight };
    });
  });
}
