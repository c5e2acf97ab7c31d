/**
 * Projections of the map. Edges are straight in longitude and latitude (decision 17), so they become curves around a
 * pole. Map coordinates are about one degree per unit; y grows downwards, as on a canvas.
 */

export type LonLat = readonly [longitude: number, latitude: number];

/** A closed ring in map coordinates. `seams`: 1 for a point that is reached along a cut, which is no outline. */
export interface MapRing {
  /** x and y in turn. Not a typed array: thousands of small ones make the collection of garbage slow. */
  points: readonly number[];
  seams: Uint8Array | null;
}

export interface Projection {
  name: 'plate-carree' | 'arctic' | 'antarctic';
  /** Width after which the map repeats; 0 if it does not. */
  period: number;
  /** Half of the width and of the height of the map. */
  reach: readonly [number, number];
  project(position: LonLat): readonly [number, number];
  invert(x: number, y: number): LonLat;
  /** Returns null for a ring outside of the projection. */
  ring(positions: readonly LonLat[]): MapRing | null;
  /** Returns an open line. */
  line(positions: readonly LonLat[]): MapRing;
}

const toRadians = Math.PI / 180;

/** Longitude and latitude as x and y (EPSG:4326 on a map). */
export const plateCarree: Projection = {
  name: 'plate-carree',
  period: 360,
  reach: [180, 90],
  project: ([longitude, latitude]) => [longitude, -latitude],
  invert: (x, y) => [x - 360 * Math.floor((x + 180) / 360), Math.max(-90, Math.min(-y, 90))],
  ring: (positions) => toMap(positions, plateCarree.project),
  line: (positions) => opened(toMap(positions, plateCarree.project), () => false),
};

/** Latitude, north or south, at which polar maps end. */
export const edgeLatitude = 30;
/** Longest step between two points of a curve, in degrees of longitude. */
const stepDegrees = 2;

/** Polar stereographic: shapes keep their angles. Longitude 0 points down in the arctic, and up in the antarctic. */
function polar(name: 'arctic' | 'antarctic'): Projection {
  const sign = name === 'arctic' ? 1 : -1;
  const unit = 360 / Math.PI;
  const radius = (latitude: number) =>
    unit * Math.tan(Math.PI / 4 - (sign * latitude * toRadians) / 2);
  const project = ([longitude, latitude]: LonLat): readonly [number, number] => {
    const [distance, angle] = [radius(latitude), longitude * toRadians];
    return [distance * Math.sin(angle), sign * distance * Math.cos(angle)];
  };
  const reach = radius(sign * edgeLatitude);
  return {
    name,
    period: 0,
    reach: [reach, reach],
    project,
    invert: (x, y) => [
      Math.atan2(x, sign * y) / toRadians,
      sign * (90 - (2 * Math.atan(Math.hypot(x, y) / unit)) / toRadians),
    ],
    ring: (positions) => {
      const clipped = clip(positions, sign);
      return clipped.length < 3 ? null : toMap(curved(clipped), project);
    },
    line: (positions) =>
      opened(toMap(positions, project), (i) => sign * (positions[i]?.[1] ?? 0) < edgeLatitude),
  };
}

export const projections: readonly Projection[] = [
  plateCarree,
  polar('arctic'),
  polar('antarctic'),
];

/** Removes the part of a ring beyond the edge of a polar map (Sutherland and Hodgman, for one straight edge). */
function clip(ring: readonly LonLat[], sign: number): LonLat[] {
  const kept: LonLat[] = [];
  const height = ([, latitude]: LonLat) => sign * latitude - edgeLatitude;
  for (const [i, position] of ring.entries()) {
    const former = ring[i === 0 ? ring.length - 1 : i - 1] ?? position;
    const [from, to] = [height(former), height(position)];
    if (from < 0 !== to < 0) {
      const share = from / (from - to);
      kept.push([former[0] + share * (position[0] - former[0]), sign * edgeLatitude]);
    }
    if (to >= 0) kept.push(position);
  }
  return kept;
}

/** Adds points to long edges. */
function curved(ring: readonly LonLat[]): LonLat[] {
  return ring.flatMap((position, i) => {
    const [fromX, fromY] = ring[i === 0 ? ring.length - 1 : i - 1] ?? position;
    const [x, y] = position;
    const steps = Math.ceil(Math.abs(x - fromX) / stepDegrees);
    if (steps < 2) return [position];
    return Array.from({ length: steps }, (_, step): LonLat => {
      const share = (step + 1) / steps;
      return [fromX + share * (x - fromX), fromY + share * (y - fromY)];
    });
  });
}

/** Makes a line of a ring: without the edge from the last point to the first, and without hidden points. */
function opened({ points }: MapRing, isHidden: (i: number) => boolean): MapRing {
  const seams = new Uint8Array(points.length / 2);
  for (let i = 0; i < seams.length; i += 1) {
    if (i === 0 || isHidden(i) || isHidden(i - 1)) seams[i] = 1;
  }
  return { points, seams };
}

function toMap(ring: readonly LonLat[], project: Projection['project']): MapRing {
  const points: number[] = [];
  let seams: Uint8Array | null = null;
  let former = ring.at(-1) ?? [0, 0];
  let i = 0;
  for (const position of ring) {
    const [x, y] = project(position);
    points.push(x, y);
    if (isSeam(former, position)) {
      seams ??= new Uint8Array(ring.length);
      seams[i] = 1;
    }
    former = position;
    i += 1;
  }
  return { points, seams };
}

/** True along the antimeridian, a pole, and the edge of a polar map. */
function isSeam(from: LonLat, to: LonLat): boolean {
  if (from[0] === to[0] && Math.abs(to[0]) === 180) return true;
  return from[1] === to[1] && (Math.abs(to[1]) === 90 || Math.abs(to[1]) === edgeLatitude);
}

/** A footprint as GeoJSON: of any type that `/api/footprints` returns. */
export type Outline =
  | { type: 'Point'; coordinates: LonLat }
  | { type: 'MultiPoint'; coordinates: LonLat[] }
  | { type: 'LineString'; coordinates: LonLat[] }
  | { type: 'MultiLineString'; coordinates: LonLat[][] }
  | { type: 'Polygon'; coordinates: LonLat[][] }
  | { type: 'MultiPolygon'; coordinates: LonLat[][][] }
  | { type: 'GeometryCollection'; geometries: Outline[] };

/** Returns the rings of a footprint; a point becomes a small square, a line a narrow strip. */
export function ringsOf(outline: Outline, { ring }: Projection): MapRing[] {
  return positionsOf(outline).flatMap((positions) => ring(positions) ?? []);
}

function positionsOf(outline: Outline): LonLat[][] {
  switch (outline.type) {
    case 'Point':
      return [squareAt(outline.coordinates)];
    case 'MultiPoint':
      return outline.coordinates.map(squareAt);
    case 'LineString':
      return [stripAlong(outline.coordinates)];
    case 'MultiLineString':
      return outline.coordinates.map(stripAlong);
    case 'Polygon':
      return outline.coordinates;
    case 'MultiPolygon':
      return outline.coordinates.flat();
    case 'GeometryCollection':
      return outline.geometries.flatMap(positionsOf);
  }
}

const squareDegrees = 0.1;

function squareAt([x, y]: LonLat): LonLat[] {
  const [a, b] = [-squareDegrees, squareDegrees];
  return [
    [x + a, y + a],
    [x + b, y + a],
    [x + b, y + b],
    [x + a, y + b],
  ];
}

/** Returns a ring around a line, so that a click finds it. */
function stripAlong(line: LonLat[]): LonLat[] {
  const side = (distance: number) =>
    line.map(([x, y], i): LonLat => {
      const [[fromX, fromY], [toX, toY]] = [line[i - 1] ?? [x, y], line[i + 1] ?? [x, y]];
      const scale = distance / (Math.hypot(toX - fromX, toY - fromY) || 1);
      return [x - scale * (toY - fromY), y + scale * (toX - fromX)];
    });
  return [...side(squareDegrees / 2), ...side(-squareDegrees / 2).toReversed()];
}
