/** Drawing an area on the map: a box by dragging, or a polygon by clicking its corners. */
import type { LonLat, Projection } from './map-projection.ts';

export type DrawMode = 'box' | 'polygon';

/** A finished area as a parameter of the page, which converts it to a filter. */
export interface Area {
  name: 'bbox' | 'polygon';
  value: string;
}

export interface Drawing {
  mode: DrawMode | null;
  /** Starts a new area; null ends drawing. */
  start(mode: DrawMode | null): void;
  /** Pointer events in longitude and latitude; longitudes may exceed 180 across the antimeridian. */
  press(position: LonLat): void;
  move(position: LonLat): void;
  release(position: LonLat): void;
  /** Ends a polygon. */
  finish(): void;
  undo(): void;
  /** Outline drawn so far, in longitude and latitude; empty without one. */
  outline(): LonLat[];
}

/** `onChange` is called after each change, `onArea` with a finished area. */
export function createDrawing(
  projection: Projection,
  { onChange, onArea }: { onChange(): void; onArea(area: Area): void },
): Drawing {
  let corners: LonLat[] = [];
  let pointer: LonLat | null = null;
  const reset = () => {
    corners = [];
    pointer = null;
  };
  const drawing: Drawing = {
    mode: null,
    start: (mode) => {
      drawing.mode = mode;
      reset();
      onChange();
    },
    press: (position) => {
      if (drawing.mode === 'box') corners = [position];
      pointer = position;
      onChange();
    },
    move: (position) => {
      pointer = position;
      onChange();
    },
    release: (position) => {
      const [first] = corners;
      if (drawing.mode === 'polygon') {
        // A double-click ends on the last corner.
        if (!isNear(corners.at(-1), position)) corners = [...corners, position];
      } else if (drawing.mode === 'box' && first !== undefined) {
        const box = boxOf(first, position, projection);
        reset();
        if (box !== null) return onArea({ name: 'bbox', value: boxText(box) });
      }
      onChange();
    },
    finish: () => {
      if (drawing.mode !== 'polygon' || corners.length < 3) return;
      const value = polygonText(corners);
      reset();
      onArea({ name: 'polygon', value });
    },
    undo: () => {
      corners = corners.slice(0, -1);
      onChange();
    },
    outline: () => {
      const [first] = corners;
      if (drawing.mode !== 'box') return pointer === null ? corners : [...corners, pointer];
      const box =
        first === undefined || pointer === null ? null : boxOf(first, pointer, projection);
      return box === null ? [] : cornersOf(box);
    },
  };
  return drawing;
}

/** True within about 100 m, the precision of an area. */
function isNear(one: LonLat | undefined, [x, y]: LonLat): boolean {
  return one !== undefined && Math.abs(one[0] - x) < 0.001 && Math.abs(one[1] - y) < 0.001;
}

/** West, south, east, north; east may exceed 180. */
export type Box = readonly [west: number, south: number, east: number, north: number];

/** Returns the box between two corners; null if it is too small. A polar map takes the shorter way around the pole. */
function boxOf([x0, y0]: LonLat, [x1, y1]: LonLat, { period }: Projection): Box | null {
  const turned = period === 0 ? x1 - 360 * Math.round((x1 - x0) / 360) : x1;
  const [west, east] = [Math.min(x0, turned), Math.max(x0, turned)];
  const [south, north] = [Math.min(y0, y1), Math.max(y0, y1)];
  return east - west < 0.001 || north - south < 0.001 ? null : [west, south, east, north];
}

/** The whole circle as -180 to 180. */
export function boxText([west, south, east, north]: Box): string {
  const sides = east - west >= 360 ? [-180, 180] : [within(west), within(east)];
  return [sides[0] ?? 0, Math.max(-90, south), sides[1] ?? 0, Math.min(90, north)]
    .map(degrees)
    .join(',');
}

/** `longitude latitude,…` */
export function polygonText(corners: readonly LonLat[]): string {
  return corners.map(([x, y]) => `${degrees(within(x))} ${degrees(y)}`).join(',');
}

function cornersOf([west, south, east, north]: Box): LonLat[] {
  return [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
  ];
}

/** Longitude from -180 to 180. */
function within(longitude: number): number {
  const turns = Math.round(longitude / 360);
  return longitude - 360 * turns;
}

/** Three decimals: about 100 m. */
const degrees = (value: number) => Number(value.toFixed(3));
