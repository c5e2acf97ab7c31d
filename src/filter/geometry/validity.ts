/** What is wrong with a geometry, so that the catalogue would refuse it (OGC 06-103r4, 6.1.11). */
import type { Geometry, Position, Ring, Rings } from '../../domain/geometry.ts';
import {
  type Contact,
  findContacts,
  type RingPath,
  ringPath,
  sweepBoxes,
  type Touch,
} from './contacts.ts';
import { type Effort, EffortExhausted, newEffort, shapesIntersect, spend } from './intersects.ts';
import { isClosed } from './ring.ts';
import { type Shape, toShape } from './shape.ts';

/** More than these are not looked for. */
const faultsMax = 20;

/**
 * The faults of a geometry, at most 20; none for one that can be used. First its form: whether there are
 * positions, on the globe, and rings closed. Only where that is right, how the rings lie: a ring
 * must not cross or touch itself; holes must be inside their outline, and may touch it and each
 * other in single places that do not divide the inside; parts may touch in single places. A geometry
 * that takes more than the effort is at fault, too: the catalogue would have the same trouble with it.
 */
export function geometryFaults(geometry: Geometry, effort: Effort = newEffort()): GeometryFault[] {
  const form = formFaults(geometry).slice(0, faultsMax);
  if (form.length > 0) return form;
  const parts = polygonsOf(geometry);
  const paths = parts.flatMap((rings, part) => rings.map((ring, i) => ringPath(ring, part, i)));
  const flat = paths.filter(({ corners }) => corners.length < 3);
  if (flat.length > 0) {
    return flat.slice(0, faultsMax).map(({ corners: [at] }) => tooFewPoints(at));
  }
  return ringFaults(paths, parts, faultsMax, effort);
}

function formFaults(geometry: Geometry): GeometryFault[] {
  switch (geometry.type) {
    case 'Point':
      return positionFaults([geometry.coordinates]);
    case 'MultiPoint':
      return listFaults(geometry.coordinates, (position) => positionFaults([position]));
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
  return [{ code: 'empty', message: 'The geometry is empty, or a part of it. Give it positions.' }];
}

function ringFormFaults(ring: Ring): GeometryFault[] {
  const faults = listFaults(ring, (position) => positionFaults([position]));
  if (faults.length > 0) return faults;
  const at = ring.at(-1);
  if (at !== undefined && !isClosed(ring)) {
    const message = 'The ring is not closed: its last position must repeat its first.';
    return [{ code: 'not-closed', message, at }];
  }
  return ring.length < 4 ? [tooFewPoints(ring[0])] : [];
}

function tooFewPoints(at: Position | undefined): GeometryFault {
  const message = 'The ring has too few points: three different ones, and the first once more.';
  return { code: 'too-few-points', message, ...(at === undefined ? {} : { at }) };
}

function positionFaults(positions: readonly Position[]): GeometryFault[] {
  return positions.flatMap((at): GeometryFault[] => {
    const [longitude, latitude] = at;
    if (!Number.isFinite(longitude) || !Number.isFinite(latitude)) {
      return [{ code: 'no-number', message: 'A position has a value that is no number.', at }];
    }
    if (Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90) return [];
    const message = `${longitude} ${latitude} is outside of the globe: longitudes are from -180 to 180, latitudes from -90 to 90.`;
    return [{ code: 'outside-globe', message, at }];
  });
}

function polygonsOf(geometry: Geometry): readonly Rings[] {
  if (geometry.type === 'Polygon') return [geometry.coordinates];
  return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
}

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

const tooIntricate: GeometryFault = {
  code: 'too-intricate',
  message:
    'The geometry is too intricate to check: too many edges touch or lie side by side. Simplify it, or split it into several filters.',
};

/** Rings in a tangle cross in millions of places; after this many there is nothing new to learn. */
const brokenMax = 1000;

/**
 * Faults of rings whose form is right. Where rings cross, nothing is said of what is inside of what.
 * Where the effort ends first, what was found until then, or that it did.
 */
function ringFaults(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  faultsMax: number,
  effort: Effort,
): GeometryFault[] {
  const faults: GeometryFault[] = [];
  const touches: Touch[] = [];
  const told = new Map<RingPath, Set<RingPath>>();
  let broken = 0;
  const report = (contact: Contact) => {
    const { a, b } = contact;
    const fault = contactFault(contact);
    if (fault !== null) broken += 1;
    if (fault === null) {
      touches.push({ a, b, place: placeKey(contact) });
    } else if (told.get(a)?.has(b) !== true) {
      faults.push(fault);
      // One fault says enough of two rings.
      for (const [ring, other] of [
        [a, b],
        [b, a],
      ] as const) {
        told.set(ring, (told.get(ring) ?? new Set()).add(other));
      }
    }
    return faults.length < faultsMax && broken < brokenMax;
  };
  try {
    findContacts(paths, effort, report);
    if (faults.length > 0) return faults;
    return nestingFaults(paths, parts, touches, effort).slice(0, faultsMax);
  } catch (error) {
    if (!(error instanceof EffortExhausted)) throw error;
    return faults.length > 0 ? faults : [tooIntricate];
  }
}

/** A place by its name, the same on both sides of the antimeridian. */
function placeKey({ place: [x, y] }: Contact): string {
  return `${x - 360 * Math.floor((x + 180) / 360)} ${y}`;
}

/** What a contact breaks; null for a touch that is allowed as such. */
function contactFault(contact: Contact): GeometryFault | null {
  const { a, b, kind, place, corner } = contact;
  const at = b.corners[corner];
  const where = { ...(at === undefined ? {} : { at }) };
  const near = `near ${showPlace(place)}`;
  if (kind === 'self') {
    const message = `The ring crosses or touches itself ${near}. Make it a simple loop.`;
    return { code: 'self-intersecting', message, ...where };
  }
  if (a.part !== b.part) {
    if (kind === 'touch' && !overlapAt(contact)) return null;
    const message = `Two parts overlap or share an edge ${near}. Join them to one polygon.`;
    return { code: 'parts-overlapping', message, ...where };
  }
  if (kind !== 'touch') {
    const message = `Two rings of a polygon cross or share an edge ${near}. A hole must lie inside the outline, apart from the others.`;
    return { code: 'rings-crossing', message, ...where };
  }
  return touchFault(contact, near, where);
}

/** Rings of one polygon that touch: the hole from within the outline, two holes from the outside. */
function touchFault(
  { a, b, aInsideB, bInsideA }: Contact,
  near: string,
  where: Pick<GeometryFault, 'at'>,
): GeometryFault | null {
  if (a.place !== 0 && b.place !== 0) {
    if (!aInsideB && !bInsideA) return null;
    const message = `A hole lies inside another hole ${near}. Leave it out.`;
    return { code: 'holes-nested', message, ...where };
  }
  if (a.place === 0 ? bInsideA : aInsideB) return null;
  const message = `A hole lies outside of its outline ${near}. Make it a part of its own, or leave it out.`;
  return { code: 'hole-outside', message, ...where };
}

/** Whether the insides of two parts overlap at a touch; the inside of a part is outside of its holes. */
function overlapAt({ a, b, aInsideB, bInsideA }: Contact): boolean {
  return (a.place === 0) === bInsideA || (b.place === 0) === aInsideB;
}

function showPlace([x, y]: readonly [number, number]): string {
  const longitude = x - 360 * Math.floor((x + 180) / 360);
  return `${Number(longitude.toFixed(6))} ${Number(y.toFixed(6))}`;
}

/** What asking takes whether a polygon holds a corner, beside the edges that are looked at, in steps. */
const questionSteps = 500;

/**
 * Holes outside of their outline or inside of each other, parts on top of each other, and insides that
 * touching holes divide. Rings that touch are known to do so from the right side. Throws
 * EffortExhausted.
 */
function nestingFaults(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  touches: readonly Touch[],
  effort: Effort,
): GeometryFault[] {
  return [
    ...strayHoles(paths, parts, touches, effort),
    ...overlaps(paths, parts, touches, effort),
    ...dividedInsides(touches),
  ];
}

function strayHoles(
  paths: readonly RingPath[],
  parts: readonly Rings[],
  touches: readonly Touch[],
  effort: Effort,
): GeometryFault[] {
  const touching = new Set(
    touches.flatMap(({ a, b }) =>
      a.part === b.part && (a.place === 0 || b.place === 0) ? [a, b] : [],
    ),
  );
  const outlines = parts.map((rings) => onceShape(rings.slice(0, 1)));
  return paths
    .filter((path) => path.place > 0 && !touching.has(path))
    .filter((path) => !holdsCorner(outlines[path.part], path, effort))
    .map(({ corners: [at] }) => ({
      code: 'hole-outside',
      message: 'A hole lies outside of its outline. Make it a part of its own, or leave it out.',
      ...(at === undefined ? {} : { at }),
    }));
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
  const holes = new Map(paths.map((path) => [path, onceShape(ringsOf(parts, path))]));
  sweepBoxes(paths.flatMap(boxesOfPath), effort, ({ path: a }, { path: b }) => {
    const areHoles = a.part === b.part && a.place > 0 && b.place > 0;
    const areOutlines = a.part !== b.part && a.place === 0 && b.place === 0;
    if (a === b || !(areHoles || areOutlines) || known.has(pairKey(a, b))) return true;
    known.add(pairKey(a, b)).add(pairKey(b, a));
    const [ofA, ofB] = areHoles
      ? [holes.get(a), holes.get(b)]
      : [polygons[a.part], polygons[b.part]];
    const [at] = holdsCorner(ofA, b, effort)
      ? b.corners
      : holdsCorner(ofB, a, effort)
        ? a.corners
        : [];
    if (at === undefined) return true;
    faults.push(
      areHoles
        ? { code: 'holes-nested', message: 'A hole lies inside another hole. Leave it out.', at }
        : {
            code: 'parts-overlapping',
            message: 'A part lies inside another part. Leave it out, or make it a hole.',
            at,
          },
    );
    return true;
  });
  return faults;
}

/** Rings of a polygon are joined by the places where they touch; a circle of them shuts something off. */
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
      if (top !== other) above.set(other, top);
      else return [dividedInside(ring)];
    }
  }
  return [];
}

function dividedInside({ corners: [at] }: RingPath): GeometryFault {
  const message =
    'Rings of a polygon touch in a way that divides its inside. Make its pieces parts of their own.';
  return { code: 'inside-divided', message, ...(at === undefined ? {} : { at }) };
}

function boxesOfPath(path: RingPath) {
  const { west, south: y1, east, north: y2 } = path;
  const shift = -360 * Math.floor((west + 180) / 360);
  const box = { path, x1: west + shift, y1, x2: east + shift, y2 };
  return box.x2 < 180 ? [box] : [box, { ...box, x1: box.x1 - 360, x2: box.x2 - 360 }];
}

/** Parts touch as a whole: which of their rings does so does not matter. */
function pairKey(a: RingPath, b: RingPath): string {
  return a.part === b.part ? `${a.part} ${a.place} ${b.place}` : `${a.part}, ${b.part}`;
}

function ringsOf(parts: readonly Rings[], { part, place }: RingPath): Rings {
  const ring = parts[part]?.[place];
  return ring === undefined ? [] : [ring];
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
  { corners: [corner] }: RingPath,
  effort: Effort,
): boolean {
  spend(effort, questionSteps);
  if (shape === undefined || corner === undefined) return false;
  const point: { type: 'Point'; coordinates: Position } = { type: 'Point', coordinates: corner };
  return shapesIntersect(shape(), toShape(point), effort);
}
