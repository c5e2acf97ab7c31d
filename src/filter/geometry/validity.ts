/** Finds faults of a geometry for which the catalogue would refuse it (OGC 06-103r4, 6.1.11). */
import Flatbush from 'flatbush';
import { orient2d } from 'robust-predicates';
import type { Geometry, Position, Ring } from '../filter-tree.ts';
import { isClosed, pointsOf, polygonsOf, unwrapRing } from './ring.ts';
import { onOneSide } from './shape.ts';

/**
 * Remaining work for a check, in comparisons of two edges; several geometries may share it. It prevents a geometry from
 * blocking its thread. With a time limit, the result would depend on the machine.
 */
export interface Effort {
  left: number;
}

/** About a tenth of a second: ten times the work for a coast with 5,000 corners and its islands. */
export const newEffort = (): Effort => ({ left: 500_000 });

/** Maximum number of reported faults. */
const faultsMax = 20;

/**
 * Returns up to 20 faults of a geometry, each with its position and correction. Checks the form first: positions are in
 * range, and rings are closed. If the form is valid, returns the first place where a ring crosses or touches itself, or
 * where two rings cross or share an edge; they may touch at points. Rings inside each other are not compared: the
 * catalogue does that. A geometry that needs more than the effort is also a fault.
 */
export function geometryFaults(geometry: Geometry, effort: Effort = newEffort()): string[] {
  const rings = polygonsOf(geometry).flatMap((polygon, part) =>
    polygon.map((ring) => ({ ring, part })),
  );
  const form = [
    ...pointsOf(geometry).flatMap(positionFaults),
    ...rings.flatMap(({ ring }) => ringFaults(ring)),
  ];
  if (form.length > 0) return form.slice(0, faultsMax);
  const edges = rings.flatMap(({ ring, part }) => edgesOf(ring, part));
  const crossing = firstCrossing(edges, effort);
  if (effort.left >= 0) return crossing === null ? [] : [crossingFault(...crossing)];
  return ['The geometry is too complex to check. Simplify it, or split it into several filters.'];
}

function ringFaults(ring: Ring): string[] {
  const faults = ring.flatMap(positionFaults);
  if (faults.length > 0) return faults;
  if (!isClosed(ring)) {
    return [
      `The ring that ends at ${ring.at(-1)?.join(' ')} is not closed: repeat its first position.`,
    ];
  }
  const corners = new Set(ring.map((position) => position.join(' ')));
  if (corners.size > 2) return [];
  return [
    `The ring at ${ring[0]?.join(' ')} has too few positions: it needs three different ones.`,
  ];
}

function positionFaults([longitude, latitude]: Position): string[] {
  if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90) return [];
  return [
    `${longitude} ${latitude} is out of range: longitude, the first number, is from -180 to 180, latitude from -90 to 90.`,
  ];
}

/** An edge of a ring in the plane. */
interface Edge {
  readonly part: number;
  readonly ring: Ring;
  /** Index in the ring, and that of the following edge. */
  readonly i: number;
  readonly next: number;
  /** Position at which the edge begins, as written. */
  readonly at: Position | undefined;
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** Returns the edges that have a length. */
function edgesOf(ring: Ring, part: number): Edge[] {
  const { xs, ys } = unwrapRing(ring);
  const starts = [...ring.keys()].filter((i) => {
    return i + 1 < xs.length && (xs[i] !== xs[i + 1] || ys[i] !== ys[i + 1]);
  });
  return starts.map((k, i) => {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = [xs[k], ys[k], xs[k + 1], ys[k + 1]];
    return { part, ring, i, next: (i + 1) % starts.length, at: ring[k], x1, y1, x2, y2 };
  });
}

const boxOf = ({ x1, y1, x2, y2 }: Edge) =>
  [Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2)] as const;

/** Returns two edges that must not meet as they do; null without such, or if the effort is used up. */
function firstCrossing(edges: readonly Edge[], effort: Effort): [Edge, Edge] | null {
  if (edges.length === 0) return null;
  const index = new Flatbush(edges.length);
  for (const edge of edges) index.add(...boxOf(edge));
  index.finish();
  let found: [Edge, Edge] | null = null;
  for (const [i, edge] of edges.entries()) {
    index.search(...boxOf(edge), (j) => {
      const other = edges[j];
      if (j <= i || other === undefined || found !== null || effort.left < 0) return false;
      effort.left -= 1;
      if (!mayMeet(edge, other)) found = [edge, other];
      return false;
    });
    if (found !== null || effort.left < 0) break;
  }
  return found;
}

/** Edges of a ring meet only at common corners; those of two rings may touch at points. */
function mayMeet(a: Edge, b: Edge): boolean {
  const contact = contactOf(a, b);
  if (contact !== 'touch') return contact === 'none';
  return a.ring !== b.ring || a.next === b.i || b.next === a.i;
}

/** `touch`: the edges share one point that is an end of one of them. */
function contactOf(a: Edge, b: Edge): 'none' | 'touch' | 'cross' {
  const b1 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x1, b.y1);
  const b2 = orient2d(a.x1, a.y1, a.x2, a.y2, b.x2, b.y2);
  const a1 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x1, a.y1);
  const a2 = orient2d(b.x1, b.y1, b.x2, b.y2, a.x2, a.y2);
  if (onOneSide(b1, b2) || onOneSide(a1, a2)) return 'none';
  if (b1 !== 0 || b2 !== 0) return [b1, b2, a1, a2].includes(0) ? 'touch' : 'cross';
  // On one line, with overlapping boxes: they share one end, or more.
  const [aWest, aSouth, aEast, aNorth] = boxOf(a);
  const [bWest, bSouth, bEast, bNorth] = boxOf(b);
  const isAlong =
    Math.min(aEast, bEast) > Math.max(aWest, bWest) ||
    Math.min(aNorth, bNorth) > Math.max(aSouth, bSouth);
  return isAlong ? 'cross' : 'touch';
}

function crossingFault(a: Edge, b: Edge): string {
  const near = `At the edge that begins at ${b.at?.join(' ')}:`;
  if (a.ring === b.ring)
    return `${near} The ring crosses or touches itself. Redraw it without crossings.`;
  return a.part === b.part
    ? `${near} Two rings of a polygon cross or share an edge. A hole must be inside the outline and separate from other holes.`
    : `${near} Two parts overlap or share an edge. Merge them into one polygon.`;
}
