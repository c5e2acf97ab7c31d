/** Parses a bounding box, `west,south,east,north` in degrees, for the command line and the private listener. */
import { AppError } from '../core/terms/app-error.ts';
import type { Box, Geometry, Position, Ring } from './filter-tree.ts';

/** Maximum length of an edge. One of more than 180 degrees would be read as the shorter way round the globe. */
const edgeMaxDegrees = 90;

const advice = 'The order is west,south,east,north.';

export interface BoundingBox {
  /** A point for a box without extent; two polygons for a box across the antimeridian (west > east). */
  geometry: Geometry;
  /** A likely mistake in the box; null if there is none. */
  warning: string | null;
}

/** Throws `invalid`. `geometryFaults` checks whether the sides are far enough apart. */
export function parseBoundingBox(text: string): BoundingBox {
  const box = readBox(text);
  return { geometry: geometryOf(box), warning: warningOf(box) };
}

/** Returns the sides of a box, also of one without area. Throws `invalid`. */
export function readBox(text: string): Box {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [west = 0, south = 0, east = 0, north = 0] = numbers;
  if (numbers.length !== 4 || !numbers.every(Number.isFinite)) {
    throw invalid('Use west,south,east,north in degrees, such as 5.5,45,11,48.');
  }
  const box = { west, south, east, north };
  if (Math.abs(west) > 180 || Math.abs(east) > 180 || !isLatitude(south) || !isLatitude(north)) {
    throw invalid(
      `Longitudes are from -180 to 180, latitudes from -90 to 90; ${numbers.join(',')} is out of range. ${advice}`,
    );
  }
  if (south > north) {
    throw invalid(`South (${south}) is greater than north (${north}). ${advice}`);
  }
  return box;
}

const isLatitude = (degrees: number) => Math.abs(degrees) <= 90;

/**
 * Warns about a box across the antimeridian whose longitudes could be latitudes. It spans more than half the globe,
 * so latitudes were probably written first, from the northern corner: `48,6,45,11`.
 */
export function warningOf(box: Box): string | null {
  const { west, south, east, north } = box;
  if (west <= east || Math.abs(west) > 90 || Math.abs(east) > 90) return null;
  return `The box spans ${Math.round(widthOf(box))} degrees of longitude, across the antimeridian. ${advice} If you wrote latitudes first, use ${[south, east, north, west].join(',')}.`;
}

function invalid(message: string): AppError {
  return new AppError('invalid', message);
}

function geometryOf(box: Box): Geometry {
  const { west, south, east, north } = box;
  const width = widthOf(box);
  if (width === 0 && south === north) return { type: 'Point', coordinates: [west, south] };
  if (width > 0 && south < north) return polygonOf(box);
  if (west !== east && width === 0) {
    throw invalid(
      `The box has no width: 180 and -180 are the same meridian. For all longitudes, use -180,${south},180,${north}.`,
    );
  }
  throw invalid('The box has no area. Widen it, or use a point.');
}

/** Width in degrees, at most 360; -180 and 180 are the same meridian. */
function widthOf({ west, east }: Box): number {
  return east >= west ? east - west : east + 360 - west;
}

/** Splits the box at the antimeridian (RFC 7946, 3.1.9): how the catalogue reads an edge across it is unknown. */
function polygonOf(box: Box): Geometry {
  const [west, east] = [box.west === 180 ? -180 : box.west, box.east === -180 ? 180 : box.east];
  if (west < east) return { type: 'Polygon', coordinates: [outline({ ...box, west, east })] };
  const coordinates = [[outline({ ...box, east: 180 })], [outline({ ...box, west: -180 })]];
  return { type: 'MultiPolygon', coordinates };
}

/** Builds a closed, counter-clockwise ring. */
function outline({ west, south, east, north }: Box): Ring {
  const corners = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ] as const;
  return withShortEdges(corners);
}

/** Adds positions to long edges of a line. */
export function withShortEdges(line: readonly Position[]): Position[] {
  return line.flatMap((to, i) => {
    const from = line[i - 1] ?? to;
    const steps = Math.max(1, Math.ceil(Math.abs(to[0] - from[0]) / edgeMaxDegrees));
    const at = (one: number, other: number, step: number) => one + ((other - one) * step) / steps;
    return Array.from(
      { length: steps },
      (_, step): Position =>
        step === steps - 1 ? to : [at(from[0], to[0], step + 1), at(from[1], to[1], step + 1)],
    );
  });
}
