/** Land of the map, and texts above it: names of countries, degrees of the grid, the scale. */

import { addressOf } from '../../../core/page/browser/stream.ts';
import { copiesOf, gridAt, type View } from './canvas.ts';
import type { LonLat, Projection } from './projection.ts';
import { type Shape, shapeOf } from './shape.ts';

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

/** `46.20°N 7.10°E` */
export function placeText([longitude, latitude]: LonLat, digits = 2): string {
  return `${degreeText(latitude, 'NS', digits)} ${degreeText(longitude, 'EW', digits)}`;
}

function degreeText(value: number, signs: string, digits: number): string {
  const within = signs === 'EW' ? value - 360 * Math.round(value / 360) : value;
  return `${Math.abs(within).toFixed(digits)}°${within === 0 ? '' : signs[within < 0 ? 1 : 0]}`;
}

const earthKm = 6_371;
const toRadians = Math.PI / 180;

/** Distance of two positions, km. */
function distanceKm([x0, y0]: LonLat, [x1, y1]: LonLat): number {
  const half = (degrees: number) => Math.sin((degrees * toRadians) / 2) ** 2;
  const across = Math.cos(y0 * toRadians) * Math.cos(y1 * toRadians) * half(x1 - x0);
  return 2 * earthKm * Math.asin(Math.sqrt(half(y1 - y0) + across));
}

const scalePixels = 150;

/** Returns a round distance at the centre of the map, and its width in pixels. */
export function scaleOf({ x, y, scale }: View, { invert }: Projection) {
  const half = Math.min(0.5, scalePixels / scale / 2);
  const km = distanceKm(invert(x - half, y), invert(x + half, y)) / (2 * half * scale);
  const most = km * scalePixels;
  const power = 10 ** Math.floor(Math.log10(most));
  const round = [5, 2, 1].map((one) => one * power).find((one) => one <= most) ?? power;
  const text = round < 1 ? `${Math.round(round * 1_000)} m` : `${round.toLocaleString('en-GB')} km`;
  return { text, pixels: round / km };
}

/** Pixels between the edge of the window and the degrees. */
const margin = 18;

/** Writes the degrees of the grid along the lower and the left edge, and names of countries that are as wide. */
export function drawTexts(
  context: CanvasRenderingContext2D,
  { view, projection, names }: { view: View; projection: Projection; names: Land['names'] },
): void {
  const { x, y, scale, width, height } = view;
  const pixelOf = (position: LonLat, shift: number) => {
    const [mapX, mapY] = projection.project(position);
    return [width / 2 + (mapX + shift - x) * scale, height / 2 + (mapY - y) * scale] as const;
  };
  const write = (text: string, position: LonLat, widthMax = Infinity) => {
    if (context.measureText(text).width > widthMax) return;
    for (const { shift } of copies) {
      const [px, py] = pixelOf(position, shift);
      if (px < 0 || px > width || py < 0 || py > height) continue;
      context.strokeText(text, px, py);
      context.fillText(text, px, py);
    }
  };
  const copies = copiesOf(projection, view);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineWidth = 3;
  context.lineJoin = 'round';
  for (const [name, longitude, latitude, degrees] of names) {
    write(name, [longitude, latitude], degrees * scale);
  }
  const lower = y + (height / 2 - margin) / scale;
  const [column, row] = projection.invert(x, lower);
  // A round map has its degrees of latitude on the meridian to the lower edge.
  const left =
    projection.period === 0 ? column : projection.invert(x - (width / 2 - margin) / scale, y)[0];
  const { step, longitudes, latitudes } = gridAt(projection, scale);
  const digits = step < 1 ? 1 : 0;
  for (const at of longitudes) write(degreeText(at, 'EW', digits), [at, row]);
  for (const at of latitudes) {
    // The lowest one would be in the row of the longitudes.
    if (Math.abs(at - row) > step / 3) write(degreeText(at, 'NS', digits), [left, at]);
  }
}
