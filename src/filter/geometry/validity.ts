/** Finds faults of a geometry for which the catalogue would refuse it (OGC 06-103r4, 6.1.11). */
import type { Geometry, Position, Ring, Rings } from '../../domain/filter-tree.ts';
import { type Contact, findContacts, type RingPath, ringPath, visitOverlaps } from './contacts.ts';
import { type Effort, EffortExhausted, newEffort, shapesIntersect, spend } from './intersects.ts';
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
  | 'inside-divided'
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

/** Cost of checking whether a polygon contains a corner, without its edges, in steps. */
const questionSteps = 500;

/**
 * Returns up to 20 faults of a geometry; none for a valid one. Checks the form first: positions exist and are in range,
 * and rings are closed. If the form is valid, returns the first fault of the rings: a ring must not cross or touch
 * itself; holes must be inside their outline, and may touch it and each other at single points that do not divide the
 * inside; parts may touch at single points. A geometry that needs more than the effort is also a fault: the catalogue
 * would have the same problem.
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
      'The geometry is too complex to check: too many edges touch or overlap. Simplify it, or split it into several filters.';
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

/** Returns the first fault of rings with a valid form. If rings cross, their nesting is not checked. */
function ringFault(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  effort: Effort,
): GeometryFault | null {
  const [touches, crossings]: [Contact[], Contact[]] = [[], []];
  const meetings = new Map<string, Contact | null>();
  findContacts(paths, effort, (contact) => {
    const { a, b, kind, point } = contact;
    const isRight = isAllowed(contact);
    if (isRight) touches.push(contact);
    if (kind === 'touch' && a.part !== b.part) {
      // One pair of rings that separates the parts at a point is enough: a hole may touch its outline there.
      const meeting = `${Math.min(a.part, b.part)} ${Math.max(a.part, b.part)} ${showPoint(point)}`;
      if (isRight) meetings.set(meeting, null);
      else if (!meetings.has(meeting)) meetings.set(meeting, contact);
    } else if (!isRight) crossings.push(contact);
    return crossings.length === 0;
  });
  const wrong = [...crossings, ...meetings.values()].find((one) => one !== null);
  if (wrong != null) return contactFault(wrong);
  return nestingFault(paths, parts, touches, effort) ?? dividedInside(touches);
}

/** Returns true for a touch that leaves each ring on the side of the other where it belongs. */
function isAllowed({ a, b, kind, aInsideB, bInsideA }: Contact): boolean {
  const [isOutlineA, isOutlineB] = [a.ringIndex === 0, b.ringIndex === 0];
  if (kind !== 'touch') return false;
  // Inside a hole is outside of the part.
  if (a.part !== b.part) return isOutlineA !== bInsideA && isOutlineB !== aInsideB;
  // A valid hole touches the outline from the inside, and another hole from the outside.
  if (isOutlineA || isOutlineB) return isOutlineA ? bInsideA : aInsideB;
  return !aInsideB && !bInsideA;
}

const overlapping = 'Two parts overlap or share an edge. Merge them into one polygon.';
const wrongHole =
  'Two rings of a polygon cross, share an edge or are nested. A hole must be inside the outline and separate from other holes.';

function contactFault({ a, b, kind, point, at }: Contact): GeometryFault {
  const near = `Near ${showPoint(point, 6)}:`;
  if (kind === 'self') {
    const message = `${near} The ring crosses or touches itself. Redraw the ring without crossings.`;
    return fault('self-intersecting', message, at);
  }
  return a.part === b.part
    ? fault('rings-crossing', `${near} ${wrongHole}`, at)
    : fault('parts-overlapping', `${near} ${overlapping}`, at);
}

/** Formats a point, equal on both sides of the antimeridian; rounded to `digits`. */
function showPoint([x, y]: readonly [number, number], digits?: number): string {
  const degrees = [x - 360 * turnsOf(x), y];
  return degrees.map((one) => (digits === undefined ? one : Number(one.toFixed(digits)))).join(' ');
}

/** Finds a hole outside of its outline, and nested holes or parts. Rings that touch have already been checked. */
function nestingFault(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  touches: readonly Contact[],
  effort: Effort,
): GeometryFault | null {
  const known = new Set(touches.flatMap(({ a, b }) => [pairKey(a, b), pairKey(b, a)]));
  const outlines = paths.filter(({ ringIndex }) => ringIndex === 0);
  const polygons = parts.map(onceShape);
  const rings = new Map(
    paths.map((path) => {
      const ring = parts[path.part]?.[path.ringIndex];
      return [path, onceShape(ring === undefined ? [] : [ring])];
    }),
  );
  const isIn = (path: RingPath, shape: (() => Shape) | undefined) =>
    holdsCorner(shape, path, effort);
  const stray = paths.find((path) => {
    const outline = outlines[path.part];
    if (path.ringIndex === 0 || outline === undefined) return false;
    return !known.has(pairKey(path, outline)) && !isIn(path, rings.get(outline));
  });
  if (stray !== undefined) return fault('rings-crossing', wrongHole, stray.corners[0]);
  let found: GeometryFault | null = null;
  visitOverlaps(paths.flatMap(boxesOfPath), 'boxes', effort, ({ path: a }, { path: b }) => {
    const areHoles = a.part === b.part && a.ringIndex > 0 && b.ringIndex > 0;
    const areOutlines = a.part !== b.part && a.ringIndex === 0 && b.ringIndex === 0;
    if (a === b || !(areHoles || areOutlines) || known.has(pairKey(a, b))) return true;
    known.add(pairKey(a, b)).add(pairKey(b, a));
    const shapeOf = (path: RingPath) => (areHoles ? rings.get(path) : polygons[path.part]);
    const inner = isIn(b, shapeOf(a)) ? b : isIn(a, shapeOf(b)) ? a : null;
    const [at] = inner?.corners ?? [];
    if (inner === null) return true;
    found = areHoles
      ? fault('rings-crossing', wrongHole, at)
      : fault('parts-overlapping', overlapping, at);
    return false;
  });
  return found;
}

/** Rings of a polygon are linked at the points where they touch; a cycle of links divides the inside. */
function dividedInside(touches: readonly Contact[]): GeometryFault | null {
  const above = new Map<unknown, unknown>();
  const topOf = (item: unknown) => {
    let top = item;
    while (above.has(top)) top = above.get(top);
    // Keeps chains short.
    if (top !== item) above.set(item, top);
    return top;
  };
  const seen = new Set<string>();
  for (const { a, b, point } of touches) {
    if (a.part !== b.part) continue;
    for (const ring of [a, b]) {
      const touching = `${ring.part} ${showPoint(point)}`;
      const link = `${touching} ${ring.ringIndex}`;
      if (seen.has(link)) continue;
      seen.add(link);
      const [top, other] = [topOf(ring), topOf(touching)];
      if (top === other) {
        const message =
          'The rings of a polygon divide the interior into separate pieces. Make each piece a separate part.';
        return fault('inside-divided', message, ring.corners[0]);
      }
      above.set(other, top);
    }
  }
  return null;
}

function boxesOfPath(path: RingPath) {
  const shift = -360 * turnsOf(path.west);
  const [x1, x2] = [path.west + shift, path.east + shift];
  const box = { path, x1, y1: path.south, x2, y2: path.north };
  return x2 < 180 ? [box] : [box, { ...box, x1: x1 - 360, x2: x2 - 360 }];
}

/** Key of two rings; of different parts, all pairs of rings have the same key. */
function pairKey(a: RingPath, b: RingPath): string {
  return a.part === b.part ? `${a.part} ${a.ringIndex} ${b.ringIndex}` : `${a.part}, ${b.part}`;
}

function onceShape(coordinates: Rings): () => Shape {
  let shape: Shape | null = null;
  return () => {
    shape ??= toShape({ type: 'Polygon', coordinates });
    return shape;
  };
}

function holdsCorner(
  shape: (() => Shape) | undefined,
  { corners: [coordinates] }: RingPath,
  effort: Effort,
): boolean {
  spend(effort, questionSteps);
  if (shape === undefined || coordinates === undefined) return false;
  return shapesIntersect(shape(), toShape({ type: 'Point', coordinates }), effort);
}
