/** What every store must do with bodies that are no notifications. */
import { describe, expect, it } from 'vitest';
import type { Intake, NotificationLog, Quarantine } from '../../src/domain/ports.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';

type Store = Intake & NotificationLog & Quarantine;

export function describeQuarantine(name: string, open: () => Promise<Store>): void {
  describe(`${name} as quarantine`, () => {
    it('keeps the bytes, the headers without credentials, and the reason', async () => {
      const store = await open();
      const bytes = Buffer.from([0x7b, 0xff, 0x00, 0x22]);
      const receipt = await store.accept(delivery(bytes, { subscription: 'odd' }));
      expect(receipt).toMatchObject({ outcome: 'rejected', stored: 0, quarantineId: 1 });
      const entry = await store.quarantineEntry(1);
      expect(Buffer.from(entry.body).equals(bytes)).toBe(true);
      expect(entry).toMatchObject({
        reason: 'not-json',
        subscription: 'odd',
        bodyBytes: 4,
        releasedAtUs: null,
        headers: ['Content-Type', 'application/json'],
      });
    });

    it('stores what is good in an array and holds the whole body', async () => {
      const store = await open();
      const body = [notification(1), { nothing: true }, notification(2)];
      const receipt = await store.accept(delivery(body));
      expect(receipt).toMatchObject({ outcome: 'rejected', stored: 2 });
      expect(await store.counts()).toEqual({ notifications: 2, duplicates: 0, quarantined: 1 });
      const entry = await store.quarantineEntry(1);
      expect(entry.faults).toMatchObject([{ code: 'event-missing', index: 1 }]);
      expect(JSON.parse(Buffer.from(entry.body).toString())).toEqual(body);
    });

    it('lists the newest first, page after page, and released entries only when asked', async () => {
      const store = await open();
      await Promise.all(
        Array.from({ length: 1_200 }, (_, i) => store.accept(delivery(`bad ${i}`))),
      );
      const ids = (await collect(store.quarantined({ released: false }))).map(({ id }) => id);
      expect(ids).toEqual(Array.from({ length: 1_200 }, (_, i) => 1_200 - i));
      const few = await collect(store.quarantined({ released: true, limit: 3 }));
      expect(few.map(({ id }) => id)).toEqual([1_200, 1_199, 1_198]);
    });

    it('leaves an entry as it is that cannot be read yet', async () => {
      const store = await open();
      await store.accept(delivery([notification(1), 'nothing']));
      const receipt = await store.retry(1, 9);
      expect(receipt).toMatchObject({ outcome: 'rejected', quarantineId: 1, stored: 0 });
      expect(await store.counts()).toEqual({ notifications: 1, duplicates: 0, quarantined: 1 });
    });

    it('says so when there is no such entry', async () => {
      const store = await open();
      await expect(store.retry(5, 9)).rejects.toMatchObject({ code: 'not_found' });
      await expect(store.quarantineEntry(5)).rejects.toMatchObject({ code: 'not_found' });
    });
  });
}
