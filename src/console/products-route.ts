/** `/api/products`: the products that notifications told of, each in its newest state. */
import { z } from 'zod';
import { AppError, errorText } from '../domain/app-error.ts';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import { timeField, toProductJson } from '../domain/json-rows.ts';
import {
  defaultOrderOf,
  type FoundProduct,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type Products,
  productOrders,
} from '../domain/products.ts';
import { type SummaryReader, type SummaryText, toTextJson } from '../domain/summaries.ts';
import { parseBoundingBox } from '../filter/bounding-box.ts';
import { intersects } from '../filter/builder.ts';
import { requireFilter } from '../filter/check.ts';
import { orderableFields } from '../filter/fields.ts';
import { toFeature } from '../filter/product-view.ts';
import {
  type ApiRoute,
  apiRoute,
  flagParameter,
  limitParameter,
  nextField,
  withParameter,
} from './api-route.ts';
import { collect } from './notifications-route.ts';
import { textField } from './summaries-route.ts';

/** The columns of the index; null where the record does not say. */
export const productFields = z.object({
  position: z.int().describe('The position of the first notification that told of it.'),
  productId: z.string(),
  productName: z.string().nullable(),
  collection: z.string().nullable().describe('Derived, as records carry none: SENTINEL-2.'),
  platform: z.string().nullable(),
  productType: z.string().nullable(),
  processingLevel: z.string().nullable(),
  sensingStart: timeField.nullable(),
  sensingEnd: timeField.nullable(),
  publicationDate: timeField.nullable(),
  modificationDate: timeField.nullable(),
  sizeBytes: z.number().nullable(),
  online: z.boolean().nullable(),
  cloudCoverPercent: z.number().nullable(),
  orbitNumber: z.number().nullable(),
  relativeOrbitNumber: z.number().nullable(),
  orbitDirection: z.string().nullable(),
  tile: z.string().nullable(),
  processingBaseline: z.string().nullable(),
  receivedAt: timeField.describe('When the first notification about it came.'),
  deletionDate: timeField.nullable().describe('Null while it is alive.'),
  deletionCause: z.string().nullable(),
  record: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Its JSON in the form of the catalogue; there when `record=true`.'),
  summary: textField
    .nullable()
    .optional()
    .describe('The text about it, null where there is none; there when `summary=true`.'),
});

/** The condition that a box states, and what its writer may not have meant. */
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
    .describe("An expression in the catalogue's filter language; everything when empty."),
  bbox: boxParameter
    .optional()
    .describe(
      'Products whose footprint meets this box: west,south,east,north in degrees, such as 5.5,45,11,48. West beyond east: across the antimeridian. Joined to `filter` by `and`.',
    ),
  format: z
    .enum(['json', 'geojson'])
    .optional()
    .describe('`geojson` as with `Accept: application/geo+json`; by default what Accept asks for.'),
  deleted: flagParameter.describe('`true`: the deleted ones instead, kept as tombstones.'),
  orderby: z
    .enum(productOrders)
    .optional()
    .describe(
      '`received`, the order in which they were first heard of, unless told; with `deleted=true` DeletionDate. PublicationDate and ModificationDate are orders of those that are not deleted, DeletionDate of those that are.',
    ),
  direction: z.enum(['asc', 'desc']).default('desc'),
  limit: limitParameter,
  cursor: z.string().optional().describe('Out of a link to a next page, with the same order.'),
  record: flagParameter.describe('`true`: with the record of each.'),
  summary: flagParameter.describe('`true`: with the text that was written about each.'),
  count: flagParameter.describe('`true`: count all that match, too.'),
});

const query = parameters.superRefine(({ orderby, deleted }, context) => {
  const entity = entityOf({ deleted });
  const orders: readonly ProductOrder[] = ['received', ...orderableFields[entity]];
  if (orderby === undefined || orders.includes(orderby)) return;
  const message = `${entity} have no such order: use one of ${orders.join(', ')}`;
  context.addIssue({ code: 'custom', path: ['orderby'], message });
});

const answer = z.object({
  products: z.array(productFields),
  next: nextField,
  count: z.int().optional().describe('How many match; there when `count=true`.'),
});

const geoJsonType = 'application/geo+json';
const warningHeader = 'earshot-warning';

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
        .describe('Cut at the antimeridian; null for a product without a footprint.'),
      properties: productFields.extend({
        s3Path: z.string().nullable().describe('S3Path of the record.'),
        downloadUrl: z
          .url()
          .nullable()
          .describe('`$value` of the product at the catalogue; null for deleted products.'),
      }),
    }),
  ),
  next: nextField,
  count: z.int().optional().describe('How many match; there when `count=true`.'),
});

/** Builds the row of the table. */
export function productsRoute({
  products,
  summaries,
  catalogueUrl,
}: {
  products: Products;
  summaries: Pick<SummaryReader, 'textsOf'>;
  catalogueUrl: string;
}): ApiRoute {
  return apiRoute({
    path: '/api/products',
    operationId: 'listProducts',
    summary: 'Products in their newest state',
    description:
      'What the notifications told of, page by page, answered from the index. `/odata/v1/Products` answers the same in the form of the catalogue.',
    query,
    answer,
    otherAnswers: { [geoJsonType]: featureCollection },
    headers: {
      [warningHeader]: 'What the box does that may not be meant, such as latitudes first.',
      [lagHeader]:
        'How many notifications the index has yet to read; absent when it has read all of them.',
    },
    respond: async (asked, url, signal, accept) => {
      const source = { products, signal };
      const isGeoJson = isGeoJsonAsked(asked.format, accept);
      const page = await readProductPage(source, toQuery(asked, isGeoJson), asked.count === 'true');
      const next = page.next === null ? null : withParameter(url, 'cursor', cursorText(page.next));
      const ids = page.found.map(({ row }) => row.productId);
      const texts = asked.summary === 'true' ? await summaries.textsOf(ids) : null;
      const count = page.count === null ? {} : { count: page.count };
      const warning = asked.bbox?.warning;
      const headers = { ...page.headers, ...(warning ? { [warningHeader]: warning } : {}) };
      const more = (found: FoundProduct) => partsOf(found, asked.record === 'true', texts);
      if (!isGeoJson) {
        const rows = page.found.map((found) => ({ ...toProductJson(found.row), ...more(found) }));
        return { body: { products: rows, next, ...count }, headers };
      }
      const features = page.found.map((found) => {
        const feature = toFeature(found, catalogueUrl);
        return { ...feature, properties: { ...feature.properties, ...more(found) } };
      });
      return {
        body: { type: 'FeatureCollection' as const, features, next, ...count },
        headers: { ...headers, 'Content-Type': geoJsonType },
      };
    },
  });
}

function isGeoJsonAsked(format: 'json' | 'geojson' | undefined, accept: string): boolean {
  return format === undefined ? accept.toLowerCase().includes(geoJsonType) : format === 'geojson';
}

function toQuery(
  asked: z.output<typeof query>,
  isGeoJson: boolean,
): ProductQuery & { limit: number } {
  const { orderby, direction, limit } = asked;
  const entity = entityOf(asked);
  const by = orderby ?? defaultOrderOf(entity).by;
  return {
    entity,
    filter: both(requireFilter(asked.filter, entity), asked.bbox?.tree ?? null),
    order: { by, direction },
    after: keyOf(asked.cursor),
    limit,
    records: isGeoJson || asked.record === 'true',
  };
}

function entityOf({ deleted }: { deleted: 'true' | 'false' }): Entity {
  return deleted === 'true' ? 'DeletedProducts' : 'Products';
}

function keyOf(cursor: string | undefined): ProductKey | undefined {
  const key = cursor === undefined ? undefined : readCursor(cursor);
  if (key !== null) return key;
  throw new AppError('invalid', 'The cursor is not one of ours.', {
    advice: 'Take it from the link `next`.',
  });
}

function both(first: FilterTree | null, second: FilterTree | null): FilterTree | null {
  if (first === null || second === null) return first ?? second;
  const terms = first.node === 'and' ? first.terms : [first];
  return { node: 'and', terms: [...terms, second] };
}

/** What comes on top of the columns. */
function partsOf(
  { row, record }: FoundProduct,
  withRecord: boolean,
  texts: ReadonlyMap<string, SummaryText> | null,
) {
  const text = texts?.get(row.productId);
  return {
    ...(withRecord ? { record } : {}),
    ...(texts === null ? {} : { summary: text === undefined ? null : toTextJson(text) }),
  };
}

interface ProductPage {
  found: FoundProduct[];
  /** Where the next page begins; null when there is none. */
  next: ProductKey | null;
  /** Null when nobody asked. */
  count: number | null;
  headers: Record<string, string>;
}

/** Tells how many notifications the index has yet to read; absent when it has read all. */
export const lagHeader = 'earshot-index-lag';

/**
 * Reads at most `limit` products, and counts all that match where `count` is true. Rejects with
 * `cancelled` soon after the signal is aborted.
 */
export async function readProductPage(
  { products, signal }: { products: Products; signal: AbortSignal },
  { limit, ...query }: ProductQuery & { limit: number },
  count: boolean,
): Promise<ProductPage> {
  // First: should the index catch up meanwhile, the answer is better than its header says.
  const headers = await lagHeaders(products);
  const rows = products.find({ ...query, limit: limit + 1 }, signal);
  const [found, matching] = await Promise.all([
    limit === 0 ? [] : collect(rows, signal),
    count ? products.count(query, signal) : null,
  ]);
  const last = found.length > limit ? found.at(limit - 1) : undefined;
  const next = last === undefined ? null : products.keyOf(last.row, query);
  return { found: found.slice(0, limit), next, count: matching, headers };
}

async function lagHeaders(products: Products): Promise<Record<string, string>> {
  const { indexedPosition, lastPosition } = await products.indexState();
  const lag = lastPosition - indexedPosition;
  return lag > 0 ? { [lagHeader]: String(lag) } : {};
}

/** Letters that stand for themselves in a URL; good for the order that it was made with. */
export function cursorText({ value, position }: ProductKey): string {
  return `${value ?? 'null'}_${position}`;
}

/** Null for a text that no page of ours ever gave. */
export function readCursor(text: string): ProductKey | null {
  const [, value, position] = /^(null|-?\d{1,16})_(\d{1,16})$/.exec(text) ?? [];
  if (value === undefined || position === undefined) return null;
  const key = { value: value === 'null' ? null : Number(value), position: Number(position) };
  const isSafe = Number.isSafeInteger(key.position) && Number.isSafeInteger(key.value ?? 0);
  return isSafe ? key : null;
}
