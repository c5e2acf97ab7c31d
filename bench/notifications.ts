/** Notifications of the benchmark: bodies of real size, and ids that encode run and sequence. */

import { createRandom } from '../src/sandbox/clock.ts';
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';

/** Characters of a product id: the length of a UUID. */
const productIdLength = 36;

/** Makes product ids different from other uses of the run and sequence. */
const productSalt = 0x85ebca6b;
/** Keeps timestamps at thirteen digits; runs are consecutive in time. */
const firstRunMs = 1_700_000_000_000;
const runMs = 10_000_000;

/**
 * Returns the product id of a notification, in UUID form and randomly distributed like real ids.
 *
 * @param run 0 to 65,535; ids of different runs are distinct.
 * @param sequence 0 to 2^32 - 1.
 */
export function productIdOf(run: number, sequence: number): string {
  const scattered = scatter((sequence ^ productSalt ^ (run << 16)) >>> 0);
  const filler = scatter((scattered ^ productSalt) >>> 0);
  const digits = [hex(scattered, 8), hex(run, 4), `4${hex(filler & 0xfff, 3)}`];
  return `${digits.join('-')}-a${hex((filler >>> 12) & 0xfff, 3)}-${hex(sequence, 12)}`;
}

/**
 * Returns the AckId of a notification, as in recorded bodies: base64 of `<unix ms>-<n>:<subscription>`, increasing with
 * time. The length is constant. The last digits are the sequence, so that rows can be checked without a list of ids.
 */
export function ackIdOf(run: number, sequence: number): string {
  const subscription = `880c4e1a-cfc7-4956-${hex(run, 4)}-${hex(sequence, 12)}`;
  const text = `${firstRunMs + run * runMs + sequence}-0:${subscription}`;
  return Buffer.from(text, 'latin1').toString('base64');
}

/** Returns the sequence number of an AckId from `ackIdOf` for this run; otherwise undefined. */
export function sequenceOf(run: number, ackId: string): number | undefined {
  const text = Buffer.from(ackId, 'base64').toString('latin1');
  const sequence = Number.parseInt(text.slice(-12), 16);
  if (!Number.isInteger(sequence) || sequence > 0xffffffff) return undefined;
  return ackIdOf(run, sequence) === ackId ? sequence : undefined;
}

/** Permutes 32-bit numbers: neighbours are far apart, without collisions. */
function scatter(value: number): number {
  let mixed = value;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** Properties of a body. */
interface BodyFacts {
  readonly event: string;
  readonly subscriptionId: string;
  /** ISO 8601, UTC. */
  readonly notificationDate: string;
}

/** A body whose two ids can be overwritten in place by ASCII ids of the same length. */
export interface BodyTemplate extends BodyFacts {
  /** JSON as bytes. */
  readonly bytes: Buffer;
  /** Byte offset of the AckId. */
  readonly ackIdOffset: number;
  /** Byte offsets of every occurrence of the product's id, including those in `value`. */
  readonly productIdOffsets: readonly number[];
  readonly productName: string;
}

/** Number of bodies sent in turn: the default, and the number for distinct bodies. */
export const templateCounts = { default: 256, distinct: 4_096 };

const firstProductMs = Date.UTC(2026, 0, 1);
const productIntervalMs = 1_300;
const seed = 7;

/** Creates `count` distinct templates, deterministic. */
export function createBodyTemplates(count: number = templateCounts.default): BodyTemplate[] {
  const generator = createProductGenerator({ seed });
  const subscriptionId = createRandom(seed).uuid();
  return Array.from({ length: count }, (_, index) => {
    const publishedMs = firstProductMs + index * productIntervalMs;
    const notificationDate = new Date(publishedMs).toISOString();
    const facts = { event: 'created', subscriptionId, notificationDate };
    return createBodyTemplate(generator.next(publishedMs), facts);
  });
}

/** Creates the template of one body, like the catalogue's. */
export function createBodyTemplate(
  product: { readonly Id: string; readonly Name: string },
  facts: BodyFacts,
): BodyTemplate {
  const { Id: productId, Name: productName } = product;
  if (productId.length !== productIdLength) throw new Error(`${productId} is not a UUID`);
  const ackId = ackIdOf(0xffff, 0xffffffff);
  const text = JSON.stringify({
    '@odata.context': '$metadata#Notification/$entity',
    SubscriptionEvent: facts.event,
    ProductId: productId,
    ProductName: productName,
    SubscriptionId: facts.subscriptionId,
    NotificationDate: facts.notificationDate,
    AckId: ackId,
    value: product,
  });
  const bytes = Buffer.from(text);
  const productIdOffsets = [...bytes.toString('latin1').matchAll(RegExp(productId, 'g'))].map(
    ({ index }) => index,
  );
  return { ...facts, bytes, ackIdOffset: bytes.indexOf(ackId), productIdOffsets, productName };
}

/** Writes both ids into a copy of the template at `start` in `target`. */
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

/** Returns the mean size of the default templates, bytes. */
export function meanBodyBytes(): number {
  const templates = createBodyTemplates();
  return templates.reduce((sum, { bytes }) => sum + bytes.length, 0) / templates.length;
}
