/** What every lock between programs must do. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { TakeLock } from '../../src/domain/account.ts';

/** `open` gives two programs' ways to the same locks, all of them free. */
export function describeLocks(name: string, open: () => [TakeLock, TakeLock]): void {
  const now = { waitMs: 0 };

  describe(name, () => {
    it('are held by one at a time, whoever asks', async () => {
      const [take, takeElsewhere] = open();
      const release = await take('account', now);
      onTestFinished(release);
      for (const other of [take, takeElsewhere]) {
        await expect(other('account', now)).rejects.toMatchObject({ code: 'conflict' });
      }
    });

    it('say what the other is doing, and what to do', async () => {
      const [take, takeElsewhere] = open();
      onTestFinished(await take('account', now));
      onTestFinished(await take('subscriptions', now));
      const refusal = async (lock: 'account' | 'subscriptions') =>
        String(await takeElsewhere(lock, now).catch((error: unknown) => error));
      expect(await refusal('account')).toContain('is logging in to the account. Wait until');
      expect(await refusal('subscriptions')).toContain('is changing the subscriptions');
    });

    it('do not hinder each other', async () => {
      const [take, takeElsewhere] = open();
      onTestFinished(await take('account', now));
      onTestFinished(await takeElsewhere('subscriptions', now));
    });

    it('go to one who waits when they are given back', async () => {
      const [take, takeElsewhere] = open();
      const release = await take('account', now);
      const waiting = takeElsewhere('account', { waitMs: 10_000 });
      // Runs while the other waits, or never: waiting must leave the thread free.
      setImmediate(release);
      onTestFinished(await waiting);
      await expect(take('account', now)).rejects.toMatchObject({ code: 'conflict' });
    });

    it('go to one after the other when many wait', async () => {
      const [take, takeElsewhere] = open();
      let holders = 0;
      const work = async (way: TakeLock) => {
        const release = await way('account', { waitMs: 15_000 });
        holders += 1;
        await new Promise(setImmediate);
        const together = holders;
        holders -= 1;
        release();
        return together;
      };
      const ways = [take, takeElsewhere, take, takeElsewhere, take];
      expect(await Promise.all(ways.map(work))).toEqual([1, 1, 1, 1, 1]);
    });

    it('are waited for as long as asked, and no longer', async () => {
      const [take, takeElsewhere] = open();
      onTestFinished(await take('account', now));
      const startedMs = performance.now();
      const refused = takeElsewhere('account', { waitMs: 300 });
      await expect(refused).rejects.toMatchObject({ code: 'conflict' });
      const waitedMs = performance.now() - startedMs;
      expect(waitedMs).toBeGreaterThan(290);
      expect(waitedMs).toBeLessThan(5_000);
    });

    it('may be given back twice, which frees nobody else’s', async () => {
      const [take, takeElsewhere] = open();
      const release = await take('account', now);
      release();
      release();
      onTestFinished(await takeElsewhere('account', now));
      release();
      await expect(take('account', now)).rejects.toMatchObject({ code: 'conflict' });
    });
  });
}
