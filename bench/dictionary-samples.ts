/** What the dictionary for bodies is trained with: generated notifications of all missions and events. */
import { createNotificationBuilder } from '../src/sandbox/delivery/notification.ts';
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { createRandom } from '../src/sandbox/random.ts';
import { usualShape } from './body-kinds.ts';

const sampleCount = 6_000;
const seed = 11;

/** So many follow each other under one subscription, so that its id is nothing that bodies have in common. */
const perSubscription = 20;

const firstMs = Date.UTC(2024, 0, 1);
const intervalMs = (2 * 365 * 86_400_000) / sampleCount;
const noticeMs = 60_000;

/** Most are told of once, as they were published; equal calls give equal bytes. */
const eventShares = { modified: 0.1, deleted: 0.1 };

/** The bodies, one a sample. */
export function* dictionarySamples(): Generator<Buffer> {
  const random = createRandom(seed);
  const generator = createProductGenerator({ seed });
  let builder = createNotificationBuilder({ subscriptionId: random.uuid(), random });
  for (let index = 0; index < sampleCount; index += 1) {
    if (index % perSubscription === 0) {
      builder = createNotificationBuilder({ subscriptionId: random.uuid(), random });
    }
    const publishedMs = Math.floor(firstMs + index * intervalMs);
    const atMs = publishedMs + noticeMs;
    const created = generator.next(publishedMs);
    const drawn = random.next();
    if (drawn < eventShares.modified) {
      const product = generator.modified(created, atMs);
      yield builder.build({ event: 'modified', product, atMs, shape: usualShape }).body;
    } else if (drawn < eventShares.modified + eventShares.deleted) {
      const product = generator.deleted(created, atMs);
      yield builder.build({ event: 'deleted', product, atMs, shape: usualShape }).body;
    } else {
      yield builder.build({ event: 'created', product: created, atMs, shape: usualShape }).body;
    }
  }
}
