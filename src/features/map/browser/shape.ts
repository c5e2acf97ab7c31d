/** Footprints, land and lines of the grid as paths in map coordinates. */
import { type Box, between, type LonLat, type Projection, stepsOf } from './projection.ts';

export interface Shape {
  /** Closed, to be filled. */
  path: Path2D;
  /** The same without edges along a cut. */
  outline: Path2D;
  box: Box;
  /** Sum of the areas of all rings, in map units. */
  area: number;
}

/** Returns the shape of rings, or of open lines. */
export function shapeOf(
  lines: readonly (readonly LonLat[])[],
  projection: Projection,
  isClosed = true,
): Shape {
  const path = new Path2D();
  const isCut = isClosed && lines.some((line) => line.some(isAtCut));
  const outline = isCut ? new Path2D() : path;
  const box: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
  let area = 0;
  for (const line of lines) {
    let former = line.at(isClosed ? -1 : 0) ?? [0, 0];
    let [lastX, lastY] = projection.project(former);
    let doubled = 0;
    path.moveTo(lastX, lastY);
    if (isCut) outline.moveTo(lastX, lastY);
    for (const position of line) {
      const isHidden = isCut && isSeam(former, position);
      const steps = stepsOf(former, position, projection);
      for (let i = 1; i <= steps; i += 1) {
        const [x, y] = projection.project(
          i === steps ? position : between(former, position, i / steps),
        );
        path.lineTo(x, y);
        if (isHidden) outline.moveTo(x, y);
        else if (isCut) outline.lineTo(x, y);
        doubled += lastX * y - x * lastY;
        if (x < box[0]) box[0] = x;
        if (y < box[1]) box[1] = y;
        if (x > box[2]) box[2] = x;
        if (y > box[3]) box[3] = y;
        [lastX, lastY] = [x, y];
      }
      former = position;
    }
    if (isClosed) path.closePath();
    area += Math.abs(doubled / 2);
  }
  return { path, outline, box, area };
}

const isAtCut = ([x, y]: LonLat) => Math.abs(x) === 180 || Math.abs(y) === 90;

/** True along the antimeridian and a pole: outlines are cut there. */
function isSeam(from: LonLat, to: LonLat): boolean {
  if (from[0] === to[0]) return Math.abs(to[0]) === 180;
  return from[1] === to[1] && Math.abs(to[1]) === 90;
}
