/** Writes the body of a push notification in the forms the catalogue is known to send. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { Random } from '../clock.ts';
import type { BodyEncoding, ContentPlan, ShapePlan } from './faults.ts';

/** The catalogue's words for what happened to a product. */
export const notificationEvents = ['created', 'modified', 'deleted'] as const;
export type NotificationEvent = (typeof notificationEvents)[number];

export interface NotificationInput {
  readonly event: NotificationEvent;
  /** Everything of it is passed on as it is. */
  readonly product: { readonly Id: string; readonly Name: string };
  /** Time of the notification, ms since 1970; must not go back from one call to the next. */
  readonly atMs: number;
  readonly shape: ShapePlan;
  /** Nothing unusual by default. */
  readonly content?: ContentPlan;
}

/** What identifies a notification. */
export interface NotificationKey {
  readonly subscriptionId: string;
  readonly event: NotificationEvent;
  /** Null when the body has none. */
  readonly ackId: string | null;
  readonly productId: string;
  readonly productName: string;
  /** As it stands in the body: ISO 8601, UTC, 3 to 6 fractional digits. */
  readonly notificationDate: string;
}

/** A notification ready to be delivered. */
export interface BuiltNotification extends NotificationKey {
  /** The request body: JSON in UTF-8, compressed where there is an encoding. */
  readonly body: Buffer;
  /** The Content-Encoding; null for none. */
  readonly encoding: BodyEncoding | null;
  /** The same with other content, in the same encoding; null where it is not sent. */
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

/** The last AckId that was made for each subscription, by its id. */
export type AckIds = Map<string, string>;

export type NotificationBuilder = ReturnType<typeof createNotificationBuilder>;

/**
 * Creates the writer of one subscription's notifications; equal seeds and times give equal bytes.
 * `ackIds` are shared by the subscriptions of one account.
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

  const build = (input: NotificationInput): BuiltNotification => {
    const { event, product, shape, content = usualContent } = input;
    const atMs = Math.trunc(input.atMs);
    const notificationDate = drawNotificationDate(atMs, random);
    const streamId = `${nextStreamId(atMs)}:${subscriptionId}`;
    const guid = random.uuid();
    const ownAckId = shape.ackIdGuid ? guid : Buffer.from(streamId).toString('base64');
    const ackId = chooseAckId(ownAckId, content);
    const value = { [shape.capitalValue ? 'Value' : 'value']: toValue(event, product) };
    // The key order is that of the documented bodies.
    const notification = {
      '@odata.context': '$metadata#Notification/$entity',
      SubscriptionEvent: event,
      ProductId: product.Id,
      ...(shape.valueAbsent ? {} : { ProductName: product.Name }),
      SubscriptionId: subscriptionId,
      NotificationDate: notificationDate,
      ...(shape.ackIdAbsent ? {} : { AckId: ackId }),
      ...(shape.valueAbsent ? {} : value),
    };
    const encode = (document: object) => {
      const bytes = Buffer.from(JSON.stringify(shape.arrayBody ? [document] : document));
      return content.encoding === null ? bytes : encoders[content.encoding](bytes);
    };
    const changedDate = new Date(atMs + 1_000).toISOString();
    return {
      subscriptionId,
      event,
      ackId: shape.ackIdAbsent ? null : ackId,
      productId: product.Id,
      productName: product.Name,
      notificationDate,
      encoding: content.encoding,
      body: encode(notification),
      changedBody: content.contentChanged
        ? encode({ ...notification, NotificationDate: changedDate })
        : null,
    };
  };
  return { build };
}

/** Chooses the AckId of another subscription at most once for each: a second time it would be a repeated delivery. */
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

/** Numbers the notifications of one millisecond, as the entries of a stream are: `<unix ms>-<sequence>`. */
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
  // Twice: the first puts the annotation in front, the second wins over one of the record itself.
  return { ...context, ...product, ...context };
}
