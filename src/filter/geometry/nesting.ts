/** What lies inside of what, among rings that do not cross. */
import type { Position, Rings } from '../../domain/geometry.ts';
import type { Touch } from './contacts.ts';
import { type Effort, spend } from './effort.ts';
import type { GeometryFault } from './geometry-fault.ts';
import { shapesIntersect } from './intersects.ts';
import type { RingPath } from './ring-path.ts';
import { type Shape, toShape } from './shape.ts';
import { sweepBoxes } from './sweep.ts';

/** What asking takes whether a polygon holds a corner, beside the edges that are looked at, in steps. */
const questionSteps = 500;

/**
 * Holes outside of their outline or inside of each other, parts on top of each other, and insides that
 * touching holes divide. Rings that touch are known to do so from the right side. Throws
 * EffortExhausted.
 */
export function nestingFaults(
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
