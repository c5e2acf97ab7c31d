/** The catalogue's events with their products, and the newest state of each product. */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { OrderableField, orderableFields } from '../../filter/fields.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import { readFilter } from '../account.ts';
import {
  type DeliveryEntry,
  type DeliveryRecord,
  type NotificationEvent,
  notificationEvents,
} from '../delivery/notification.ts';
import type { CatalogueProduct } from '../products/product-generator.ts';

type Entity = keyof typeof orderableFields;

const dateFields = [
  ...['OriginDate', 'PublicationDate', 'ModificationDate', 'DeletionDate'],
  ...['ContentDate/Start', 'ContentDate/End'],
];

/** A record with its view for filters. An old record is compressed; its dates and id stay readable. */
export class StoredProduct implements ProductView {
  readonly id: string;
  readonly #dates: Readonly<Record<string, number | null>>;
  #unpacked: { record: CatalogueProduct; view: ProductView } | null;
  #packed = Buffer.alloc(0);

  constructor(record: CatalogueProduct) {
    const view = productView(record);
    this.id = record.Id.toLowerCase();
    this.#unpacked = { record, view };
    this.#dates = Object.fromEntries(dateFields.map((field) => [field, view.dateUs(field)]));
  }

  /** Compresses the record to a third of its text, a tenth of its objects. */
  pack(): void {
    if (this.#unpacked === null) return;
    const packed = zstdCompressSync(JSON.stringify(this.#unpacked.record));
    // Copied, so that Node's shared buffer pool can be released.
    this.#packed = Buffer.allocUnsafeSlow(packed.length);
    packed.copy(this.#packed);
    this.#unpacked = null;
  }

  get record(): CatalogueProduct {
    return this.#unpacked?.record ?? JSON.parse(zstdDecompressSync(this.#packed).toString());
  }

  get #view(): ProductView {
    return this.#unpacked?.view ?? productView(this.record);
  }

  dateUs(field: string): number | null {
    return this.#dates[field] ?? null;
  }

  text(field: string): string | null {
    return field === 'Id' ? this.id : this.#view.text(field);
  }

  get online(): boolean | null {
    return this.#view.online;
  }

  attribute(name: string) {
    return this.#view.attribute(name);
  }

  attributeNames(): Iterable<string> {
    return this.#view.attributeNames();
  }

  footprint() {
    return this.#view.footprint();
  }

  geometry() {
    return this.#view.geometry();
  }
}

/** Delivery of an event to one subscription. */
interface EventDelivery {
  readonly subscriptionId: string;
  /** `paused`: the event matched, but was neither sent nor added to the queue. */
  readonly outcome: DeliveryEntry['outcome'] | 'paused';
  /** True if it was acknowledged, or the endpoint accepted it at least once, even if its answer was lost. */
  readonly received: boolean;
  /** Reason for the loss; null if not lost. */
  readonly reason: string | null;
}

/** An event of the catalogue, notified or not. Dates are ISO 8601 UTC. */
export interface CatalogueEvent {
  /** Sequential number, starting at 1. */
  readonly sequence: number;
  readonly event: NotificationEvent;
  readonly productId: string;
  readonly productName: string;
  /** PublicationDate, ModificationDate or DeletionDate: µs since 1970; null if the record has none. */
  readonly dateUs: number | null;
  /** Due time of its notifications. */
  readonly at: string;
  /** Time from which query results contain it; `at` unless delayed. */
  readonly shownFrom: string;
  /** True if query results contain it now: not if delayed, changed again, deleted or dropped. */
  readonly shown: boolean;
  /** Empty if no subscription matched. */
  readonly subscriptions: readonly EventDelivery[];
}

/** A stored event. Times are ms since 1970. */
interface Entry extends Pick<CatalogueEvent, 'sequence' | 'event' | 'productId' | 'productName'> {
  readonly product: StoredProduct;
  readonly atMs: number;
  readonly shownFromMs: number;
  /** Sequences of its notifications in the delivery record. */
  deliveries: readonly number[];
  /** Ids of paused subscriptions whose events and filter match. */
  pausedIds: readonly string[];
}

/** Selection of events (default: all). */
export interface EventSelection {
  readonly events?: readonly NotificationEvent[] | undefined;
  /** Matches the product's record after the event. */
  readonly filter?: string | undefined;
}

/** Products of a query: `matches` is tested for each; null: order of publication, or of deletion. */
interface Query {
  readonly matches: (product: ProductView) => boolean;
  readonly orderby: {
    readonly field: OrderableField;
    readonly direction: 'asc' | 'desc';
  } | null;
}

// A record with its view takes about 15 kB of memory, compressed 1.5 kB.
const unpackedMax = 4_000;

const eventDates: Readonly<Record<NotificationEvent, string>> = {
  created: 'PublicationDate',
  modified: 'ModificationDate',
  deleted: 'DeletionDate',
};

export type Ledger = ReturnType<typeof createLedger>;

/** Creates an empty ledger of the last `eventsMax` events. `now` determines when delayed records become visible. */
export function createLedger({ eventsMax, now, record }: LedgerOptions) {
  let entries: Entry[] = [];
  let dropped = 0;
  // Maps keep the insertion order, so that a client that reads pages meanwhile sees each product once.
  const newest = {
    Products: new Map<string, Entry>(),
    DeletedProducts: new Map<string, Entry>(),
  };
  const entityOf = (event: NotificationEvent) =>
    event === 'deleted' ? newest.DeletedProducts : newest.Products;
  const drop = () => {
    const excess = entries.slice(0, entries.length - eventsMax);
    for (const entry of excess) {
      const products = entityOf(entry.event);
      if (products.get(entry.product.id) === entry) products.delete(entry.product.id);
    }
    entries = entries.slice(excess.length);
    dropped += excess.length;
  };
  const isVisible = (entry?: Entry) => entry !== undefined && entry.shownFromMs <= now();
  /** A query by PublicationDate finds every stored product; other queries only its newest state. */
  const isShown = (entry: Entry) => {
    const current = entityOf(entry.event).get(entry.product.id);
    return isVisible(current) && (entry.event === 'created' || current === entry);
  };
  return {
    /** Adds an event. Queries find the product from `shownFromMs` on. */
    add: (event: NotificationEvent, after: CatalogueProduct, times: EventTimes): Entry => {
      const product = new StoredProduct(after);
      const sequence = dropped + entries.length + 1;
      const identity = { sequence, event, productId: after.Id, productName: after.Name };
      const entry = { ...identity, product, ...times, deliveries: none, pausedIds: none };
      entries.push(entry);
      entries.at(-unpackedMax)?.product.pack();
      const other = event === 'deleted' ? newest.Products : newest.DeletedProducts;
      other.delete(product.id);
      entityOf(event).set(product.id, entry);
      // Dropped in batches: each removal moves all remaining entries.
      if (entries.length > eventsMax * 1.1) drop();
      return entry;
    },
    /** Returns the products that query results contain, in the order of the query. */
    select: (entity: Entity, { matches, orderby }: Query): StoredProduct[] => {
      const found: StoredProduct[] = [];
      for (const entry of newest[entity].values()) {
        if (isVisible(entry) && matches(entry.product)) found.push(entry.product);
      }
      return orderby === null ? found : found.sort(byDate(orderby));
    },
    /** Finds a product that query results contain by id, case-insensitive. */
    find: (entity: Entity, id: string): StoredProduct | undefined => {
      const entry = newest[entity].get(id.toLowerCase());
      return isVisible(entry) ? entry?.product : undefined;
    },
    /**
     * Returns the stored events, oldest first. Throws SubscriptionRefusal (`filter`) for a filter that is
     * invalid for a subscription to these events.
     */
    events: ({ events = notificationEvents, filter = '' }: EventSelection = {}) => {
      const matches = readFilter(filter, events);
      const selected = entries.filter(
        ({ event, product }) => events.includes(event) && matches(product),
      );
      return selected.map((entry) => toEvent(entry, isShown(entry), record));
    },
  };
}

function toEvent(
  { deliveries, pausedIds, ...entry }: Entry,
  shown: boolean,
  record: Pick<DeliveryRecord, 'find'>,
): CatalogueEvent {
  const { sequence, event, productId, productName, product, atMs, shownFromMs } = entry;
  const unsent = { outcome: 'paused', received: false, reason: null } as const;
  const sent = deliveries.map((delivery) => {
    const { subscriptionId, outcome, timesReceivedOk, reason } = record.find(delivery);
    return { subscriptionId, outcome, received: timesReceivedOk > 0, reason };
  });
  return {
    ...{ sequence, event, productId, productName, dateUs: product.dateUs(eventDates[event]) },
    at: new Date(atMs).toISOString(),
    shownFrom: new Date(shownFromMs).toISOString(),
    shown,
    subscriptions: [...sent, ...pausedIds.map((subscriptionId) => ({ subscriptionId, ...unsent }))],
  };
}

interface LedgerOptions {
  readonly eventsMax: number;
  readonly now: () => number;
  readonly record: Pick<DeliveryRecord, 'find'>;
}

type EventTimes = Pick<Entry, 'atMs' | 'shownFromMs'>;

/** Shared, because most events of a long past have no deliveries. */
const none: readonly never[] = [];

/** Compares by a date, equal dates by ascending Id like the catalogue. Absent dates come first. */
function byDate({ field, direction }: NonNullable<Query['orderby']>) {
  const sign = direction === 'asc' ? 1 : -1;
  return (one: StoredProduct, other: StoredProduct): number => {
    const difference = (one.dateUs(field) ?? -Infinity) - (other.dateUs(field) ?? -Infinity);
    // Two absent dates give NaN.
    return sign * difference || (one.id < other.id ? -1 : 1);
  };
}
