/** Finds the pairs of edges, or of boxes, that overlap. */
import { type Effort, spend } from './effort.ts';

/** An edge in the plane from one end to the other, or a box from one corner to the opposite one. */
interface Swept {
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
 * in which the edges are shortest: so stripes of long parallel edges do not all meet each other. Throws
 * EffortExhausted.
 */
export function sweepEdges<Edge extends Swept>(
  edges: readonly Edge[],
  effort: Effort,
  visit: (edge: Edge, other: Edge) => boolean,
): void {
  sweep(edges, [...straight, ...slanting], effort, visit);
}

/** The same for boxes, of which the corners alone say nothing of slanting directions. */
export function sweepBoxes<Box extends Swept>(
  boxes: readonly Box[],
  effort: Effort,
  visit: (box: Box, other: Box) => boolean,
): void {
  sweep(boxes, straight, effort, visit);
}

function sweep<Item extends Swept>(
  items: readonly Item[],
  directions: readonly Direction[],
  effort: Effort,
  visit: (item: Item, other: Item) => boolean,
): void {
  const sorted = sortedAlong(items, bestDirection(items, directions));
  const starts = Float64Array.from(sorted, ({ start }) => start);
  const boxes = boxesRound(sorted);
  for (const [i, { item, end }] of sorted.entries()) {
    let j = i + 1;
    for (; j < starts.length && (starts[j] ?? Infinity) <= end; j += 1) {
      if (!boxesOverlap(boxes, 4 * i, 4 * j)) continue;
      const next = sorted[j]?.item;
      if (next !== undefined && !visit(item, next)) return;
    }
    spend(effort, j - i);
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

/** West, south, east and north of each, side by side: most of the work is to look at them in turn. */
function boxesRound(spans: readonly { item: Swept }[]): Float64Array {
  const boxes = new Float64Array(4 * spans.length);
  for (const [i, { item }] of spans.entries()) {
    const { x1, y1, x2, y2 } = item;
    boxes.set([Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2)], 4 * i);
  }
  return boxes;
}

function boxesOverlap(boxes: Float64Array, a: number, b: number): boolean {
  const at = (i: number) => boxes[i] ?? 0;
  return (
    at(a + 2) >= at(b) && at(b + 2) >= at(a) && at(a + 3) >= at(b + 1) && at(b + 3) >= at(a + 1)
  );
}
