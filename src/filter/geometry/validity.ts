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
  | 'hole-outside'
  | 'holes-nested'
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

/** Maximum number of invalid contacts: tangled rings can cross at millions of points. */
const brokenMax = 1000;

/** Cost of checking whether a polygon contains a corner, without its edges, in steps. */
const questionSteps = 500;

/**
 * Returns up to 20 faults of a geometry; none for a valid one. Checks the form first: positions exist and are in range,
 * and rings are closed. If the form is valid, checks the rings: a ring must not cross or touch itself; holes must be
 * inside their outline, and may touch it and each other at single points that do not divide the inside; parts may
 * touch at single points. A geometry that needs more than the effort is also a fault: the catalogue would have the
 * same problem.
 */
export function geometryFaults(geometry: Geometry, effort: Effort = newEffort()): GeometryFault[] {
  const parts = polygonsOf(geometry);
  const form = formFaults(geometry).slice(0, faultsMax);
  if (form.length > 0) return form;
  const paths = parts.flatMap((rings, part) => rings.map((ring, i) => ringPath(ring, part, i)));
  const flat = paths.filter(({ corners }) => corners.length < 3);
  if (flat.length > 0) return flat.slice(0, faultsMax).map(({ corners }) => tooFewPoints(corners));
  return ringFaults(paths, parts, effort);
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

/** Two rings that touch at a point without crossing. */
type Touch = Pick<Contact, 'a' | 'b'> & { readonly point: string };

/**
 * Returns the faults of rings with a valid form. If rings cross, their nesting is not checked. If the effort is used
 * up, returns the faults found so far, or this fault.
 */
function ringFaults(paths: readonly RingPath[], parts: readonly Rings[], effort: Effort) {
  const faults: GeometryFault[] = [];
  const touches: Touch[] = [];
  const meetings = new Map<string, Contact | null>();
  const reported = new Set<string>();
  let broken = 0;
  const add = (found: GeometryFault, { a, b }: Contact) => {
    broken += 1;
    // Reports one fault for each pair of rings.
    const pair = [`${a.part} ${a.ringIndex}`, `${b.part} ${b.ringIndex}`].sort().join(', ');
    if (!reported.has(pair)) faults.push(found);
    reported.add(pair);
    return faults.length < faultsMax && broken < brokenMax;
  };
  const report = (contact: Contact) => {
    const { a, b, kind } = contact;
    const point = showPoint(contact.point);
    const found = contactFault(contact);
    if (found === null) touches.push({ a, b, point });
    if (kind === 'touch' && a.part !== b.part) {
      // One pair of rings that separates the parts at a point is enough: a hole may touch its outline there.
      const meeting = `${Math.min(a.part, b.part)} ${Math.max(a.part, b.part)} ${point}`;
      if (found === null) meetings.set(meeting, null);
      else if (!meetings.has(meeting)) meetings.set(meeting, contact);
      return true;
    }
    return found === null || add(found, contact);
  };
  try {
    findContacts(paths, effort, report);
    for (const contact of meetings.values()) {
      const found = contact === null ? null : contactFault(contact);
      if (contact !== null && found !== null && !add(found, contact)) break;
    }
    if (faults.length > 0) return faults;
    return [
      ...strayHoles(paths, parts, touches, effort),
      ...overlaps(paths, parts, touches, effort),
      ...dividedInsides(touches),
    ].slice(0, faultsMax);
  } catch (error) {
    if (!(error instanceof EffortExhausted)) throw error;
    const message =
      'The geometry is too complex to check: too many edges touch or overlap. Simplify it, or split it into several filters.';
    return faults.length > 0 ? faults : [fault('too-intricate', message)];
  }
}

/** Returns the fault of a contact; null for an allowed touch. */
function contactFault({ a, b, kind, point, at, ...sides }: Contact): GeometryFault | null {
  const near = `near ${showPoint(point, 6)}`;
  const { aInsideB, bInsideA } = sides;
  if (kind === 'self') {
    const message = `The ring crosses or touches itself ${near}. Redraw the ring without crossings.`;
    return fault('self-intersecting', message, at);
  }
  if (a.part !== b.part) {
    // Inside a hole is outside of the part.
    const isOverlap = (a.ringIndex === 0) === bInsideA || (b.ringIndex === 0) === aInsideB;
    if (kind === 'touch' && !isOverlap) return null;
    const message = `Two parts overlap or share an edge ${near}. Merge them into one polygon.`;
    return fault('parts-overlapping', message, at);
  }
  if (kind !== 'touch') {
    const message = `Two rings of a polygon cross or share an edge ${near}. A hole must be inside the outline and separate from other holes.`;
    return fault('rings-crossing', message, at);
  }
  // A valid hole touches the outline from the inside, and another hole from the outside.
  if (a.ringIndex !== 0 && b.ringIndex !== 0) {
    if (!aInsideB && !bInsideA) return null;
    return fault(
      'holes-nested',
      `A hole is inside another hole ${near}. Remove the inner hole.`,
      at,
    );
  }
  if (a.ringIndex === 0 ? bInsideA : aInsideB) return null;
  const message = `A hole is outside of its polygon ${near}. Make the hole a separate part, or remove it.`;
  return fault('hole-outside', message, at);
}

/** Formats a point, equal on both sides of the antimeridian; rounded to `digits`. */
function showPoint([x, y]: readonly [number, number], digits?: number): string {
  const degrees = [x - 360 * turnsOf(x), y];
  return degrees.map((one) => (digits === undefined ? one : Number(one.toFixed(digits)))).join(' ');
}

/** Finds holes outside of their outline. Rings that touch have already been checked. */
function strayHoles(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  touches: readonly Touch[],
  effort: Effort,
): GeometryFault[] {
  const touching = new Set(
    touches
      .filter(({ a, b }) => a.part === b.part && (a.ringIndex === 0 || b.ringIndex === 0))
      .flatMap(({ a, b }) => [a, b]),
  );
  const outlines = parts.map((rings) => onceShape(rings.slice(0, 1)));
  const message = 'A hole is outside of its polygon. Make the hole a separate part, or remove it.';
  return paths
    .filter((path) => path.ringIndex > 0 && !touching.has(path))
    .filter((path) => !holdsCorner(outlines[path.part], path, effort))
    .map(({ corners: [at] }) => fault('hole-outside', message, at));
}

/** Finds nested rings that do not touch: two holes of a part, or the outlines of two parts. */
function overlaps(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  touches: readonly Touch[],
  effort: Effort,
): GeometryFault[] {
  const faults: GeometryFault[] = [];
  const known = new Set(touches.flatMap(({ a, b }) => [pairKey(a, b), pairKey(b, a)]));
  const polygons = parts.map((rings) => onceShape(rings));
  const holes = new Map(
    paths.map((path) => {
      const ring = parts[path.part]?.[path.ringIndex];
      return [path, onceShape(ring === undefined ? [] : [ring])];
    }),
  );
  visitOverlaps(paths.flatMap(boxesOfPath), 'boxes', effort, ({ path: a }, { path: b }) => {
    const areHoles = a.part === b.part && a.ringIndex > 0 && b.ringIndex > 0;
    const areOutlines = a.part !== b.part && a.ringIndex === 0 && b.ringIndex === 0;
    if (a === b || !(areHoles || areOutlines) || known.has(pairKey(a, b))) return true;
    known.add(pairKey(a, b)).add(pairKey(b, a));
    const shapeOf = (path: RingPath) => (areHoles ? holes.get(path) : polygons[path.part]);
    const inner = holdsCorner(shapeOf(a), b, effort)
      ? b
      : holdsCorner(shapeOf(b), a, effort)
        ? a
        : null;
    if (inner === null) return true;
    const [at] = inner.corners;
    faults.push(
      areHoles
        ? fault('holes-nested', 'A hole is inside another hole. Remove the inner hole.', at)
        : fault(
            'parts-overlapping',
            'A part is inside another part. Remove the inner part, or make it a hole.',
            at,
          ),
    );
    return true;
  });
  return faults;
}

/** Rings of a polygon are linked at the points where they touch; a cycle of links divides the inside. */
function dividedInsides(touches: readonly Touch[]): GeometryFault[] {
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
      const touching = `${ring.part} ${point}`;
      const link = `${touching} ${ring.ringIndex}`;
      if (seen.has(link)) continue;
      seen.add(link);
      const [top, other] = [topOf(ring), topOf(touching)];
      if (top === other) {
        const message =
          'The rings of a polygon divide the interior into separate pieces. Make each piece a separate part.';
        return [fault('inside-divided', message, ring.corners[0])];
      }
      above.set(other, top);
    }
  }
  return [];
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
