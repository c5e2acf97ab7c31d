/** The page `/map`: footprints of received products on a map, and the same products as a list. */

import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  nextField,
  positionParameter,
  withParameter,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { zippedAnswer } from '../../core/http/compressed.ts';
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
import { linkTo, type PageState } from '../../core/page/page-state.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { hourUs } from '../../core/terms/dates.ts';
import { jsonSchemaOf, toJson } from '../../core/terms/json-rows.ts';
import { productSchema } from '../../core/terms/read-models.ts';
import { intersects } from '../../filter/builder.ts';
import { checkFilter, requireFilter } from '../../filter/check.ts';
import { collectionGroups } from '../../filter/fields.ts';
import type { FilterTree, Geometry, Position } from '../../filter/filter-tree.ts';
import { displayLimits, toGeoJson } from '../../filter/geometry/geojson.ts';
import { parseBoundingBox } from '../../filter/geometry/read-geometry.ts';
import { closedRing } from '../../filter/geometry/ring.ts';
import { printFilter } from '../../filter/print.ts';
import type { FoundProduct, ProductQuery, Products } from '../../filter/products.ts';
import { productColumns, smallMap } from '../products/page/product-list.ts';
import { withArea } from '../products/page/product-search.ts';
import { lagHeader, lagHeaders } from '../products/route.ts';
import type { MapData } from './browser/colours.ts';

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

const mapPage: PageRoute = {
  path: '/map',
  label: 'Map',
  group: 'data',
  scope: ['period', 'subscription'],
  back: '24h',
  list: async (parts, request) => {
    const { url, state, assets, signal } = request;
    const mapState = stateOf(url, state);
    const drawn = drawnArea(url.searchParams);
    const names = await subscriptionNames(parts);
    const page = { title: 'Map', controls: controls(state, mapState, names) };
    const { tree, errors } = checkFilter(state.filter, 'Products');
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
  return html`<section class="map" id="map" aria-label="Map">${smallMap(listed, { assets, label: 'Footprints of the listed products' })}
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
  { route: footprintsRoute(parts), line: 'large' },
];

const footprintLimits = {
  rowsMax: 10_000,
  /** Size of an answer; further products are on the next page. */
  bytesMax: 8_000_000,
};

/** Rows between two pauses, about a millisecond, so that an answer does not delay the intake. */
const rowsPerTurn = 50;

const query = z.strictObject({
  filter: z.string().default('').describe('Filter expression in the filter language.'),
  subscription: z
    .string()
    .optional()
    .describe('Only products with a notification for this subscription.'),
  since: dateParameter
    .optional()
    .describe('Only products first received at this time or later, ISO 8601.'),
  until: dateParameter.optional().describe('Only products first received before this time.'),
  after: positionParameter
    .optional()
    .describe('Only products with a higher position, oldest first: new products since a request.'),
  before: positionParameter.optional().describe('Only products with a lower position.'),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(footprintLimits.rowsMax)
    .default(1_000)
    .describe('Maximum number of footprints, from 1 to 10,000.'),
});

const rowSchema = productSchema.pick({
  position: true,
  productId: true,
  productName: true,
  collection: true,
  sensingStartUs: true,
  publicationDateUs: true,
  receivedAtUs: true,
  cloudCoverPercent: true,
});

const footprint = jsonSchemaOf(rowSchema).extend({
  geometry: z
    .looseObject({ type: z.string() })
    .describe(
      `GeoJSON, split at the antimeridian. Simplified to at most about ${displayLimits.positions} positions.`,
    ),
});
type FootprintJson = z.output<typeof footprint>;

const answer = z.object({
  indexedPosition: z.int().describe('Last position of the log in the product index.'),
  footprints: z
    .array(footprint)
    .describe('Products with a footprint, newest first; with `after`, oldest first.'),
  next: nextField,
});

/** Returns the route. */
function footprintsRoute({ products }: ConsoleParts): ApiRoute {
  return apiRoute({
    path: '/api/footprints',
    operationId: 'listFootprints',
    summary: 'Footprints of received products',
    description:
      'Outlines of the products first received in a period, with the values that a map shows as colours. Follows the product index, which may lag.',
    query,
    answer,
    headers: {
      [lagHeader]: 'Number of notifications not indexed yet; absent when all are indexed.',
    },
    respond: async ({ filter, since, until, limit, ...rest }, url, signal, client) => {
      if (rest.after !== undefined && rest.before !== undefined) {
        throw new AppError('invalid', '`after` and `before` cannot be combined.');
      }
      const headers = await lagHeaders(products);
      const indexedPosition = await products.indexedPosition();
      const tree = requireFilter(filter, 'Products');
      const question = { ...rest, filter: tree, sinceUs: since, untilUs: until };
      const texts: string[] = [];
      let [bytes, read] = [0, 0];
      let last: number | undefined;
      const isFull = () => texts.length >= limit || bytes >= footprintLimits.bytesMax;
      const found = receivedProducts(products, question, Infinity, signal);
      for await (const { row, footprint: geometry } of found) {
        last = row.position;
        read += 1;
        if (read % rowsPerTurn === 0) await yieldToOthers();
        if (!geometry) continue;
        const json: FootprintJson = { ...toJson(rowSchema, row), geometry };
        const text = JSON.stringify(json);
        texts.push(text);
        bytes += text.length;
        if (isFull()) break;
      }
      const parameter = rest.after === undefined ? 'before' : 'after';
      const next = isFull() && last !== undefined ? withParameter(url, parameter, last) : null;
      const head = `{"indexedPosition":${indexedPosition},"next":${JSON.stringify(next)},"footprints":[`;
      return zippedAnswer(client.headers.get('accept-encoding'), `${head}${texts.join(',')}]}`, {
        headers: { 'Content-Type': 'application/json', ...headers },
      });
    },
  });
}

interface FootprintQuestion {
  filter: FilterTree | null;
  subscription?: string | undefined;
  /** Limits of the time of first receipt. */
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Positions; with `after`, oldest first, otherwise newest first. */
  after?: number | undefined;
  before?: number | undefined;
}

/** Time by which an older product may follow a newer one, because a clock was set back. */
const clockToleranceUs = hourUs;

/** Streams products with their footprints. The scan ends at the first product that is clearly older than `sinceUs`. */
async function* receivedProducts(
  products: Products,
  { filter, subscription, sinceUs = 0, untilUs, after, before }: FootprintQuestion,
  limit: number,
  signal: AbortSignal,
): AsyncGenerator<FoundProduct> {
  const position = after ?? before;
  const question: ProductQuery = {
    entity: 'Products',
    filter,
    subscription,
    // Without a filter, the scan ends at the first older product; with one, the index leaves older ones out.
    received: { untilUs, fromUs: filter === null ? undefined : sinceUs - clockToleranceUs },
    order: { by: 'received', direction: after === undefined ? 'desc' : 'asc' },
    after: position === undefined ? undefined : { values: [], position },
    ...{ records: false, footprints: true, limit },
  };
  let count = 0;
  for await (const found of products.find(question, signal)) {
    signal.throwIfAborted();
    const { receivedAtUs } = found.row;
    if (after === undefined && receivedAtUs < sinceUs - clockToleranceUs) return;
    if (receivedAtUs < sinceUs) continue;
    yield found;
    count += 1;
    if (count >= limit) return;
  }
}
