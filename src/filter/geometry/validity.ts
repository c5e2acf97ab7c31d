/** Finds faults of a geometry for which the catalogue would refuse it (OGC 06-103r4, 6.1.11). */
import type { Geometry, Position, Ring, Rings } from '../../domain/filter-tree.ts';
import { findCrossing, type RingPath, ringPath, visitOverlaps } from './contacts.ts';
import { containsAll, type Effort, EffortExhausted, newEffort } from './intersects.ts';
import { isClosed, pointsOf, polygonsOf, turnsOf } from './ring.ts';
import { type Shape, toShape } from './shape.ts';

type GeometryFaultCode =
  | 'empty'
  | 'no-number'
  | 'outside-globe'
  | 'not-closed'
  | 'too-few-points'
  | 'self-intersecting'
  | 'rings-crossing'
  | 'parts-overlapping'
  | 'too-intricate';

interface GeometryFault {
  readonly code: GeometryFaultCode;
  /** Fault, position and correction. */
  readonly message: string;
  /** Position of the fault: the same object as in the geometry. */
  readonly at?: Position;
}

function fault(code: GeometryFaultCode, message: string, at?: Position): GeometryFault {
  return { code, message, ...(at === undefined ? {} : { at }) };
}

/** Maximum number of reported faults. */
const faultsMax = 20;

/**
 * Returns up to 20 faults of a geometry; none for a valid one. Checks the form first: positions exist and are in range,
 * and rings are closed. If the form is valid, returns the first fault of the rings: a ring must not cross or touch
 * itself; holes must be inside their outline, and not in each other; parts must not overlap. Rings may touch at points.
 * A geometry that needs more than the effort is also a fault: the catalogue would have the same problem.
 */
export function geometryFaults(geometry: Geometry, effort: Effort = newEffort()): GeometryFault[] {
  const parts = polygonsOf(geometry);
  const form = formFaults(geometry).slice(0, faultsMax);
  if (form.length > 0) return form;
  const paths = parts.flatMap((rings, part) => rings.map((ring, i) => ringPath(ring, part, i)));
  const flat = paths.filter(({ corners }) => corners.length < 3);
  if (flat.length > 0) return flat.slice(0, faultsMax).map(({ corners }) => tooFewPoints(corners));
  try {
    const found = ringFault(paths, parts, effort);
    return found === null ? [] : [found];
  } catch (error) {
    if (!(error instanceof EffortExhausted)) throw error;
    const message =
      'The geometry is too complex to check. Simplify it, or split it into several filters.';
    return [fault('too-intricate', message)];
  }
}

function formFaults(geometry: Geometry): GeometryFault[] {
  switch (geometry.type) {
    case 'Point':
    case 'MultiPoint':
      return listFaults(pointsOf(geometry), positionFaults);
    case 'Polygon':
      return listFaults(geometry.coordinates, ringFormFaults);
    case 'MultiPolygon':
      return listFaults(geometry.coordinates, (rings: Rings) => listFaults(rings, ringFormFaults));
  }
}

function listFaults<Item>(
  items: readonly Item[],
  faultsOf: (item: Item) => GeometryFault[],
): GeometryFault[] {
  if (items.length > 0) return items.flatMap(faultsOf);
  return [fault('empty', 'The geometry, or a part of it, is empty. Add positions.')];
}

function ringFormFaults(ring: Ring): GeometryFault[] {
  const faults = listFaults(ring, positionFaults);
  if (faults.length > 0) return faults;
  if (isClosed(ring) || ring.length === 0) return ring.length < 4 ? [tooFewPoints(ring)] : [];
  const message = 'The ring is not closed: its last position must repeat its first.';
  return [fault('not-closed', message, ring.at(-1))];
}

function tooFewPoints([at]: readonly Position[]): GeometryFault {
  const message =
    'The ring has too few positions: a ring needs three different positions, and the first position again at the end.';
  return fault('too-few-points', message, at);
}

function positionFaults(at: Position): GeometryFault[] {
  const [longitude, latitude] = at;
  if (!Number.isFinite(longitude) || !Number.isFinite(latitude)) {
    return [fault('no-number', 'A position has a value that is not a number.', at)];
  }
  if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90) return [];
  const message = `${longitude} ${latitude} is out of range: longitudes are from -180 to 180, latitudes from -90 to 90.`;
  return [fault('outside-globe', message, at)];
}

const overlapping = 'Two parts overlap or share an edge. Merge them into one polygon.';
const wrongHole =
  'Two rings of a polygon cross, share an edge or are nested. A hole must be inside the outline and separate from other holes.';

/** Returns the first fault of rings with a valid form. If rings cross, their nesting is not checked. */
function ringFault(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  effort: Effort,
): GeometryFault | null {
  const crossing = findCrossing(paths, effort);
  if (crossing === null) return nestingFault(paths, parts, effort);
  const { a, b, at } = crossing;
  const near = at === undefined ? '' : `At the edge that begins at ${at.join(' ')}: `;
  if (a === b) {
    const message = `${near}The ring crosses or touches itself. Redraw the ring without crossings.`;
    return fault('self-intersecting', message, at);
  }
  return a.part === b.part
    ? fault('rings-crossing', `${near}${wrongHole}`, at)
    : fault('parts-overlapping', `${near}${overlapping}`, at);
}

/** Finds a hole outside of its outline, and nested holes or parts. No rings cross. */
function nestingFault(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  effort: Effort,
): GeometryFault | null {
  const ringShape = onceFor((path: RingPath) => [parts[path.part]?.[path.ringIndex] ?? []]);
  const partShape = onceFor((path: RingPath) => parts[path.part] ?? []);
  // No rings cross, so an edge is on one side; only its ends may be on the border.
  const isIn = (path: RingPath, shape: Shape) => containsAll(shape, middlesOf(path), effort);
  const outlines = paths.filter(({ ringIndex }) => ringIndex === 0);
  const stray = paths.find((path) => {
    const outline = outlines[path.part];
    return path.ringIndex > 0 && outline !== undefined && !isIn(path, ringShape(outline));
  });
  if (stray !== undefined) return fault('rings-crossing', wrongHole, stray.corners[0]);
  let found: GeometryFault | null = null;
  visitOverlaps(paths.flatMap(boxesOfPath), 'boxes', effort, ({ path: a }, { path: b }) => {
    const areHoles = a.part === b.part && a.ringIndex > 0 && b.ringIndex > 0;
    const areOutlines = a.part !== b.part && a.ringIndex === 0 && b.ringIndex === 0;
    if (a === b || !(areHoles || areOutlines)) return true;
    const shapeOf = areHoles ? ringShape : partShape;
    const inner = isIn(b, shapeOf(a)) ? b : isIn(a, shapeOf(b)) ? a : null;
    if (inner === null) return true;
    const [at] = inner.corners;
    found = areHoles
      ? fault('rings-crossing', wrongHole, at)
      : fault('parts-overlapping', overlapping, at);
    return false;
  });
  return found;
}

/** As no rings cross, the edges of a ring are on one side of another ring. */
const edgesChecked = 8;

/** Returns the middles of some edges: x, y, x, y, … */
function middlesOf({ xs, ys, turn }: RingPath): number[] {
  return xs.slice(0, edgesChecked).flatMap((x, i) => {
    const isLast = i === xs.length - 1;
    const [nextX, nextY] = isLast ? [(xs[0] ?? 0) + turn, ys[0]] : [xs[i + 1], ys[i + 1]];
    return [(x + (nextX ?? x)) / 2, ((ys[i] ?? 0) + (nextY ?? 0)) / 2];
  });
}

function boxesOfPath(path: RingPath) {
  const shift = -360 * turnsOf(path.west);
  const [x1, x2] = [path.west + shift, path.east + shift];
  const box = { path, x1, y1: path.south, x2, y2: path.north };
  return x2 < 180 ? [box] : [box, { ...box, x1: x1 - 360, x2: x2 - 360 }];
}

/** Returns a function that builds the shape of a path at its first use. */
function onceFor(ringsOf: (path: RingPath) => Rings): (path: RingPath) => Shape {
  const known = new Map<RingPath, Shape>();
  return (path) => {
    const shape = known.get(path) ?? toShape({ type: 'Polygon', coordinates: ringsOf(path) });
    known.set(path, shape);
    return shape;
  };
}
