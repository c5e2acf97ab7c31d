/** Notifications in the known forms of the catalogue, and the record of their attempts and outcomes. */
import type { Random } from '../clock.ts';
import type { Faults } from '../settings.ts';

/** The catalogue's names of product events. */
export const notificationEvents = ['created', 'modified', 'deleted'] as const;
export type NotificationEvent = (typeof notificationEvents)[number];

/** A record, copied to the body unchanged. */
interface NotifiedProduct {
  readonly Id: string;
  readonly Name: string;
}

interface NotificationInput {
  readonly event: NotificationEvent;
  readonly product: NotifiedProduct;
  /** Time of the notification, ms since 1970; must not decrease between calls. */
  readonly atMs: number;
  /** Default: the usual shape. */
  readonly shape?: Partial<Shape>;
}

/** Identity of a notification. */
export interface NotificationKey {
  readonly subscriptionId: string;
  readonly event: NotificationEvent;
  /** Null if the body has none. */
  readonly ackId: string | null;
  readonly productId: string;
  readonly productName: string;
  /** As in the body: ISO 8601, UTC, 3 to 6 fractional digits. */
  readonly notificationDate: string;
}

/**
 * Returns a function that draws the identities of one subscription's notifications. Equal seeds and times give equal ones.
 * The AckId is that of an entry in a stream: `<unix ms>-<sequence>:<subscription>`.
 */
export function createIdentify(subscriptionId: string, random: Random) {
  let latestMs = 0;
  let sequence = 0;
  return ({ event, product, atMs, shape }: NotificationInput): NotificationKey => {
    sequence = atMs === latestMs ? sequence + 1 : 0;
    latestMs = atMs;
    const entryId = Buffer.from(`${atMs}-${sequence}:${subscriptionId}`).toString('base64');
    const ackId = shape?.ackIdGuid ? random.uuid() : entryId;
    const microseconds = String(random.integer(0, 999)).padStart(3, '0');
    const extraDigits = microseconds.slice(0, random.integer(0, 3));
    return {
      ...{ subscriptionId, event, ackId: shape?.ackIdAbsent ? null : ackId },
      ...{ productId: product.Id, productName: product.Name },
      notificationDate: new Date(atMs).toISOString().replace('Z', `${extraDigits}Z`),
    };
  };
}

/** Returns the body of a push: JSON in UTF-8. */
export function pushBody(
  key: NotificationKey,
  product: NotifiedProduct,
  { arrayBody, ...shape }: Partial<Shape> = {},
): Buffer {
  const document = notificationDocument(key, product, { ...shape, eventAbsent: false });
  return Buffer.from(JSON.stringify(arrayBody ? [document] : document));
}

const liveContext = '$metadata#Products(Attributes(),Assets(),Locations())/$entity';
const productContexts: Record<NotificationEvent, string> = {
  created: liveContext,
  modified: liveContext,
  deleted: '$metadata#DeletedProducts(Attributes())/$entity',
};

/** Returns the JSON document of a notification, with keys in the order of the documented bodies. */
export function notificationDocument(
  { event, ackId, subscriptionId, notificationDate }: NotificationKey,
  product: NotifiedProduct,
  shape: Partial<Pick<Shape, 'capitalValue' | 'eventAbsent'>> & { readonly valueAbsent?: boolean },
) {
  const context = { '@odata.context': productContexts[event] };
  // Twice: the first puts the annotation first, the second overrides one of the record.
  const value = { ...context, ...product, ...context };
  return {
    '@odata.context': '$metadata#Notification/$entity',
    ...(shape.eventAbsent ? {} : { SubscriptionEvent: event, ProductId: product.Id }),
    ...(shape.valueAbsent ? {} : { ProductName: product.Name }),
    SubscriptionId: subscriptionId,
    NotificationDate: notificationDate,
    ...(ackId === null ? {} : { AckId: ackId }),
    ...(shape.valueAbsent ? {} : { [shape.capitalValue ? 'Value' : 'value']: value }),
  };
}

/** Draws the shape of a notification's document. */
export function planShape(faults: Faults, random: Random) {
  return {
    ackIdAbsent: random.chance(faults.ackIdAbsent),
    ackIdGuid: random.chance(faults.ackIdGuid),
    arrayBody: random.chance(faults.arrayBody),
    capitalValue: random.chance(faults.capitalValue),
    eventAbsent: random.chance(faults.eventAbsent),
  };
}

export type Shape = ReturnType<typeof planShape>;

/** Record of one notification, without the body. */
export interface DeliveryEntry extends NotificationKey {
  /** Sequential number, starting at 1. */
  readonly sequence: number;
  /** Status of each attempt; null without an answer. */
  readonly attempts: readonly (number | null)[];
  readonly outcome: 'pending' | 'delivered' | 'lost';
  /** Reason for the loss; null if not lost. */
  readonly reason: string | null;
  /** Number of the endpoint's 2xx answers, including those that the sender did not receive. */
  readonly timesReceivedOk: number;
}

/** Returns true for 2xx, which counts as delivered. The statuses that the real service accepts are not known. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299;
}

type OpenEntry = { -readonly [Key in keyof DeliveryEntry]: DeliveryEntry[Key] } & {
  readonly attempts: (number | null)[];
};

export type DeliveryRecord = ReturnType<typeof createDeliveryRecord>;

/** Creates an empty record in memory. Methods throw RangeError for an unknown sequence. */
export function createDeliveryRecord() {
  const entries: OpenEntry[] = [];
  const counts = {
    delivered: 0,
    lost: 0,
    /** Notifications that the endpoint accepted at least once, even if the sender received no answer. */
    accepted: 0,
    /** 2xx answers of the endpoint: `accepted` plus accepted duplicates. */
    receivedOk: 0,
  };
  const find = (sequence: number) => {
    const entry = entries[sequence - 1];
    if (entry === undefined) throw new RangeError(`Notification ${sequence} does not exist.`);
    return entry;
  };
  return {
    /** Adds an entry with the outcome `pending`; returns its sequence. */
    open: (key: NotificationKey): number => {
      const open = { attempts: [], outcome: 'pending', reason: null, timesReceivedOk: 0 } as const;
      entries.push({ sequence: entries.length + 1, ...key, ...open, attempts: [] });
      return entries.length;
    },
    addAttempt: (sequence: number, status: number | null): void => {
      const entry = find(sequence);
      entry.attempts.push(status);
      if (!isSuccess(status)) return;
      if (entry.timesReceivedOk === 0) counts.accepted += 1;
      entry.timesReceivedOk += 1;
      counts.receivedOk += 1;
    },
    /** Sets the outcome: lost for a `reason`, or delivered if null. Returns the entry. */
    settle: (sequence: number, reason: string | null): DeliveryEntry => {
      const outcome = reason === null ? 'delivered' : 'lost';
      counts[outcome] += 1;
      return Object.assign(find(sequence), { outcome, reason });
    },
    totals: () => {
      const published = entries.length;
      return { published, ...counts, pending: published - counts.delivered - counts.lost };
    },
    find: (sequence: number): DeliveryEntry => find(sequence),
    /** Returns all entries in the order of publication. */
    entries: (): readonly DeliveryEntry[] => entries,
  };
}
