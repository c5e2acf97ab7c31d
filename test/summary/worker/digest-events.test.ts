/** A digest of many products leaves room for intake between any two of them. */
import { expect, it, onTestFinished } from 'vitest';
import type { NotificationRow } from '../../../src/domain/ports.ts';
import type { FoundProduct } from '../../../src/domain/products.ts';
import type { Places } from '../../../src/summary/places/places.ts';
import { digestEvents } from '../../../src/summary/worker/prepare.ts';
import { day, midnightUs } from '../digest/sample-events.ts';
import { foundProduct } from '../facts/found-product.ts';

const count = 40;
const ids = Array.from({ length: count }, (_, index) => `product-${index}`);

async function* rows(): AsyncGenerator<NotificationRow> {
  for (const [index, productId] of ids.entries()) {
    yield {
      position: index + 1,
      ackId: null,
      productId,
      productName: null,
      event: 'created',
      subscription: 'alps',
      subscriptionId: null,
      notificationDateUs: null,
      receivedAtUs: midnightUs + index,
      source: 'push',
      timesSeen: 1,
      lastSeenAtUs: midnightUs + index,
      bodyIndex: 0,
    };
  }
}

async function* found({ entity }: { entity: string }): AsyncGenerator<FoundProduct> {
  if (entity !== 'Products') return;
  for (const productId of ids) {
    yield foundProduct({ productId }, { Footprint: 'POINT (9 50)' });
  }
}

it('looks at one product at a time, and at other work in between', async () => {
  let turn = 0;
  let timer = setImmediate(function next() {
    turn += 1;
    timer = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(timer));
  const turns: number[] = [];
  const places = {
    placeOf: () => {
      turns.push(turn);
      return null;
    },
  } as Partial<Places> as Places;
  const means = { notifications: { find: rows }, products: { find: found }, places: () => places };
  const events = digestEvents(
    day,
    means as unknown as Parameters<typeof digestEvents>[1],
    undefined,
  );
  const told: string[] = [];
  for await (const { productId } of events) told.push(productId);
  expect(told).toEqual(ids);
  expect(turns.length).toBeGreaterThanOrEqual(count);
  expect(new Set(turns).size).toBe(turns.length);
});
