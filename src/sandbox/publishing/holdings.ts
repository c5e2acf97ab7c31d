/** Products stored in the catalogue: the newest state of each published and each deleted product. */
import { type OrderableField, orderableFields } from '../../filter/fields.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import { createRecordArchive, type StoredProduct } from './record-archive.ts';

type Entity = keyof typeof orderableFields;

/** Range [fromUs, toUs), microseconds since 1970. */
export interface DateRange {
  readonly fromUs: number;
  readonly toUs: number;
}

/** A query for products in an order. */
interface Query {
  /** At least one range is applied; the result's `covered` names it. */
  readonly ranges: ReadonlyMap<OrderableField, DateRange>;
  /** Null: order of publication, regardless of modifications, or order of deletion. */
  readonly orderby: {
    readonly field: OrderableField;
    readonly direction: 'asc' | 'desc';
  } | null;
}

/** Products in the order of the query. */
export interface Selection {
  readonly size: number;
  /** Field whose range all products are in; null if no range was applied. */
  readonly covered: OrderableField | null;
  /** Iterates over the products after the first `skip`. Valid until the next event. */
  items(skip: number): Iterable<StoredProduct>;
}

/**
 * Default maximum number of products, and of deleted products; the oldest are dropped. `$skip` and `$top`
 * reach 11,000. Beyond the newest 4,000, a record takes about 1 kB of memory.
 */
export const holdingsMaxDefault = 12_000;

export type Holdings = ReturnType<typeof createHoldings>;

/** Creates empty holdings. `now` (ms since 1970) determines when delayed records become visible. */
export function createHoldings({
  holdingsMax = holdingsMaxDefault,
  now = () => Number.POSITIVE_INFINITY,
}: {
  holdingsMax?: number;
  now?: () => number;
} = {}) {
  const archive = createRecordArchive();
  const delayed = createDelayedRecords();
  const of = {
    Products: createEntityStore(orderableFields.Products, holdingsMax),
    DeletedProducts: createEntityStore(orderableFields.DeletedProducts, holdingsMax),
  };
  let events = 0;
  const upToDate = () => {
    for (const [key, { stored }] of delayed.removeDue(now())) of.Products.put(key, stored);
    return of;
  };
  return {
    /**
     * Applies an event. Queries find the product from `shownFromMs` on (default: immediately); a deletion is
     * always visible immediately.
     */
    apply: (
      event: NotificationEvent,
      record: StoredProduct['record'],
      shownFromMs = Number.NEGATIVE_INFINITY,
    ): StoredProduct => {
      events += 1;
      const stored = archive.keep(record);
      const key = record.Id.toLowerCase();
      const { Products, DeletedProducts } = upToDate();
      DeletedProducts.remove(key);
      if (event === 'deleted') {
        Products.remove(key);
        delayed.remove(key);
        DeletedProducts.put(key, stored);
      } else if (shownFromMs > now()) delayed.put(key, stored, shownFromMs);
      else Products.put(key, stored);
      return stored;
    },
    select: (entity: Entity, query: Query): Selection => upToDate()[entity].select(query),
    /** Finds a product by id, case-insensitive. If unchanged, it is the same object that `apply` returned. */
    find: (entity: Entity, id: string): StoredProduct | undefined =>
      upToDate()[entity].find(id.toLowerCase()),
    /** Returns counts. `events` includes those that match no subscription. */
    totals: () => {
      const { Products, DeletedProducts } = upToDate();
      return { products: Products.size(), deletedProducts: DeletedProducts.size(), events };
    },
  };
}

/** Creates a collection of published records that queries do not find yet. */
function createDelayedRecords() {
  const delayed = new Map<string, { stored: StoredProduct; shownFromMs: number }>();
  // Avoids checking every record on each call.
  let nextMs = Number.POSITIVE_INFINITY;
  return {
    put: (key: string, stored: StoredProduct, shownFromMs: number) => {
      delayed.set(key, { stored, shownFromMs });
      nextMs = Math.min(nextMs, shownFromMs);
    },
    remove: (key: string) => void delayed.delete(key),
    /** Removes and returns the records visible at `nowMs`, in order of time. */
    removeDue: (nowMs: number) => {
      if (nowMs < nextMs) return [];
      const due = [...delayed]
        .filter(([, { shownFromMs }]) => shownFromMs <= nowMs)
        .sort(([, one], [, other]) => one.shownFromMs - other.shownFromMs);
      for (const [key] of due) delayed.delete(key);
      nextMs = Number.POSITIVE_INFINITY;
      for (const { shownFromMs } of delayed.values()) nextMs = Math.min(nextMs, shownFromMs);
      return due;
    },
  };
}

interface Entry {
  readonly key: string;
  readonly stored: StoredProduct;
  /** Microseconds since 1970, one per field; -Infinity if absent. */
  readonly datesUs: readonly number[];
  /** Sequential number of the product; a change keeps it. */
  readonly number: number;
}

type Indexes = ReadonlyMap<OrderableField, ReturnType<typeof createDateIndex>>;

/** Dates of events. Queries use other dates too rarely to justify an index. */
const indexedFields: readonly string[] = ['PublicationDate', 'ModificationDate', 'DeletionDate'];

/** Creates an empty store of the last `holdingsMax` products, by id and by date. */
function createEntityStore(fields: readonly OrderableField[], holdingsMax: number) {
  // A Map keeps the insertion order, so that a client that reads pages while products are published and
  // modified sees each product once.
  const entries = new Map<string, Entry>();
  const indexed = fields.filter((field) => indexedFields.includes(field));
  const indexes: Indexes = new Map(
    indexed.map((field) => [field, createDateIndex(fields.indexOf(field))]),
  );
  let count = 0;
  const unindex = (entry: Entry) => {
    for (const index of indexes.values()) index.remove(entry);
  };
  const remove = (key: string) => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    unindex(entry);
  };
  return {
    put: (key: string, stored: StoredProduct) => {
      const known = entries.get(key);
      if (known !== undefined) unindex(known);
      const { view } = stored;
      const datesUs = fields.map((field) => view.dateUs(field) ?? Number.NEGATIVE_INFINITY);
      const entry = { key, stored, datesUs, number: known?.number ?? count };
      count += 1;
      entries.set(key, entry);
      for (const index of indexes.values()) index.add(entry);
      const [oldest] = entries.size > holdingsMax ? entries.keys() : [];
      if (oldest !== undefined) remove(oldest);
    },
    remove,
    find: (key: string) => entries.get(key)?.stored,
    size: () => entries.size,
    select: (query: Query): Selection => {
      const { orderby } = query;
      const narrowest = narrowestRange(query, indexes);
      const ordered = orderby?.direction === 'asc' ? indexes.get(orderby.field) : undefined;
      if (narrowest === null) {
        const all = ordered?.entries ?? inOrder([...entries.values()], orderby, fields);
        return selectionOf(all, 0, all.length, null);
      }
      const { field, index, start, end } = narrowest;
      if (index === ordered) return selectionOf(index.entries, start, end, field);
      const found = inOrder(index.entries.slice(start, end), orderby, fields);
      return selectionOf(found, 0, found.length, field);
    },
  };
}

function narrowestRange({ ranges, orderby }: Query, indexes: Indexes) {
  const found = [...ranges].flatMap(([field, range]) => {
    const index = indexes.get(field);
    if (index === undefined) return [];
    const { start, end } = index.find(range);
    // Prefers the requested order if two ranges are equally narrow.
    const size = end - start + (field === orderby?.field ? 0 : 0.5);
    return [{ field, index, start, end, size }];
  });
  return found.toSorted((one, other) => one.size - other.size)[0] ?? null;
}

function inOrder(
  entries: Entry[],
  orderby: Query['orderby'],
  fields: readonly OrderableField[],
): readonly Entry[] {
  if (orderby === null) return entries.sort((one, other) => one.number - other.number);
  const direction = orderby.direction === 'asc' ? 1 : -1;
  return entries.sort(byDate(fields.indexOf(orderby.field), direction));
}

/** Selects the indexes from `start` to before `end`. */
function selectionOf(
  entries: readonly Entry[],
  start: number,
  end: number,
  covered: OrderableField | null,
): Selection {
  return {
    size: end - start,
    covered,
    items: function* (skip) {
      for (let index = start + skip; index < end; index += 1) {
        const entry = entries[index];
        if (entry !== undefined) yield entry.stored;
      }
    },
  };
}

/** Creates an empty index of `datesUs[field]`. Fast if entries arrive nearly in order. */
function createDateIndex(field: number) {
  const entries: Entry[] = [];
  const compare = byDate(field);
  const indexOf = (entry: Entry) => firstIndex(entries, (other) => compare(other, entry) >= 0);
  return {
    /** Entries in order: absent dates first, equal dates by key. */
    entries: entries as readonly Entry[],
    add: (entry: Entry) => void entries.splice(indexOf(entry), 0, entry),
    remove: (entry: Entry) => {
      const index = indexOf(entry);
      if (entries[index] === entry) entries.splice(index, 1);
    },
    /** Returns the indexes of a date range, from `start` to before `end`. Absent dates are in no range. */
    find: ({ fromUs, toUs }: DateRange) => {
      const before = (us: number) => firstIndex(entries, (entry) => dateOf(entry, field) >= us);
      const start = before(Math.max(fromUs, -Number.MAX_VALUE));
      return { start, end: Math.max(start, before(toUs)) };
    },
  };
}

/** Compares by a date in `direction`, equal dates by ascending Id like the catalogue. Absent dates come first. */
function byDate(field: number, direction: 1 | -1 = 1) {
  return (one: Entry, other: Entry): number => {
    const [oneUs, otherUs] = [dateOf(one, field), dateOf(other, field)];
    if (oneUs !== otherUs) return oneUs < otherUs ? -direction : direction;
    if (one.key === other.key) return 0;
    return one.key < other.key ? -1 : 1;
  };
}

function dateOf({ datesUs }: Entry, field: number): number {
  return datesUs[field] ?? Number.NEGATIVE_INFINITY;
}

/** Returns the first index from which a condition holds, by bisection. Checks the end first, where most are added. */
function firstIndex(entries: readonly Entry[], holds: (entry: Entry) => boolean): number {
  const newest = entries.at(-1);
  if (newest === undefined || !holds(newest)) return entries.length;
  let [low, high] = [0, entries.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries[middle];
    if (entry !== undefined && holds(entry)) high = middle;
    else low = middle + 1;
  }
  return low;
}
