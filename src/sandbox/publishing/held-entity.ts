/** The products of one entity set, by id, in the order of their coming, and by each of their dates. */
import type { OrderableField } from '../../filter/fields.ts';
import {
  byDate,
  createDateIndex,
  type DatedEntry,
  type DateIndex,
  type DateRange,
  type Stretch,
} from './date-index.ts';
import type { HeldProduct } from './record-archive.ts';

/** Which products are wanted, and in which order. */
export interface Wanted {
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
  /** The field whose range holds for all of them; null when none was looked at. */
  readonly covered: OrderableField | null;
  /** Gives them one after the other, without the first `skip`. Stands until the next event. */
  items(skip: number): Iterable<HeldProduct>;
}

export interface HeldEntity {
  put(key: string, held: HeldProduct): void;
  remove(key: string): void;
  find(key: string): HeldProduct | undefined;
  select(wanted: Wanted): Selection;
  size(): number;
}

interface Entry extends DatedEntry {
  readonly held: HeldProduct;
  /** Counts up with each product that comes; what changes keeps its number. */
  readonly number: number;
}

/** What events are dated by; other dates are asked for too rarely to be kept in order. */
const indexedFields: readonly OrderableField[] = [
  'PublicationDate',
  'ModificationDate',
  'DeletionDate',
];

/** Creates an empty set that keeps the last `heldMax` products that came. */
export function createHeldEntity(fields: readonly OrderableField[], heldMax: number): HeldEntity {
  // A Map keeps the order of the first entry, so that somebody who pages through while products are
  // published and modified sees each of them once.
  const entries = new Map<string, Entry>();
  const indexes = new Map<OrderableField, DateIndex<Entry>>();
  for (const field of fields) {
    if (indexedFields.includes(field)) indexes.set(field, createDateIndex(fields.indexOf(field)));
  }
  let count = 0;

  const remove = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    entries.delete(entry.key);
    for (const index of indexes.values()) index.remove(entry);
  };
  return {
    put: (key, held) => {
      const known = entries.get(key);
      for (const index of indexes.values()) if (known !== undefined) index.remove(known);
      const { view } = held;
      const datesUs = fields.map((field) => view.dateUs(field) ?? Number.NEGATIVE_INFINITY);
      const entry = { key, held, datesUs, number: known?.number ?? count };
      count += 1;
      entries.set(key, entry);
      for (const index of indexes.values()) index.add(entry);
      const [oldest] = entries.size > heldMax ? entries.values() : [];
      remove(oldest);
    },
    remove: (key) => remove(entries.get(key)),
    find: (key) => entries.get(key)?.held,
    size: () => entries.size,
    select: (wanted) => select(wanted, entries, indexes, fields),
  };
}

function select(
  wanted: Wanted,
  entries: ReadonlyMap<string, Entry>,
  indexes: ReadonlyMap<OrderableField, DateIndex<Entry>>,
  fields: readonly OrderableField[],
): Selection {
  const { orderby } = wanted;
  const narrowest = narrowestRange(wanted, indexes);
  const ordered = orderby?.direction === 'asc' ? indexes.get(orderby.field) : undefined;
  if (narrowest === null) {
    const all = ordered?.entries ?? inOrder([...entries.values()], orderby, fields);
    return selectionOf(all, { start: 0, end: all.length }, null);
  }
  const { field, index, stretch } = narrowest;
  if (index === ordered) return selectionOf(index.entries, stretch, field);
  const found = inOrder(index.entries.slice(stretch.start, stretch.end), orderby, fields);
  return selectionOf(found, { start: 0, end: found.length }, field);
}

function narrowestRange(
  { ranges, orderby }: Wanted,
  indexes: ReadonlyMap<OrderableField, DateIndex<Entry>>,
) {
  const found = [...ranges].flatMap(([field, range]) => {
    const index = indexes.get(field);
    if (index === undefined) return [];
    const stretch = index.find(range);
    // Of two that are equally good, the one that is in the order asked for.
    const size = stretch.end - stretch.start + (field === orderby?.field ? 0 : 0.5);
    return [{ field, index, stretch, size }];
  });
  return found.toSorted((one, other) => one.size - other.size)[0] ?? null;
}

/** Equal dates by Id, as the catalogue does; without a date comes before all dates. */
function inOrder(
  entries: Entry[],
  orderby: Wanted['orderby'],
  fields: readonly OrderableField[],
): readonly Entry[] {
  if (orderby === null) return entries.sort((one, other) => one.number - other.number);
  const direction = orderby.direction === 'asc' ? 1 : -1;
  return entries.sort(byDate(fields.indexOf(orderby.field), direction));
}

function selectionOf(
  entries: readonly Entry[],
  { start, end }: Stretch,
  covered: OrderableField | null,
): Selection {
  return {
    size: end - start,
    covered,
    items: function* (skip) {
      for (let place = start + skip; place < end; place += 1) {
        const entry = entries[place];
        if (entry !== undefined) yield entry.held;
      }
    },
  };
}
