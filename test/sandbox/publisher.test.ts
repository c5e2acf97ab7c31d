/** What is published, in which order and when, without any network. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSandboxClock } from '../../src/sandbox/clock.ts';
import type { Dispatcher } from '../../src/sandbox/delivery/dispatcher.ts';
import { createFaultSettings, noFaults } from '../../src/sandbox/delivery/faults.ts';
import {
  type BuiltNotification,
  createNotificationBuilder,
} from '../../src/sandbox/delivery/notification.ts';
import type { Recipient } from '../../src/sandbox/delivery/recipients.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import type { CatalogueProduct } from '../../src/sandbox/products/record.ts';
import { createHoldings } from '../../src/sandbox/publishing/holdings.ts';
import { createPublisher, type PublisherOptions } from '../../src/sandbox/publishing/publisher.ts';
import { createRandom } from '../../src/sandbox/random.ts';

const startMs = Date.UTC(2026, 4, 1, 12);

/** A publisher on a clock that only moves when the test moves it, at one product a second. */
function createWorld(options: Partial<PublisherOptions> = {}, seed = 1) {
  const published: BuiltNotification[] = [];
  const dispatcher: Dispatcher = {
    dispatch: (notification) => published.push(notification),
    room: async () => {},
    drained: async () => {},
    quiet: async () => {},
  };
  const clock = createSandboxClock({ now: () => startMs });
  const recipient: Recipient = {
    builder: createNotificationBuilder({ subscriptionId: 's', random: createRandom(seed) }),
    contentRandom: createRandom(1),
    random: null,
    address: () => ({ endpoint: 'https://localhost/', username: null, password: null }),
    delivered: () => {},
  };
  const publisher = createPublisher({
    source: createProductGenerator({ seed }),
    recipientsOf: () => [recipient],
    holdings: createHoldings(),
    dispatcher,
    clock,
    random: createRandom(seed),
    faults: createFaultSettings(noFaults),
    ratePerSecond: 1,
    modifiedShare: 0,
    deletedShare: 0,
    ...options,
  });
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  return { publisher, published, clock, signal: stopping.signal, stopping };
}

/** Publishes these records, as a file would have them. */
function sourceOf(records: readonly CatalogueProduct[]): PublisherOptions['source'] {
  const remaining = records.values();
  return { ...createProductGenerator({ seed: 1 }), next: () => remaining.next().value };
}

type World = ReturnType<typeof createWorld>;

/** Moves the clock a second at a time until the run has ended. */
async function runToEnd({ publisher, clock, signal }: World): Promise<void> {
  let ended = false;
  const run = publisher.run(signal).finally(() => {
    ended = true;
  });
  while (!ended) {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await run;
}

const jsonOf = ({ body }: BuiltNotification) => JSON.parse(body.toString());
const eventsOf = (world: World) => world.published.map(({ event }) => event);

describe('the publisher', () => {
  it('publishes the count it was told and ends', async () => {
    const world = createWorld({ count: 5 });
    await runToEnd(world);
    expect(eventsOf(world)).toEqual(Array(5).fill('created'));
    expect(new Set(world.published.map(({ productId }) => productId)).size).toBe(5);
  });

  it('publishes one product for each interval of its rate', async () => {
    const world = createWorld();
    const run = world.publisher.run(world.signal);
    await expect.poll(() => world.published).toHaveLength(1);
    world.clock.advance(999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.published).toHaveLength(1);
    world.clock.advance(1);
    await expect.poll(() => world.published).toHaveLength(2);
    world.stopping.abort();
    await run;
  });

  it('does not flood the endpoint after a jump of the clock', async () => {
    const world = createWorld();
    const run = world.publisher.run(world.signal);
    await expect.poll(() => world.published).toHaveLength(1);
    world.clock.advance(86_400_000);
    await expect.poll(() => world.published).toHaveLength(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.published).toHaveLength(2);
    world.stopping.abort();
    await run;
  });

  it('publishes the same bytes for the same seed, follow-ups included', async () => {
    const bytesOf = async (seed: number) => {
      const world = createWorld({ count: 30, modifiedShare: 0.5, deletedShare: 0.3 }, seed);
      await runToEnd(world);
      return world.published.map(({ body }) => body.toString());
    };
    const bodies = await bytesOf(4);
    expect(await bytesOf(4)).toEqual(bodies);
    expect(await bytesOf(5)).not.toEqual(bodies);
  });

  it('dates a product 46 to 48 s before its notification', async () => {
    const world = createWorld({ count: 20 });
    await runToEnd(world);
    for (const notification of world.published) {
      const { NotificationDate, value } = jsonOf(notification);
      const delayMs = Date.parse(NotificationDate) - Date.parse(value.PublicationDate);
      expect(delayMs).toBeGreaterThanOrEqual(45_999);
      expect(delayMs).toBeLessThanOrEqual(48_000);
    }
  });

  it('modifies and deletes every product after its creation when the shares are 1', async () => {
    const world = createWorld({ count: 30, modifiedShare: 1, deletedShare: 1 });
    await runToEnd(world);
    const coursesOf = Map.groupBy(world.published, ({ productId }) => productId);
    expect(coursesOf.size).toBe(30);
    for (const course of coursesOf.values()) {
      expect(course.map(({ event }) => event)).toEqual(['created', 'modified', 'deleted']);
      const [created, modified, deleted] = course.map((notification) => jsonOf(notification).value);
      expect(modified.ModificationDate > created.PublicationDate).toBe(true);
      expect(deleted.DeletionDate > modified.ModificationDate).toBe(true);
      expect(deleted).not.toHaveProperty('PublicationDate');
    }
  });

  it('modifies about the share it was told', async () => {
    const world = createWorld({ count: 400, modifiedShare: 0.25 });
    await runToEnd(world);
    const modified = eventsOf(world).filter((event) => event === 'modified').length;
    expect(modified).toBeGreaterThan(60);
    expect(modified).toBeLessThan(140);
  });

  it('publishes given records untouched, then stops', async () => {
    const records = [
      { Id: 'a', Name: 'A.SAFE', PublicationDate: '2019-01-01T00:00:00.123Z', Odd: [1] },
      { Id: 'b', Name: 'B.SAFE' },
    ];
    const source = sourceOf(records);
    const world = createWorld({ source });
    await runToEnd(world);
    const values = world.published.map((notification) => jsonOf(notification).value);
    expect(values).toMatchObject(records);
    expect(jsonOf(world.published[0] as BuiltNotification).NotificationDate).toMatch(
      /^2026-05-01T12:/,
    );
    expect(world.published).toHaveLength(2);
  });

  it('publishes nothing by rate while paused, and goes on afterwards', async () => {
    const world = createWorld();
    world.publisher.pause();
    const run = world.publisher.run(world.signal);
    world.clock.advance(5_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.published).toHaveLength(0);
    expect(world.publisher.paused()).toBe(true);
    world.publisher.resume();
    await expect.poll(() => world.published).toHaveLength(1);
    world.stopping.abort();
    await run;
  });

  it('ends when it is stopped while paused', async () => {
    const world = createWorld();
    world.publisher.pause();
    const run = world.publisher.run(world.signal);
    world.stopping.abort();
    await run;
    expect(world.published).toHaveLength(0);
  });
});

describe('publishing at once', () => {
  it('publishes as many as asked, beyond the count and while paused', async () => {
    const world = createWorld({ count: 0 });
    world.publisher.pause();
    expect(await world.publisher.publishNow(250, 'created')).toBe(250);
    expect(eventsOf(world)).toEqual(Array(250).fill('created'));
  });

  it('modifies products in turn, more than once if need be', async () => {
    const world = createWorld();
    await world.publisher.publishNow(3, 'created');
    expect(await world.publisher.publishNow(7, 'modified')).toBe(7);
    const [first, second, third, ...modified] = world.published.map(({ productId }) => productId);
    const round = [first, second, third];
    expect(modified).toEqual([...round, ...round, first]);
  });

  it('deletes each product once and says how many there were', async () => {
    const world = createWorld();
    await world.publisher.publishNow(3, 'created');
    expect(await world.publisher.publishNow(10, 'deleted')).toBe(3);
    expect(await world.publisher.publishNow(1, 'modified')).toBe(0);
  });

  it('publishes nothing when the records have run out', async () => {
    const source = sourceOf([]);
    const world = createWorld({ source });
    expect(await world.publisher.publishNow(1, 'created')).toBe(0);
  });
});
