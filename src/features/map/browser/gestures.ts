/** Mouse, touch and keys on the map: move, zoom, click, draw. */
import type { Camera, MapCanvas } from './canvas.ts';
import { type Box, cornersOf, type LonLat, type Projection } from './projection.ts';

export type Gestures = ReturnType<typeof addGestures>;

interface Options {
  map: MapCanvas;
  projection: Projection;
  drawing: Drawing;
  onHover(x: number, y: number): void;
  onClick(x: number, y: number): void;
}

/** Pixels per degree at the closest zoom. */
const scaleMax = 3_000;
/** Pixels by which a press may move and still be a click. */
const clickPixels = 4;
const keyPixels = 80;

/** Adds the gestures to a canvas. Returns what moves the map, and positions of pixels. */
export function addGestures(canvas: HTMLCanvasElement, options: Options) {
  const { map, projection } = options;
  const show = (camera: Camera) => {
    map.camera = limited(camera, projection, map.view);
  };
  /** Map coordinates at a pixel of the canvas. */
  const mapPointAt = (px: number, py: number) => {
    const { x, y, scale, width, height } = map.view;
    return [x + (px - width / 2) / scale, y + (py - height / 2) / scale] as const;
  };
  const moves = {
    mapPointAt,
    positionAt: (px: number, py: number): LonLat => projection.invert(...mapPointAt(px, py)),
    /** Shows a view, or the nearest one on the map. */
    show,
    pan: (dx: number, dy: number) => {
      const { x, y, scale } = map.view;
      show({ x: x - dx / scale, y: y - dy / scale, scale });
    },
    /** Zooms by a factor; the pixel stays where it is, by default the centre. */
    zoom: (factor: number, px = map.view.width / 2, py = map.view.height / 2) => {
      const [fixedX, fixedY] = mapPointAt(px, py);
      const { x, y, scale } = map.view;
      const next = limited({ x, y, scale: scale * factor }, projection, map.view).scale;
      const ratio = scale / next;
      show({ x: fixedX + (x - fixedX) * ratio, y: fixedY + (y - fixedY) * ratio, scale: next });
    },
  };
  addPointers(canvas, options, moves);
  addKeys(canvas, options, moves);
  new ResizeObserver(() => show(map.view)).observe(canvas);
  return moves;
}

/** Keeps the window on the map. */
function limited(camera: Camera, { period, reach }: Projection, size: MapCanvas['view']): Camera {
  const { width, height } = size;
  const fits = [width / (2 * reach[0]), height / (2 * reach[1])];
  // The map fills the window; a round one is all visible.
  const scaleMin = period === 0 ? Math.min(...fits) : Math.max(...fits);
  const scale = Math.min(Math.max(camera.scale, scaleMin), scaleMax);
  const clamp = (value: number, extent: number, pixels: number) => {
    const most = Math.max(0, extent - pixels / 2 / scale);
    return Math.max(-most, Math.min(value, most));
  };
  const x =
    period === 0
      ? clamp(camera.x, reach[0], width)
      : camera.x - period * Math.round(camera.x / period);
  return { x, y: clamp(camera.y, reach[1], height), scale };
}

function addPointers(
  canvas: HTMLCanvasElement,
  { drawing, onHover, onClick }: Options,
  { zoom, pan, positionAt }: Gestures,
): void {
  const pressed = new Map<number, PointerEvent>();
  let travelled = 0;
  const at = ({ offsetX, offsetY }: MouseEvent) => positionAt(offsetX, offsetY);
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, event);
    travelled = 0;
    if (drawing.mode !== null) drawing.press(at(event));
  });
  canvas.addEventListener('pointermove', (event) => {
    const { offsetX: x, offsetY: y } = event;
    const former = pressed.get(event.pointerId);
    if (drawing.mode !== null) drawing.move(at(event));
    if (former === undefined) return onHover(x, y);
    const [dx, dy] = [x - former.offsetX, y - former.offsetY];
    travelled += Math.abs(dx) + Math.abs(dy);
    pressed.set(event.pointerId, event);
    const other = [...pressed.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    if (other === undefined) return drawing.mode === 'box' ? undefined : pan(dx, dy);
    const distance = (one: PointerEvent) =>
      Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY);
    pan(dx / 2, dy / 2);
    const factor = distance(event) / Math.max(1, distance(former));
    return zoom(factor, (x + other.offsetX) / 2, (y + other.offsetY) / 2);
  });
  canvas.addEventListener('pointerup', (event) => {
    const isClick = travelled < clickPixels;
    const isOnly = pressed.size === 1;
    pressed.delete(event.pointerId);
    if (drawing.mode === 'box' ? isOnly : drawing.mode !== null && isClick) {
      drawing.release(at(event));
    } else if (isClick && drawing.mode === null) onClick(event.offsetX, event.offsetY);
  });
  canvas.addEventListener('pointercancel', (event) => pressed.delete(event.pointerId));
  canvas.addEventListener('dblclick', (event) => {
    drawing.finish();
    if (drawing.mode === null) zoom(2, event.offsetX, event.offsetY);
  });
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
    zoom(Math.exp(-event.deltaY * lines * 0.0015), event.offsetX, event.offsetY);
  };
  canvas.addEventListener('wheel', onWheel, { passive: false });
}

function addKeys(
  canvas: HTMLCanvasElement,
  { map, drawing, onClick }: Options,
  { zoom, pan, show }: Gestures,
): void {
  const actions: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => pan(keyPixels, 0),
    ArrowRight: () => pan(-keyPixels, 0),
    ArrowUp: () => pan(0, keyPixels),
    ArrowDown: () => pan(0, -keyPixels),
    '+': () => zoom(1.5),
    '=': () => zoom(1.5),
    '-': () => zoom(1 / 1.5),
    '0': () => show({ x: 0, y: 0, scale: 0 }),
    Enter: () => {
      if (drawing.mode === null) onClick(map.view.width / 2, map.view.height / 2);
      else drawing.finish();
    },
    Escape: () => drawing.start(null),
    Backspace: drawing.undo,
  };
  canvas.addEventListener('keydown', (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
}

/** Drawing an area: a box by dragging, or a polygon by clicking its corners. */
type Drawing = ReturnType<typeof createDrawing>;

/** `onChange` is called after each change, `onArea` with a finished area as a parameter of the page. */
export function createDrawing(onChange: () => void, onArea: (name: string, value: string) => void) {
  let mode: 'box' | 'polygon' | null = null;
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
    start: (next: 'box' | 'polygon' | null) => {
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
