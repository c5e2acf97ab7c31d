/** Filters are changed while products pour in: what one that stays received, the changed one did, or a gap says so. */
import { describe, expect, it } from 'vitest';
import { openAccountContext, unmanaged } from '../cli/account-context.ts';
import { collect } from '../helpers/deliveries.ts';

/** Between a product and the time in its notification; the sandbox and the receiver share a clock. */
const toleranceUs = 50_000;

/** A filter that every product of the sandbox matches, as their names all hold `S`, `_` and a date. */
const everyName = (part: string) => `contains(Name,'${part}')`;

describe('a replacement under load', () => {
  it.each([
    ['beside a third that may run', 3],
    ['where only two may run', 2],
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
      // The last ones may not have come to both before the end.
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
