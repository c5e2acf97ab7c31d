/**
 * What is known of the products that notifications told of: one row each, in its newest state.
 *
 * Words: a product is *alive* until a deletion that is newer than all else is known of it; then it is a
 * *tombstone*. Its *record* is its JSON in the catalogue's own form, as the newest notification with
 * one brought it. Times are microseconds since 1970, UTC.
 */
import type { Direction, Entity, FilterTree } from './filter-tree.ts';

/** The columns of the index; null where the record does not say. */
export interface ProductRow {
  /** The position of the first notification that told of it. */
  position: number;
  productId: string;
  productName: string | null;
  /** Derived, as records carry none: `SENTINEL-2`. */
  collection: string | null;
  /** `SENTINEL-2A`: name and serial letter. */
  platform: string | null;
  productType: string | null;
  processingLevel: string | null;
  sensingStartUs: number | null;
  sensingEndUs: number | null;
  publicationUs: number | null;
  modificationUs: number | null;
  sizeBytes: number | null;
  online: boolean | null;
  cloudCoverPercent: number | null;
  orbitNumber: number | null;
  relativeOrbitNumber: number | null;
  orbitDirection: string | null;
  tile: string | null;
  processingBaseline: string | null;
  /** When the first notification about it came. */
  receivedAtUs: number;
  /** Null while it is alive. */
  deletionUs: number | null;
  deletionCause: string | null;
}

/** A row with its record, always an object with Id; Name and all else may be missing. */
export interface FoundProduct {
  row: ProductRow;
  record: Readonly<Record<string, unknown>>;
}

/** What products can be ordered by; `received` is the order in which they were first heard of. */
export const productOrders = [
  'received',
  'ContentDate/Start',
  'ContentDate/End',
  'PublicationDate',
  'ModificationDate',
  'DeletionDate',
] as const;
export type ProductOrder = (typeof productOrders)[number];

/** The order of a query that names none. */
export function defaultOrderOf(entity: Entity): { by: ProductOrder; direction: Direction } {
  return { by: entity === 'Products' ? 'received' : 'DeletionDate', direction: 'desc' };
}

/** Where a page ended: the value it was ordered by (null counts as the smallest) and the position. */
export interface ProductKey {
  value: number | null;
  position: number;
}

export interface ProductQuery {
  /** `Products` are those alive, `DeletedProducts` the tombstones. */
  entity: Entity;
  /** Must have passed the check for the entity; null for all. */
  filter: FilterTree | null;
  /** Only products whose first notification was received within [fromUs, untilUs). An absent end is open. */
  received?: { fromUs?: number | undefined; untilUs?: number | undefined } | undefined;
  /** `defaultOrderOf` the entity unless told. Ties by position. */
  order?: { by: ProductOrder; direction: Direction } | undefined;
  /** Only what comes after this key in the order. */
  after?: ProductKey | undefined;
  /** Passed over before the first. */
  skip?: number | undefined;
  limit?: number | undefined;
  /** False: records are not read, and come empty. */
  records?: boolean | undefined;
}

/** How a query is answered, for the curious. */
export interface QueryExplanation {
  /** What narrows the search: the index and the part of the filter it answers; null for a walk. */
  narrowedBy: string | null;
  /** The conditions that columns answer, and those for which records must be read; as filter texts. */
  byColumns: string[];
  byRecords: string[];
  /** The steps of SQLite's plan. */
  plan: string[];
}

/** How far the index has got. */
export interface IndexState {
  /** The position of the log that is indexed; 0 where the index was made from another log. */
  indexedPosition: number;
  /** The log's last position. */
  lastPosition: number;
  products: number;
  tombstones: number;
  /** Notifications that could not be indexed; they are in the log all the same. */
  skipped: number;
}

/**
 * The products, to be asked. None of these calls ever delays the intake or the indexing. All reject with
 * `unavailable` when the index cannot be read, and with `cancelled` soon after the signal is aborted.
 */
export interface Products {
  /** Streams what matches, page by page. Rejects with `invalid` for an order that the entity lacks. */
  find(query: ProductQuery, signal?: AbortSignal): AsyncIterable<FoundProduct>;
  count(
    query: Pick<ProductQuery, 'entity' | 'filter' | 'received'>,
    signal?: AbortSignal,
  ): Promise<number>;
  /** The key of a row that `find` gave, to go on from there. */
  keyOf(row: ProductRow, query: Pick<ProductQuery, 'entity' | 'order'>): ProductKey;
  explain(query: ProductQuery): Promise<QueryExplanation>;
  indexState(): Promise<IndexState>;
  /** The position of the log that is indexed, as `indexState` has it, without counting anything. */
  indexedPosition(): Promise<number>;
  /** What pushes told of products, as far as it is indexed; at most 1,000 ids, in any order. */
  pushedEvents(options: {
    subscription: string;
    productIds: readonly string[];
  }): Promise<PushedEvent[]>;
  /** Of what was received within [sinceUs, untilUs); by subscription, null for paths without a name. */
  delays(
    options: { sinceUs: number; untilUs: number; subscription?: string | undefined },
    signal?: AbortSignal,
  ): Promise<SubscriptionDelays[]>;
}

/** What one push told. */
export interface PushedEvent {
  position: number;
  /** As it was asked for; its case does not matter. */
  productId: string;
  /** In lower case. */
  event: string;
  /** PublicationDate, ModificationDate or DeletionDate of its record, as its event says; null without one. */
  eventUs: number | null;
  /** The record's ModificationDate, or null. */
  stateUs: number | null;
  notificationUs: number | null;
  receivedUs: number;
}

/** Percentiles of a delay, in milliseconds; negative where the clocks disagree. */
export interface DelayPercentiles {
  count: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  maxMs: number;
}

/** How late things are; null where nothing is known. */
export interface SubscriptionDelays {
  subscription: string | null;
  /** From the end of sensing to PublicationDate, of created products; recovered ones count, too. */
  sensingToPublication: DelayPercentiles | null;
  /** From PublicationDate to NotificationDate, of pushes of created products. */
  publicationToNotification: DelayPercentiles | null;
  /** From NotificationDate to the receipt, of all pushes. */
  notificationToReceipt: DelayPercentiles | null;
}
