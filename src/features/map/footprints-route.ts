/** `/api/footprints`: outlines of the received products, for maps. */
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
import { AppError } from '../../core/terms/app-error.ts';
import { hourUs } from '../../core/terms/dates.ts';
import { jsonSchemaOf, toJson } from '../../core/terms/json-rows.ts';
import type { NotificationLog } from '../../core/terms/ports.ts';
import { productSchema } from '../../core/terms/read-models.ts';
import { requireFilter } from '../../filter/check.ts';
import type { FilterTree } from '../../filter/filter-tree.ts';
import { displayLimits } from '../../filter/geometry/geojson.ts';
import type { FoundProduct, ProductQuery, Products } from '../../filter/products.ts';
import { lagHeader } from '../products/route.ts';

export const footprintLimits = {
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
    .object({
      type: z.string(),
      coordinates: z.array(z.unknown()).readonly().optional(),
      geometries: z
        .array(
          z.object({ type: z.string(), coordinates: z.array(z.unknown()).readonly().optional() }),
        )
        .readonly()
        .optional()
        .describe('Instead of coordinates, if the type is GeometryCollection.'),
    })
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
export function footprintsRoute({
  products,
  notifications,
}: {
  products: Products;
  notifications: Pick<NotificationLog, 'lastPosition'>;
}): ApiRoute {
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
      const indexedPosition = await products.indexedPosition();
      const lag = (await notifications.lastPosition()) - indexedPosition;
      const tree = requireFilter(filter, 'Products');
      const question = { ...rest, filter: tree, sinceUs: since, untilUs: until };
      const texts: string[] = [];
      let [bytes, read] = [0, 0];
      let last: number | undefined;
      const isFull = () => texts.length >= limit || bytes >= footprintLimits.bytesMax;
      for await (const found of receivedProducts(products, question, Infinity, signal)) {
        last = found.row.position;
        read += 1;
        if (read % rowsPerTurn === 0) await yieldToOthers();
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
        headers: {
          'Content-Type': 'application/json',
          ...(lag > 0 ? { [lagHeader]: String(lag) } : {}),
        },
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
const clockToleranceUs = hourUs;

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
    // Without a filter, the scan ends at the first older product; with one, the index leaves older ones out.
    received: { untilUs, fromUs: filter === null ? undefined : sinceUs - clockToleranceUs },
    order: { by: 'received', direction: after === undefined ? 'desc' : 'asc' },
    after: position === undefined ? undefined : { values: [], position },
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
  return geometry ? { ...toJson(rowSchema, row), geometry } : null;
}
