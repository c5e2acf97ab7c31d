/** What every store must do with a push that comes after its event was recovered. */
import { describe, expect, it } from 'vitest';
import { collect } from '../helpers/deliveries.ts';
import { atUs, hour, missing, modified, push, pushed, subscription } from './catalogue-events.ts';
import { type OpenRecovering, type RecoveringStore, recover, rowsOf } from './recovering-store.ts';

export function describeLatePushes(name: string, open: OpenRecovering): void {
  describeRecognised(name, open);
  describeModifications(name, open);
}

function describeRecognised(name: string, open: OpenRecovering): void {
  describe(`${name}, given a push of an event that it has recovered,`, () => {
    it('counts it on the row of the event, which keeps its body and gets all else', async () => {
      const store = await open();
      const event = missing(1);
      await recover(store, [event]);
      const late = pushed(1, { ProductId: 'PRODUCT-1', SubscriptionId: 'another' });
      const receivedAtUs = atUs + 2 * hour;
      const duplicate = { outcome: 'duplicate', duplicates: 1 };
      expect(await store.accept(push(late, { receivedAtUs }))).toEqual(duplicate);
      expect(await rowsOf(store)).toMatchObject([
        {
          position: 1,
          ackId: 'ack-1',
          productId: 'product-1',
          subscriptionId: 'another',
          notificationDateUs: atUs + 90_000_000,
          receivedAtUs: atUs + hour,
          source: 'reconcile',
          timesSeen: 2,
          lastSeenAtUs: receivedAtUs,
        },
      ]);
      expect(Buffer.from(await store.body(1)).equals(event.body)).toBe(true);
      const productIds = ['product-1'];
      expect(await store.completeness.recoveredEvents({ subscription, productIds })).toMatchObject([
        { pushedAtUs: receivedAtUs, eventUs: event.eventUs },
      ]);
      expect(await collect(store.find({ ackId: 'ack-1' }))).toHaveLength(1);
    });

    it('knows the push when it comes again, and the event when it is recovered again', async () => {
      const store = await open();
      await recover(store, [missing(1)]);
      // In another case than the row has it: by its AckId it is no other product's.
      for (const _ of [1, 2, 3]) await store.accept(push(pushed(1, { ProductId: 'PRODUCT-1' })));
      expect(await recover(store, [missing(1)], 1)).toEqual([null]);
      expect(await rowsOf(store)).toMatchObject([{ timesSeen: 4 }]);
      expect(await collect(store.quarantined({ released: false }))).toEqual([]);
    });

    it('gives another push of that event a row of its own, in one body too', async () => {
      const store = await open();
      await recover(store, [missing(1)]);
      const body = [pushed(1), pushed(1, { AckId: 'ack-other' })];
      const receipt = await store.accept(push(body));
      expect(receipt).toEqual({ outcome: 'stored', stored: 1, duplicates: 1 });
      expect(await rowsOf(store)).toMatchObject([
        { ackId: 'ack-1', source: 'reconcile' },
        { ackId: 'ack-other', source: 'push', timesSeen: 1 },
      ]);
      expect(JSON.parse(Buffer.from(await store.body(2)).toString())).toHaveLength(2);
    });

    it('takes no other event for it', async () => {
      const store = await open();
      await recover(store, [missing(1), missing(2, { event: 'deleted' })]);
      const others = [
        push(pushed(1), { subscription: 'andes' }),
        push(pushed(1, { AckId: 'b' }), { subscription: null }),
        push(pushed(1, { AckId: 'c', event: 'deleted' })),
        push(pushed(2, { AckId: 'd' })),
        push(pushed(3)),
        push(pushed(1, { AckId: 'e' }), { source: 'reconcile' }),
      ];
      for (const other of others) {
        expect(await store.accept(other)).toMatchObject({ outcome: 'stored' });
      }
      expect((await rowsOf(store)).map(({ timesSeen }) => timesSeen)).toEqual(Array(8).fill(1));
    });

    it('keeps what comes under a known AckId where a person sees it', async () => {
      const store = await open();
      await recover(store, [missing(1), missing(2)]);
      await store.accept(push(pushed(1)));
      const reused = await store.accept(push(pushed(2, { AckId: 'ack-1' })));
      expect(reused).toMatchObject({ outcome: 'duplicate' });
      const held = await collect(store.quarantined({ released: false }));
      expect(held).toMatchObject([{ reason: 'ack-id-reused' }]);
      const productIds = ['product-2'];
      expect(await store.completeness.recoveredEvents({ subscription, productIds })).toMatchObject([
        { pushedAtUs: null },
      ]);
    });

    it('counts it as late in the hour of the event, and no more than were recovered', async () => {
      const store = await open();
      await recover(store, [missing(1), missing(2), missing(3, { eventUs: atUs + hour })]);
      const counts = { expected: 9, pushed: 7, late: 1, recovered: 1, missing: 0 };
      const created = { subscription, event: 'created', ...counts, comparedAtUs: atUs } as const;
      const hours = [
        { ...created, hourUs: atUs },
        { ...created, hourUs: atUs + hour },
        { ...created, hourUs: atUs, event: 'modified' } as const,
        { ...created, hourUs: atUs, subscription: 'andes' },
      ];
      await store.completeness.saveCoverage(hours);
      for (const number of [1, 1, 2]) await store.accept(push(pushed(number)));
      const window = { sinceUs: 0, untilUs: atUs + 9 * hour };
      const found = await store.completeness.coverage(window);
      expect(found.map(({ late, recovered }) => [late, recovered])).toEqual([
        [2, 0],
        [1, 1],
        [1, 1],
        [1, 1],
      ]);
    });

    it('counts it so too where the event was recovered after the hour was compared', async () => {
      const store = await open();
      const { completeness } = store;
      await recover(store, [missing(1)]);
      const counts = { expected: 2, pushed: 1, late: 0, recovered: 1, missing: 0 };
      const hours = { subscription, event: 'created', hourUs: atUs, comparedAtUs: atUs } as const;
      await completeness.saveCoverage([{ ...hours, ...counts }]);
      await recover(store, [missing(2)]);
      await store.accept(push(pushed(2)));
      expect(await completeness.coverage({ sinceUs: 0, untilUs: atUs + hour })).toEqual([
        { ...hours, ...counts, expected: 3, late: 1 },
      ]);
    });
  });
}

function describeModifications(name: string, open: OpenRecovering): void {
  describe(`${name}, given a late push of one of several modifications,`, () => {
    const times = [atUs, atUs + 10_000, atUs + 20_000];
    const openWithThree = async () => {
      const store = await open();
      await recover(
        store,
        times.map((time) => missing(1, modified(time))),
      );
      return store;
    };
    const pushedOnes = async ({ completeness }: RecoveringStore) => {
      const productIds = ['product-1'];
      const events = await completeness.recoveredEvents({ subscription, productIds });
      const told = events.filter(({ pushedAtUs }) => pushedAtUs !== null);
      return told.map(({ eventUs }) => (eventUs - atUs) / 1_000);
    };

    it('recognises it by the date in its record', async () => {
      const store = await openWithThree();
      // Some write three digits, and some six.
      const middle = pushed(1, modified(atUs + 10_999));
      expect(await store.accept(push(middle))).toMatchObject({ outcome: 'duplicate' });
      expect(await pushedOnes(store)).toEqual([10]);
      const unheardOf = pushed(1, { ...modified(atUs + 15_000), AckId: 'b' });
      expect(await store.accept(push(unheardOf))).toMatchObject({ outcome: 'stored' });
      expect(await pushedOnes(store)).toEqual([10]);
    });

    it('takes the newest that its own date allows where it has no record', async () => {
      const store = await openWithThree();
      const bare = { SubscriptionEvent: 'modified', ProductId: 'product-1' };
      const dated = { ...bare, NotificationDate: new Date(atUs / 1_000).toISOString() };
      await store.accept(push({ ...dated, AckId: 'a' }));
      expect(await pushedOnes(store)).toEqual([0]);
      expect(await store.accept(push({ ...dated, AckId: 'b' }))).toMatchObject({ stored: 1 });
      const last = { ...bare, NotificationDate: new Date(atUs / 1_000 + 90).toISOString() };
      await store.accept(push({ ...last, AckId: 'c' }));
      expect(await pushedOnes(store)).toEqual([0, 20]);
      // Without a date either, nothing says which one is meant.
      expect(await store.accept(push({ ...bare, AckId: 'd' }))).toMatchObject({ stored: 1 });
    });
  });
}
