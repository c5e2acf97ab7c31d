/** Mouse, touch and keys on the map: move, zoom, click. */
import type { Camera } from './map-canvas.ts';
import type { Drawing } from './map-draw.ts';
import type { LonLat, Projection } from './map-projection.ts';

export interface Gestures {
  /** Map coordinates at a pixel of the canvas. */
  mapPointAt(x: number, y: number): readonly [number, number];
  positionAt(x: number, y: number): LonLat;
  /** Zooms by a factor; the pixel stays where it is, by default the centre. */
  zoom(factor: number, x?: number, y?: number): void;
  /** Shows a part of the map, in map coordinates: left, top, right, bottom. */
  fit(box: readonly [number, number, number, number]): void;
  /** Shows a view, or the nearest one on the map. */
  show(camera: Camera): void;
}

interface Options {
  map: { camera: Camera };
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

/** Adds the gestures to a canvas. */
export function addGestures(canvas: HTMLCanvasElement, options: Options): Gestures {
  const { map, projection } = options;
  const size = () => [canvas.clientWidth, canvas.clientHeight] as const;
  const move = (camera: Camera) => {
    map.camera = limited(camera, projection, size());
  };
  const gestures: Gestures = {
    mapPointAt: (x, y) => {
      const [[width, height], { x: left, y: top, scale }] = [size(), map.camera];
      return [left + (x - width / 2) / scale, top + (y - height / 2) / scale];
    },
    positionAt: (px, py) => {
      const [x, y] = gestures.mapPointAt(px, py);
      // Across the antimeridian, longitudes continue: an area may extend over it.
      if (projection.period === 0) return projection.invert(x, y);
      return [x, Math.max(-90, Math.min(-y, 90))];
    },
    zoom: (factor, px = size()[0] / 2, py = size()[1] / 2) => {
      const [fixedX, fixedY] = gestures.mapPointAt(px, py);
      const { x, y, scale } = map.camera;
      const next = Math.min(Math.max(scale * factor, scaleMin(projection, size())), scaleMax);
      const ratio = scale / next;
      move({ x: fixedX + (x - fixedX) * ratio, y: fixedY + (y - fixedY) * ratio, scale: next });
    },
    fit: ([left, top, right, bottom]) => {
      // There is nothing to show.
      if (left > right) return;
      const [width, height] = size();
      const scale = 0.9 * Math.min(width / (right - left), height / (bottom - top), scaleMax);
      move({ x: (left + right) / 2, y: (top + bottom) / 2, scale });
    },
    show: move,
  };
  const pan = (dx: number, dy: number) => {
    const { x, y, scale } = map.camera;
    move({ x: x - dx / scale, y: y - dy / scale, scale });
  };
  addPointers(canvas, options, gestures, pan);
  addKeys(canvas, options, gestures, pan);
  new ResizeObserver(() => move(map.camera)).observe(canvas);
  return gestures;
}

/** Scale at which the map fills the window. */
function scaleMin(
  { period, reach }: Projection,
  [width, height]: readonly [number, number],
): number {
  const [x, y] = [width / (2 * reach[0]), height / (2 * reach[1])];
  return period === 0 ? Math.min(x, y) : Math.max(x, y);
}

/** Keeps the window on the map. */
function limited(camera: Camera, projection: Projection, size: readonly [number, number]): Camera {
  const { period, reach } = projection;
  const scale = Math.min(Math.max(camera.scale, scaleMin(projection, size)), scaleMax);
  const free = (extent: number, pixels: number) => Math.max(0, extent - pixels / 2 / scale);
  const clamp = (value: number, most: number) => Math.max(-most, Math.min(value, most));
  const turns = period === 0 ? 0 : Math.round(camera.x / period);
  const x = period === 0 ? clamp(camera.x, free(reach[0], size[0])) : camera.x - turns * period;
  return { x, y: clamp(camera.y, free(reach[1], size[1])), scale };
}

type Pan = (dx: number, dy: number) => void;

function addPointers(
  canvas: HTMLCanvasElement,
  { drawing, onHover, onClick }: Options,
  { zoom, positionAt }: Gestures,
  pan: Pan,
): void {
  const pressed = new Map<number, PointerEvent>();
  let travelled = 0;
  const isDrawingBox = () => drawing.mode === 'box' && pressed.size === 1;
  const at = ({ offsetX, offsetY }: MouseEvent) => positionAt(offsetX, offsetY);
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, event);
    travelled = 0;
    if (drawing.mode !== null) drawing.press(at(event));
  });
  canvas.addEventListener('pointermove', (event) => {
    const former = pressed.get(event.pointerId);
    if (drawing.mode !== null) drawing.move(at(event));
    if (former === undefined) return onHover(event.offsetX, event.offsetY);
    const [dx, dy] = [event.offsetX - former.offsetX, event.offsetY - former.offsetY];
    travelled += Math.abs(dx) + Math.abs(dy);
    const other = [...pressed.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    pressed.set(event.pointerId, event);
    if (isDrawingBox()) return undefined;
    if (other === undefined) return pan(dx, dy);
    const distance = (one: PointerEvent) =>
      Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY);
    const [x, y] = [(event.offsetX + other.offsetX) / 2, (event.offsetY + other.offsetY) / 2];
    pan(dx / 2, dy / 2);
    return zoom(distance(event) / Math.max(1, distance(former)), x, y);
  });
  canvas.addEventListener('pointerup', (event) => {
    const wasBox = isDrawingBox();
    pressed.delete(event.pointerId);
    const isClick = travelled < clickPixels;
    if (wasBox || (drawing.mode === 'polygon' && isClick)) drawing.release(at(event));
    else if (isClick && drawing.mode === null) onClick(event.offsetX, event.offsetY);
  });
  canvas.addEventListener('pointercancel', (event) => pressed.delete(event.pointerId));
  canvas.addEventListener('dblclick', (event) => {
    if (drawing.mode === 'polygon') drawing.finish();
    else if (drawing.mode === null) zoom(2, event.offsetX, event.offsetY);
  });
  canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const pixels =
        event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 * event.deltaY : event.deltaY;
      zoom(Math.exp(-pixels * 0.0015), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
}

function addKeys(
  canvas: HTMLCanvasElement,
  { drawing, onClick }: Options,
  { zoom, show }: Gestures,
  pan: Pan,
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
      if (drawing.mode === 'polygon') drawing.finish();
      else onClick(canvas.clientWidth / 2, canvas.clientHeight / 2);
    },
    Escape: () => drawing.start(null),
    Backspace: () => drawing.undo(),
  };
  canvas.addEventListener('keydown', (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
}
