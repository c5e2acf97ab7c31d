/** Land outlines of the map, and texts and tests about places. */
import { type Content, type Shape, shapeOf } from './map-canvas.ts';
import type { LonLat, Projection } from './map-projection.ts';
import { addressOf } from './stream.ts';

export type Land = Pick<Content, 'land' | 'borders'>;

/** Returns true for a point in a shape, in map coordinates. */
export function isInside(
  { box: [left, top, right, bottom], rings }: Shape,
  x: number,
  y: number,
): boolean {
  if (x < left || x > right || y < top || y > bottom) return false;
  let inside = false;
  for (const { points } of rings) {
    for (let i = 0, j = points.length - 2; i < points.length; j = i, i += 2) {
      const [x0 = 0, y0 = 0] = [points[i], points[i + 1]];
      const [x1 = 0, y1 = 0] = [points[j], points[j + 1]];
      if (y0 > y !== y1 > y && x < x0 + ((y - y0) / (y1 - y0)) * (x1 - x0)) inside = !inside;
    }
  }
  return inside;
}

/** Loads land outlines and borders; null if that fails. */
export async function loadLand(path: string, projection: Projection): Promise<Land | null> {
  const answer = await fetch(addressOf(path), { signal: AbortSignal.timeout(35_000) }).catch(
    () => null,
  );
  if (!answer?.ok) return null;
  const packed: { land: number[][]; borders: number[][] } = await answer.json();
  const rings = packed.land.flatMap((line) => projection.ring(unpacked(line)) ?? []);
  const borders = shapeOf(packed.borders.map((line) => projection.line(unpacked(line))));
  return { land: rings.map((ring) => shapeOf([ring])), borders };
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

/** `46.20°N 7.10°E` */
export function placeText([longitude, latitude]: LonLat): string {
  const east = longitude - 360 * Math.round(longitude / 360);
  const one = (value: number, signs: string) =>
    `${Math.abs(value).toFixed(2)}°${signs[value < 0 ? 1 : 0]}`;
  return `${one(latitude, 'NS')} ${one(east, 'EW')}`;
}

/** Returns the colours of the style sheet, which depend on the theme. */
export function mapColours(root: HTMLElement) {
  const sample = root.appendChild(document.createElement('span'));
  const of = (name: string) => {
    sample.className = `map-${name}`;
    return getComputedStyle(sample).color;
  };
  const colours = { sea: of('sea'), land: of('land'), border: of('border'), grid: of('grid') };
  sample.remove();
  return colours;
}
