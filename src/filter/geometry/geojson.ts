/** Writes geometries as GeoJSON (RFC 7946). */
import type { AnyGeometry, Geometry, Position, Ring, Rings } from '../filter-tree.ts';
import {
  clampedLatitude,
  closedRing,
  enclosedPole,
  isSamePosition,
  joinParts,
  partsOf,
  snappedLongitude,
  turnsOf,
  type UnwrappedRing,
  unwrapPath,
  unwrapRing,
} from './ring.ts';
import { shapesIntersect, toShape } from './shape.ts';

/**
 * Converts to valid GeoJSON: rings closed, outlines counter-clockwise and holes clockwise, cut at the antimeridian
 * (then with several parts), with coordinates within 180 and 90 degrees.
 */
export function toGeoJson(geometry: Geometry): Geometry;
export function toGeoJson(geometry: AnyGeometry): AnyGeometry;
export function toGeoJson(geometry: AnyGeometry): AnyGeometry {
  const { points, lines, polygons } = partsOf(geometry);
  return joinParts({
    points: points.map(pointWithin),
    lines: lines.flatMap(lineParts),
    polygons: polygons.flatMap(polygonParts),
  });
}

export const displayLimits = {
  points: 100,
  /** Outlines and holes; outlines come first. Also the number of lines. */
  rings: 64,
  /** Positions of all rings and lines. Real footprints have up to some hundreds. */
  positions: 2_000,
};

/** Shortest length of a simplified ring or line, in positions. */
const ringPositionsMin = 16;

/**
 * Returns a geometry for maps: as GeoJSON, rounded to 11 m, and simplified beyond `displayLimits`: long rings and lines
 * lose positions in equal steps, further parts are left out.
 */
export function toDisplayGeometry(geometry: AnyGeometry): AnyGeometry {
  const { points, lines, polygons } = partsOf(geometry);
  const { rings } = displayLimits;
  const hasFew = polygons.flat().length <= rings;
  const kept = polygons.slice(0, rings).map((polygon) => (hasFew ? polygon : polygon.slice(0, 1)));
  const paths = kept.flat().length + Math.min(lines.length, rings);
  const most = Math.max(ringPositionsMin, Math.floor(displayLimits.positions / paths));
  const written = toGeoJson(
    joinParts({
      points: points.slice(0, displayLimits.points),
      lines: lines.slice(0, rings).map((line) => thinned(line, most)),
      polygons: kept.map((polygon) => polygon.map((ring) => thinned(ring, most))),
    }),
  );
  return JSON.parse(JSON.stringify(written), (_, value) =>
    typeof value === 'number' ? Math.round(value * 10_000) / 10_000 : value,
  );
}

function thinned(ring: Ring, most: number): Ring {
  if (ring.length <= most) return ring;
  const step = Math.ceil(ring.length / most);
  return ring.filter((_, i) => i % step === 0 || i === ring.length - 1);
}

function pointWithin([longitude, latitude]: Position): Position {
  const isWithin = Math.abs(longitude) <= 180;
  return [isWithin ? longitude : snappedLongitude(longitude), clampedLatitude(latitude)];
}

/** Cuts a line at the antimeridian; a part that only touches it is left out. */
function lineParts(line: readonly Position[]): (readonly Position[])[] {
  const parts = splitPath(line, unwrapPath(line));
  const long = parts.filter((part) => part.length > 1);
  // A line without length.
  return long.length > 0 ? long : [[...(parts[0] ?? []), ...(parts[0] ?? [])]];
}

function polygonParts(polygon: Rings): Rings[] {
  const { whole, pieces } = cutRings(polygon);
  const outlines = pieces.length > 0 ? pieces : whole.slice(0, 1);
  const inner = pieces.length > 0 ? whole : whole.slice(1);
  const parts = outlines.map((outline) => [turned(outline, 'counter-clockwise')]);
  const shapes =
    parts.length > 1 && inner.length > 0
      ? outlines.map((outline) => toShape({ type: 'Polygon', coordinates: [outline] }))
      : [];
  for (const hole of inner) {
    // A corner may touch another part, but not the middle of an edge.
    const [[x1, y1] = [0, 0], [x2, y2] = [0, 0]] = hole;
    const middle = toShape({ type: 'Point', coordinates: [(x1 + x2) / 2, (y1 + y2) / 2] });
    const found = shapes.findIndex((shape) => shapesIntersect(shape, middle));
    parts[Math.max(0, found)]?.push(turned(hole, 'clockwise'));
  }
  return parts;
}

function turned(ring: Ring, direction: 'clockwise' | 'counter-clockwise'): Ring {
  const [[x0] = [0]] = ring;
  let doubledArea = 0;
  for (const [i, [x, y]] of ring.entries()) {
    const [nextX, nextY] = ring[i + 1] ?? [x, y];
    doubledArea += (x - x0) * nextY - (nextX - x0) * y;
  }
  const isTurned = direction === 'clockwise' ? doubledArea > 0 : doubledArea < 0;
  return isTurned ? ring.toReversed() : ring;
}

/**
 * Cuts the rings of a polygon to -180 to 180 degrees, all closed (RFC 7946, 3.1.9). Returns the rings that were not cut, in
 * their order, and the new rings: these pieces have sides along the antimeridian at the cut, and along an enclosed pole.
 * Degrees stay as written where possible.
 */
function cutRings(polygon: Rings) {
  const whole: Ring[] = [];
  const chains: Position[][] = [];
  const poles = new Set<'north' | 'south'>();
  for (const ring of polygon) {
    const unwrapped = unwrapRing(ring);
    const pole = enclosedPole(unwrapped);
    // A pole inside two rings is outside of the polygon.
    if (pole !== null && !poles.delete(pole)) poles.add(pole);
    const [first, ...others] = splitPath(closedRing(ring), unwrapped);
    const last = others.pop();
    if (first === undefined) continue;
    if (last === undefined) whole.push(first);
    // The ring started in the middle of a chain.
    else for (const part of [[...last, ...first.slice(1)], ...others]) chains.push(part);
  }
  for (const pole of poles) {
    const y = pole === 'north' ? 90 : -90;
    chains.push([180, -180].map((x): Position => [x, y]));
  }
  return { whole, pieces: joinChains(chains) };
}

/** Splits positions at each crossing of the antimeridian. */
function splitPath(path: readonly Position[], { xs, ys }: UnwrappedRing): Position[][] {
  let part: Position[] = [];
  const parts = [part];
  for (const [i, [longitude]] of path.entries()) {
    const [x = 0, y = 0] = [xs[i], ys[i]];
    const strip = turnsOf(x);
    const [fromX = x, fromY = y] = [xs[i - 1], ys[i - 1]];
    for (const line of linesBetween(turnsOf(fromX), strip)) {
      const cutY = x === line ? y : fromY + ((y - fromY) * (line - fromX)) / (x - fromX);
      const leaving = fromX < x ? 180 : -180;
      add(part, [leaving, cutY]);
      part = [[-leaving, cutY]];
      parts.push(part);
    }
    const within = x - 360 * strip;
    // The written longitude, which may differ by turns, is better than the rounded one.
    add(part, [Math.abs(longitude - within) < 1 ? longitude : within, y]);
  }
  return parts;
}

/** Antimeridians between two strips of 360 degrees; each strip includes only its western end. */
function linesBetween(from: number, to: number): number[] {
  const lines: number[] = [];
  for (let strip = from; strip < to; strip += 1) lines.push(360 * strip + 180);
  for (let strip = from; strip > to; strip -= 1) lines.push(360 * strip - 180);
  return lines;
}

function add(part: Position[], position: Position): void {
  if (!isSamePosition(part.at(-1), position)) part.push(position);
}

/**
 * Joins chains, whose ends all have a longitude of -180 or 180, to rings along these lines. From south to north, the
 * inside begins at every other end, so ends are joined in pairs. Rings without width are dropped.
 */
function joinChains(chains: readonly (readonly Position[])[]): Ring[] {
  const partners = partnersOf(chains);
  const used = new Set<number>();
  const joined: Ring[] = [];
  for (const start of chains.keys()) {
    const ring: Position[] = [];
    // A chain is entered at one end and left at the other.
    let entered: number | undefined = 2 * start;
    while (entered !== undefined) {
      const chain = Math.floor(entered / 2);
      if (used.has(chain)) break;
      used.add(chain);
      const [positions, isReversed] = [chains[chain] ?? [], entered % 2 === 1];
      for (const one of isReversed ? positions.toReversed() : positions) add(ring, one);
      entered = partners.get(isReversed ? entered - 1 : entered + 1);
    }
    if (ring.some(([longitude]) => longitude !== ring[0]?.[0])) joined.push(closedRing(ring));
  }
  return joined;
}

/** Maps each end to the end that it is joined with: chain `i` has the ends `2 i` and `2 i + 1`. */
function partnersOf(chains: readonly (readonly Position[])[]): Map<number, number> {
  const places = chains.flatMap((positions) => [positions[0], positions.at(-1)]);
  const latitudeOf = (end: number) => places[end]?.[1] ?? 0;
  const partners = new Map<number, number>();
  for (const longitude of [-180, 180]) {
    const ends = [...places.keys()].filter((end) => places[end]?.[0] === longitude);
    ends.sort((a, b) => latitudeOf(a) - latitudeOf(b));
    for (let i = 0; i + 1 < ends.length; i += 2) {
      const [lower = 0, upper = 0] = [ends[i], ends[i + 1]];
      partners.set(lower, upper).set(upper, lower);
    }
  }
  return partners;
}
