/** Reads a box on the command line: `west,south,east,north` in degrees. */
import { InvalidArgumentError } from 'commander';
import type { Geometry, Position, Ring } from '../../domain/geometry.ts';

/** An edge of more than 180 degrees would be taken the short way round the globe; this is well below. */
const edgeMaxDegrees = 90;

interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}

/**
 * A polygon, or a point for a box without extent. With west beyond east it crosses the antimeridian.
 * Throws commander's InvalidArgumentError. Whether its sides can be told apart is for the check of
 * geometries to say.
 */
export function parseBoundingBox(text: string): Geometry {
  return geometryOf(readBox(text));
}

function readBox(text: string): Box {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [west = 0, south = 0, east = 0, north = 0] = numbers;
  if (numbers.length !== 4 || !numbers.every(Number.isFinite)) {
    throw new InvalidArgumentError('Use west,south,east,north in degrees, such as 5.5,45,11,48.');
  }
  if (Math.abs(west) > 180 || Math.abs(east) > 180) {
    throw new InvalidArgumentError(
      `Longitudes are from -180 to 180${hintOfOrder(numbers)}. The order is west,south,east,north.`,
    );
  }
  if (Math.abs(south) > 90 || Math.abs(north) > 90) {
    throw new InvalidArgumentError(
      `Latitudes are from -90 to 90${hintOfOrder(numbers)}. The order is west,south,east,north.`,
    );
  }
  if (south > north) {
    throw new InvalidArgumentError(
      `South (${south}) lies north of north (${north}). The order is west,south,east,north.`,
    );
  }
  return { west, south, east, north };
}

function hintOfOrder([first = 0, second = 0, third = 0, fourth = 0]: readonly number[]): string {
  const swapped = Math.abs(second) <= 180 && Math.abs(fourth) <= 180;
  const fits = swapped && Math.abs(first) <= 90 && Math.abs(third) <= 90;
  return fits ? `; did you mean ${[second, first, fourth, third].join(',')}?` : '';
}

function geometryOf(box: Box): Geometry {
  const { west, south, east, north } = box;
  const width = widthOf(box);
  if (width === 0 && south === north) return { type: 'Point', coordinates: [west, south] };
  if (width > 0 && south < north) return { type: 'Polygon', coordinates: [outline(box)] };
  if (west !== east && width === 0) {
    throw new InvalidArgumentError(
      `The box has no width: 180 and -180 are the same meridian. For all the way round use -180,${south},180,${north}.`,
    );
  }
  throw new InvalidArgumentError('The box has no area: make it a little wider, or a point.');
}

/** Degrees, 360 at most; -180 and 180 are the same meridian. */
function widthOf({ west, east }: Box): number {
  return east >= west ? east - west : east + 360 - west;
}

/** Counter-clockwise, closed, with points between where an edge is long. */
function outline(box: Box): Ring {
  const { west, south, east, north } = box;
  const width = widthOf(box);
  const steps = Math.ceil(width / edgeMaxDegrees);
  const longitudes = Array.from({ length: steps + 1 }, (_, i) => {
    if (i === steps) return east;
    const longitude = west + (width * i) / steps;
    return longitude > 180 ? longitude - 360 : longitude;
  });
  const along = (latitude: number) => longitudes.map((one): Position => [one, latitude]);
  return [...along(south), ...along(north).toReversed(), [west, south]];
}
