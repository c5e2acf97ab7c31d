/** Rows of the live feed: new notifications with short texts about their products. */
import { z } from 'zod';
import { isAppError } from '../domain/app-error.ts';
import { formatDateUs } from '../domain/dates.ts';
import type { FilterTree } from '../domain/filter-tree.ts';
import { timeField } from '../domain/json-rows.ts';
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import { type ProductCells, productCells } from '../domain/product-cells.ts';
import type { IndexedEvent, Products } from '../domain/products.ts';

export interface LiveSources {
  products: Products;
  notifications: NotificationLog;
}

const cell = z.string().nullable();

const cellsField = z
  .object({ mission: cell, type: cell, sensed: cell, tile: cell, cloud: cell, place: cell })
  .describe('Short texts for lists.');

const liveRow = z.object({
  position: z.int(),
  productId: z.string(),
  productName: z.string().nullable(),
  event: z.string(),
  subscription: z.string().nullable(),
  notificationDate: timeField.nullable(),
  receivedAt: timeField,
  cells: cellsField,
});
export type LiveRow = z.infer<typeof liveRow>;

export const frameSchema = z.object({
  lastPosition: z.int(),
  indexedPosition: z.int().nullable().describe('Null without a product index.'),
  count: z.int().describe('Number of new matching notifications.'),
  omitted: z
    .int()
    .describe(
      'Number of new notifications that this frame does not list, because there are too many.',
    ),
  rows: z.array(liveRow).describe('New notifications, newest first.'),
  products: z
    .array(z.object({ position: z.int(), cells: cellsField }))
    .describe('Products of earlier notifications that were indexed since.'),
});
export type LiveFrame = z.infer<typeof frameSchema>;

export interface LiveQuery {
  subscription?: string | undefined;
  events?: readonly string[] | undefined;
  filter: FilterTree | null;
  rows: number;
  /** Positions after which the stream continues; null for now. */
  after: Cursor | null;
}

/** Positions up to which a viewer was served. */
export interface Cursor {
  position: number;
  indexed: number;
}

type Frame = Pick<LiveFrame, 'count' | 'omitted' | 'rows' | 'products'>;

/** Reads the rows between two cursors, at most `rowsMax`. With a filter, rows follow the index, which knows the products. */
export async function readFrame(
  { products, notifications }: LiveSources,
  { subscription, events, filter, rows: rowsRequested }: LiveQuery,
  { from, to }: { from: Cursor; to: Cursor },
  rowsMax: number,
): Promise<Frame> {
  const limit = Math.min(rowsMax, rowsRequested);
  const indexed = async (): Promise<IndexedEvent[]> => {
    if (limit === 0 || to.indexed <= from.indexed) return [];
    const span = { afterPosition: from.indexed, beforePosition: to.indexed + 1 };
    const page = await products.events({ ...span, subscription, events, filter, limit });
    return page.events;
  };
  if (filter !== null) {
    const found = await indexed();
    const omitted =
      found.length < limit ? 0 : Math.max(0, to.indexed - from.indexed - found.length);
    return { count: found.length, omitted, rows: found.map(indexedRow), products: [] };
  }
  const arrived = to.position - from.position;
  if (limit === 0) return { count: arrived, omitted: 0, rows: [], products: [] };
  const span = { afterPosition: from.position, beforePosition: to.position + 1 };
  const query = { ...span, subscription, events, limit, order: 'newest' as const };
  const rows = arrived === 0 ? [] : await Array.fromAsync(notifications.find(query));
  const known = (await indexed()).map(({ position, ...event }) => ({
    position,
    cells: withoutShort(productCells(event.product, event.centre)),
  }));
  const cells = new Map(known.map((one) => [one.position, one.cells]));
  return {
    count: rows.length,
    omitted: rows.length < limit ? 0 : arrived - rows.length,
    rows: rows.map((row) => ({
      ...toLiveRow(row),
      cells: cells.get(row.position) ?? cellsOfName(row),
    })),
    products: known.filter(({ position }) => position <= from.position),
  };
}

/** Returns the newest notifications as rows of the feed, newest first; with a filter, the newest indexed ones. */
export async function newestLiveRows(
  parts: LiveSources,
  query: Pick<LiveQuery, 'subscription' | 'events' | 'filter'> & {
    sinceUs: number;
    untilUs: number;
    limit: number;
  },
  signal?: AbortSignal,
): Promise<LiveRow[]> {
  const { products, notifications } = parts;
  const { filter, subscription, events, limit, sinceUs, untilUs } = query;
  if (filter !== null) {
    const page = await products.events({ filter, subscription, events, limit }, signal);
    const isWithin = (us: number) => us >= sinceUs && us < untilUs;
    return page.events.filter(({ receivedAtUs }) => isWithin(receivedAtUs)).map(indexedRow);
  }
  const found = notifications.find({ subscription, events, limit, sinceUs, untilUs });
  const rows = await Array.fromAsync(found);
  const [newest, oldest] = [rows[0], rows.at(-1)];
  if (newest === undefined || oldest === undefined) return [];
  const span = { afterPosition: oldest.position - 1, beforePosition: newest.position + 1 };
  const page = await products
    .events({ ...span, subscription, events, filter: null, limit }, signal)
    .catch(unlessUnavailable);
  const cells = new Map(
    (page?.events ?? []).map((one) => [one.position, productCells(one.product, one.centre)]),
  );
  return rows.map((row) => {
    const known = cells.get(row.position);
    return {
      ...toLiveRow(row),
      cells: known === undefined ? cellsOfName(row) : withoutShort(known),
    };
  });
}

function indexedRow(one: IndexedEvent): LiveRow {
  const { position, event, subscription, receivedAtUs, notificationUs, product, centre } = one;
  return {
    ...{ position, event, subscription },
    productId: product.productId,
    productName: product.productName,
    notificationDate: notificationUs === null ? null : formatDateUs(notificationUs),
    receivedAt: formatDateUs(receivedAtUs),
    cells: withoutShort(productCells(product, centre)),
  };
}

function toLiveRow(row: NotificationRow): Omit<LiveRow, 'cells'> {
  const {
    position,
    productId,
    productName,
    event,
    subscription,
    notificationDateUs,
    receivedAtUs,
  } = row;
  return {
    ...{ position, productId, productName, event, subscription },
    notificationDate: notificationDateUs === null ? null : formatDateUs(notificationDateUs),
    receivedAt: formatDateUs(receivedAtUs),
  };
}

/** Describes a product that is not indexed yet by its name. */
function cellsOfName({ productName }: NotificationRow): LiveRow['cells'] {
  const unknown = {
    platform: null,
    productType: null,
    processingLevel: null,
    sensingStartUs: null,
  };
  const others = {
    cloudCoverPercent: null,
    orbitNumber: null,
    relativeOrbitNumber: null,
    tile: null,
  };
  return withoutShort(productCells({ productName, ...unknown, ...others }, null));
}

function withoutShort({ short: _, ...cells }: ProductCells): LiveRow['cells'] {
  return cells;
}

export function unlessUnavailable(error: unknown): null {
  if (isAppError(error, 'unavailable')) return null;
  throw error;
}
