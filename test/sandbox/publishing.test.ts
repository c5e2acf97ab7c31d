/** The publisher: contents, order and times of notifications; simulated time; the catalogue's events. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { SubscriptionRefusal } from '../../src/sandbox/account.ts';
import { createRandom, createSandboxClock } from '../../src/sandbox/clock.ts';
import type { Dispatcher, Recipient } from '../../src/sandbox/delivery/dispatcher.ts';
import { faultsSchema, noFaults } from '../../src/sandbox/delivery/faults.ts';
import {
  type BuiltNotification,
  createNotificationBuilder,
} from '../../src/sandbox/delivery/notification.ts';
import { createLiveSettings } from '../../src/sandbox/live-settings.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import type { CatalogueProduct } from '../../src/sandbox/products/record.ts';
import { createHoldings } from '../../src/sandbox/publishing/holdings.ts';
import { createPublisher, type PublisherOptions } from '../../src/sandbox/publishing/publisher.ts';
import { dayMs, jsonOf, send, startDelivering, startMs, startTestSandbox, turn } from './set-up.ts';

/** Creates a publisher of one product per second, on a clock that only the test advances. */
function createPublishing(options: Partial<PublisherOptions> = {}, seed = 1) {
  const published: BuiltNotification[] = [];
  const dispatcher: Dispatcher = {
    dispatch: (notification) => published.push(notification),
    capacity: async () => {},
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
    faults: createLiveSettings(faultsSchema, noFaults, 'fault'),
    ratePerSecond: 1,
    modifiedShare: 0,
    deletedShare: 0,
    ...options,
  });
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  return { publisher, published, clock, signal: stopping.signal, stopping };
}

/** Returns a source of the given records, as from a file. */
function sourceOf(records: readonly CatalogueProduct[]): PublisherOptions['source'] {
  const remaining = records.values();
  return { ...createProductGenerator({ seed: 1 }), next: () => remaining.next().value };
}

/** Publishes by rate until the run has ended, advancing the clock by one second at a time. */
async function publishAllOf(options: Partial<PublisherOptions>, seed?: number) {
  const { publisher, clock, signal, published } = createPublishing(options, seed);
  let ended = false;
  const run = publisher.run(signal).finally(() => {
    ended = true;
  });
  while (!ended) {
    clock.advance(1_000);
    await turn();
  }
  await run;
  return published;
}

const eventsOf = (published: readonly BuiltNotification[]) => published.map(({ event }) => event);

describe('the publisher', () => {
  it('publishes the configured count and ends', async () => {
    const published = await publishAllOf({ count: 5 });
    expect(eventsOf(published)).toEqual(Array(5).fill('created'));
    expect(new Set(published.map(({ productId }) => productId)).size).toBe(5);
  });

  it('publishes one product per interval of its rate, and only one after a jump of the clock', async () => {
    const { publisher, published, clock, signal, stopping } = createPublishing();
    const run = publisher.run(signal);
    await expect.poll(() => published).toHaveLength(1);
    clock.advance(999);
    await turn();
    expect(published).toHaveLength(1);
    clock.advance(1);
    await expect.poll(() => published).toHaveLength(2);
    clock.advance(dayMs);
    await expect.poll(() => published).toHaveLength(3);
    await turn();
    expect(published).toHaveLength(3);
    stopping.abort();
    await run;
  });

  it('publishes the same bytes for the same seed, including later changes', async () => {
    const bytesOf = async (seed: number) => {
      const shares = { modifiedShare: 0.5, deletedShare: 0.3 };
      const published = await publishAllOf({ count: 30, ...shares }, seed);
      return published.map(({ body }) => body.toString());
    };
    const bodies = await bytesOf(4);
    expect(await bytesOf(4)).toEqual(bodies);
    expect(await bytesOf(5)).not.toEqual(bodies);
  });

  it('dates a product 46 to 48 s before its notification', async () => {
    for (const notification of await publishAllOf({ count: 20 })) {
      const { NotificationDate, value } = jsonOf(notification);
      const delayMs = Date.parse(NotificationDate) - Date.parse(value.PublicationDate);
      expect(delayMs).toBeGreaterThanOrEqual(45_999);
      expect(delayMs).toBeLessThanOrEqual(48_000);
    }
  });

  it('modifies and deletes every product after its creation when the shares are 1', async () => {
    const published = await publishAllOf({ count: 30, modifiedShare: 1, deletedShare: 1 });
    const courses = Map.groupBy(published, ({ productId }) => productId);
    expect(courses.size).toBe(30);
    for (const course of courses.values()) {
      expect(eventsOf(course)).toEqual(['created', 'modified', 'deleted']);
      const [created, modified, deleted] = course.map((notification) => jsonOf(notification).value);
      expect(modified.ModificationDate > created.PublicationDate).toBe(true);
      expect(deleted.DeletionDate > modified.ModificationDate).toBe(true);
      expect(deleted).not.toHaveProperty('PublicationDate');
    }
  });

  it('modifies about the configured share', async () => {
    const events = eventsOf(await publishAllOf({ count: 400, modifiedShare: 0.25 }));
    const modified = events.filter((event) => event === 'modified').length;
    expect(modified).toBeGreaterThan(60);
    expect(modified).toBeLessThan(140);
  });

  it('publishes given records untouched, then stops', async () => {
    const records = [
      { Id: 'a', Name: 'A.SAFE', PublicationDate: '2019-01-01T00:00:00.123Z', Odd: [1] },
      { Id: 'b', Name: 'B.SAFE' },
    ];
    const bodies = (await publishAllOf({ source: sourceOf(records) })).map(jsonOf);
    expect(bodies.map(({ value }) => value)).toMatchObject(records);
    expect(bodies[0].NotificationDate).toMatch(/^2026-05-01T12:/);
    expect(bodies).toHaveLength(2);
  });

  it('publishes nothing by rate while paused, and continues afterwards', async () => {
    const { publisher, published, clock, signal, stopping } = createPublishing();
    publisher.pause();
    const run = publisher.run(signal);
    clock.advance(5_000);
    await turn();
    expect([published, publisher.paused()]).toEqual([[], true]);
    publisher.resume();
    await expect.poll(() => published).toHaveLength(1);
    stopping.abort();
    await run;
  });

  it('ends when it is stopped while paused', async () => {
    const { publisher, published, signal, stopping } = createPublishing();
    publisher.pause();
    const run = publisher.run(signal);
    stopping.abort();
    await run;
    expect(published).toHaveLength(0);
  });
});

describe('an immediate publication', () => {
  it('publishes the requested number, even beyond the count and while paused', async () => {
    const { publisher, published } = createPublishing({ count: 0 });
    publisher.pause();
    expect(await publisher.publishNow(250, 'created')).toBe(250);
    expect(eventsOf(published)).toEqual(Array(250).fill('created'));
  });

  it('modifies products in turn, repeatedly if necessary', async () => {
    const { publisher, published } = createPublishing();
    await publisher.publishNow(3, 'created');
    expect(await publisher.publishNow(7, 'modified')).toBe(7);
    const ids = published.map(({ productId }) => productId);
    const round = ids.slice(0, 3);
    expect(ids.slice(3)).toEqual([...round, ...round, ids[0]]);
  });

  it('deletes each product once and returns the number of deletions', async () => {
    const { publisher } = createPublishing();
    await publisher.publishNow(3, 'created');
    expect(await publisher.publishNow(10, 'deleted')).toBe(3);
    expect(await publisher.publishNow(1, 'modified')).toBe(0);
  });

  it('publishes nothing when no records are left', async () => {
    const { publisher } = createPublishing({ source: sourceOf([]) });
    expect(await publisher.publishNow(1, 'created')).toBe(0);
  });
});

describe('simulated time', () => {
  it('can include a past with products and events but without notifications', async () => {
    const past = { durationMs: 2 * dayMs, productsPerDay: 150 };
    const shares = { modifiedShare: 0.5, deletedShare: 0.2 };
    const { sandbox } = await startTestSandbox({ past, ...shares });
    const events = [...sandbox.events()];
    const of = (requested: string) => events.filter(({ event }) => event === requested);
    expect(of('created')).toHaveLength(300);
    expect(of('modified').length).toBeGreaterThan(110);
    const deleted = of('deleted').length;
    expect(deleted).toBeGreaterThan(30);
    expect(sandbox.holdings()).toEqual({
      products: 300 - deleted,
      deletedProducts: deleted,
      events: events.length,
    });
    expect(sandbox.totals().published).toBe(0);
    const times = events.map(({ at }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    expect(times[0]).toBeLessThan(startMs - 2 * dayMs + dayMs / 100);
    expect(times.at(-1)).toBe(startMs);
    expect(events.every(({ subscriptions }) => subscriptions.length === 0)).toBe(true);
  });

  it('keeps no more products of the past than configured, and refuses a past that is too long', async () => {
    const past = { durationMs: dayMs, productsPerDay: 120 };
    const { sandbox } = await startTestSandbox({ past, holdingsMax: 100 });
    expect(sandbox.holdings().products).toBe(100);
    const tooMany = startTestSandbox({ past: { durationMs: 10 * dayMs, productsPerDay: 200_000 } });
    await expect(tooMany).rejects.toThrow(/past: has more than 1000000/);
  });

  it('can pass by a month, with a time of its own for each event', async () => {
    const shares = { modifiedShare: 0.3, secondModifiedShare: 0.3, deletedShare: 0.05 };
    const { sandbox } = await startTestSandbox({ ...shares, lateShare: 0.1, lateMaxMs: 3_600_000 });
    for (let day = 0; day < 30; day += 1) await sandbox.pass({ durationMs: dayMs, products: 40 });
    expect(sandbox.clock.now()).toBeCloseTo(startMs + 30 * dayMs, -1);
    const created = [...sandbox.events({ events: ['created'] })];
    expect(created).toHaveLength(1_200);
    const gaps = created.map(
      ({ dateUs }, index) => (dateUs ?? 0) - (created[index - 1]?.dateUs ?? 0),
    );
    // 36 minutes apart; notification delays change that by a few seconds.
    for (const gapUs of gaps.slice(1)) expect(Math.abs(gapUs / 1e6 - 2_160)).toBeLessThan(3);
  });

  it('includes planned changes when no new products are requested', async () => {
    const { sandbox } = await startTestSandbox({ modifiedShare: 1 });
    expect(await sandbox.pass({ durationMs: 1_000, products: 5 })).toBe(5);
    expect(await sandbox.pass({ durationMs: 60_000, products: 0, steps: 30 })).toBe(0);
    expect([...sandbox.events({ events: ['modified'] })]).toHaveLength(5);
  });

  it('sends each notification at its own time, with its retries and its duplicate', async () => {
    const isDown = { until: 0 };
    const { sandbox, subscribe, requests } = await startDelivering(
      { retryDelaysMs: [1_000, 5_000, 25_000], faults: { duplicate: 1 } },
      () => (requests.length <= isDown.until ? 503 : 200),
    );
    await subscribe('one');
    isDown.until = 2;
    expect(await sandbox.pass({ durationMs: 60_000, products: 1 })).toBe(1);
    expect(requests).toHaveLength(1);
    await sandbox.pass({ durationMs: 1_000, products: 0, steps: 1 });
    expect(requests).toHaveLength(2);
    await sandbox.pass({ durationMs: 5_000, products: 0, steps: 1 });
    await sandbox.pass({ durationMs: 500, products: 0, steps: 1 });
    expect(sandbox.entries()[0]).toMatchObject({ outcome: 'delivered', timesReceivedOk: 2 });
    const started = sandbox.entries()[0]?.attempts.map(({ startedAtMs }) => startedAtMs - startMs);
    expect(started).toEqual([60_000, 61_000, 66_000, 66_500]);
  });
});

const only = (filter: string) => ({ FilterParam: filter, SubscriptionEvent: ['created'] });
const radar = "Collection/Name eq 'SENTINEL-1'";

describe('the record of an event', () => {
  it('contains the outcome for each matching subscription, including paused ones', async () => {
    const { sandbox, subscribe, edit, publishAll } = await startDelivering();
    const all = await subscribe('all');
    const some = await subscribe('some', only(radar));
    await publishAll(10);
    await edit(some, { Status: 'paused' });
    sandbox.faults.change({ lost: 1 });
    await publishAll(30);
    sandbox.faults.change({ lost: 0, answerLost: 1 });
    await publishAll(1);
    const events = [...sandbox.events()];
    const matching = new Set(
      [...sandbox.events({ filter: radar })].map(({ sequence }) => sequence),
    );
    expect(matching.size).toBeGreaterThan(2);
    const delivered = { outcome: 'delivered', received: true, reason: null };
    const lost = { outcome: 'lost', received: false, reason: expect.stringContaining('injected') };
    const unseen = { outcome: 'lost', received: true, reason: expect.stringContaining('injected') };
    const paused = { outcome: 'paused', received: false, reason: null };
    for (const { sequence, subscriptions } of events) {
      const [own, others] =
        sequence <= 10 ? [delivered, delivered] : [sequence <= 40 ? lost : unseen, paused];
      const expected = [
        { subscriptionId: all, ...own },
        ...(matching.has(sequence) ? [{ subscriptionId: some, ...others }] : []),
      ];
      expect(subscriptions).toEqual(expected);
    }
  });

  it('has the outcome paused after sixty days without a notification', async () => {
    const { sandbox, subscribe, publishAll } = await startDelivering();
    const id = await subscribe('one');
    sandbox.clock.advance(61 * dayMs);
    await publishAll(1);
    expect([...sandbox.events()][0]?.subscriptions).toMatchObject([
      { subscriptionId: id, outcome: 'paused' },
    ]);
  });

  it('has the date shown in query results and reports whether it is still shown', async () => {
    const { sandbox } = await startTestSandbox();
    await sandbox.publishNow(2);
    await sandbox.publishNow(3, 'modified');
    await sandbox.publishNow(1, 'deleted');
    const shownOf = [...sandbox.events()].map(({ event, shown }) => [event, shown]);
    // The second product has been unchanged the longest and is deleted.
    expect(shownOf).toEqual([
      ['created', true],
      ['created', false],
      ['modified', false],
      ['modified', false],
      ['modified', true],
      ['deleted', true],
    ]);
    const firstOf = async (entity: string) =>
      (await send(`${sandbox.catalogueUrl}/odata/v1/${entity}`)).json.value[0];
    const shown = [...sandbox.events()].filter((event) => event.shown);
    const [product, deleted] = [await firstOf('Products'), await firstOf('DeletedProducts')];
    const dates = [product.PublicationDate, product.ModificationDate, deleted.DeletionDate];
    expect(shown.map(({ dateUs }) => Math.floor((dateUs ?? 0) / 1_000))).toEqual(
      dates.map((date) => Date.parse(date)),
    );
    expect(shown.map(({ productId }) => productId)).toEqual([product.Id, product.Id, deleted.Id]);
  });

  it('is shown when query results show a delayed product, after its notification', async () => {
    const { sandbox, subscribe, publishAll, requests } = await startDelivering({
      lateShare: 1,
      lateMaxMs: 600_000,
    });
    await subscribe('one');
    await publishAll(20);
    expect(requests).toHaveLength(20);
    expect(sandbox.holdings().products).toBe(0);
    const late = [...sandbox.events()];
    expect(late.some(({ shown }) => shown)).toBe(false);
    const from = late.map(({ shownFrom }) => Date.parse(shownFrom)).toSorted((a, b) => a - b);
    expect(from[0]).toBeGreaterThan(startMs);
    sandbox.clock.advance((from[9] ?? 0) - startMs);
    const seen = from.filter((fromMs) => fromMs <= (from[9] ?? 0)).length;
    expect(sandbox.holdings().products).toBe(seen);
    sandbox.clock.advance(600_000);
    expect([...sandbox.events()].every(({ shown }) => shown)).toBe(true);
  });

  it('has the corrected checksums of a second modification', async () => {
    const shares = { modifiedShare: 1, secondModifiedShare: 1 };
    const { sandbox, subscribe, requests } = await startDelivering(shares);
    await subscribe('one', { SubscriptionEvent: ['created', 'modified'] });
    await sandbox.pass({ durationMs: 60_000, products: 3 });
    await sandbox.pass({ durationMs: 60_000, products: 0, steps: 60 });
    await expect.poll(() => sandbox.totals().delivered).toBe(9);
    const bodies = requests.map(jsonOf);
    const courses = Map.groupBy(bodies, ({ ProductId }) => ProductId);
    for (const course of courses.values()) {
      expect(course.map((one) => one.SubscriptionEvent)).toEqual([
        'created',
        'modified',
        'modified',
      ]);
      const [, first, second] = course.map(({ value }) => value);
      expect(second.Checksum).not.toEqual(first.Checksum);
      expect(second.ModificationDate > first.ModificationDate).toBe(true);
      expect(second.Attributes).toEqual(first.Attributes);
    }
  });
});

describe('the recorded events', () => {
  it('of one product have increasing dates, even when published in quick succession', async () => {
    const { sandbox } = await startTestSandbox();
    await sandbox.publishNow(1);
    await sandbox.publishNow(30, 'modified');
    await sandbox.publishNow(1, 'deleted');
    const dates = [...sandbox.events()].map(({ dateUs }) => dateUs ?? 0);
    expect(dates).toHaveLength(32);
    expect(dates).toEqual([...new Set(dates)].toSorted((one, other) => one - other));
  });

  it('are available from the control port as JSON lines, page by page', async () => {
    const { sandbox, control } = await startTestSandbox();
    await sandbox.publishNow(5);
    await sandbox.publishNow(2, 'deleted');
    const read = async (path: string) =>
      (await control('GET', path)).text
        .split('\n')
        .flatMap((line) => (line ? JSON.parse(line) : []));
    expect(await read('/events')).toEqual([...sandbox.events()]);
    const page = await read('/events?after=2&limit=2');
    expect(page.map(({ sequence }) => sequence)).toEqual([3, 4]);
    expect(await read('/events?event=deleted')).toHaveLength(2);
    const cause = encodeURIComponent("DeletionCause ne 'none'");
    expect(await read(`/events?event=deleted&filter=${cause}`)).toHaveLength(2);
    const wrong = await control('GET', '/events?filter=nonsense');
    expect([wrong.status, wrong.json.detail]).toEqual([400, expect.stringMatching(/^Invalid f/)]);
    expect(() => sandbox.events({ filter: 'nonsense' })).toThrow(SubscriptionRefusal);
    const passed = await control('POST', '/pass', { products: 3, durationMs: 3_600_000 });
    expect(passed.json).toMatchObject({ published: 3, offsetMs: 3_600_000 });
  });

  it('are dropped beyond the maximum and keep their sequence numbers', async () => {
    const { sandbox } = await startTestSandbox({ eventsMax: 10 });
    await sandbox.publishNow(25);
    const kept = [...sandbox.events()].map(({ sequence }) => sequence);
    expect(kept.length).toBeGreaterThanOrEqual(10);
    expect(kept.length).toBeLessThanOrEqual(11);
    expect(kept.at(-1)).toBe(25);
    expect([...sandbox.events({ after: 24 })]).toHaveLength(1);
  });
});
