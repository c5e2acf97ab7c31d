/** Finds the pairs of edges, or of boxes, that overlap. */

/** An edge in the plane from one end to the other, or a box from one corner to the opposite one. */
export interface Swept {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

type Direction = (x: number, y: number) => number;

const straight: readonly Direction[] = [(x) => x, (_x, y) => y];
/** Rounding a sum keeps the order of sums, so nothing that touches is missed. */
const slanting: readonly Direction[] = [(x, y) => x + y, (x, y) => x - y];

/**
 * Visits each pair of edges whose boxes overlap once, until a visit gives false. Sweeps in the direction
 * in which the edges are shortest: so stripes of long parallel edges do not all meet each other.
 */
export function sweepEdges<Edge extends Swept>(
  edges: readonly Edge[],
  visit: (edge: Edge, other: Edge) => boolean,
): void {
  sweep(edges, [...straight, ...slanting], visit);
}

/** The same for boxes, of which the corners alone say nothing of slanting directions. */
export function sweepBoxes<Box extends Swept>(
  boxes: readonly Box[],
  visit: (box: Box, other: Box) => boolean,
): void {
  sweep(boxes, straight, visit);
}

function sweep<Item extends Swept>(
  items: readonly Item[],
  directions: readonly Direction[],
  visit: (item: Item, other: Item) => boolean,
): void {
  const sorted = sortedAlong(items, bestDirection(items, directions));
  for (const [i, { item, end }] of sorted.entries()) {
    for (let j = i + 1; j < sorted.length; j += 1) {
      const next = sorted[j];
      if (next === undefined || next.start > end) break;
      if (boxesOverlap(item, next.item) && !visit(item, next.item)) return;
    }
  }
}

function bestDirection(items: readonly Swept[], directions: readonly Direction[]): Direction {
  const lengths = directions.map((along) =>
    items.reduce((sum, { x1, y1, x2, y2 }) => sum + Math.abs(along(x2, y2) - along(x1, y1)), 0),
  );
  return directions[lengths.indexOf(Math.min(...lengths))] ?? ((x) => x);
}

function sortedAlong<Item extends Swept>(
  items: readonly Item[],
  along: Direction,
): { item: Item; start: number; end: number }[] {
  const spans = items.map((item) => {
    const [a, b] = [along(item.x1, item.y1), along(item.x2, item.y2)];
    return { item, start: Math.min(a, b), end: Math.max(a, b) };
  });
  return spans.sort((a, b) => a.start - b.start);
}

function boxesOverlap(a: Swept, b: Swept): boolean {
  return (
    Math.max(a.x1, a.x2) >= Math.min(b.x1, b.x2) &&
    Math.max(b.x1, b.x2) >= Math.min(a.x1, a.x2) &&
    Math.max(a.y1, a.y2) >= Math.min(b.y1, b.y2) &&
    Math.max(b.y1, b.y2) >= Math.min(a.y1, a.y2)
  );
}
