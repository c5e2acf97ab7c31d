/** What a sandbox publishes without waiting: a past, and days that are made to pass. */
import { expect, it } from 'vitest';
import { dayMs, startAccountWorld, startMs } from './account-world.ts';
import { startDeliveryWorld } from './delivery-world.ts';

it('has a past that is in the lists and in the ledger, and that nobody was told of', async () => {
  const past = { durationMs: 2 * dayMs, productsPerDay: 150 };
  const shares = { modifiedShare: 0.5, deletedShare: 0.2 };
  const { sandbox } = await startAccountWorld({ past, ...shares });
  const events = [...sandbox.events()];
  const of = (wanted: string) => events.filter(({ event }) => event === wanted);
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

it('keeps no more of a past than it is told, and refuses one that is too long', async () => {
  const past = { durationMs: dayMs, productsPerDay: 120 };
  const { sandbox } = await startAccountWorld({ past, heldMax: 100 });
  expect(sandbox.holdings().products).toBe(100);
  const tooMany = startAccountWorld({ past: { durationMs: 10 * dayMs, productsPerDay: 200_000 } });
  await expect(tooMany).rejects.toThrow(/past: has more than 1000000/);
});

it('lets a month pass, each event at its own time', async () => {
  const shares = { modifiedShare: 0.3, secondModifiedShare: 0.3, deletedShare: 0.05 };
  const { sandbox } = await startAccountWorld({ ...shares, lateShare: 0.1, lateMaxMs: 3_600_000 });
  for (let day = 0; day < 30; day += 1) await sandbox.pass({ durationMs: dayMs, products: 40 });
  expect(sandbox.clock.now()).toBeCloseTo(startMs + 30 * dayMs, -1);
  const created = [...sandbox.events({ events: ['created'] })];
  expect(created).toHaveLength(1_200);
  const gaps = created.map(
    ({ dateUs }, index) => (dateUs ?? 0) - (created[index - 1]?.dateUs ?? 0),
  );
  // Some 36 minutes apart, give or take the second or two until a notification.
  for (const gapUs of gaps.slice(1)) expect(Math.abs(gapUs / 1e6 - 2_160)).toBeLessThan(3);
});

it('goes on to changes that are planned when no products are wanted', async () => {
  const { sandbox } = await startAccountWorld({ modifiedShare: 1 });
  expect(await sandbox.pass({ durationMs: 1_000, products: 5 })).toBe(5);
  expect(await sandbox.pass({ durationMs: 60_000, products: 0, steps: 30 })).toBe(0);
  expect([...sandbox.events({ events: ['modified'] })]).toHaveLength(5);
});

it('sends each notification at its own time, with its retries and its duplicate', async () => {
  const isDown = { until: 0 };
  const { sandbox, subscribe, requests } = await startDeliveryWorld(
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
