/** Footprints, land and lines of the grid as paths in map coordinates. */
import { addressOf } from '../../../core/page/browser/stream.ts';
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

export interface Land {
  land: readonly Shape[];
  borders: Shape;
  /** Names of countries, where to write them, and the width of the country in degrees. */
  names: readonly (readonly [name: string, longitude: number, latitude: number, width: number])[];
}

/** Loads land outlines, borders and names; null if that fails. */
export async function loadLand(path: string, projection: Projection): Promise<Land | null> {
  const signal = AbortSignal.timeout(35_000);
  const answer = await fetch(addressOf(path), { signal }).catch(() => null);
  if (!answer?.ok) return null;
  const packed: { land: number[][]; borders: number[][]; names: Land['names'] } =
    await answer.json();
  return {
    land: packed.land.map((line) => shapeOf([unpacked(line)], projection)),
    borders: shapeOf(packed.borders.map(unpacked), projection, false),
    names: packed.names,
  };
}

/** Reads a line of hundredths of a degree, each after the first relative to the one before. */
function unpacked(line: readonly number[]): LonLat[] {
  let [x, y] = [0, 0];
  return Array.from({ length: line.length / 2 }, (_, i) => {
    x += line[2 * i] ?? 0;
    y += line[2 * i + 1] ?? 0;
    return [x / 100, y / 100];
  });
}
