/** What every store must do with events that no push told of. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs } from '../../src/domain/dates.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { atUs, hour, missing, modified, push, pushed, subscription } from './catalogue-events.ts';
import { type OpenRecovering, recover, rowsOf } from './recovering-store.ts';

export function describeRecovery(name: string, open: OpenRecovering): void {
  describeRecover(name, open);
  describePushedMeanwhile(name, open);
  describeAnyOrder(name, open);
}

function describeRecover(name: string, open: OpenRecovering): void {
  describe(`${name} as keeper of recovered events`, () => {
    it('writes them into the log with their bodies, and finds them again', async () => {
      const store = await open();
      await store.accept(delivery(notification(7)));
      const events = [missing(1), missing(2, { event: 'deleted' })];
      expect(await recover(store, events, 1)).toEqual([2, 3]);
      expect((await rowsOf(store))[1]).toEqual({
        position: 2,
        ackId: null,
        productId: 'product-1',
        productName: 'S2A_MSIL2A_000001.SAFE',
        event: 'created',
        subscription,
        subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
        notificationDateUs: null,
        receivedAtUs: atUs + hour,
        source: 'reconcile',
        timesSeen: 1,
        lastSeenAtUs: atUs + hour,
        bodyIndex: 0,
      });
      expect(Buffer.from(await store.body(3)).equals(events[1]?.body ?? Buffer.alloc(0))).toBe(
        true,
      );
      const productIds = ['PRODUCT-2', 'product-2', 'product-7', 'product-9'];
      const { body: _, ...event } = missing(2, { event: 'deleted' });
      const recovered = { ...event, position: 3, pushedAtUs: null };
      const ask = (of: string) =>
        store.completeness.recoveredEvents({ subscription: of, productIds });
      expect(await ask(subscription)).toEqual([recovered]);
      expect(await ask('andes')).toEqual([]);
      expect(await store.drift()).toEqual([]);
    });

    it('adds nothing for what it recovered before, also in another case or within one call', async () => {
      const store = await open();
      const upper = { ...missing(1), productId: 'PRODUCT-1', eventUs: atUs };
      const first = missing(2, modified(atUs));
      const sameMs = missing(2, modified(atUs + 999));
      const events = [missing(1), upper, first, sameMs, missing(2, modified(atUs + 1_000))];
      expect(await recover(store, events)).toEqual([1, null, 2, null, 3]);
      expect(await recover(store, events)).toEqual([null, null, null, null, null]);
      expect(await recover(store, [missing(1, { subscription: 'andes' })])).toEqual([4]);
      expect(await recover(store, [])).toEqual([]);
      expect(await recover(store, [missing(3, modified(atUs + 1_999))])).toEqual([5]);
      expect(await recover(store, [missing(3, modified(atUs + 1_000))])).toEqual([null]);
      expect(await rowsOf(store)).toHaveLength(5);
      const productIds = ['product-3'];
      expect(await store.completeness.recoveredEvents({ subscription, productIds })).toMatchObject([
        { eventUs: atUs + 1_000 },
      ]);
    });

    it('moves the counts of the hour: from missing, and where nothing is, one more is expected', async () => {
      const store = await open();
      const { completeness } = store;
      const counts = { expected: 9, pushed: 7, late: 1, recovered: 0, missing: 1 };
      const created = { subscription, event: 'created', ...counts, comparedAtUs: atUs } as const;
      const others = [
        { ...created, hourUs: atUs, subscription: 'andes' },
        { ...created, hourUs: atUs, event: 'modified' } as const,
        { ...created, hourUs: atUs + hour },
      ];
      await completeness.saveCoverage([{ ...created, hourUs: atUs }, ...others]);
      const covered = () => completeness.coverage({ sinceUs: 0, untilUs: atUs + 9 * hour });
      await recover(store, [missing(1)]);
      const recovered = { ...created, hourUs: atUs, recovered: 1, missing: 0 };
      expect(await covered()).toEqual(expect.arrayContaining([recovered, ...others]));
      // What is known changes nothing, nor does an hour of which nothing is known.
      await recover(store, [missing(1), missing(2, { eventUs: atUs - hour })]);
      expect(await covered()).toEqual(expect.arrayContaining([recovered, ...others]));
      await recover(store, [missing(3), missing(4, { eventUs: atUs + hour - 1 })]);
      const more = { ...recovered, expected: 11, recovered: 3 };
      expect(await covered()).toEqual(expect.arrayContaining([more, ...others]));
      expect(await covered()).toHaveLength(4);
    });

    it('takes at most 100 of one subscription', async () => {
      const store = await open();
      const many = Array.from({ length: 101 }, (_, i) => missing(i));
      const two = [missing(1), missing(2, { subscription: 'andes' })];
      for (const events of [many, two]) {
        await expect(recover(store, events)).rejects.toMatchObject({ code: 'invalid' });
      }
      expect(await recover(store, many.slice(1))).toHaveLength(100);
    });

    it('keeps nothing of a call in which one body is not what it should be', async () => {
      const store = await open();
      const bodies = ['{', '[]', JSON.stringify(pushed(2)), JSON.stringify([pushed(1), pushed(1)])];
      for (const body of bodies) {
        const events = [missing(3), { ...missing(1), body: Buffer.from(body) }];
        await expect(recover(store, events)).rejects.toMatchObject({ code: 'internal' });
      }
      expect(await store.lastPosition()).toBe(0);
    });

    it('tells of at most 1,000 products at once', async () => {
      const { completeness } = await open();
      const productIds = Array.from({ length: 1_001 }, (_, i) => `product-${i}`);
      const refused = completeness.recoveredEvents({ subscription, productIds });
      await expect(refused).rejects.toMatchObject({ code: 'invalid' });
    });

    it('knows the events of another log, which come as deliveries, by what happened', async () => {
      const store = await open();
      const { body } = missing(1);
      const handedOver = delivery(body, { subscription, source: 'reconcile' });
      expect(await store.accept(handedOver)).toMatchObject({ outcome: 'stored' });
      expect(await store.accept(handedOver)).toMatchObject({ outcome: 'duplicate' });
      expect(await recover(store, [missing(1)], 1)).toEqual([null]);
      expect(await store.accept(push(pushed(1)))).toMatchObject({ outcome: 'duplicate' });
      expect(await store.accept(handedOver)).toMatchObject({ outcome: 'duplicate' });
      expect(await rowsOf(store)).toMatchObject([{ ackId: 'ack-1', timesSeen: 4 }]);
    });
  });
}

function describePushedMeanwhile(name: string, open: OpenRecovering): void {
  describe(`${name}, asked to recover what was pushed since it was looked up,`, () => {
    it('adds nothing', async () => {
      const store = await open();
      await store.accept(push([pushed(1, { ProductId: 'PRODUCT-1' }), pushed(2, modified(atUs))]));
      const events = [missing(1), missing(2, modified(atUs))];
      expect(await recover(store, events)).toEqual([null, null]);
      expect(await store.lastPosition()).toBe(2);
    });

    it('does not look at what its caller has looked at', async () => {
      const store = await open();
      await store.accept(push(pushed(1)));
      expect(await recover(store, [missing(1)], 1)).toEqual([2]);
    });

    it('takes other events, and those of other subscriptions, for what they are', async () => {
      const store = await open();
      await store.accept(push(pushed(1), { subscription: 'andes' }));
      await store.accept(push(pushed(2, { event: 'modified' }), { subscription: null }));
      await store.accept(push(pushed(3, { event: 'deleted' })));
      const events = [missing(1), missing(2, { event: 'modified' }), missing(3)];
      expect(await recover(store, events)).toEqual([4, 5, 6]);
    });

    it('takes a push that showed the state of a modification, or a later one, for its news', async () => {
      const store = await open();
      const created = (stateUs: number) => ({ ...pushed(1, modified(stateUs)), ...asCreated });
      await store.accept(push([notification(8), created(atUs + 5_000)]));
      await store.accept(push(pushed(2, modified(atUs + 5_000))));
      const bare = { NotificationDate: formatDateUs(atUs + 5_000), value: undefined };
      await store.accept(push({ ...pushed(3, modified(atUs)), ...bare }));
      await store.accept(push({ ...pushed(4, modified(atUs)), ...bare, ...asCreated }));
      const at = (us: number, numbers: number[]) =>
        numbers.map((number) => missing(number, modified(atUs + us)));
      const known = [...at(5_999, [1, 2, 3]), ...at(4_000, [1, 2, 3])];
      expect(await recover(store, known)).toEqual(known.map(() => null));
      expect(await recover(store, [...at(6_000, [1, 2, 3]), ...at(0, [4])])).toEqual([6, 7, 8, 9]);
    });

    it('refuses when more than 5,000 rows would have to be looked at', async () => {
      const store = await open();
      const body = Array.from({ length: 5_001 }, (_, i) => ({
        SubscriptionEvent: 'created',
        ProductId: `p${i}`,
        AckId: `a${i}`,
      }));
      await store.accept(push(body));
      await expect(recover(store, [missing(1)])).rejects.toMatchObject({ code: 'conflict' });
      expect(await recover(store, [missing(1)], 1)).toEqual([5_002]);
    });
  });
}

const asCreated = { SubscriptionEvent: 'created' };

function describeAnyOrder(name: string, open: OpenRecovering): void {
  describe(`${name}, told of events by pushes and recoveries in any order,`, () => {
    const step = fc.record({
      kind: fc.constantFrom('push', 'recover'),
      number: fc.nat({ max: 2 }),
      event: fc.constantFrom('created', 'modified', 'deleted'),
    });

    it('has each of them once, counted as often as it was told', async () => {
      const store = await open();
      let run = 0;
      const told = fc.asyncProperty(
        fc.array(step, { maxLength: 20 }),
        fc.boolean(),
        async (steps, isTogether) => {
          run += 1;
          const from = await store.lastPosition();
          const keys = steps.map(({ number, event }) => `${event} product-${run * 10 + number}`);
          const tell = ({ kind, number, event }: (typeof steps)[number]) => {
            const product = run * 10 + number;
            if (kind === 'recover') return recover(store, [missing(product, { event })], from);
            return store.accept(push(pushed(product, { event, AckId: `${event} ${product}` })));
          };
          if (isTogether) await Promise.all(steps.map(tell));
          else for (const one of steps) await tell(one);
          const rows = await collect(store.find({ afterPosition: from }));
          const found = rows.map(({ event, productId }) => `${event} ${productId}`);
          expect(found.toSorted()).toEqual([...new Set(keys)].toSorted());
          const pushes = steps.flatMap(({ kind }, i) => (kind === 'push' ? [keys[i]] : []));
          for (const [i, { timesSeen, source }] of rows.entries()) {
            const times = pushes.filter((key) => key === found[i]).length;
            expect(timesSeen).toBe(times + (source === 'reconcile' ? 1 : 0));
          }
        },
      );
      await fc.assert(told, { numRuns: 60 });
    });
  });
}
