/**
 * The product index: one row per product of the log, with its newest state.
 *
 * Terms: a product is *alive* until its newest known event is a deletion; then it is a *tombstone*. Its *record* is
 * its JSON in the form of the catalogue, from the newest notification that contains one. Times are microseconds since
 * 1970, UTC.
 */
import { z } from 'zod';
import type { productSchema } from '../core/terms/read-models.ts';
import { jsonOf } from '../core/terms/text.ts';
import { orderableFields } from './fields.ts';
import type { AnyGeometry, Box, Direction, Entity, FilterTree } from './filter-tree.ts';

/** A product in its newest state, existing or deleted. */
export interface ProductRow extends z.infer<typeof productSchema> {
  s3Path: string | null;
}

/** A row with its record: an object that always has an Id; Name and everything else may be absent. */
export interface FoundProduct {
  row: ProductRow;
  record: Readonly<Record<string, unknown>>;
  /**
   * Only if the query asks for footprints; null without one. An outline is GeoJSON, simplified for maps. An exact
   * footprint is as in the record.
   */
  footprint?: AnyGeometry | null;
}

export interface ProductQuery {
  /** `Products` for those alive, `DeletedProducts` for tombstones. */
  entity: Entity;
  /** Already checked for the entity; null for all. */
  filter: FilterTree | null;
  /** Limits products to those first received in [fromUs, untilUs). An absent bound is open. */
  received?: { fromUs?: number | undefined; untilUs?: number | undefined } | undefined;
  /** Limits products to those with a notification for this subscription. */
  subscription?: string | undefined;
  /** Limits products to those published at most this long after the end of their sensing, as `isTooOld` does. */
  maxAgeUs?: number | undefined;
  /** `defaultOrderOf` the entity by default. */
  order?: OrderTerm | readonly OrderTerm[] | undefined;
  /** Only products after this key, in the order. */
  after?: ProductKey | undefined;
  /** Number of products to skip. */
  skip?: number | undefined;
  limit?: number | undefined;
  /** False: records are not read and are empty. */
  records?: boolean | undefined;
  /** Products have their footprint from the index: its outline (true), or exact. */
  footprints?: boolean | 'exact' | undefined;
}

/** Conditions of a query, without order and page. */
export type ProductSelection = Pick<
  ProductQuery,
  'entity' | 'filter' | 'received' | 'subscription' | 'maxAgeUs'
>;

/** Progress of the index. */
export interface IndexProgress {
  /** Last indexed position of the log; 0 if the index was built from another log. */
  indexedPosition: number;
  /** Last position of the log. */
  lastPosition: number;
}

/**
 * Queries of the product index. No call delays the intake or the indexing. All reject with `unavailable` when the
 * index cannot be read, and with `cancelled` soon after the signal is aborted.
 */
export interface Products {
  /** Streams matching products, page by page. Rejects with `invalid` for an order that the entity lacks. */
  find(query: ProductQuery, signal?: AbortSignal): AsyncIterable<FoundProduct>;
  count(query: ProductSelection, signal?: AbortSignal): Promise<number>;
  /** Counts for at most two seconds. */
  quickCount(query: ProductSelection, signal?: AbortSignal): Promise<ProductCount>;
  /** Returns the key of a row from `find`, to continue after it. */
  keyOf(row: ProductRow, query: Pick<ProductQuery, 'entity' | 'order'>): ProductKey;
  indexProgress(): Promise<IndexProgress>;
  indexedPosition(): Promise<number>;
  /** Returns the indexed pushes of products, in any order; at most 1,000 ids. */
  pushedEvents(options: {
    subscription: string;
    productIds: readonly string[];
  }): Promise<PushedEvent[]>;
  /** Returns indexed notifications with their products, newest first. */
  events(query: EventQuery, signal?: AbortSignal): Promise<EventPage>;
  /** Counts the values of the newest matching products, at most 10,000. */
  facets(query: ProductSelection, signal?: AbortSignal): Promise<Facets>;
  /** Summarizes all existing products, sorted by mission and product type. Takes some seconds for a million products. */
  collections(signal?: AbortSignal): Promise<CollectionSummary[]>;
  /** Returns the delays of the notifications received in [sinceUs, untilUs), by hour and by collection. */
  timeliness(
    options: {
      sinceUs: number;
      untilUs: number;
      subscription?: string | undefined;
      /** Limits `total` and `hours`; `collections` contains all. */
      collection?: string | undefined;
    },
    signal?: AbortSignal,
  ): Promise<Timeliness>;
}

/** The existing products of a mission and a product type. Null: products without this value. */
export interface CollectionSummary {
  /** Collection of the catalogue, such as `SENTINEL-2`. */
  mission: string | null;
  productType: string | null;
  products: number;
  /** Extremes; null if no product has a value. */
  sensingStartUs: number | null;
  sensingEndUs: number | null;
  cloudCoverMin: number | null;
  cloudCoverMax: number | null;
  /** Box around all footprints, in degrees. */
  box: Box | null;
  /** Different values, sorted. Platforms are names with serial letter. */
  constellations: string[];
  platforms: string[];
  orbitDirections: string[];
  levels: string[];
}

/** Selects indexed notifications. An absent field sets no condition. */
export interface EventQuery {
  afterPosition?: number | undefined;
  beforePosition?: number | undefined;
  /** Position of the first notification about a product: only notifications about it. */
  product?: number | undefined;
  subscription?: string | undefined;
  /** In lower case. */
  events?: readonly string[] | undefined;
  /** Compared with the newest state of the product, existing or deleted. Already checked; null for all. */
  filter: FilterTree | null;
  limit: number;
}

/** A notification with the newest state of its product. */
export interface IndexedEvent {
  position: number;
  product: ProductRow;
  /** GeoJSON, simplified for maps; null without one. */
  footprint: AnyGeometry | null;
}

export interface EventPage {
  events: IndexedEvent[];
  /** Position to continue below; null when all were examined. */
  next: number | null;
}

export interface ProductCount {
  count: number;
  /** True if the time ended before all matches were counted. */
  isMinimum: boolean;
}

/** Properties of products that are counted. */
export const facetFields = [
  'collection',
  'platform',
  'productType',
  'processingLevel',
  'orbitDirection',
  'tile',
] as const;

export interface Facets {
  /** Number of products counted. */
  counted: number;
  /** False if there are more matching products than were counted. */
  complete: boolean;
  /** The most frequent values of each property, at most 20. */
  values: Record<(typeof facetFields)[number], { value: string; count: number }[]>;
}

/** An event as reported by one push. */
export interface PushedEvent {
  position: number;
  /** As in the query; case does not matter. */
  productId: string;
  /** In lower case. */
  event: string;
  /** PublicationDate, ModificationDate or DeletionDate of the record, according to the event; null without one. */
  eventUs: number | null;
  /** ModificationDate of the record, or null. */
  stateUs: number | null;
  notificationUs: number | null;
  receivedUs: number;
}

const percentiles = z
  .object({
    count: z.int().min(0).describe('Number of delays.'),
    negative: z.int().min(0).describe('Number of negative delays: the clocks disagree.'),
    p50: z.number().describe('Median.'),
    p90: z.number().describe('90 % of the delays are not longer.'),
    p99: z.number().describe('99 % of the delays are not longer.'),
    max: z.number().describe('Longest delay.'),
  })
  .nullable();

/** Percentiles of a delay within 1 %, in seconds; negative where the clocks disagree. */
export type DelayPercentiles = NonNullable<z.infer<typeof percentiles>>;

/** Delays by stage, with their notifications; null when not known. */
export const stageDelays = {
  sensingToPublication: percentiles.describe(
    'From the end of sensing to PublicationDate: created products, including recovered ones.',
  ),
  publicationToNotification: percentiles.describe(
    'From PublicationDate to NotificationDate: pushes of created products.',
  ),
  notificationToReceipt: percentiles.describe('From NotificationDate to receipt: all pushes.'),
};

/** Delays over several stages. Percentiles of stages cannot be added. */
const totals = {
  sensingToReceipt: percentiles.describe(
    'From the end of sensing to receipt: pushes of created products.',
  ),
  publicationToReceipt: percentiles.describe(
    'From PublicationDate to receipt: pushes of created products.',
  ),
};

/** Delays by stage, and over all stages. */
export const periodDelays = { ...stageDelays, ...totals };

export type DelayStage = keyof typeof stageDelays;

export const delayStages = Object.keys(stageDelays) as DelayStage[];

export const totalDelays = Object.keys(totals) as (keyof typeof totals)[];

type StageDelays = Record<DelayStage, DelayPercentiles | null>;

/** Delays by hour of receipt, and by collection. */
export interface Timeliness {
  total: Record<keyof typeof periodDelays, DelayPercentiles | null>;
  /** Hours with notifications, oldest first. */
  hours: (StageDelays & { hourUs: number })[];
  /** By name; null for products without a collection. */
  collections: (StageDelays & { collection: string | null })[];
}

/** Orders of lists; `received` is the order of the first notifications. */
export const productOrders = [
  'received',
  'ContentDate/Start',
  'ContentDate/End',
  'PublicationDate',
  'ModificationDate',
  'DeletionDate',
] as const;
export type ProductOrder = (typeof productOrders)[number];

/** Further orders of STAC items; `datetime` is the start of sensing, else the time of publication, else of receipt. */
type ItemOrder = 'datetime' | 'Name' | 'Id' | 'cloudCover';

/** Products without a value count as those with the smallest: they are first in ascending order. */
export interface OrderTerm {
  by: ProductOrder | ItemOrder;
  direction: Direction;
}

interface OrderedQuery {
  entity: Entity;
  /** Terms, one or two. Products that are equal in all of them are in the order of receipt, in the last direction. */
  order?: OrderTerm | readonly OrderTerm[] | undefined;
}

/** Default order. */
export function defaultOrderOf(entity: Entity): { by: ProductOrder; direction: Direction } {
  return { by: entity === 'Products' ? 'received' : 'DeletionDate', direction: 'desc' };
}

/** Returns the orders that lists of an entity may have. */
export function ordersOf(entity: Entity): ProductOrder[] {
  return ['received', ...orderableFields[entity]];
}

/** Returns the terms of an order, by default that of the entity. */
export function orderTerms({ entity, order }: OrderedQuery): readonly OrderTerm[] {
  const terms = [order ?? []].flat();
  return terms.length === 0 ? [defaultOrderOf(entity)] : terms;
}

/** Place of a product in an order: its values of the terms (without `received`), and its position. */
export interface ProductKey {
  values: readonly (string | number | null)[];
  position: number;
}

const keySchema = z.tuple([
  z.enum(['Products', 'DeletedProducts']),
  z.string(),
  z.array(z.union([z.string(), z.number(), z.null()])),
  z.int().min(0),
]);

/** Formats a key for URLs: letters, digits, `-` and `_`. Includes the order, as other orders have other keys. */
export function writeKey({ values, position }: ProductKey, query: OrderedQuery): string {
  const parts: z.input<typeof keySchema> = [query.entity, orderText(query), [...values], position];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/** Reads a key; null for an invalid one, and for one of another order. */
export function readKey(text: string, query: OrderedQuery): ProductKey | null {
  const parts = keySchema.safeParse(jsonOf(Buffer.from(text, 'base64url').toString())).data;
  if (parts === undefined) return null;
  const [entity, order, values, position] = parts;
  const isSame = entity === query.entity && order === orderText(query);
  return isSame ? { values, position } : null;
}

/** Formats an order as in `--orderby`. */
function orderText(query: OrderedQuery): string {
  return orderTerms(query)
    .map(({ by, direction }) => `${by} ${direction}`)
    .join(', ');
}
