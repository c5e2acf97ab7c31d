/** The products that the catalogue holds: the newest state of each published one, and of each deleted one. */
import { type OrderableField, orderableFields } from '../../filter/fields.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import { createRecordArchive, type StoredProduct } from './record-archive.ts';

type Entity = keyof typeof orderableFields;

/** From the first to before the second; microseconds since 1970. */
export interface DateRange {
  readonly fromUs: number;
  readonly toUs: number;
}

/** A query for products, and their order. */
interface Query {
  /** One of them is answered, the others may be. */
  readonly ranges: ReadonlyMap<OrderableField, DateRange>;
  /** Null for the order of publication, whatever was modified since; or of deletion. */
  readonly orderby: {
    readonly field: OrderableField;
    readonly direction: 'asc' | 'desc';
  } | null;
}

/** Products in an order. */
export interface Selection {
  readonly size: number;
  /** The field whose range holds for all of them; null when none was checked. */
  readonly covered: OrderableField | null;
  /** Returns them one after the other, without the first `skip`. Valid until the next event. */
  items(skip: number): Iterable<StoredProduct>;
}

/**
 * Default of how many of each are kept; the oldest go first. `$skip` and `$top` reach 11,000. Beyond
 * the newest 4,000, a record takes some 1 kB of memory.
 */
export const holdingsMaxDefault = 12_000;

export type Holdings = ReturnType<typeof createHoldings>;

/** Creates empty holdings that keep `holdingsMax` of each; `now`, ms since 1970, decides when delayed records show. */
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
     * Takes in what an event says of a product. The lists show it from `shownFromMs` on, by default at
     * once; until then the catalogue knows nothing of it, but a deletion always shows at once.
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
    /** Finds by id in any case; a product that did not change is the same object as `apply` returned. */
    find: (entity: Entity, id: string): StoredProduct | undefined =>
      upToDate()[entity].find(id.toLowerCase()),
    /** Returns counts; `events` are publications, changes and deletions so far, for a subscription or not. */
    totals: () => {
      const { Products, DeletedProducts } = upToDate();
      return { products: Products.size(), deletedProducts: DeletedProducts.size(), events };
    },
  };
}

/** Creates a collection of records that the lists do not show yet, although their products are published. */
function createDelayedRecords() {
  const delayed = new Map<string, { stored: StoredProduct; shownFromMs: number }>();
  // Saves a check of all of them each time.
  let nextMs = Number.POSITIVE_INFINITY;
  return {
    put: (key: string, stored: StoredProduct, shownFromMs: number) => {
      delayed.set(key, { stored, shownFromMs });
      nextMs = Math.min(nextMs, shownFromMs);
    },
    remove: (key: string) => void delayed.delete(key),
    /** Takes out what is to be shown by now, in the order of its moments. */
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
  /** Microseconds since 1970, one for each field; -Infinity for one that is absent. */
  readonly datesUs: readonly number[];
  /** Counts up with each product that comes; what changes keeps its number. */
  readonly number: number;
}

type Indexes = ReadonlyMap<OrderableField, ReturnType<typeof createDateIndex>>;

/** The dates of events; other dates are asked for too rarely to be kept in order. */
const indexedFields: readonly string[] = ['PublicationDate', 'ModificationDate', 'DeletionDate'];

/** Creates an empty set of products, by id and by date, that keeps the last `holdingsMax` that came. */
function createEntityStore(fields: readonly OrderableField[], holdingsMax: number) {
  // A Map keeps the order of the first entry, so that somebody who pages through while products are
  // published and modified sees each of them once.
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
    // Of two that are equally good, the one that is in the requested order.
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

/** Selects the places from `start` to before `end`. */
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
      for (let place = start + skip; place < end; place += 1) {
        const entry = entries[place];
        if (entry !== undefined) yield entry.stored;
      }
    },
  };
}

/** Creates an empty index of the date in place `field` of the entries. Quick where entries come nearly in order. */
function createDateIndex(field: number) {
  const entries: Entry[] = [];
  const compare = byDate(field);
  const placeOf = (entry: Entry) => firstPlace(entries, (other) => compare(other, entry) >= 0);
  return {
    /** Everything in order: absent dates first, equal ones by key. */
    entries: entries as readonly Entry[],
    add: (entry: Entry) => void entries.splice(placeOf(entry), 0, entry),
    remove: (entry: Entry) => {
      const place = placeOf(entry);
      if (entries[place] === entry) entries.splice(place, 1);
    },
    /** Returns the places of a range of dates, from `start` to before `end`; what has no date lies in none. */
    find: ({ fromUs, toUs }: DateRange) => {
      const before = (us: number) => firstPlace(entries, (entry) => dateOf(entry, field) >= us);
      const start = before(Math.max(fromUs, Number.MIN_SAFE_INTEGER));
      return { start, end: Math.max(start, before(toUs)) };
    },
  };
}

/** Compares by a date, in `direction`; equal ones by Id, ascending, as the catalogue does. Absent dates come first. */
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

/** Returns the first place from which on a condition holds, by bisection. The end is tried first: most are added there. */
function firstPlace(entries: readonly Entry[], holds: (entry: Entry) => boolean): number {
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
