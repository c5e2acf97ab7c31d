/** Outlines of swaths on the ground, and their text and GeoJSON as the catalogue writes them. */
import { type Acquisition, groundPoint, type Position } from './orbit.ts';

/**
 * An outline without its closing point. Longitudes continue across the antimeridian (181, not -179),
 * so that neighbouring points are never more than 180 degrees apart.
 */
export type Ring = readonly Position[];

/** The area that an instrument sees. Distances are km from the ground track, positive to the right of flight. */
export interface Swath {
  readonly leftKm: number;
  readonly rightKm: number;
  /** Parts into which the outline is cut along and across the track. */
  readonly alongSteps: number;
  readonly acrossSteps: number;
}

/** GeoJSON of a footprint; each ring is closed. */
export type FootprintGeometry =
  | { readonly type: 'Polygon'; readonly coordinates: readonly Ring[] }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly Ring[])[] };

export interface Footprint {
  /** `geography'SRID=4326;POLYGON ((<longitude> <latitude>, …))'`, or MULTIPOLYGON. */
  readonly text: string;
  readonly geometry: FootprintGeometry;
}

/** Returns the outline of a swath, counter-clockwise from the left corner at the end of the acquisition. */
export function swathRing(
  { satellite, startMs, endMs }: Pick<Acquisition, 'satellite' | 'startMs' | 'endMs'>,
  { leftKm, rightKm, alongSteps, acrossSteps }: Swath,
): Ring {
  const at = (along: number, across: number) =>
    groundPoint(
      satellite,
      startMs + ((endMs - startMs) * along) / alongSteps,
      leftKm + ((rightKm - leftKm) * across) / acrossSteps,
    );
  const points: Position[] = [];
  for (let along = alongSteps; along > 0; along--) points.push(at(along, 0));
  for (let across = 0; across < acrossSteps; across++) points.push(at(0, across));
  for (let along = 0; along < alongSteps; along++) points.push(at(along, acrossSteps));
  for (let across = acrossSteps; across > 0; across--) points.push(at(alongSteps, across));
  return continuousRing(points);
}

/** Turns points into a ring by moving longitudes by whole turns to within 180 degrees of the last. */
export function continuousRing(points: readonly Position[]): Ring {
  let previous = points[0]?.[0] ?? 0;
  return points.map(([longitude, latitude]) => {
    previous = longitude + 360 * Math.round((previous - longitude) / 360);
    return [previous, latitude];
  });
}

/** Returns the part of a ring on the side of a line where `side` is positive (Sutherland and Hodgman). */
export function clipRing(ring: Ring, side: (point: Position) => number): Ring {
  const kept: Position[] = [];
  let from = ring.at(-1);
  for (const to of ring) {
    if (from === undefined) break;
    const [fromSide, toSide] = [side(from), side(to)];
    if (fromSide * toSide < 0) {
      const share = fromSide / (fromSide - toSide);
      kept.push([from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share]);
    }
    if (toSide >= 0) kept.push(to);
    from = to;
  }
  return kept;
}

/** Writes a ring as a polygon, cut in two where it crosses the antimeridian; `decimals` are digits kept. */
export function toFootprint(ring: Ring, decimals: number): Footprint {
  const westmost = Math.min(...ring.map(([longitude]) => longitude));
  const home = shiftedRing(ring, -360 * Math.floor((westmost + 180) / 360));
  const east = clipRing(home, ([longitude]) => 180 - longitude);
  const west = clipRing(home, ([longitude]) => longitude - 180);
  const parts = [east, shiftedRing(west, -360)]
    .map((part) => closedRing(part, decimals))
    // A ring that only touches the antimeridian leaves no area beyond it.
    .filter((part) => new Set(part.map(([longitude]) => longitude)).size > 1 && part.length > 3);
  const [first = [], ...others] = parts;
  return others.length === 0
    ? { text: toText('POLYGON', toWkt(first)), geometry: { type: 'Polygon', coordinates: [first] } }
    : {
        text: toText('MULTIPOLYGON', `(${parts.map(toWkt).join(', ')})`),
        geometry: { type: 'MultiPolygon', coordinates: parts.map((part) => [part]) },
      };
}

function shiftedRing(ring: Ring, degrees: number): Ring {
  if (degrees === 0) return ring;
  return ring.map(([longitude, latitude]) => [longitude + degrees, latitude]);
}

function closedRing(ring: Ring, decimals: number): Ring {
  const rounded = ring.map(
    ([longitude, latitude]): Position => [round(longitude, decimals), round(latitude, decimals)],
  );
  const distinct = rounded.filter((point, index) => {
    const before = rounded.at(index - 1);
    return before === undefined || point[0] !== before[0] || point[1] !== before[1];
  });
  return [...distinct, ...distinct.slice(0, 1)];
}

function round(degrees: number, decimals: number): number {
  const scale = 10 ** decimals;
  const rounded = Math.round(degrees * scale) / scale;
  // Below a ten-millionth JavaScript would write an exponent, which WKT readers may refuse.
  return Math.abs(rounded) < 1e-6 ? 0 : rounded;
}

function toWkt(ring: Ring): string {
  return `((${ring.map(([longitude, latitude]) => `${longitude} ${latitude}`).join(', ')}))`;
}

function toText(type: string, wkt: string): string {
  return `geography'SRID=4326;${type} ${wkt}'`;
}
