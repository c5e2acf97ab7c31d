/** The map of footprints: data, colours, selection, area, and state of the URL. */

import { element } from './keyboard.ts';
import { MapCanvas, shapeOf, trace } from './map-canvas.ts';
import { type ColourName, colouringOf } from './map-colours.ts';
import { isInside, type Land, loadLand, mapColours, placeText } from './map-data.ts';
import { boxText, createDrawing, type DrawMode, polygonText } from './map-draw.ts';
import { addGestures } from './map-gestures.ts';
import { followItems, type Item } from './map-items.ts';
import { edgeLatitude, plateCarree, projections } from './map-projection.ts';
import { refresh, showConnection } from './shell.ts';
import { addressOf, pageData } from './stream.ts';

interface PageData {
  footprints: string;
  footprintsMax: number;
  since: string;
  sinceMs: number | null;
  until: string | null;
  projection: string;
  colour: string;
  collectionGroups: string[];
  view: string;
  /** Product to select; '' for none. */
  selected: string;
  land: { coarse: string; fine: string };
}

const data = pageData<PageData>();
const projection = projections.find(({ name }) => name === data.projection) ?? plateCarree;
const countText = new Intl.NumberFormat('en-GB');
/** A smaller lag of the index is usual. */
const lagShown = 100;
const pickedMax = 20;
/** Shortest time between two refreshes of the list. */
const listMs = 5_000;
/** Pixels per degree above which the fine outlines are shown. */
const fineScale = 14;

const root = document.getElementById('map') ?? document.createElement('section');
const canvas = document.createElement('canvas');
const tools = part('map-tools');
const legend = part('map-legend');
const selection = part('map-selection');
const readout = part('map-readout');

/** Newest last, so that it is drawn on top. */
let items: readonly Item[] = [];
let picked: readonly Item[] = [];
/** Product of the URL. */
let selected = data.selected;
let colour = (data.colour === '' ? 'collection' : data.colour) as ColourName;
let land: Land = { land: [], borders: shapeOf([]) };
let isFine = false;
let isLoaded = false;
let isListDue = false;
let listedAtMs = -listMs;

const drawing = createDrawing(projection, {
  onChange: () => showDrawing(),
  onArea: ({ name, value }) => openWith(name, value),
});
const map = new MapCanvas(canvas, drawOverlay);
const gestures = addGestures(canvas, {
  map,
  projection,
  drawing,
  onHover: (x, y) => showReadout(x, y),
  onClick: (x, y) => select(itemsAt(x, y).slice(0, pickedMax)),
});

function part(className: string): HTMLElement {
  return Object.assign(element('div', ''), { className });
}

start();

function start(): void {
  // The whole globe is visible: a polar map is round, the other one twice as wide as high.
  canvas.classList.toggle('polar', projection.period === 0);
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'application');
  canvas.setAttribute(
    'aria-label',
    'Map of footprints. The list after the map has the same products. Arrow keys move, plus and minus zoom, Enter selects at the centre.',
  );
  selection.hidden = true;
  readout.setAttribute('role', 'status');
  root.replaceChildren(canvas, tools, legend, selection, readout);
  addTools();
  showView(data.view);
  followItems({
    path: data.footprints,
    since: data.sinceMs ?? data.since,
    until: data.until,
    itemsMax: data.footprintsMax,
    projection,
    onChange: (next, lag) => {
      if (isLoaded) refreshList();
      isLoaded = true;
      items = next;
      show();
      showCount(lag);
      const found = items.filter(({ productId }) => productId === selected);
      if (picked.length === 0 && found.length > 0) pick(found);
    },
    onProblem: (reason) => {
      readout.textContent = reason;
    },
    onState: showConnection,
  });
  void showLand(data.land.coarse);
  document.addEventListener('themechange', show);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  document
    .querySelector<HTMLSelectElement>('select[name="colour"]')
    ?.addEventListener('change', (event) => {
      // The form would load the page again.
      event.stopPropagation();
      colour = ((event.target as HTMLSelectElement).value || 'collection') as ColourName;
      show();
      saveState();
    });
}

/** Shows new products in the list after the map. */
function refreshList(): void {
  if (isListDue) return;
  isListDue = true;
  const waitMs = Math.max(0, listedAtMs + listMs - performance.now());
  setTimeout(() => {
    [isListDue, listedAtMs] = [false, performance.now()];
    void refresh();
  }, waitMs);
}

/** Without outlines, the map shows footprints only. */
async function showLand(url: string): Promise<void> {
  land = (await loadLand(url, projection)) ?? land;
  show();
}

function showCount(lag: number): void {
  const count = countText.format(items.length);
  const some = items.length >= data.footprintsMax ? `The newest ${count}` : count;
  const empty =
    'No product with a footprint matches in this period. Choose a longer period, or clear the filter.';
  const lags = lag > lagShown ? ` · the index lags by ${countText.format(lag)} notifications` : '';
  readout.textContent = `${items.length === 0 ? empty : `${some} footprints`}${lags}`;
}

/** Shows the items with the colours of the theme. */
function show(): void {
  const { classes, classOf, title } = colouringOf(colour, data.collectionGroups);
  const now = Date.now();
  const counts = classes.map(() => 0);
  for (const item of items) {
    item.colour = classOf(item, now);
    counts[item.colour] = (counts[item.colour] ?? 0) + 1;
  }
  const entries = classes.map(({ style, label }, i) => {
    const entry = element('li', `${label} `);
    const swatch = element('span', '');
    swatch.className = `swatch ${style}`;
    entry.prepend(swatch);
    entry.append(element('span', countText.format(counts[i] ?? 0)));
    entry.hidden = counts[i] === 0;
    return entry;
  });
  const list = element('ul', '');
  list.append(...entries);
  legend.replaceChildren(element('h2', title), list);
  const swatches = [...list.querySelectorAll('.swatch')];
  map.show(
    { projection, ...land, shapes: items },
    { ...mapColours(root), classes: swatches.map((swatch) => getComputedStyle(swatch).color) },
  );
}

/** Returns the items at a pixel, newest first. */
function itemsAt(px: number, py: number): Item[] {
  const [x, y] = gestures.mapPointAt(px, py);
  const { period } = projection;
  const xs = period === 0 ? [x] : [x - period, x, x + period];
  return items.filter((item) => xs.some((one) => isInside(item, one, y))).toReversed();
}

function showReadout(px: number, py: number): void {
  const [longitude, latitude] = gestures.positionAt(px, py);
  const [first, ...others] = itemsAt(px, py);
  const more = others.length > 0 ? ` and ${countText.format(others.length)} more` : '';
  const name = first === undefined ? '' : ` · ${first.name}${more}`;
  readout.textContent = `${placeText([longitude, latitude])}${name}`;
}

/** Lists the selected products, and draws their outlines. */
function pick(next: readonly Item[]): void {
  picked = next;
  selection.hidden = next.length === 0;
  const list = element('ul', '');
  list.append(
    ...next.map(({ productId, name, sensingStart, cloudCoverPercent }) => {
      const entry = element('li', '');
      const href = addressOf(`/products/${encodeURIComponent(productId)}`);
      const link = Object.assign(document.createElement('a'), { href, textContent: name });
      const sensed = sensingStart?.slice(0, 16).replace('T', ' ') ?? 'not known';
      const cloud = cloudCoverPercent === null ? '' : `, cloud ${cloudCoverPercent.toFixed(1)} %`;
      entry.append(link, element('small', `sensed ${sensed}${cloud}`));
      return entry;
    }),
  );
  const close = button('Close', () => select([]));
  const title = `${next.length === pickedMax ? `${pickedMax} or more products` : next.length} here`;
  selection.replaceChildren(element('h2', title), list, close);
  map.redraw();
}

/** Selects products by hand: the first one is kept in the URL. */
function select(next: readonly Item[]): void {
  pick(next);
  selected = next[0]?.productId ?? '';
  saveState();
}

function button(text: string, onClick: () => void, label = text): HTMLButtonElement {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  made.title = label;
  made.setAttribute('aria-label', label);
  made.addEventListener('click', onClick);
  return made;
}

function addTools(): void {
  const modes = (['box', 'polygon'] as const).map((mode) => {
    const label =
      mode === 'box'
        ? 'Box: drag to draw an area as filter'
        : 'Polygon: click the corners of an area as filter, then press Enter or double-click';
    const made = button(mode === 'box' ? 'Box' : 'Polygon', () => toggle(mode), label);
    made.dataset.mode = mode;
    made.setAttribute('aria-pressed', 'false');
    return made;
  });
  const toggle = (mode: DrawMode) => {
    drawing.start(drawing.mode === mode ? null : mode);
    readout.textContent =
      drawing.mode === null ? '' : (modes.find((one) => one.dataset.mode === mode)?.title ?? '');
    canvas.focus();
  };
  tools.append(
    button('+', () => gestures.zoom(1.5), 'Zoom in'),
    button('−', () => gestures.zoom(1 / 1.5), 'Zoom out'),
    button(
      'Fit',
      () => gestures.fit(shapeOf(items.flatMap(({ rings }) => rings)).box),
      'Fit: show all footprints',
    ),
    ...modes,
    button('This view', useView, 'This view: use the visible area as filter'),
  );
}

function showDrawing(): void {
  for (const made of tools.querySelectorAll<HTMLElement>('[data-mode]')) {
    made.setAttribute('aria-pressed', String(made.dataset.mode === drawing.mode));
  }
  canvas.classList.toggle('drawing', drawing.mode !== null);
  map.redraw();
}

/** The visible area as a filter. On a polar map: all longitudes if the pole is visible, otherwise the corners. */
function useView(): void {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const corners = [
    [0, 0],
    [0, height],
    [width, height],
    [width, 0],
  ] as const;
  const positions = corners.map(([x, y]) => gestures.positionAt(x, y));
  const [[west, north] = [0, 0], , [east, south] = [0, 0]] = positions;
  const { x, y, scale } = map.camera;
  const showsPole = Math.abs(x * scale) < width / 2 && Math.abs(y * scale) < height / 2;
  const latitudes = positions.map(([, latitude]) => latitude);
  if (projection.period > 0) openWith('bbox', boxText([west, south, east, north]));
  else if (!showsPole) openWith('polygon', polygonText(positions));
  else if (projection.name === 'arctic') {
    openWith('bbox', boxText([-180, Math.max(edgeLatitude, Math.min(...latitudes)), 180, 90]));
  } else
    openWith('bbox', boxText([-180, -90, 180, Math.min(-edgeLatitude, Math.max(...latitudes))]));
}

/** Opens the page with an area; the server adds it to the filter. */
function openWith(name: string, value: string): void {
  const url = new URL(location.href);
  url.searchParams.set('view', viewText());
  url.searchParams.set(name, value);
  location.assign(url);
}

/** Draws the selected outlines and the area being drawn. */
function drawOverlay(context: CanvasRenderingContext2D, corner: Parameters<typeof trace>[2]): void {
  const draft = drawing.outline();
  const { period } = projection;
  const ring = draft.length < 2 ? null : projection.ring(draft);
  context.strokeStyle = getComputedStyle(readout).color;
  const shifts = period === 0 ? [0] : [-period, 0, period];
  for (const [shapes, dash] of [
    [picked, []],
    [ring === null ? [] : [shapeOf([ring])], [6, 4]],
  ] as const) {
    context.setLineDash([...dash]);
    context.lineWidth = 2.5;
    context.beginPath();
    for (const shape of shapes) {
      for (const shift of shifts) trace(context, shape, { ...corner, x: corner.x - shift }, true);
    }
    context.stroke();
  }
  context.setLineDash([]);
  afterMove();
}

let savedView = '';
let saveTimer: ReturnType<typeof setTimeout> | undefined;

/** Writes the view to the URL when the map rests, and loads fine outlines for a close view. */
function afterMove(): void {
  const view = viewText();
  if (view === savedView) return;
  savedView = view;
  clearTimeout(saveTimer);
  saveTimer = setTimeout(saveState, 300);
}

/** Longitude and latitude of the centre, and zoom: doubles the scale with each step, 0 is 256 pixels for the globe. */
function viewText(): string {
  const { x, y, scale } = map.camera;
  const [longitude, latitude] = projection.invert(x, y);
  const digits = scale > 100 ? 4 : 2;
  const zoom = Math.log2((scale * 360) / 256);
  return `${Number(longitude.toFixed(digits))},${Number(latitude.toFixed(digits))},${Number(zoom.toFixed(2))}`;
}

function showView(text: string): void {
  const [longitude = 0, latitude = 0, zoom] = text.split(',').map(Number);
  const [x, y] = projection.project([longitude, latitude]);
  const whole = { x: 0, y: 0, scale: 0 };
  gestures.show(zoom === undefined ? whole : { x, y, scale: (256 * 2 ** zoom) / 360 });
}

function saveState(): void {
  const url = new URL(location.href);
  const shown = { view: viewText(), selected, colour: colour === 'collection' ? '' : colour };
  for (const [name, value] of Object.entries(shown)) {
    if (value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
    const field = document.querySelector<HTMLInputElement>(`.toolbar input[name="${name}"]`);
    if (field !== null) field.value = value;
  }
  // Commas and colons need no escape, and make links readable.
  history.replaceState(null, '', url.href.replaceAll('%2C', ',').replaceAll('%3A', ':'));
  if (!isFine && map.camera.scale > fineScale) {
    isFine = true;
    void showLand(data.land.fine);
  }
}
