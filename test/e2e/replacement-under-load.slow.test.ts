/** Changed filters under load: a gap records every event that only an unchanged subscription received. */
import { describe, expect, it } from 'vitest';
import { openAccountContext, unmanaged } from '../features/subscriptions/account-context.ts';
import { collect } from '../helpers/deliveries.ts';

/** Tolerance for times of notifications at a gap; the sandbox and the receiver share a clock. */
const toleranceUs = 50_000;

/** Returns a filter that every product of the sandbox matches: each name contains `S`, `_` and a date. */
const everyName = (part: string) => `contains(Name,'${part}')`;

describe('a replacement under load', () => {
  it.each([
    ['when three may run', 3],
    ['when only two may run', 2],
  ])(
    '%s loses nothing outside the recorded gaps',
    async (_title, runningMax) => {
      const context = await openAccountContext({
        sandbox: { count: 1_000_000, ratePerSecond: 80 },
      });
      context.env.EARSHOT_SUBSCRIPTIONS_RUNNING_MAX = String(runningMax);
      context.sandbox.service.change({ runningMax });
      const registered = await context.run(['register', '--filter', everyName('S'), '--yes']);
      expect(registered, registered.err).toMatchObject({ code: 0 });
      const { store } = context.receiver;
      await expect.poll(() => store.lastPosition()).toBeGreaterThan(20);
      context.sandbox.addSubscription({
        ...unmanaged('reference'),
        filter: '',
        endpoint: `${context.publicUrl}/notifications/reference`,
        username: 'earshot-first',
        password: 'the-first-endpoint-password',
      });
      for (const part of ['_', '2', '20']) {
        const before = await store.lastPosition();
        await expect.poll(() => store.lastPosition()).toBeGreaterThan(before + 60);
        const command = ['register', '--filter', everyName(part), '--yes'];
        const changed = await context.run(command);
        expect(changed, changed.err).toMatchObject({ code: 0 });
      }
      const before = await store.lastPosition();
      await expect.poll(() => store.lastPosition()).toBeGreaterThan(before + 60);
      await context.sandbox.close();
      const gaps = await store.administration.gaps();
      const received = new Set(
        (await collect(store.find({ subscription: 'default' }))).map(({ productId }) => productId),
      );
      const reference = await collect(store.find({ subscription: 'reference', order: 'oldest' }));
      // Without the last ones, which may not have reached both before the end.
      const settled = reference.slice(0, -10);
      expect(settled.length).toBeGreaterThan(150);
      const inGap = (us: number) =>
        gaps.some(
          ({ fromUs, toUs }) => us >= fromUs - toleranceUs && us <= (toUs ?? us) + toleranceUs,
        );
      const lost = settled.filter(
        ({ productId, notificationDateUs, receivedAtUs }) =>
          !received.has(productId) && !inGap(notificationDateUs ?? receivedAtUs),
      );
      expect(lost.map(({ productName }) => productName)).toEqual([]);
      expect(gaps).toHaveLength(runningMax === 3 ? 0 : 3);
      expect(gaps.every(({ toUs }) => toUs !== null)).toBe(true);
    },
    60_000,
  );
});
