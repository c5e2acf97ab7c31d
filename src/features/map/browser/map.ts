/** The map of footprints: data, colours, selection, area, and state of the URL. */
import { h, render } from 'preact';
import { element, refresh, showConnection } from '../../../core/page/browser/shell.ts';
import { addressOf, pageData } from '../../../core/page/browser/stream.ts';
import { copiesOf, degreeText, drawTexts, MapCanvas, place, type View } from './canvas.ts';
import { colouringOf, type MapData } from './colours.ts';
import { addGestures, boxText, createDrawing, polygonText } from './gestures.ts';
import { followItems, type Item } from './items.ts';
import { edgeLatitude, type LonLat, plateCarree, projections } from './projection.ts';
import { type Land, loadLand, shapeOf } from './shape.ts';

const data = pageData<MapData>();
const projection = projections.find(({ name }) => name === data.projection) ?? plateCarree;
const countText = new Intl.NumberFormat('en-GB');
/** A smaller lag of the index is usual. */
const lagShown = 100;
/** Shortest time between two refreshes of the list. */
const listMs = 5_000;
/** Pixels per degree above which the fine outlines are shown. */
const fineScale = 8;

const root = document.getElementById('map') ?? document.createElement('section');
const canvas = document.createElement('canvas');
const panels = element('div', '');
const readout = Object.assign(element('div', ''), { className: 'map-readout', role: 'status' });

/** Newest last. */
let items: readonly Item[] = [];
let picked: readonly Item[] = [];
/** Product of the URL. */
let selected = data.selected;
let colour = data.colour;
/** Labels of the classes that the legend switches off. */
const hidden = new Set(data.hidden === '' ? [] : data.hidden.split(','));
let land: Land = { land: [], borders: shapeOf([], projection), names: [] };
let isFine = false;
/** The shown footprints: the smallest one is last, and so on top. */
let shapes: readonly Item[] = [];
let counts: readonly number[] = [];
/** Colours of the theme. */
let colours = { sea: '', land: '', border: '', grid: '', text: '' };

const drawing = createDrawing(() => {
  canvas.classList.toggle('drawing', drawing.mode !== null);
  showPanels();
  map.redraw();
}, openWith);
const map = new MapCanvas(canvas, drawOverlay);
const gestures = addGestures(canvas, {
  ...{ map, projection, drawing },
  onHover: showReadout,
  onClick: (x, y) => select(itemsAt(x, y)),
});

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
  root.replaceChildren(canvas, panels, readout);
  showView(data.view);
  let isLoaded = false;
  void followItems({
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
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  const choice = document.querySelector<HTMLSelectElement>('select[name="colour"]');
  choice?.addEventListener('change', (event) => {
    // The form would load the page again.
    event.stopPropagation();
    colour = choice.value;
    hidden.clear();
    show();
    saveState();
  });
}

let isListDue = false;
let listedAtMs = -listMs;

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

/** Shows the items of the classes that are on, with the colours of the theme. */
function show(): void {
  const { classes, classOf } = colouringOf(colour, data.collectionGroups);
  const now = Date.now();
  for (const item of items) item.colour = classOf(item, now);
  counts = classes.map((_, i) => items.filter((item) => item.colour === i).length);
  const isOff = classes.map(({ label }) => hidden.has(label));
  shapes = items.filter(({ colour }) => !isOff[colour]).toSorted((a, b) => b.area - a.area);
  const [sea = '', ground = '', border = '', grid = '', text = '', ...styles] = [
    ...['map-sea', 'map-land', 'map-border', 'map-grid', 'map-text'],
    ...classes.map(({ style }) => style),
  ].map(colourOf);
  colours = { sea, land: ground, border, grid, text };
  map.show({ projection, ...land, shapes, colours, classes: styles });
  showPanels();
}

/** Returns the colour of a class in the style sheet, which depends on the theme. */
function colourOf(className: string): string {
  panels.className = className;
  const { color } = getComputedStyle(panels);
  panels.className = '';
  return color;
}

/** Returns the items at a pixel, the newest first. */
function itemsAt(px: number, py: number): Item[] {
  const [x, y] = gestures.mapPointAt(px, py);
  const { period, reach } = projection;
  if (period === 0 && Math.hypot(x, y) > reach[0]) return [];
  const context = canvas.getContext('2d');
  context?.resetTransform();
  return shapes
    .filter(({ box, path }) =>
      (period === 0 ? [x] : [x - period, x, x + period]).some((at) => {
        const isNear = at >= box[0] && at <= box[2] && y >= box[1] && y <= box[3];
        return isNear && context?.isPointInPath(path, at, y, 'evenodd');
      }),
    )
    .toSorted((one, other) => other.position - one.position);
}

function showReadout(px: number, py: number): void {
  const [first, ...others] = itemsAt(px, py);
  const more = others.length > 0 ? ` and ${countText.format(others.length)} more` : '';
  const name = first === undefined ? '' : ` · ${first.name}${more}`;
  readout.textContent = `${placeText(gestures.positionAt(px, py))}${name}`;
}

/** `46.20°N 7.10°E` */
function placeText([longitude, latitude]: LonLat): string {
  return `${degreeText(latitude, 'NS', 2)} ${degreeText(longitude, 'EW', 2)}`;
}

/** Lists the selected products, and draws their outlines. */
function pick(next: readonly Item[]): void {
  picked = next;
  showPanels();
  map.redraw();
}

/** Selects products by hand: the first one is kept in the URL. */
function select(next: readonly Item[]): void {
  pick(next);
  selected = next[0]?.productId ?? '';
  saveState();
}

function showPanels(): void {
  render([tools(), legend(), picked.length > 0 && selection()], panels);
}

function button(text: string, onClick: () => void, label = text, isPressed?: boolean) {
  const names = { title: label, 'aria-label': label, 'aria-pressed': isPressed };
  return h('button', { type: 'button', ...names, onClick }, text);
}

function tools() {
  const mode = (name: 'box' | 'polygon', text: string, label: string) => {
    const isOn = drawing.mode === name;
    const toggle = () => {
      drawing.start(isOn ? null : name);
      readout.textContent = isOn ? '' : label;
      canvas.focus();
    };
    return button(text, toggle, label, isOn);
  };
  return h(
    'div',
    { class: 'map-tools' },
    button('+', () => gestures.zoom(1.5), 'Zoom in'),
    button('−', () => gestures.zoom(1 / 1.5), 'Zoom out'),
    mode('box', 'Box', 'Box: drag to draw an area as filter'),
    mode(
      'polygon',
      'Polygon',
      'Polygon: click the corners of an area as filter, then press Enter or double-click',
    ),
    button('This view', useView, 'This view: use the visible area as filter'),
  );
}

/** Each class has a switch. */
function legend() {
  const { classes, title } = colouringOf(colour, data.collectionGroups);
  const entries = classes.flatMap(({ style, label }, i) => {
    if (counts[i] === 0 && !hidden.has(label)) return [];
    const toggle = () => {
      if (!hidden.delete(label)) hidden.add(label);
      show();
      saveState();
    };
    const box = { type: 'checkbox', checked: !hidden.has(label), onChange: toggle };
    const swatch = h('span', { class: `swatch ${style}` });
    const count = h('span', null, countText.format(counts[i] ?? 0));
    return [h('li', { key: label }, h('label', null, h('input', box), swatch, label), count)];
  });
  return h('div', { class: 'map-legend' }, h('h2', null, title), h('ul', null, entries));
}

function selection() {
  const entries = picked.map(({ productId, name, sensingStart, cloudCoverPercent }) => {
    const href = addressOf(`/products/${encodeURIComponent(productId)}`);
    const sensed = sensingStart?.slice(0, 16).replace('T', ' ') ?? 'not known';
    const cloud = cloudCoverPercent === null ? '' : `, cloud ${cloudCoverPercent.toFixed(1)} %`;
    const facts = h('small', null, `sensed ${sensed}${cloud}`);
    return h('li', { key: productId }, h('a', { href, class: 'name' }, name), facts);
  });
  const title = `${countText.format(picked.length)} here`;
  const close = button('Close', () => select([]));
  return h(
    'div',
    { class: 'map-selection' },
    h('header', null, h('h2', null, title), close),
    h('ul', null, entries),
  );
}

/** The visible area as a filter. On a polar map: all longitudes if the pole is visible, otherwise the corners. */
function useView(): void {
  const { x, y, scale, width, height } = map.view;
  const corners = [
    [0, 0],
    [0, height],
    [width, height],
    [width, 0],
  ] as const;
  const positions = corners.map(([px, py]) => gestures.positionAt(px, py));
  const latitudes = positions.map(([, latitude]) => latitude);
  const [west, east] = [positions[0]?.[0] ?? 0, positions[2]?.[0] ?? 0];
  const box = (left: number, right: number, south: number, north: number): void =>
    openWith('bbox', boxText([left, south, right, north]));
  const [south, north] = [Math.min(...latitudes), Math.max(...latitudes)];
  const showsPole = Math.abs(x * scale) < width / 2 && Math.abs(y * scale) < height / 2;
  if (projection.period > 0) box(west, east, south, north);
  else if (!showsPole) openWith('polygon', polygonText(positions));
  else if (projection.name === 'arctic') box(-180, 180, Math.max(edgeLatitude, south), 90);
  else box(-180, 180, -90, Math.min(-edgeLatitude, north));
}

/** Opens the page with an area; the server adds it to the filter. */
function openWith(name: string, value: string): void {
  // A later change of the address could cancel the navigation.
  clearTimeout(saveTimer);
  const url = new URL(location.href);
  url.searchParams.set('view', viewText());
  url.searchParams.set(name, value);
  location.assign(url);
}

/** Draws texts, the selected outlines and the area being drawn. */
function drawOverlay(context: CanvasRenderingContext2D, view: View): void {
  const draft = drawing.outline();
  context.fillStyle = colours.text;
  context.strokeStyle = colours.land;
  context.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  drawTexts(context, { view, projection, names: isFine ? land.names : [] });
  context.strokeStyle = colours.text;
  for (const { shift } of copiesOf(projection, view)) {
    place(context, view, shift);
    context.lineWidth = 2.5 / view.scale;
    for (const { outline } of picked) context.stroke(outline);
    if (draft.length < 2) continue;
    context.setLineDash([6 / view.scale, 4 / view.scale]);
    context.stroke(shapeOf([draft], projection).path);
    context.setLineDash([]);
  }
  afterMove(view);
}

let savedView = '';
let saveTimer: ReturnType<typeof setTimeout> | undefined;

/** Writes the view to the URL when the map rests, and loads fine outlines for a close view. */
function afterMove(view: View): void {
  const text = viewText();
  if (text === savedView) return;
  savedView = text;
  clearTimeout(saveTimer);
  saveTimer = setTimeout(() => {
    saveState();
    if (isFine || view.scale < fineScale) return;
    isFine = true;
    void showLand(data.land.fine);
  }, 300);
}

/** Longitude and latitude of the centre, and zoom: doubles the scale with each step, 0 is 256 pixels for the globe. */
function viewText(): string {
  const { x, y, scale } = map.view;
  const digits = scale > 100 ? 4 : 2;
  const centre = projection.invert(x, y).map((value) => Number(value.toFixed(digits)));
  return [...centre, Number(Math.log2((scale * 360) / 256).toFixed(2))].join(',');
}

function showView(text: string): void {
  const [longitude = 0, latitude = 0, zoom] = text.split(',').map(Number);
  const [x, y] = projection.project([longitude, latitude]);
  gestures.show(
    zoom === undefined ? { x: 0, y: 0, scale: 0 } : { x, y, scale: (256 * 2 ** zoom) / 360 },
  );
}

function saveState(): void {
  const url = new URL(location.href);
  const shown = { view: viewText(), selected, colour, hidden: [...hidden].join(',') };
  for (const [name, value] of Object.entries(shown)) {
    if (value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
    const field = document.querySelector<HTMLInputElement>(`.toolbar input[name="${name}"]`);
    if (field !== null) field.value = value;
  }
  // Commas and colons need no escape, and make links readable.
  history.replaceState(null, '', url.href.replaceAll('%2C', ',').replaceAll('%3A', ':'));
}
