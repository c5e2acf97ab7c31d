/** `/api/footprints`: outlines of the received products, for maps. */
import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import type { FilterTree, Geometry, Position, Ring } from '../domain/filter-tree.ts';
import { toProductJson } from '../domain/json-rows.ts';
import type { FoundProduct, ProductQuery, Products } from '../domain/products.ts';
import { requireFilter } from '../filter/check.ts';
import { toGeoJson } from '../filter/geometry/geojson.ts';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  nextField,
  positionParameter,
  withParameter,
} from './api-route.ts';
import { lagHeader, lagHeaders, productFields } from './products-route.ts';

export const footprintLimits = {
  rowsMax: 10_000,
  /** Size of an answer; further products are on the next page. */
  bytesMax: 8_000_000,
  /** Positions of a ring: a map of the globe does not show more. */
  ringPositionsMax: 400,
};

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

const rowFields = productFields.pick({
  position: true,
  productId: true,
  productName: true,
  collection: true,
  sensingStart: true,
  publicationDate: true,
  receivedAt: true,
  cloudCoverPercent: true,
});

const footprint = rowFields.extend({
  geometry: z
    .object({ type: z.string(), coordinates: z.array(z.unknown()).readonly() })
    .describe(
      `GeoJSON, split at the antimeridian. Rings of more than ${footprintLimits.ringPositionsMax} positions are simplified.`,
    ),
});
type FootprintJson = z.output<typeof footprint>;

const answer = z.object({
  indexedPosition: z.int().describe('Last position of the log in the product index.'),
  footprints: z.array(footprint).describe('Products with a footprint, newest first.'),
  next: nextField,
});

/** Returns the route. The text is written row by row, so that a large answer does not delay the intake. */
export function footprintsRoute(products: Products): ApiRoute {
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
    respond: async ({ filter, since, until, limit, ...rest }, url, signal) => {
      if (rest.after !== undefined && rest.before !== undefined) {
        throw new AppError('invalid', '`after` and `before` cannot be combined.');
      }
      const headers = await lagHeaders(products);
      const indexedPosition = await products.indexedPosition();
      const tree = requireFilter(filter, 'Products');
      const question = { ...rest, filter: tree, sinceUs: since, untilUs: until };
      const texts: string[] = [];
      let bytes = 0;
      let last: number | undefined;
      const isFull = () => texts.length >= limit || bytes >= footprintLimits.bytesMax;
      for await (const found of receivedProducts(products, question, Infinity, signal)) {
        last = found.row.position;
        const json = footprintJson(found);
        if (json === null) continue;
        const text = JSON.stringify(json);
        texts.push(text);
        bytes += text.length;
        if (isFull()) break;
      }
      const parameter = rest.after === undefined ? 'before' : 'after';
      const next = isFull() && last !== undefined ? withParameter(url, parameter, last) : null;
      const head = `{"indexedPosition":${indexedPosition},"next":${JSON.stringify(next)},"footprints":[`;
      return new Response(`${head}${texts.join(',')}]}`, {
        headers: { ...headers, 'Content-Type': 'application/json' },
      });
    },
  });
}

export interface FootprintQuestion {
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
const clockToleranceUs = 3_600_000_000;

/** Streams products with their footprints. The scan ends at the first product that is clearly older than `sinceUs`. */
export async function* receivedProducts(
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
    received: { untilUs },
    order: { by: 'received', direction: after === undefined ? 'desc' : 'asc' },
    after: position === undefined ? undefined : { value: position, position },
    records: false,
    footprints: true,
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

/** Returns null for a product without a footprint. */
function footprintJson({ row, footprint: geometry }: FoundProduct): FootprintJson | null {
  if (!geometry) return null;
  return {
    ...rowFields.parse(toProductJson(row)),
    geometry: rounded(toGeoJson(simplified(geometry))),
  };
}

function simplified(geometry: Geometry): Geometry {
  const { ringPositionsMax } = footprintLimits;
  const thin = (ring: Ring): Ring => {
    if (ring.length <= ringPositionsMax) return ring;
    const step = Math.ceil(ring.length / ringPositionsMax);
    return ring.filter((_, i) => i % step === 0 || i === ring.length - 1);
  };
  if (geometry.type === 'Polygon')
    return { ...geometry, coordinates: geometry.coordinates.map(thin) };
  if (geometry.type !== 'MultiPolygon') return geometry;
  return { ...geometry, coordinates: geometry.coordinates.map((rings) => rings.map(thin)) };
}

/** Rounds to 11 m: more digits only make the answer larger. */
function rounded(geometry: Geometry): Geometry {
  const near = ([x, y]: Position): Position => [
    Math.round(x * 10_000) / 10_000,
    Math.round(y * 10_000) / 10_000,
  ];
  const ring = (positions: Ring) => positions.map(near);
  switch (geometry.type) {
    case 'Point':
      return { ...geometry, coordinates: near(geometry.coordinates) };
    case 'MultiPoint':
      return { ...geometry, coordinates: ring(geometry.coordinates) };
    case 'Polygon':
      return { ...geometry, coordinates: geometry.coordinates.map(ring) };
    case 'MultiPolygon':
      return { ...geometry, coordinates: geometry.coordinates.map((one) => one.map(ring)) };
  }
}
