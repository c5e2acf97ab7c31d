/** The page `/map`: footprints of received products on a map, and the same products as a list. */

import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import {
  choice,
  filterErrors,
  filterField,
  type PageRequest,
  type PageRoute,
  periodChoice,
  stateForm,
  subscriptionNames,
} from '../../core/page/layout.ts';
import { emptyState, type Html, html, panel, table } from '../../core/page/markup.ts';
import { linkTo, type PageState, productLink } from '../../core/page/page-state.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { parseBoundingBox } from '../../filter/bounding-box.ts';
import { intersects } from '../../filter/builder.ts';
import { checkFilter } from '../../filter/check.ts';
import type { Geometry, Position } from '../../filter/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { closedRing } from '../../filter/geometry/ring.ts';
import { collectionGroups } from '../../filter/missions.ts';
import { printFilter } from '../../filter/print.ts';
import { productNameText } from '../../filter/product-cells.ts';
import type { FoundProduct } from '../../filter/products.ts';
import { productColumns } from '../products/page/product-columns.ts';
import { withArea } from '../products/page/product-search.ts';
import { smallMap } from '../products/page/small-map.ts';
import { footprintLimits, footprintsRoute, receivedProducts } from './footprints-route.ts';

/** Products of the list below the map. */
const listedMax = 100;

const projections = [
  ['', 'plate carrée'],
  ['arctic', 'arctic'],
  ['antarctic', 'antarctic'],
] as const;

const colours = [
  ['', 'collection'],
  ['age', 'age'],
  ['cloud', 'cloud cover'],
  ['delay', 'delay'],
] as const;

/** Data of the script. */
export interface MapData {
  /** Address of the footprints, newest first. */
  footprints: string;
  footprintsMax: number;
  /** Start of the period; `sinceMs` before now unless that is null. */
  since: string;
  sinceMs: number | null;
  /** Null for a period that has not ended: products can arrive. */
  until: string | null;
  projection: string;
  colour: string;
  /** Classes of the legend that are off, with commas between them. */
  hidden: string;
  /** Centre and zoom of the URL, `longitude,latitude,zoom`; '' for the whole map. */
  view: string;
  /** Product to select; '' for none. */
  selected: string;
  /** Groups of collections with a colour of their own. */
  collectionGroups: readonly string[];
  /** Addresses of the land outlines. */
  land: { coarse: string; fine: string };
}

export const mapPage: PageRoute = {
  path: '/map',
  label: 'Map',
  key: 'm',
  group: 'data',
  scope: ['period', 'subscription'],
  shortcuts: [
    ['← ↑ ↓ → + − 0', 'move or zoom the map, show all of it'],
    ['Enter Backspace', 'select on the map or finish a polygon, remove its last corner'],
    ['Escape', 'stop drawing on the map'],
  ],
  back: '24h',
  list: async (parts, request) => {
    const { url, state, assets, signal } = request;
    const mapState = stateOf(url, state);
    const drawn = drawnArea(url.searchParams);
    const names = await subscriptionNames(parts);
    const page = { title: 'Map', controls: controls(state, mapState, names) };
    const { tree, findings } = checkFilter(state.filter, 'Products');
    const errors = findings.filter(({ severity }) => severity === 'error');
    if (errors.length > 0) return { ...page, body: filterErrors(state.filter, errors) };
    if (drawn !== null) {
      return {
        location: linkTo('/map', {
          ...mapState,
          filter: printFilter(withArea(tree, intersects(drawn).tree)),
        }),
      };
    }
    const { subscription, sinceUs, until, untilUs } = state;
    const period = { sinceUs, untilUs: until === undefined ? undefined : untilUs };
    const question = { filter: tree, subscription, ...period };
    const listed = await Array.fromAsync(
      receivedProducts(parts.products, question, listedMax, signal),
    );
    const { filter, projection = '', colour = '', view = '' } = mapState;
    const { selected = '', hidden = '' } = mapState;
    const data: MapData = {
      footprints: `/api/footprints?${new URLSearchParams({ filter, ...(subscription && { subscription }) })}`,
      footprintsMax: footprintLimits.rowsMax,
      ...periodOf(state, request.nowUs),
      ...{ projection, colour, view, selected, hidden, collectionGroups },
      land: { coarse: assets.urlOf('land-coarse.json'), fine: assets.urlOf('land-fine.json') },
    };
    return {
      ...page,
      wide: true,
      scripts: ['map.js'],
      data,
      body: html`${mapPanel(listed, request)}${listPanel(listed, request)}`,
    };
  },
};

type MapState = ReturnType<typeof stateOf>;

function stateOf({ searchParams }: URL, { since, until, subscription, filter }: PageState) {
  const chosen = (name: string, options: readonly (readonly [string, string])[]) =>
    options.find(([value]) => value === searchParams.get(name))?.[0];
  const numbers = (searchParams.get('view') ?? '').split(',');
  const isView =
    numbers.length === 3 && numbers.every((text) => /^-?\d{1,4}(\.\d{1,8})?$/.test(text));
  const view = isView ? numbers.join(',') : undefined;
  return {
    since,
    until,
    subscription,
    filter,
    projection: chosen('projection', projections),
    colour: chosen('colour', colours),
    view,
    selected: searchParams.get('selected')?.slice(0, 100),
    hidden: searchParams.get('hidden')?.slice(0, 200),
  };
}

/** The period for the API. A relative start moves while the page is open. */
function periodOf({ since, sinceUs, until, untilUs }: PageState, nowUs: number) {
  const iso = (us: number) => new Date(us / 1_000).toISOString();
  const isRelative = until === undefined && /^(\d+[mhd])?$/.test(since ?? '');
  return {
    since: iso(sinceUs),
    sinceMs: isRelative ? (nowUs - sinceUs) / 1_000 : null,
    until: until === undefined ? null : iso(untilUs),
  };
}

/** Reads an area drawn on the map: `bbox`, or `polygon` as `longitude latitude,longitude latitude,…`. */
function drawnArea(parameters: URLSearchParams): Geometry | null {
  const [bbox, polygon] = [parameters.get('bbox'), parameters.get('polygon')];
  if (bbox !== null) return parseBoundingBox(bbox).geometry;
  if (polygon === null) return null;
  const ring = polygon.split(',').map((text): Position => {
    const [longitude = Number.NaN, latitude = Number.NaN] = text.trim().split(/\s+/).map(Number);
    return [longitude, latitude];
  });
  if (ring.length < 3 || !ring.flat().every(Number.isFinite)) {
    throw new AppError(
      'invalid',
      '`polygon` must be at least three positions: longitude latitude,…',
    );
  }
  // Cut at the antimeridian: how the catalogue reads an edge across it is unknown.
  return toGeoJson({ type: 'Polygon', coordinates: [closedRing(ring)] });
}

function controls(
  state: PageState,
  { projection, colour, view, selected, hidden }: MapState,
  names: readonly string[],
): Html {
  const subscriptions = names.map((name) => [name, name] as const);
  const area =
    state.filter === ''
      ? ''
      : html`<a class="button" href="${linkTo('/map', { since: state.since, until: state.until, subscription: state.subscription, projection, colour, view })}">Clear filter</a>`;
  return stateForm(
    '/map',
    html`${choice('colour', 'colour', colours, colour)}${choice('projection', 'projection', projections, projection)}
${choice('subscription', 'subscription', [['', 'all'], ...subscriptions], state.subscription)}${periodChoice(state, '24h')}
${filterField(state)}${area}`,
    { view, selected, hidden },
  );
}

/** The script replaces the small map with the large one. */
function mapPanel(listed: readonly FoundProduct[], { assets }: PageRequest): Html {
  const items = listed.map(({ row, footprint }) => ({
    title: productNameText(row),
    href: productLink(row.productId),
    footprint,
  }));
  return html`<section class="map" id="map" aria-label="Map">${smallMap(items, { assets, label: 'Footprints of the listed products' })}
<noscript><p class="note">The large map needs JavaScript. The list has the newest ${listedMax} products.</p></noscript></section>`;
}

function listPanel(listed: readonly FoundProduct[], { state, nowUs }: PageRequest): Html {
  const title = 'Products on this map';
  if (listed.length === 0) {
    return panel(
      title,
      emptyState(
        'No product in this period matches.',
        'Choose a longer period, or clear the filter.',
      ),
    );
  }
  const count = listed.length < listedMax ? `${listed.length}` : `the newest ${listedMax}`;
  const { filter, since, until, subscription } = state;
  const all = linkTo('/products', { filter, since, until, subscription });
  return panel(
    title,
    table(productColumns(nowUs), listed, { caption: title, list: true }),
    html`${count} · <a href="${all}">search these products</a>`,
  );
}

export const pages = [mapPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  // The largest answer of this API.
  { route: footprintsRoute(parts), line: 'large', isCompressed: true },
];
