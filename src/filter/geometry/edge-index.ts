/** Finds the edges near a place without looking at all of them. */

/**
 * Edges in the order of their ring lie near each other, so boxes are laid round runs of them, and
 * boxes round runs of those. An edge is x1, y1, x2, y2, a box is west, south, east, north.
 */
export interface EdgeIndex {
  readonly edges: Float64Array;
  /** The boxes of the edges' runs, then of their runs, and so on until one is left. */
  readonly levels: readonly Float64Array[];
}

/** What each run holds. */
const runLength = 8;

/** Lays the boxes. */
export function indexEdges(edges: Float64Array): EdgeIndex {
  const levels: Float64Array[] = [];
  let below = edges;
  while (below.length > 4) {
    below = boxesRound(below);
    levels.push(below);
  }
  return { edges, levels };
}

/** Asks about each edge whose box meets the given one, until the answer is yes; then gives true. */
export function someEdge(
  index: EdgeIndex,
  west: number,
  south: number,
  east: number,
  north: number,
  isWanted: (edge: number) => boolean,
): boolean {
  const visit = (level: number, first: number): boolean => {
    const items = index.levels[level] ?? index.edges;
    const end = Math.min(items.length, first + 4 * runLength);
    for (let i = first; i < end; i += 4) {
      const [x1, y1, x2, y2] = [
        items[i] ?? 0,
        items[i + 1] ?? 0,
        items[i + 2] ?? 0,
        items[i + 3] ?? 0,
      ];
      if (x1 < west && x2 < west) continue;
      if (x1 > east && x2 > east) continue;
      if (y1 < south && y2 < south) continue;
      if (y1 > north && y2 > north) continue;
      if (level < 0 ? isWanted(i) : visit(level - 1, i * runLength)) return true;
    }
    return false;
  };
  return visit(index.levels.length - 1, 0);
}

function boxesRound(items: Float64Array): Float64Array {
  const boxes = new Float64Array(4 * Math.ceil(items.length / (4 * runLength)));
  for (let box = 0; box < boxes.length; box += 4) {
    const end = Math.min(items.length, (box + 4) * runLength);
    let [west, south, east, north] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = box * runLength; i < end; i += 2) {
      const [x, y] = [items[i] ?? 0, items[i + 1] ?? 0];
      if (x < west) west = x;
      if (x > east) east = x;
      if (y < south) south = y;
      if (y > north) north = y;
    }
    boxes.set([west, south, east, north], box);
  }
  return boxes;
}
