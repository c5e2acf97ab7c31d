/** The boxes that a shape lies in, for an index that knows no antimeridian. */
import type { Box } from '../../domain/geometry.ts';
import type { Shape } from './shape.ts';

interface Range {
  west: number;
  east: number;
}

/**
 * One box, or two where the shape reaches the antimeridian; none for an empty shape. Shapes that meet
 * have boxes that meet, whatever the side they are on: the boxes of a shape at a pole go all round,
 * and one that ends at 180 degrees also has a box at -180.
 */
export function boxesOf(shape: Shape): Box[] {
  const ranges = rangesOf(shape);
  if (ranges.length === 0) return [];
  const { south, north } = latitudesOf(shape);
  if (shape.northPole || shape.southPole) return [{ west: -180, south, east: 180, north }];
  const { west, east } = smallestCover(ranges);
  if (east - west >= 360) return [{ west: -180, south, east: 180, north }];
  if (east < 180) return [{ west, south, east, north }];
  return [
    { west, south, east: 180, north },
    { west: -180, south, east: east - 360, north },
  ];
}

/** Where each part lies, with its west end from -180 up to, not including, 180. */
function rangesOf({ points, regions }: Shape): Range[] {
  const ranges: Range[] = regions.map((region) => {
    if (region.northInside || region.southInside) return { west: -180, east: 180 };
    const shift = 360 * Math.floor((region.west + 180) / 360);
    return { west: region.west - shift, east: region.east - shift };
  });
  for (let i = 0; i < points.length; i += 2)
    ranges.push({ west: points[i] ?? 0, east: points[i] ?? 0 });
  return ranges;
}

function latitudesOf({ points, regions }: Shape): { south: number; north: number } {
  let [south, north] = [Infinity, -Infinity];
  for (const region of regions) {
    south = Math.min(south, region.south);
    north = Math.max(north, region.north);
  }
  for (let i = 1; i < points.length; i += 2) {
    south = Math.min(south, points[i] ?? 0);
    north = Math.max(north, points[i] ?? 0);
  }
  return { south, north };
}

/** The smallest range that holds all the others: what the largest gap between them leaves. */
function smallestCover(ranges: readonly Range[]): Range {
  const sorted = [...ranges].sort((a, b) => a.west - b.west);
  let reach = -Infinity;
  for (const { east } of sorted) reach = Math.max(reach, east);
  // The easternmost may reach round the globe, over the beginning.
  let covered = reach - 360;
  let widestGap = -Infinity;
  let cover: Range = { west: -180, east: 180 };
  for (const { west, east } of sorted) {
    if (west - covered > widestGap) {
      widestGap = west - covered;
      cover = { west, east: covered + 360 };
    }
    covered = Math.max(covered, east);
  }
  return cover;
}
