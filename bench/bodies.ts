/** Notification bodies of real size, made once and used by every server and by the prefill. */
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { createRandom } from '../src/sandbox/random.ts';
import { type AckIdForm, ackIdOf, productIdLength } from './request-ids.ts';

/** A body whose two ids can be overwritten in place by others of the same length, ASCII. */
export interface BodyTemplate {
  /** The JSON text as bytes. */
  readonly bytes: Buffer;
  /** Byte offset of the AckId. */
  readonly ackIdOffset: number;
  /** Byte offsets of every occurrence of the product's id, those inside `value` included. */
  readonly productIdOffsets: readonly number[];
  readonly productName: string;
  readonly subscriptionId: string;
  readonly event: string;
  /** ISO 8601, UTC. */
  readonly notificationDate: string;
}

/** How many different bodies are sent in turn. */
export const templateCount = 256;

const firstProductMs = Date.UTC(2026, 0, 1);
const productIntervalMs = 1_300;

/** Makes `count` distinct templates; the same seed gives the same ones. */
export function createBodyTemplates(
  ackIdForm: AckIdForm,
  count = templateCount,
  seed = 7,
): BodyTemplate[] {
  const placeholder = ackIdOf(ackIdForm, 0xffff, 0xffffffff);
  const generator = createProductGenerator({ seed });
  const subscriptionId = createRandom(seed).uuid();
  return Array.from({ length: count }, (_, index) => {
    const publishedMs = firstProductMs + index * productIntervalMs;
    return createBodyTemplate({
      product: generator.next(publishedMs),
      event: 'created',
      subscriptionId,
      ackId: placeholder,
      notificationDate: new Date(publishedMs).toISOString(),
    });
  });
}

/** What a template is made of; the ids in it are overwritten later. */
export interface BodyContent {
  readonly product: { readonly Id: string; readonly Name: string };
  readonly event: string;
  readonly subscriptionId: string;
  readonly ackId: string;
  /** ISO 8601, UTC. */
  readonly notificationDate: string;
}

/** Makes the template of one body, as the catalogue sends it. */
export function createBodyTemplate(content: BodyContent): BodyTemplate {
  const { product, event, subscriptionId, ackId, notificationDate } = content;
  const { Id: productId, Name: productName } = product;
  if (productId.length !== productIdLength)
    throw new Error(`product id ${productId} is not a UUID`);
  const text = JSON.stringify({
    '@odata.context': '$metadata#Notification/$entity',
    SubscriptionEvent: event,
    ProductId: productId,
    ProductName: productName,
    SubscriptionId: subscriptionId,
    NotificationDate: notificationDate,
    AckId: ackId,
    value: product,
  });
  const bytes = Buffer.from(text);
  return {
    bytes,
    ackIdOffset: bytes.indexOf(ackId),
    productIdOffsets: offsetsOf(bytes, productId),
    productName,
    subscriptionId,
    event,
    notificationDate,
  };
}

/** Writes both ids into a copy or a slice of the template that starts at `start` in `target`. */
export function writeIds(
  target: Buffer,
  start: number,
  template: BodyTemplate,
  ids: { ackId: string; productId: string },
): void {
  target.write(ids.ackId, start + template.ackIdOffset, 'latin1');
  for (const offset of template.productIdOffsets) {
    target.write(ids.productId, start + offset, 'latin1');
  }
}

/** The mean size of the templates, bytes. */
export function meanBodyBytes(templates: readonly BodyTemplate[]): number {
  const total = templates.reduce((sum, template) => sum + template.bytes.length, 0);
  return total / templates.length;
}

function offsetsOf(bytes: Buffer, text: string): number[] {
  const offsets: number[] = [];
  let at = bytes.indexOf(text);
  while (at !== -1) {
    offsets.push(at);
    at = bytes.indexOf(text, at + text.length);
  }
  return offsets;
}
