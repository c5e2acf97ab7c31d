/** Builds notifications in the known forms of the catalogue. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { Random } from '../clock.ts';
import type { BodyEncoding, ContentPlan, EntryShape, ShapePlan } from './faults.ts';

/** The catalogue's names of product events. */
export const notificationEvents = ['created', 'modified', 'deleted'] as const;
export type NotificationEvent = (typeof notificationEvents)[number];

/** A record, copied to the body unchanged. */
interface NotifiedProduct {
  readonly Id: string;
  readonly Name: string;
}

export interface NotificationInput {
  readonly event: NotificationEvent;
  readonly product: NotifiedProduct;
  /** Time of the notification, ms since 1970; must not decrease between calls. */
  readonly atMs: number;
  readonly shape: ShapePlan;
  /** No faults by default. */
  readonly content?: ContentPlan;
}

/** Input of a notification's identity. */
type IdentityInput = Pick<NotificationInput, 'event' | 'product' | 'atMs' | 'content'> & {
  readonly shape: Pick<ShapePlan, 'ackIdGuid' | 'ackIdAbsent'>;
};

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

/** A notification with its body. */
export interface BuiltNotification extends NotificationKey {
  /** Request body: JSON in UTF-8, compressed if there is an encoding. */
  readonly body: Buffer;
  /** Content-Encoding; null: none. */
  readonly encoding: BodyEncoding | null;
  /** Body with changed content, in the same encoding; null if it is not sent. */
  readonly changedBody: Buffer | null;
}

const liveContext = '$metadata#Products(Attributes(),Assets(),Locations())/$entity';
const productContexts: Record<NotificationEvent, string> = {
  created: liveContext,
  modified: liveContext,
  deleted: '$metadata#DeletedProducts(Attributes())/$entity',
};

const usualContent: ContentPlan = { encoding: null, ackIdOfOther: false, contentChanged: false };

const encoders: Record<BodyEncoding, (bytes: Buffer) => Buffer> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
};

/** Latest AckId of each subscription, by subscription id. */
export type AckIds = Map<string, string>;

export type NotificationBuilder = ReturnType<typeof createNotificationBuilder>;

/**
 * Creates the builder of one subscription's notifications. Equal seeds and times give equal bytes.
 * The subscriptions of one account share `ackIds`.
 */
export function createNotificationBuilder({
  subscriptionId,
  random,
  ackIds = new Map(),
}: {
  subscriptionId: string;
  random: Random;
  ackIds?: AckIds;
}) {
  const nextStreamId = createStreamIds();
  const chooseAckId = createAckIdChoice(subscriptionId, ackIds);

  const identify = (input: IdentityInput): NotificationKey => {
    const { event, product, shape, content = usualContent } = input;
    const atMs = Math.trunc(input.atMs);
    const notificationDate = drawNotificationDate(atMs, random);
    const streamId = `${nextStreamId(atMs)}:${subscriptionId}`;
    const guid = random.uuid();
    const ownAckId = shape.ackIdGuid ? guid : Buffer.from(streamId).toString('base64');
    const ackId = chooseAckId(ownAckId, content);
    return {
      subscriptionId,
      event,
      ackId: shape.ackIdAbsent ? null : ackId,
      productId: product.Id,
      productName: product.Name,
      notificationDate,
    };
  };
  const build = (input: NotificationInput): BuiltNotification => {
    const { product, shape, content = usualContent } = input;
    const key = identify(input);
    const notification = notificationDocument(key, product, { ...shape, eventAbsent: false });
    const encode = (document: object) => {
      const bytes = Buffer.from(JSON.stringify(shape.arrayBody ? [document] : document));
      return content.encoding === null ? bytes : encoders[content.encoding](bytes);
    };
    const changedDate = new Date(Math.trunc(input.atMs) + 1_000).toISOString();
    return {
      ...key,
      encoding: content.encoding,
      body: encode(notification),
      changedBody: content.contentChanged
        ? encode({ ...notification, NotificationDate: changedDate })
        : null,
    };
  };
  return {
    /** Builds a notification with its body. */
    build,
    /** Draws the identity of a notification, whose document is built later. */
    identify,
  };
}

/** Returns the JSON document of a notification; the key order is that of the documented bodies. */
export function notificationDocument(
  { event, ackId, subscriptionId, notificationDate }: NotificationKey,
  product: NotifiedProduct,
  { capitalValue, valueAbsent, eventAbsent }: Omit<EntryShape, 'ackIdGuid'>,
) {
  const value = () => ({ [capitalValue ? 'Value' : 'value']: toValue(event, product) });
  return {
    '@odata.context': '$metadata#Notification/$entity',
    ...(eventAbsent ? {} : { SubscriptionEvent: event, ProductId: product.Id }),
    ...(valueAbsent ? {} : { ProductName: product.Name }),
    SubscriptionId: subscriptionId,
    NotificationDate: notificationDate,
    ...(ackId === null ? {} : { AckId: ackId }),
    ...(valueAbsent ? {} : value()),
  };
}

/** Reuses an AckId of another subscription only once: a second use would be a duplicate. */
function createAckIdChoice(subscriptionId: string, ackIds: AckIds) {
  let last: string | undefined;
  return (own: string, { ackIdOfOther }: ContentPlan): string => {
    const other = [...ackIds].findLast(([id]) => id !== subscriptionId)?.[1];
    if (ackIdOfOther && other !== undefined && other !== last) {
      last = other;
      return other;
    }
    ackIds.set(subscriptionId, own);
    return own;
  };
}

/** Numbers the notifications of one millisecond like entries of a stream: `<unix ms>-<sequence>`. */
function createStreamIds() {
  let latestMs = 0;
  let sequence = 0;
  return (atMs: number) => {
    sequence = atMs === latestMs ? sequence + 1 : 0;
    latestMs = atMs;
    return `${atMs}-${sequence}`;
  };
}

function drawNotificationDate(atMs: number, random: Random): string {
  const microseconds = String(random.integer(0, 999)).padStart(3, '0');
  const extraDigits = random.integer(0, 3);
  return new Date(atMs).toISOString().replace('Z', `${microseconds.slice(0, extraDigits)}Z`);
}

function toValue(event: NotificationEvent, product: object): object {
  const context = { '@odata.context': productContexts[event] };
  // Twice: the first puts the annotation first, the second overrides one of the record.
  return { ...context, ...product, ...context };
}
