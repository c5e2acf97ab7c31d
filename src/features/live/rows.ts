/** Rows of the live feed: new notifications with short texts about their products. */
import { z } from 'zod';
import { isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { timeField } from '../../core/terms/json-rows.ts';
import type { NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import type { FilterTree } from '../../filter/filter-tree.ts';
import { productCells } from '../../filter/product-facts.ts';
import type { EventPage, IndexedEvent, Products } from '../../filter/products.ts';
import { placeOf } from '../products/places/places.ts';

export interface LiveSources {
  products: Products;
  notifications: NotificationLog;
}

const cell = z.string().nullable();

const cellsField = z
  .object({ mission: cell, type: cell, sensed: cell, tile: cell, cloud: cell, place: cell })
  .describe('Short texts for lists.');

const liveRowSchema = z.object({
  position: z.int(),
  productId: z.string(),
  productName: z.string().nullable(),
  event: z.string(),
  subscription: z.string().nullable(),
  notificationDate: timeField.nullable(),
  receivedAt: timeField,
  cells: cellsField,
});
export type LiveRow = z.infer<typeof liveRowSchema>;

export const frameSchema = z.object({
  lastPosition: z.int(),
  indexedPosition: z.int().nullable().describe('Null without a product index.'),
  count: z.int().describe('Number of new matching notifications.'),
  omitted: z
    .int()
    .describe(
      'Number of new notifications that this frame does not list, because there are too many. With parameters, also some that do not match.',
    ),
  rows: z.array(liveRowSchema).describe('New notifications, newest first.'),
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

/** Returns the newest positions. Without a product index, it is expected to start with the next notification. */
export async function newestCursor({ products, notifications }: LiveSources): Promise<Cursor> {
  const position = await notifications.lastPosition();
  const indexed = await products.indexedPosition().catch(unlessUnavailable);
  return { position, indexed: indexed ?? position };
}

/** Formats a cursor as the id of an event. */
export function cursorText({ position, indexed }: Cursor): string {
  return `${position}.${indexed}`;
}

/** Rows of a frame, about 60 kB. Further notifications are only counted. */
export const rowsMax = 100;

/** Size of all rows of a frame as JSON, in addition to their maximum number. */
const rowBytesMax = 128 * 1024;

/** Products of earlier notifications: rows of the frames while the index reads one batch. */
const productsMax = 400;

type Frame = Pick<LiveFrame, 'count' | 'omitted' | 'rows' | 'products'>;

/** Reads the rows between two cursors. With a filter, rows follow the index, which knows the products. */
export async function readFrame(
  { products, notifications }: LiveSources,
  { subscription, events, filter, rows: rowsRequested }: LiveQuery,
  { from, to }: { from: Cursor; to: Cursor },
): Promise<Frame> {
  const limit = Math.min(rowsMax, rowsRequested);
  const arrived = to.position - from.position;
  if (limit === 0) return { count: arrived, omitted: 0, rows: [], products: [] };
  const indexed = async (max: number): Promise<EventPage> => {
    if (to.indexed <= from.indexed) return { events: [], next: null };
    const span = { afterPosition: from.indexed, beforePosition: to.indexed + 1 };
    return products.events({ ...span, subscription, events, filter, limit: max });
  };
  if (filter !== null) {
    const page = await indexed(limit);
    const omitted = page.next === null ? 0 : page.next - from.indexed - 1;
    return { ...counted(page.events.map(indexedRow), omitted), products: [] };
  }
  const span = { afterPosition: from.position, beforePosition: to.position + 1 };
  const query = { ...span, subscription, events, limit, order: 'newest' as const };
  const rows = arrived === 0 ? [] : await Array.fromAsync(notifications.find(query));
  const { events: known } = await indexed(productsMax);
  const omitted = rows.length < limit ? 0 : (rows.at(-1)?.position ?? 0) - from.position - 1;
  const earlier = known.filter(({ position }) => position <= from.position);
  const described = earlier.map((one) => ({ position: one.position, cells: cellsOf(one) }));
  return {
    ...counted(loggedRows(rows, known), omitted),
    products: withinBytes(described, rowBytesMax),
  };
}

/** Counts the rows of a frame, and omits the oldest ones beyond the size. */
function counted(all: LiveRow[], omitted: number): Omit<Frame, 'products'> {
  const rows = withinBytes(all, rowBytesMax);
  return { count: rows.length, omitted: omitted + all.length - rows.length, rows };
}

/** Returns the first items up to a size: texts about products come from outside, and may be long. */
function withinBytes<Item>(all: readonly Item[], bytesMax: number): Item[] {
  let bytes = 0;
  return all.filter((item) => {
    bytes += Buffer.byteLength(JSON.stringify(item));
    return bytes <= bytesMax;
  });
}

/** Size of a list of 200 rows as JSON; usual are 100 kB. */
const listBytesMax = 1024 * 1024;

/** Pages of indexed notifications that a list with a filter examines, about 10,000 notifications each. */
const pagesMax = 20;

export interface NewestRows {
  rows: LiveRow[];
  /** Time until which the list is complete; null for the whole period. */
  completeSinceUs: number | null;
}

type NewestQuery = Pick<LiveQuery, 'subscription' | 'events' | 'filter'> & {
  sinceUs: number;
  untilUs: number;
  limit: number;
};

/** Returns the newest notifications as rows of the feed, newest first; with a filter, the newest indexed ones. */
export async function newestLiveRows(
  parts: LiveSources,
  query: NewestQuery,
  signal?: AbortSignal,
): Promise<NewestRows> {
  const newest =
    query.filter === null
      ? { rows: await newestLoggedRows(parts, query, signal), completeSinceUs: null }
      : await newestMatchingRows(parts, query, signal);
  return { ...newest, rows: withinBytes(newest.rows, listBytesMax) };
}

async function newestMatchingRows(
  { products, notifications }: LiveSources,
  { sinceUs, untilUs, limit, ...query }: NewestQuery,
  signal?: AbortSignal,
): Promise<NewestRows> {
  // The order of receipt is the order of the positions, except for pushes at the same time.
  const edge = async (order: 'newest' | 'oldest') =>
    (await Array.fromAsync(notifications.find({ sinceUs, untilUs, order, limit: 1 })))[0];
  const [newest, oldest] = [await edge('newest'), await edge('oldest')];
  const rows: LiveRow[] = [];
  if (newest === undefined || oldest === undefined) return { rows, completeSinceUs: null };
  const afterPosition = oldest.position - 1;
  let beforePosition: number | null = newest.position + 1;
  for (let i = 0; i < pagesMax && beforePosition !== null && rows.length < limit; i += 1) {
    const span = { afterPosition, beforePosition, limit: limit - rows.length };
    const page = await products.events({ ...query, ...span }, signal);
    rows.push(...page.events.map(indexedRow));
    beforePosition = page.next;
  }
  if (beforePosition === null || rows.length >= limit) return { rows, completeSinceUs: null };
  const rest = notifications.find({ afterPosition: beforePosition - 1, order: 'oldest', limit: 1 });
  const [last] = await Array.fromAsync(rest);
  return { rows, completeSinceUs: last?.receivedAtUs ?? sinceUs };
}

async function newestLoggedRows(
  { products, notifications }: LiveSources,
  { subscription, events, limit, sinceUs, untilUs }: NewestQuery,
  signal?: AbortSignal,
): Promise<LiveRow[]> {
  const found = notifications.find({ subscription, events, limit, sinceUs, untilUs });
  const rows = await Array.fromAsync(found);
  const [newest, oldest] = [rows[0], rows.at(-1)];
  if (newest === undefined || oldest === undefined) return [];
  const span = { afterPosition: oldest.position - 1, beforePosition: newest.position + 1 };
  const page = await products
    .events({ ...span, subscription, events, filter: null, limit }, signal)
    .catch(unlessUnavailable);
  return loggedRows(rows, page?.events ?? []);
}

function indexedRow(event: IndexedEvent): LiveRow {
  const { productId, productName } = event.product;
  const notificationDateUs = event.notificationUs;
  return liveRow({ ...event, productId, productName, notificationDateUs }, cellsOf(event));
}

/** Returns rows of the log with texts about the products that are indexed. */
function loggedRows(rows: readonly NotificationRow[], indexed: readonly IndexedEvent[]): LiveRow[] {
  const known = new Map(indexed.map((one) => [one.position, one]));
  return rows.map((row) => {
    const event = known.get(row.position);
    return liveRow(row, event === undefined ? cellsOfName(row) : cellsOf(event));
  });
}

type RowFacts = Pick<
  NotificationRow,
  'position' | 'productId' | 'productName' | 'event' | 'subscription'
> & { notificationDateUs: number | null; receivedAtUs: number };

function liveRow(row: RowFacts, cells: LiveRow['cells']): LiveRow {
  const { position, productId, productName, event, subscription, notificationDateUs } = row;
  return {
    ...{ position, productId, productName, event, subscription },
    notificationDate: notificationDateUs === null ? null : formatDateUs(notificationDateUs),
    receivedAt: formatDateUs(row.receivedAtUs),
    cells,
  };
}

function cellsOf({ product, footprint }: IndexedEvent): LiveRow['cells'] {
  return productCells(product, placeOf(footprint));
}

/** Describes a product that is not indexed yet by its name. */
function cellsOfName({ productName }: RowFacts): LiveRow['cells'] {
  return productCells({ ...unknownFacts, productName }, null);
}

const unknownFacts = {
  ...{ platform: null, productType: null, processingLevel: null, sensingStartUs: null },
  ...{ cloudCoverPercent: null, orbitNumber: null, relativeOrbitNumber: null, tile: null },
};

export function unlessUnavailable(error: unknown): null {
  if (isAppError(error, 'unavailable')) return null;
  throw error;
}
