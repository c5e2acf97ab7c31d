/**
 * Projections of the map, and footprints as paths. Edges are straight in longitude and latitude (decision 17), so they
 * become curves around a pole. Map coordinates are about one degree per unit; y grows downwards, as on a canvas.
 */

export type LonLat = readonly [longitude: number, latitude: number];

export interface Projection {
  name: 'plate-carree' | 'arctic' | 'antarctic';
  /** Width after which the map repeats; 0 for a round map. */
  period: number;
  /** Half of the width and of the height of the map. */
  reach: readonly [number, number];
  /** Longest edge that is still straight, in degrees. */
  step: number;
  project(position: LonLat): readonly [number, number];
  invert(x: number, y: number): LonLat;
}

/** Longitude and latitude as x and y (EPSG:4326 on a map). */
export const plateCarree: Projection = {
  ...{ name: 'plate-carree', period: 360, reach: [180, 90], step: Infinity },
  project: ([longitude, latitude]) => [longitude, -latitude],
  // Across the antimeridian, longitudes continue: an area may extend over it.
  invert: (x, y) => [x, Math.max(-90, Math.min(-y, 90))],
};

/** Latitude, north or south, at which polar maps end. */
export const edgeLatitude = 30;
/** Latitude in the other hemisphere from which positions have the same distance: the other pole is infinitely far. */
const farLatitude = -60;
const toRadians = Math.PI / 180;

/** Polar stereographic: shapes keep their angles. Longitude 0 points down in the arctic, and up in the antarctic. */
function polar(name: 'arctic' | 'antarctic'): Projection {
  const sign = name === 'arctic' ? 1 : -1;
  const unit = 360 / Math.PI;
  const radius = (latitude: number) =>
    unit * Math.tan(((90 - Math.max(sign * latitude, farLatitude)) * toRadians) / 2);
  const reach = radius(sign * edgeLatitude);
  return {
    ...{ name, period: 0, reach: [reach, reach], step: 2 },
    project: ([longitude, latitude]) => {
      const [distance, angle] = [radius(latitude), longitude * toRadians];
      return [distance * Math.sin(angle), sign * distance * Math.cos(angle)];
    },
    invert: (x, y) => [
      Math.atan2(x, sign * y) / toRadians,
      sign * (90 - (2 * Math.atan(Math.hypot(x, y) / unit)) / toRadians),
    ],
  };
}

export const projections = [plateCarree, polar('arctic'), polar('antarctic')] as const;

/** Returns the number of straight parts of an edge: several if it is a curve. */
export function stepsOf(from: LonLat, to: LonLat, { step }: Projection): number {
  if (step === Infinity) return 1;
  return Math.ceil(Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1])) / step) || 1;
}

/** Returns a position on an edge. */
export function between(from: LonLat, to: LonLat, share: number): LonLat {
  return [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
}

/** A footprint as GeoJSON: of any type that `/api/footprints` returns. */
export type Outline =
  | { type: 'GeometryCollection'; geometries: Outline[] }
  | { type: `${string}Point` | `${string}LineString` | `${string}Polygon`; coordinates: Nested };
type Nested = readonly [number, number] | readonly Nested[];

/** Returns the rings of a footprint. A point becomes a small square; a line there and back is a ring, too. */
export function ringsOf(outline: Outline): LonLat[][] {
  if ('geometries' in outline) return outline.geometries.flatMap(ringsOf);
  const lines = linesOf(outline.coordinates);
  if (outline.type.endsWith('Point')) return lines.flat().map(squareAt);
  return outline.type.endsWith('LineString')
    ? lines.map((line) => [...line, ...line.toReversed()])
    : lines;
}

function linesOf(coordinates: Nested): LonLat[][] {
  const [first] = coordinates;
  if (first === undefined) return [];
  if (typeof first === 'number') return [[coordinates as LonLat]];
  if (typeof first[0] === 'number') return [coordinates as LonLat[]];
  return (coordinates as readonly Nested[]).flatMap(linesOf);
}

const squareDegrees = 0.1;

function squareAt([x, y]: LonLat): LonLat[] {
  const d = squareDegrees;
  return cornersOf([x - d, y - d, x + d, y + d]);
}

/** Left, top, right and bottom in map coordinates; or west, south, east and north. */
export type Box = readonly [number, number, number, number];

export function cornersOf([west, south, east, north]: Box): LonLat[] {
  return [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
  ];
}
