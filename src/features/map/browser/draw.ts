/** Drawing an area on the map: a box by dragging, or a polygon by clicking its corners. */
import { type Box, cornersOf, type LonLat } from './projection.ts';

export type DrawMode = 'box' | 'polygon';
export type Drawing = ReturnType<typeof createDrawing>;

/** `onChange` is called after each change, `onArea` with a finished area as a parameter of the page. */
export function createDrawing(onChange: () => void, onArea: (name: string, value: string) => void) {
  let mode: DrawMode | null = null;
  let corners: LonLat[] = [];
  let pointer: LonLat | null = null;
  const change = (next: LonLat[]) => {
    corners = next;
    onChange();
  };
  const box = () => {
    const [first] = corners;
    return first === undefined || pointer === null ? null : boxOf(first, pointer);
  };
  return {
    get mode() {
      return mode;
    },
    /** Starts a new area; null ends drawing. */
    start: (next: DrawMode | null) => {
      [mode, pointer] = [next, null];
      change([]);
    },
    /** Pointer events in longitude and latitude; longitudes may exceed 180 across the antimeridian. */
    press: (position: LonLat) => {
      pointer = position;
      change(mode === 'box' ? [position] : corners);
    },
    move: (position: LonLat) => {
      pointer = position;
      onChange();
    },
    release: (position: LonLat) => {
      pointer = position;
      const found = mode === 'box' ? box() : null;
      // A double-click ends on the last corner.
      const isNew = !isNear(corners.at(-1), position);
      change(mode === 'box' ? [] : isNew ? [...corners, position] : corners);
      if (found !== null) onArea('bbox', boxText(found));
    },
    /** Ends a polygon. */
    finish: () => {
      if (mode === 'polygon' && corners.length > 2) onArea('polygon', polygonText(corners));
    },
    undo: () => change(corners.slice(0, -1)),
    /** Returns the outline drawn so far; empty without one. */
    outline: (): LonLat[] => {
      if (mode !== 'box') return pointer === null ? corners : [...corners, pointer];
      const found = box();
      return found === null ? [] : cornersOf(found);
    },
  };
}

/** Smallest difference of two positions, about 100 m. */
const nearDegrees = 0.001;

function isNear(one: LonLat | undefined, [x, y]: LonLat): boolean {
  return one !== undefined && Math.hypot(one[0] - x, one[1] - y) < nearDegrees;
}

/** Returns west, south, east and north of two corners; east may exceed 180. Null if the box is too small. */
function boxOf([x0, y0]: LonLat, [x1, y1]: LonLat): Box | null {
  const [west, east] = [Math.min(x0, x1), Math.max(x0, x1)];
  const [south, north] = [Math.min(y0, y1), Math.max(y0, y1)];
  const isSmall = east - west < nearDegrees || north - south < nearDegrees;
  return isSmall ? null : [west, south, east, north];
}

/** Three decimals: about 100 m. */
const degrees = (value: number) => Number(value.toFixed(3));
const within = (longitude: number) => longitude - 360 * Math.round(longitude / 360);

/** Writes west, south, east and north; the whole circle as -180 to 180. */
export function boxText([west, south, east, north]: Box): string {
  const [from, to] = east - west >= 360 ? [-180, 180] : [within(west), within(east)];
  return [from, Math.max(-90, south), to, Math.min(90, north)].map(degrees).join(',');
}

/** `longitude latitude,…` */
export function polygonText(corners: readonly LonLat[]): string {
  return corners.map(([x, y]) => `${degrees(within(x))} ${degrees(y)}`).join(',');
}
