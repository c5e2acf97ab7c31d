/**
 * Draws the map. The content is painted on a layer that is larger than the window, in slices of a few milliseconds, so
 * that moving the map only copies the layer.
 */
import type { LonLat, MapRing, Projection } from './map-projection.ts';

/** A footprint in map coordinates. */
export interface Shape {
  rings: readonly MapRing[];
  /** Bounds: left, top, right, bottom. */
  box: readonly [number, number, number, number];
}

export interface PaintedShape extends Shape {
  /** Index of the colour. */
  colour: number;
}

export interface Content {
  projection: Projection;
  land: readonly Shape[];
  borders: Shape;
  /** The last one is on top. */
  shapes: readonly PaintedShape[];
}

/** Centre in map coordinates, and pixels per unit. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface Colours {
  sea: string;
  land: string;
  border: string;
  grid: string;
  /** Colours of footprints, by class. */
  classes: readonly string[];
}

/** Size of the layer, relative to the window: the map moves without painting. */
const layerSize = 1.5;
const shapesPerSlice = 250;
/** Time for a slice: for the first picture of many footprints, while the map moves, and otherwise. */
const sliceMs = { first: 40, moving: 4, still: 20 };

type Context = CanvasRenderingContext2D;

/** Returns the outline of a list of positions. */
export function shapeOf(rings: readonly MapRing[]): Shape {
  const box: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { points } of rings) {
    for (let i = 0; i < points.length; i += 2) {
      const x = points[i] ?? 0;
      const y = points[i + 1] ?? 0;
      if (x < box[0]) box[0] = x;
      if (y < box[1]) box[1] = y;
      if (x > box[2]) box[2] = x;
      if (y > box[3]) box[3] = y;
    }
  }
  return { rings, box };
}

/** Adds a shape to the path of a context, in pixels. `outline`: without seams. */
export function trace(context: Context, { rings }: Shape, camera: Camera, outline: boolean): void {
  const { x: left, y: top, scale } = camera;
  for (const { points, seams } of rings) {
    const last = points.length - 2;
    if (outline && seams !== null) {
      context.moveTo(((points[last] ?? 0) - left) * scale, ((points[last + 1] ?? 0) - top) * scale);
    }
    for (let i = 0; i <= last; i += 2) {
      const x = ((points[i] ?? 0) - left) * scale;
      const y = ((points[i + 1] ?? 0) - top) * scale;
      const isJump = outline && seams !== null ? seams[i / 2] === 1 : i === 0;
      if (isJump) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    if (!outline || seams === null) context.closePath();
  }
}

/** Camera of the top left corner, and the right and lower ends of the picture. */
type View = Camera & { right: number; bottom: number };

function isVisible({ box: [left, top, right, bottom] }: Shape, view: View): boolean {
  return left <= view.right && right >= view.x && top <= view.bottom && bottom >= view.y;
}

/** Paints the whole content; each step takes about a millisecond. The camera is that of the top left corner. */
function* paint(
  context: Context,
  content: Content,
  {
    camera,
    width,
    height,
    colours,
  }: { camera: Camera; width: number; height: number; colours: Colours },
): Generator<void> {
  const { x, y, scale } = camera;
  const [right, bottom] = [x + width / scale, y + height / scale];
  context.fillStyle = colours.sea;
  context.fillRect(0, 0, width, height);
  const views = copiesOf(content.projection, x, right).map((shift): View => {
    return { x: x - shift, y, scale, right: right - shift, bottom };
  });
  for (const view of views) {
    paintLand(context, content, view, colours);
    yield;
  }
  for (const view of views) {
    for (const [i, shape] of content.shapes.entries()) {
      if (i % shapesPerSlice === 0) yield;
      if (isVisible(shape, view)) {
        paintShape(context, shape, view, colours.classes[shape.colour] ?? colours.border);
      }
    }
  }
}

function paintShape(context: Context, shape: Shape, camera: Camera, colour: string): void {
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.beginPath();
  trace(context, shape, camera, false);
  context.globalAlpha = fillAlpha(shape.box);
  context.fill('evenodd');
  context.globalAlpha = 0.9;
  if (shape.rings.some(({ seams }) => seams !== null)) {
    context.beginPath();
    trace(context, shape, camera, true);
  }
  context.stroke();
}

/** Large footprints are paler: many of them overlap, and small ones stay visible. */
function fillAlpha([left, top, right, bottom]: Shape['box']): number {
  return Math.min(0.22, Math.max(0.07, 2.6 / Math.sqrt((right - left) * (bottom - top))));
}

/** Shifts at which the map repeats between two longitudes. */
function copiesOf({ period }: Projection, left: number, right: number): number[] {
  if (period === 0) return [0];
  const first = Math.floor((left + period / 2) / period);
  const last = Math.floor((right + period / 2) / period);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * period);
}

function paintLand(
  context: Context,
  { projection, land, borders }: Content,
  view: View,
  colours: Colours,
): void {
  context.globalAlpha = 1;
  context.lineWidth = 1;
  context.fillStyle = colours.land;
  context.strokeStyle = colours.land;
  context.beginPath();
  for (const shape of land) if (isVisible(shape, view)) trace(context, shape, view, false);
  context.fill('evenodd');
  context.stroke();
  context.strokeStyle = colours.border;
  context.beginPath();
  trace(context, borders, view, true);
  context.stroke();
  context.strokeStyle = colours.grid;
  context.beginPath();
  trace(context, gridOf(projection, view.scale), view, true);
  context.stroke();
}

/** Lines of the grid, closer when the map is larger. */
function gridOf({ name, line }: Projection, scale: number): Shape {
  const step = scale < 6 ? 30 : scale < 24 ? 10 : scale < 90 ? 5 : 1;
  // Meridians end before a pole, where they would meet.
  const end = name === 'plate-carree' ? 90 : 88;
  const lines: MapRing[] = [];
  for (let x = -180; x < 180; x += step) {
    lines.push(line(Array.from({ length: 45 }, (_, i): LonLat => [x, -end + (2 * end * i) / 44])));
  }
  for (let y = step - 90; y < 90; y += step) {
    lines.push(line(Array.from({ length: 181 }, (_, i): LonLat => [2 * i - 180, y])));
  }
  return shapeOf(lines);
}

/** A picture of the map that is larger than the window, complete or in progress. */
interface Layer {
  context: Context;
  /** Relative to the window. */
  size: number;
  /** Number of footprints. */
  shapes: number;
  /** Centre. */
  camera: Camera;
  steps: Generator<void>;
}

/** Time without movement after which the layer is painted again. */
const restMs = 120;

/** Draws on a canvas; `overlay` draws above the layer, with the camera of the top left corner. */
export class MapCanvas {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: Context;
  readonly #overlay: (context: Context, corner: Camera) => void;
  #camera: Camera = { x: 0, y: 0, scale: 1 };
  #content: Content | null = null;
  #colours: Colours | null = null;
  #shown: Layer | null = null;
  #job: Layer | null = null;
  #isDirty = false;
  #movedAtMs = 0;
  #requested = 0;

  constructor(canvas: HTMLCanvasElement, overlay: (context: Context, corner: Camera) => void) {
    this.#canvas = canvas;
    this.#context = contextOf(canvas, false);
    this.#overlay = overlay;
  }

  /** Centre of the window. */
  get camera(): Camera {
    return this.#camera;
  }

  set camera(camera: Camera) {
    this.#camera = camera;
    this.#movedAtMs = performance.now();
    this.redraw();
  }

  /** Shows other content, or the same after a change. */
  show(content: Content, colours: Colours): void {
    [this.#content, this.#colours, this.#isDirty] = [content, colours, true];
    this.redraw();
  }

  /** Draws the next frame, for a change of the overlay. */
  redraw(): void {
    this.#requested ||= requestAnimationFrame((nowMs) => this.#drawFrame(nowMs));
  }

  #drawFrame(nowMs: number): void {
    this.#requested = 0;
    const canvas = this.#canvas;
    const density = devicePixelRatio;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    resize(canvas, width * density, height * density);
    const isMoving = nowMs - this.#movedAtMs < restMs;
    if (this.#isStale() && (!isMoving || !covers(this.#shown, this.#camera, width, height))) {
      this.#isDirty = true;
    }
    if (this.#job === null && this.#isDirty) this.#begin(width, height, density);
    const isFirst = this.#job?.size === 1;
    this.#work(isMoving ? sliceMs.moving : isFirst ? sliceMs.first : sliceMs.still);
    this.#context.setTransform(density, 0, 0, density, 0, 0);
    this.#copyLayer(width, height);
    this.#overlay(this.#context, cornerOf(this.#camera, width, height));
    if (this.#job !== null || this.#isDirty || this.#isStale()) this.redraw();
  }

  /** True if the layer, or the next one, shows another place. */
  #isStale(): boolean {
    const latest = this.#job ?? this.#shown;
    if (latest === null) return this.#content !== null;
    const { x, y, scale } = latest.camera;
    return x !== this.#camera.x || y !== this.#camera.y || scale !== this.#camera.scale;
  }

  #begin(width: number, height: number, density: number): void {
    const [content, colours] = [this.#content, this.#colours];
    if (content === null || colours === null) return;
    const shapes = content.shapes.length;
    // Many new footprints appear sooner without the part outside of the window, which follows.
    const isFirst = shapes > 2 * (this.#shown?.shapes ?? 0);
    const size = isFirst ? 1 : layerSize;
    const layer = document.createElement('canvas');
    resize(layer, width * size * density, height * size * density);
    const context = contextOf(layer, true);
    context.scale(density, density);
    const camera = { ...this.#camera };
    const own = { width: width * size, height: height * size };
    const corner = cornerOf(camera, own.width, own.height);
    const steps = paint(context, content, { camera: corner, ...own, colours });
    this.#job = { context, camera, size, shapes, steps };
    this.#isDirty = isFirst;
  }

  /** Paints for some milliseconds. */
  #work(budgetMs: number): void {
    const untilMs = performance.now() + budgetMs;
    while (this.#job !== null) {
      if (this.#job.steps.next().done) {
        [this.#shown, this.#job] = [this.#job, null];
        // Tests and measurements read how many footprints the picture has.
        this.#canvas.dataset.footprints = String(this.#shown.shapes);
      }
      // Browsers collect commands: reading a pixel executes them within this slice.
      else this.#job.context.getImageData(0, 0, 1, 1);
      if (performance.now() > untilMs) return;
    }
  }

  /** Copies the layer to the window, moved and scaled to the camera. */
  #copyLayer(width: number, height: number): void {
    const context = this.#context;
    context.fillStyle = this.#colours?.sea ?? 'transparent';
    context.fillRect(0, 0, width, height);
    if (this.#shown === null) return;
    const { camera, context: layer, size } = this.#shown;
    const { x, y, scale } = this.#camera;
    const ratio = scale / camera.scale;
    const [layerWidth, layerHeight] = [width * size * ratio, height * size * ratio];
    const period = this.#content?.projection.period ?? 0;
    const far = camera.x - x;
    const distance = period === 0 ? far : far - period * Math.round(far / period);
    const left = width / 2 + distance * scale - layerWidth / 2;
    const top = height / 2 + (camera.y - y) * scale - layerHeight / 2;
    // Whole pixels keep a map sharp that only moves.
    const [px, py] = ratio === 1 ? [Math.round(left), Math.round(top)] : [left, top];
    context.drawImage(layer.canvas, px, py, layerWidth, layerHeight);
  }
}

function contextOf(canvas: HTMLCanvasElement, willReadFrequently: boolean): Context {
  const context = canvas.getContext('2d', { willReadFrequently });
  if (context === null) throw new Error('The browser has no canvas.');
  return context;
}

/** Camera of the top left corner. */
function cornerOf({ x, y, scale }: Camera, width: number, height: number): Camera {
  return { x: x - width / 2 / scale, y: y - height / 2 / scale, scale };
}

function resize(canvas: HTMLCanvasElement, width: number, height: number): void {
  if (canvas.width !== Math.round(width)) canvas.width = Math.round(width);
  if (canvas.height !== Math.round(height)) canvas.height = Math.round(height);
}

/** True while a layer covers the window, and is not enlarged too much. */
function covers(layer: Layer | null, camera: Camera, width: number, height: number): boolean {
  if (layer === null) return false;
  const ratio = camera.scale / layer.camera.scale;
  const isWithin = (distance: number, size: number) =>
    Math.abs(distance * camera.scale) <= (layer.size * ratio - 1) * (size / 2);
  const { x, y } = layer.camera;
  return ratio < 2 && isWithin(camera.x - x, width) && isWithin(camera.y - y, height);
}
