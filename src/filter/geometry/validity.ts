/** Finds what is wrong with a geometry, so that the catalogue would refuse it (OGC 06-103r4, 6.1.11). */
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
  /** Says what is wrong and where, and what to do. */
  readonly message: string;
  /** The position (the very object) at which it was seen. */
  readonly at?: Position;
}

function fault(code: GeometryFaultCode, message: string, at?: Position): GeometryFault {
  return { code, message, ...(at === undefined ? {} : { at }) };
}

/** More than these are not looked for. */
const faultsMax = 20;

/** Rings in a tangle cross in millions of places; after this many there is nothing new to learn. */
const brokenMax = 1000;

/** What asking takes whether a polygon holds a corner, in addition to the edges that are checked, in steps. */
const questionSteps = 500;

/**
 * The faults of a geometry, at most 20; none for one that can be used. First its form: whether there are positions, on
 * the globe, and rings closed. Only where that is right, how the rings lie: a ring must not cross or touch itself;
 * holes must be inside their outline, and may touch it and each other in single places that do not divide the inside;
 * parts may touch in single places. A geometry that takes more than the effort is at fault, too: the catalogue would
 * have the same trouble with it.
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
  return [fault('empty', 'The geometry is empty, or a part of it. Give it positions.')];
}

function ringFormFaults(ring: Ring): GeometryFault[] {
  const faults = listFaults(ring, positionFaults);
  if (faults.length > 0) return faults;
  if (isClosed(ring) || ring.length === 0) return ring.length < 4 ? [tooFewPoints(ring)] : [];
  const message = 'The ring is not closed: its last position must repeat its first.';
  return [fault('not-closed', message, ring.at(-1))];
}

function tooFewPoints([at]: readonly Position[]): GeometryFault {
  const message = 'The ring has too few points: three different ones, and the first once more.';
  return fault('too-few-points', message, at);
}

function positionFaults(at: Position): GeometryFault[] {
  const [longitude, latitude] = at;
  if (!Number.isFinite(longitude) || !Number.isFinite(latitude)) {
    return [fault('no-number', 'A position has a value that is no number.', at)];
  }
  if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90) return [];
  const message = `${longitude} ${latitude} is outside of the globe: longitudes are from -180 to 180, latitudes from -90 to 90.`;
  return [fault('outside-globe', message, at)];
}

/** Two rings that touch without crossing, at a place. */
type Touch = Pick<Contact, 'a' | 'b'> & { readonly place: string };

/**
 * Faults of rings whose form is right. Where rings cross, nothing is said of what is inside of what. Where the effort
 * ends first, what was found until then, or that it did.
 */
function ringFaults(paths: readonly RingPath[], parts: readonly Rings[], effort: Effort) {
  const faults: GeometryFault[] = [];
  const touches: Touch[] = [];
  const reported = new Set<string>();
  let broken = 0;
  const report = (contact: Contact) => {
    const { a, b, place } = contact;
    const found = contactFault(contact);
    if (found === null) {
      touches.push({ a, b, place: showPlace(place) });
      return true;
    }
    broken += 1;
    // One fault says enough of two rings.
    const pair = [`${a.part} ${a.place}`, `${b.part} ${b.place}`].sort().join(', ');
    if (!reported.has(pair)) faults.push(found);
    reported.add(pair);
    return faults.length < faultsMax && broken < brokenMax;
  };
  try {
    findContacts(paths, effort, report);
    if (faults.length > 0) return faults;
    return [
      ...strayHoles(paths, parts, touches, effort),
      ...overlaps(paths, parts, touches, effort),
      ...dividedInsides(touches),
    ].slice(0, faultsMax);
  } catch (error) {
    if (!(error instanceof EffortExhausted)) throw error;
    const message =
      'The geometry is too intricate to check: too many edges touch or lie side by side. Simplify it, or split it into several filters.';
    return faults.length > 0 ? faults : [fault('too-intricate', message)];
  }
}

/** What a contact breaks; null for a touch that is allowed as such. */
function contactFault({ a, b, kind, place, at, ...sides }: Contact): GeometryFault | null {
  const near = `near ${showPlace(place, 6)}`;
  const { aInsideB, bInsideA } = sides;
  if (kind === 'self') {
    const message = `The ring crosses or touches itself ${near}. Make it a simple loop.`;
    return fault('self-intersecting', message, at);
  }
  if (a.part !== b.part) {
    // The inside of a part is outside of its holes.
    const isOverlap = (a.place === 0) === bInsideA || (b.place === 0) === aInsideB;
    if (kind === 'touch' && !isOverlap) return null;
    const message = `Two parts overlap or share an edge ${near}. Join them to one polygon.`;
    return fault('parts-overlapping', message, at);
  }
  if (kind !== 'touch') {
    const message = `Two rings of a polygon cross or share an edge ${near}. A hole must lie inside the outline, apart from the others.`;
    return fault('rings-crossing', message, at);
  }
  // A hole touches the outline from within, and another hole from the outside.
  if (a.place !== 0 && b.place !== 0) {
    if (!aInsideB && !bInsideA) return null;
    return fault('holes-nested', `A hole lies inside another hole ${near}. Leave it out.`, at);
  }
  if (a.place === 0 ? bInsideA : aInsideB) return null;
  const message = `A hole lies outside of its outline ${near}. Make it a part of its own, or leave it out.`;
  return fault('hole-outside', message, at);
}

/** A place as text, the same on both sides of the antimeridian; rounded to the digits. */
function showPlace([x, y]: readonly [number, number], digits?: number): string {
  const places = [x - 360 * turnsOf(x), y];
  return places.map((one) => (digits === undefined ? one : Number(one.toFixed(digits)))).join(' ');
}

/** Holes outside of their outline. Rings that touch are known to do so from the right side. */
function strayHoles(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  touches: readonly Touch[],
  effort: Effort,
): GeometryFault[] {
  const touching = new Set(
    touches
      .filter(({ a, b }) => a.part === b.part && (a.place === 0 || b.place === 0))
      .flatMap(({ a, b }) => [a, b]),
  );
  const outlines = parts.map((rings) => onceShape(rings.slice(0, 1)));
  const message = 'A hole lies outside of its outline. Make it a part of its own, or leave it out.';
  return paths
    .filter((path) => path.place > 0 && !touching.has(path))
    .filter((path) => !holdsCorner(outlines[path.part], path, effort))
    .map(({ corners: [at] }) => fault('hole-outside', message, at));
}

/** Rings whose boxes overlap and that do not touch: two holes of a part, or the outlines of two parts. */
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
      const ring = parts[path.part]?.[path.place];
      return [path, onceShape(ring === undefined ? [] : [ring])];
    }),
  );
  visitOverlaps(paths.flatMap(boxesOfPath), 'boxes', effort, ({ path: a }, { path: b }) => {
    const areHoles = a.part === b.part && a.place > 0 && b.place > 0;
    const areOutlines = a.part !== b.part && a.place === 0 && b.place === 0;
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
        ? fault('holes-nested', 'A hole lies inside another hole. Leave it out.', at)
        : fault(
            'parts-overlapping',
            'A part lies inside another part. Leave it out, or make it a hole.',
            at,
          ),
    );
    return true;
  });
  return faults;
}

/** Rings of a polygon are joined by the places where they touch; a circle of them divides the inside. */
function dividedInsides(touches: readonly Touch[]): GeometryFault[] {
  const above = new Map<unknown, unknown>();
  const topOf = (item: unknown) => {
    let top = item;
    while (above.has(top)) top = above.get(top);
    // So that chains stay short.
    if (top !== item) above.set(item, top);
    return top;
  };
  const seen = new Set<string>();
  for (const { a, b, place } of touches) {
    if (a.part !== b.part) continue;
    for (const ring of [a, b]) {
      const touching = `${ring.part} ${place}`;
      const link = `${touching} ${ring.place}`;
      if (seen.has(link)) continue;
      seen.add(link);
      const [top, other] = [topOf(ring), topOf(touching)];
      if (top === other) {
        const message =
          'Rings of a polygon touch in a way that divides its inside. Make its pieces parts of their own.';
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

/** Parts touch as a whole: which of their rings does so does not matter. */
function pairKey(a: RingPath, b: RingPath): string {
  return a.part === b.part ? `${a.part} ${a.place} ${b.place}` : `${a.part}, ${b.part}`;
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
