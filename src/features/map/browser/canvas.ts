/**
 * Draws the map. The content is painted on a layer that is larger than the window, in slices of a few milliseconds, so
 * that moving the map only copies the layer.
 */
import type { Box, LonLat, Projection } from './projection.ts';
import { type Land, type Shape, shapeOf } from './shape.ts';

export interface Content extends Pick<Land, 'land' | 'borders'> {
  projection: Projection;
  /** The last one is on top. */
  shapes: readonly (Shape & { colour: number })[];
  /** Colours of the theme. */
  colours: Readonly<Record<'sea' | 'land' | 'border' | 'grid' | 'text', string>>;
  /** Colours of footprints. */
  classes: readonly string[];
}

/** Centre in map coordinates, and pixels per unit. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

/** A camera with the size of a window in CSS pixels, and the pixels of the screen for each of them. */
export interface View extends Camera {
  width: number;
  height: number;
  density: number;
}

/** Size of the layer, relative to the window: the map moves without painting. */
const layerSize = 1.5;
const shapesPerSlice = 50;
/** Time for a slice, while the map moves and otherwise. */
const sliceMs = { moving: 4, still: 16 };
const restMs = 120;
/** Footprints above others hide most of what is below, so that many of them do not become one area. */
const alphas = { erase: 0.75, stroke: 0.85 };
/** A large footprint is paler. */
const fillAlpha = (pixels: number) => Math.max(0.05, Math.min(0.18, 18 / pixels));
/** A smaller footprint is painted as a square of this size. */
const tinyPixels = 2.5;
/** A smaller footprint hides nothing: most of it is its outline. */
const smallPixels = 12;

type Context = CanvasRenderingContext2D;

/** Sets the transformation from map coordinates to pixels; `shift` moves the map to the right. */
export function place(context: Context, { x, y, scale, width, height, density }: View, shift = 0) {
  const k = scale * density;
  const [left, top] = [width / 2 - (x - shift) * scale, height / 2 - y * scale];
  context.setTransform(k, 0, 0, k, left * density, top * density);
  // Chromium draws lines of less than a pixel faster.
  context.lineWidth = 0.99 / scale;
}

/** Returns the shifts at which the map repeats within a view, with the visible part of each copy. */
export function copiesOf({ period }: Projection, { x, y, width, height, scale }: View) {
  const [dx, dy] = [width / scale / 2, height / scale / 2];
  const turnAt = (at: number) => (period === 0 ? 0 : Math.floor((at + period / 2) / period));
  return Array.from({ length: turnAt(x + dx) - turnAt(x - dx) + 1 }, (_, i) => {
    const shift = (turnAt(x - dx) + i) * period;
    const box: Box = [x - dx - shift, y - dy, x + dx - shift, y + dy];
    return { shift, box };
  });
}

function overlap(one: Box, other: Box): boolean {
  return one[0] <= other[2] && one[2] >= other[0] && one[1] <= other[3] && one[3] >= other[1];
}

/** Paints the content; each step takes about a millisecond. `prints` is an empty layer of the same size. */
function* paint(
  ground: Context,
  prints: Context,
  { content, view }: { content: Content; view: View },
): Generator<void> {
  const { colours, shapes, classes, projection } = content;
  const copies = copiesOf(projection, view);
  ground.resetTransform();
  ground.fillStyle = colours.sea;
  ground.fillRect(0, 0, ground.canvas.width, ground.canvas.height);
  for (const { shift, box } of copies) {
    place(ground, view, shift);
    paintLand(ground, content, { box, scale: view.scale });
    yield;
  }
  place(prints, view);
  clipRound(prints, projection);
  for (const { shift, box } of copies) {
    place(prints, view, shift);
    for (const [i, shape] of shapes.entries()) {
      if (i % shapesPerSlice === 0) yield;
      if (!overlap(shape.box, box)) continue;
      paintShape(prints, shape, classes[shape.colour] ?? colours.border, view.scale);
    }
  }
  ground.resetTransform();
  ground.drawImage(prints.canvas, 0, 0);
}

/** A polar map ends at a circle. */
function clipRound(context: Context, { period, reach }: Projection): void {
  if (period > 0) return;
  context.beginPath();
  context.arc(0, 0, reach[0], 0, 2 * Math.PI);
  context.clip();
}

function paintShape(context: Context, shape: Shape, colour: string, scale: number): void {
  const [left, top, right, bottom] = shape.box;
  const pixels = Math.max(right - left, bottom - top) * scale;
  context.fillStyle = colour;
  context.globalAlpha = alphas.stroke;
  if (pixels < tinyPixels) {
    context.fillRect(left, top, tinyPixels / scale, tinyPixels / scale);
    return;
  }
  if (pixels > smallPixels) {
    context.globalCompositeOperation = 'destination-out';
    context.globalAlpha = alphas.erase;
    context.fill(shape.path, 'evenodd');
    context.globalCompositeOperation = 'source-over';
  }
  context.globalAlpha = fillAlpha(Math.sqrt(shape.area) * scale);
  context.fill(shape.path, 'evenodd');
  context.strokeStyle = colour;
  context.globalAlpha = alphas.stroke;
  context.stroke(shape.outline);
}

function paintLand(
  context: Context,
  { projection, land, borders, colours }: Content,
  { box, scale }: { box: Box; scale: number },
): void {
  context.save();
  clipRound(context, projection);
  // One path: a lake is a ring of its own.
  const path = new Path2D();
  for (const shape of land) if (overlap(shape.box, box)) path.addPath(shape.path);
  context.fillStyle = colours.land;
  context.fill(path, 'evenodd');
  context.strokeStyle = colours.border;
  context.stroke(borders.path);
  context.strokeStyle = colours.grid;
  context.stroke(gridPath(projection, scale));
  context.restore();
}

const gridSteps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30];
const gridPixels = 90;

const gridPaths = new Map<number, Path2D>();

function gridStep({ period }: Projection, scale: number): number {
  const least = period === 0 ? 1 : 0;
  return gridSteps.find((one) => one >= least && one * scale >= gridPixels) ?? 30;
}

function gridPath(projection: Projection, scale: number): Path2D {
  const step = gridStep(projection, scale);
  const known = gridPaths.get(step);
  if (known !== undefined) return known;
  // Meridians end before a pole of a polar map, where they would meet.
  const end = projection.period === 0 ? 88 : 90;
  const lines: LonLat[][] = [];
  for (let x = -180; x < 180; x += step)
    lines.push([
      [x, -end],
      [x, end],
    ]);
  for (let y = step - 90; y < 90; y += step)
    lines.push([
      [-180, y],
      [180, y],
    ]);
  const { path } = shapeOf(lines, projection, false);
  gridPaths.set(step, path);
  return path;
}

/** A picture of the map that is larger than the window, complete or in progress. */
interface Layer {
  context: Context;
  view: View;
  steps: Generator<void>;
}

/** Draws on a canvas; `overlay` draws above the layer. */
export class MapCanvas {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: Context;
  readonly #overlay: (context: Context, view: View) => void;
  readonly #prints = layerContext();
  #camera: Camera = { x: 0, y: 0, scale: 1 };
  #content: Content | null = null;
  #shown: Layer | null = null;
  #job: Layer | null = null;
  #isDirty = false;
  #movedAtMs = 0;
  #requested = 0;

  constructor(canvas: HTMLCanvasElement, overlay: (context: Context, view: View) => void) {
    this.#canvas = canvas;
    this.#context = contextOf(canvas);
    this.#overlay = overlay;
  }

  get view(): View {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    return { ...this.#camera, width, height, density: devicePixelRatio };
  }

  set camera(camera: Camera) {
    this.#camera = camera;
    this.#movedAtMs = performance.now();
    this.redraw();
  }

  /** Shows other content, or the same after a change. */
  show(content: Content): void {
    [this.#content, this.#isDirty] = [content, true];
    this.redraw();
  }

  /** Draws the next frame, for a change of the overlay. */
  redraw(): void {
    this.#requested ||= requestAnimationFrame((nowMs) => this.#drawFrame(nowMs));
  }

  #drawFrame(nowMs: number): void {
    this.#requested = 0;
    const { view } = this;
    resize(this.#canvas, view);
    const isMoving = nowMs - this.#movedAtMs < restMs;
    const isDue = () => this.#isDirty || !isSame((this.#job ?? this.#shown)?.view, view);
    const mustWait = isMoving && !this.#isDirty && covers(this.#shown?.view, view);
    if (this.#job === null && isDue() && !mustWait) this.#begin(view);
    this.#work(isMoving ? sliceMs.moving : sliceMs.still);
    this.#copyLayer(view);
    this.#overlay(this.#context, view);
    if (this.#content !== null && (this.#job !== null || isDue())) this.redraw();
  }

  #begin(view: View): void {
    const content = this.#content;
    if (content === null) return;
    const own = { ...view, width: view.width * layerSize, height: view.height * layerSize };
    const context = layerContext();
    for (const one of [context, this.#prints]) resize(one.canvas, own);
    this.#prints.reset();
    this.#job = { context, view: own, steps: paint(context, this.#prints, { content, view: own }) };
    this.#isDirty = false;
  }

  /** Paints for some milliseconds. */
  #work(budgetMs: number): void {
    const untilMs = performance.now() + budgetMs;
    while (this.#job !== null) {
      if (this.#job.steps.next().done) {
        [this.#shown, this.#job] = [this.#job, null];
        // Measurements read how many footprints the picture has.
        this.#canvas.dataset.footprints = String(this.#content?.shapes.length);
      }
      // Browsers collect commands: reading a pixel executes them within this slice.
      else this.#prints.getImageData(0, 0, 1, 1);
      if (performance.now() > untilMs) return;
    }
  }

  /** Copies the layer to the window, moved and scaled to the camera. */
  #copyLayer({ x, y, scale, width, height, density }: View): void {
    const context = this.#context;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.fillStyle = this.#content?.colours.sea ?? 'transparent';
    context.fillRect(0, 0, width, height);
    if (this.#shown === null) return;
    const { view: layer, context: source } = this.#shown;
    const ratio = scale / layer.scale;
    const period = this.#content?.projection.period ?? 0;
    const far = layer.x - x;
    const distance = period === 0 ? far : far - period * Math.round(far / period);
    const left = width / 2 + distance * scale - (layer.width * ratio) / 2;
    const top = height / 2 + (layer.y - y) * scale - (layer.height * ratio) / 2;
    // Whole pixels keep a map sharp that only moves.
    const [px, py] = ratio === 1 ? [Math.round(left), Math.round(top)] : [left, top];
    context.drawImage(source.canvas, px, py, layer.width * ratio, layer.height * ratio);
  }
}

function isSame(one: Camera | undefined, { x, y, scale }: Camera): boolean {
  return one?.x === x && one.y === y && one.scale === scale;
}

/** Returns true if a layer covers the window, and is not enlarged too much. */
function covers(layer: View | undefined, { x, y, scale, width, height }: View): boolean {
  if (layer === undefined || scale > 2 * layer.scale) return false;
  const isWithin = (distance: number, outer: number, inner: number) =>
    Math.abs(distance) * 2 <= outer / layer.scale - inner / scale;
  return isWithin(x - layer.x, layer.width, width) && isWithin(y - layer.y, layer.height, height);
}

function layerContext(): Context {
  return contextOf(document.createElement('canvas'), { willReadFrequently: true });
}

function contextOf(canvas: HTMLCanvasElement, options = {}): Context {
  const context = canvas.getContext('2d', options) as Context | null;
  if (context === null) throw new Error('The browser has no canvas.');
  return context;
}

function resize(canvas: HTMLCanvasElement, { width, height, density }: View): void {
  const [w, h] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
}

/** `7.5°E`; longitudes may exceed 180. */
export function degreeText(value: number, signs: 'EW' | 'NS', digits: number): string {
  const within = signs === 'EW' ? value - 360 * Math.round(value / 360) : value;
  return `${Math.abs(within).toFixed(digits)}°${within === 0 ? '' : signs[within < 0 ? 1 : 0]}`;
}

/** Pixels between the edge of the window and the degrees. */
const margin = 18;

/** Writes the degrees of the grid along the lower and the left edge, and names of countries that are as wide. */
export function drawTexts(
  context: Context,
  { view, projection, names }: { view: View; projection: Projection; names: Land['names'] },
): void {
  const { x, y, scale, width, height } = view;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineWidth = 3;
  context.lineJoin = 'round';
  const copies = copiesOf(projection, view);
  const write = (text: string, position: LonLat, widthMax = Infinity) => {
    if (context.measureText(text).width > widthMax) return;
    const [mapX, mapY] = projection.project(position);
    for (const { shift } of copies) {
      const [px, py] = [width / 2 + (mapX + shift - x) * scale, height / 2 + (mapY - y) * scale];
      context.strokeText(text, px, py);
      context.fillText(text, px, py);
    }
  };
  for (const [name, longitude, latitude, degrees] of names) {
    write(name, [longitude, latitude], degrees * scale);
  }
  const [column, row] = projection.invert(x, y + (height / 2 - margin) / scale);
  // A round map has its degrees of latitude on the meridian to the lower edge.
  const left =
    projection.period === 0 ? column : projection.invert(x - (width / 2 - margin) / scale, y)[0];
  const step = gridStep(projection, scale);
  const digits = step < 1 ? 1 : 0;
  for (let at = -180; at < 180; at += step) write(degreeText(at, 'EW', digits), [at, row]);
  for (let at = step - 90; at < 90; at += step) {
    // The lowest one would be in the row of the longitudes.
    if (Math.abs(at - row) > step / 3) write(degreeText(at, 'NS', digits), [left, at]);
  }
}
