/** `/api/products`: products of the received notifications, each in its newest state. */

import { stringify } from 'csv-stringify/sync';
import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  flagParameter,
  limitParameter,
  maxAgeParameter,
  nextField,
  withParameter,
} from '../../core/api/api-route.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import { csvOptions, jsonSchemaOf } from '../../core/terms/json-rows.ts';
import { collect } from '../../core/terms/ports.ts';
import {
  productSchema,
  type SummaryText,
  summaryTextSchema,
  toProductJson,
  toTextJson,
} from '../../core/terms/read-models.ts';
import { intersects } from '../../filter/builder.ts';
import { requireFilter } from '../../filter/check.ts';
import type { Entity } from '../../filter/filter-tree.ts';
import { parseBoundingBox } from '../../filter/geometry/read-geometry.ts';
import { withCondition } from '../../filter/product-conditions.ts';
import { toFeature } from '../../filter/product-view.ts';
import {
  defaultOrderOf,
  type FoundProduct,
  ordersOf,
  type ProductCount,
  type ProductKey,
  type ProductQuery,
  type Products,
  productOrders,
  readKey,
  writeKey,
} from '../../filter/products.ts';
import { productFieldNames, productValues } from './output.ts';

const productJson = jsonSchemaOf(
  productSchema.extend({
    record: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Record of the product, as the JSON of the catalogue. Only with `record=true`.'),
    summary: summaryTextSchema
      .nullable()
      .optional()
      .describe('Summary of the product; null without a summary. Only with `summary=true`.'),
  }),
);

/** Parses a box to a condition, and a warning if it is probably a mistake. */
const boxParameter = z.string().transform((text, context) => {
  try {
    const { geometry, warning } = parseBoundingBox(text);
    return { tree: intersects(geometry).tree, warning };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    context.addIssue({ code: 'custom', message: errorText(error) });
    return z.NEVER;
  }
});

const parameters = z.strictObject({
  filter: z
    .string()
    .default('')
    .describe(
      'Filter expression in the filter language of the catalogue. An empty filter matches all products.',
    ),
  bbox: boxParameter
    .optional()
    .describe(
      'Only products whose footprint intersects this box: west,south,east,north in degrees, such as 5.5,45,11,48. If west is greater than east, the box crosses the antimeridian. Products must match both `bbox` and `filter`.',
    ),
  since: dateParameter
    .optional()
    .describe('Only products first received at this time or later, ISO 8601.'),
  until: dateParameter.optional().describe('Only products first received before this time.'),
  subscription: z
    .string()
    .optional()
    .describe('Only products with a notification for this subscription.'),
  maxAge: maxAgeParameter,
  format: z
    .enum(['json', 'geojson', 'csv'])
    .optional()
    .describe(
      '`geojson` has the same effect as the header `Accept: application/geo+json`. `csv` has the columns of `earshot query products --output csv`; the header Link contains the next page. The default is the format of the Accept header.',
    ),
  deleted: flagParameter.describe('`true`: search deleted products instead of existing products.'),
  orderby: z
    .enum(productOrders)
    .optional()
    .describe(
      'Order of the results. `received`: by the first notification about each product. The default is `received`, or DeletionDate with `deleted=true`. DeletionDate requires `deleted=true`; PublicationDate and ModificationDate cannot be combined with `deleted=true`.',
    ),
  direction: z.enum(['asc', 'desc']).default('desc'),
  limit: limitParameter,
  cursor: z
    .string()
    .optional()
    .describe('Start of the page, as in the URL in `next`. Valid only for the same order.'),
  record: flagParameter.describe('`true`: include the record of each product.'),
  summary: flagParameter.describe('`true`: include the summary of each product.'),
  count: flagParameter.describe(
    '`true`: include the number of matching products. If counting takes more than 2 s, the number is a minimum: the answer then has `countIsMinimum`, and the header `earshot-count: minimum`.',
  ),
});

const query = parameters.superRefine(({ orderby, deleted }, context) => {
  const entity = entityOf({ deleted });
  const orders = ordersOf(entity);
  if (orderby === undefined || orders.includes(orderby)) return;
  const message = `invalid order for ${entity}; allowed: ${orders.join(', ')}`;
  context.addIssue({ code: 'custom', path: ['orderby'], message });
});

const pageFields = {
  next: nextField,
  count: z.int().optional().describe('Number of matching products. Only with `count=true`.'),
  countIsMinimum: z.literal(true).optional().describe('Present if there may be more products.'),
};

const answer = z.object({ products: z.array(productJson), ...pageFields });

const geoJsonType = 'application/geo+json';
export const warningHeader = 'earshot-warning';

/** RFC 7946, with `next` and `count` as foreign members. */
const featureCollection = z.object({
  type: z.literal('FeatureCollection'),
  features: z.array(
    z.object({
      type: z.literal('Feature'),
      id: z.string(),
      geometry: z
        .looseObject({ type: z.string() })
        .nullable()
        .describe('Footprint, split at the antimeridian; null without a footprint.'),
      properties: productJson.extend({
        s3Path: z.string().nullable().describe('S3Path of the record.'),
        downloadUrl: z
          .url()
          .nullable()
          .describe('URL of `$value` of the product in the catalogue; null for deleted products.'),
      }),
    }),
  ),
  ...pageFields,
});

interface ProductParts {
  products: Products;
  textsOf: (productIds: readonly string[]) => Promise<ReadonlyMap<string, SummaryText>>;
  catalogueUrl: string;
}

/** Returns the route. */
export function productsRoute({ products, textsOf, catalogueUrl }: ProductParts): ApiRoute {
  return apiRoute({
    path: '/api/products',
    operationId: 'listProducts',
    summary: 'Products in their newest state',
    description:
      'Pages of products from the product index. `/odata/v1/Products` returns the same products in the format of the catalogue.',
    query,
    answer,
    otherAnswers: { [geoJsonType]: featureCollection },
    textAnswers: ['text/csv'],
    headers: {
      Link: 'With `format=csv`: URL of the next page, with `rel="next"` (RFC 8288); absent on the last page.',
      [warningHeader]: 'Probable mistake in the box, such as latitudes first.',
      [lagHeader]: 'Number of notifications not indexed yet; absent when all are indexed.',
    },
    respond: async (params, url, signal, { headers: requested }) => {
      const isAccepted = requested.get('accept')?.toLowerCase().includes(geoJsonType);
      const format = params.format ?? (isAccepted ? 'geojson' : 'json');
      const asked = toQuery(params, format);
      const page = await readProductPage({ products, signal }, asked, params.count === 'true');
      const next =
        page.next === null ? null : withParameter(url, 'cursor', writeKey(page.next, asked));
      const ids = page.found.map(({ row }) => row.productId);
      const texts = params.summary === 'true' ? await textsOf(ids) : null;
      const warning = params.bbox?.warning;
      const headers = { ...page.headers, ...(warning && { [warningHeader]: warning }) };
      if (format === 'csv') {
        const type = { 'Content-Type': 'text/csv; charset=utf-8' };
        const link = next === null ? {} : { Link: `<${next}>; rel="next"` };
        const columns = productFieldNames({ texts: texts !== null });
        const rows = page.found.map((one) =>
          productValues(one, catalogueUrl, texts?.get(one.row.productId)),
        );
        const csv = stringify(rows, { ...csvOptions, header: true, columns });
        return new Response(csv, { headers: { ...headers, ...type, ...link } });
      }
      const more = ({ row, record }: FoundProduct) => {
        const text = texts?.get(row.productId);
        return {
          ...(params.record === 'true' ? { record } : {}),
          ...(texts === null ? {} : { summary: text === undefined ? null : toTextJson(text) }),
        };
      };
      const { count, isMinimum } = page.count ?? {};
      const counts = isMinimum ? { count, countIsMinimum: true as const } : { count };
      if (format === 'json') {
        const rows = page.found.map((found) => ({ ...toProductJson(found.row), ...more(found) }));
        return { body: { products: rows, next, ...counts }, headers };
      }
      const features = page.found.map((found) => {
        const feature = toFeature(found, catalogueUrl);
        return { ...feature, properties: { ...feature.properties, ...more(found) } };
      });
      return {
        body: { type: 'FeatureCollection' as const, features, next, ...counts },
        headers: { ...headers, 'Content-Type': geoJsonType },
      };
    },
  });
}

function toQuery(
  params: z.output<typeof query>,
  format: 'json' | 'geojson' | 'csv',
): ProductQuery & { limit: number } {
  const { orderby, direction, limit, since, until, subscription, maxAge, cursor } = params;
  const entity = entityOf(params);
  const order = { by: orderby ?? defaultOrderOf(entity).by, direction };
  const after = cursor === undefined ? undefined : readKey(cursor, { entity, order });
  if (after === null) {
    const advice = 'Use the link `next` of the previous page.';
    throw new AppError('invalid', 'The cursor is invalid.', { advice });
  }
  const filter = requireFilter(params.filter, entity);
  return {
    entity,
    filter: params.bbox === undefined ? filter : withCondition(filter, params.bbox.tree),
    received: { fromUs: since, untilUs: until },
    subscription,
    maxAgeUs: maxAge,
    order,
    after,
    limit,
    records: format !== 'json' || params.record === 'true',
  };
}

function entityOf({ deleted }: { deleted: 'true' | 'false' }): Entity {
  return deleted === 'true' ? 'DeletedProducts' : 'Products';
}

interface ProductPage {
  found: FoundProduct[];
  /** Start of the next page; null on the last page. */
  next: ProductKey | null;
  /** Null when not requested. */
  count: ProductCount | null;
  headers: Record<string, string>;
}

/** Header of a count that ended early; absent for a complete one. */
const countHeader = { 'earshot-count': 'minimum' };

/** Header with the number of notifications not indexed yet; absent when all are indexed. */
export const lagHeader = 'earshot-index-lag';

/**
 * Reads at most `limit` products, and counts all matches if `count` is true. Rejects with `cancelled` soon after the
 * signal is aborted.
 */
export async function readProductPage(
  { products, signal }: { products: Products; signal: AbortSignal },
  { limit, ...query }: ProductQuery & { limit: number },
  count: boolean,
): Promise<ProductPage> {
  // Read first: if the index catches up meanwhile, the answer is newer than the header states.
  const headers = await lagHeaders(products);
  const rows = products.find({ ...query, limit: limit + 1 }, signal);
  const found = limit === 0 ? [] : await collect(rows, signal);
  const isWhole = limit > 0 && found.length <= limit && !query.skip && query.after === undefined;
  const whole = isWhole ? { count: found.length, isMinimum: false } : null;
  const matching = count ? (whole ?? (await products.quickCount(query, signal))) : null;
  const last = found.length > limit ? found.at(limit - 1) : undefined;
  const next = last === undefined ? null : products.keyOf(last.row, query);
  if (matching?.isMinimum) Object.assign(headers, countHeader);
  return { found: found.slice(0, limit), next, count: matching, headers };
}

/** Returns the header with the lag of the index, if it lags. */
export async function lagHeaders(products: Products): Promise<Record<string, string>> {
  const { indexedPosition, lastPosition } = await products.indexProgress();
  const lag = lastPosition - indexedPosition;
  return lag > 0 ? { [lagHeader]: String(lag) } : {};
}
