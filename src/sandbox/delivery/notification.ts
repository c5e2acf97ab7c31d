/** Builds notifications in the known forms of the catalogue. */
import type { Random } from '../clock.ts';
import type { Shape } from './faults.ts';

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

/** Creates the builder of one subscription's notifications. Equal seeds and times give equal bytes. */
export function createNotificationBuilder({
  subscriptionId,
  random,
}: {
  subscriptionId: string;
  random: Random;
}) {
  let latestMs = 0;
  let sequence = 0;
  /** Draws the identity. The AckId is that of an entry in a stream: `<unix ms>-<sequence>:<subscription>`. */
  const identify = ({ event, product, atMs, shape }: NotificationInput): NotificationKey => {
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
  return {
    identify,
    /** Builds a notification with its request body: JSON in UTF-8. */
    build: (input: NotificationInput): NotificationKey & { readonly body: Buffer } => {
      const key = identify(input);
      const { arrayBody = false, ...shape } = input.shape ?? {};
      const document = notificationDocument(key, input.product, { ...shape, eventAbsent: false });
      return { ...key, body: Buffer.from(JSON.stringify(arrayBody ? [document] : document)) };
    },
  };
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
