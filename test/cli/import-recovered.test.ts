/** `earshot import` and events that the other host had looked up at the catalogue. */
import { describe, expect, it } from 'vitest';
import type { SubscriptionEvent } from '../../src/domain/subscription.ts';
import { atUs, missing, push, pushed } from '../contract/catalogue-events.ts';
import { createWorld, withStore } from './filled-store.ts';

/** An old host that has recovered these events, and a new one that was pushed others. */
async function createHosts(recovered: Parameters<typeof missing>[], pushes: unknown[]) {
  const old = createWorld();
  await old.fill([]);
  for (const one of recovered) {
    await withStore(old.dataDir, (store) =>
      store.completeness.recover({ events: [missing(...one)], knownUpTo: 0, atUs }),
    );
  }
  const fresh = createWorld();
  await fresh.fill(pushes.map((body) => push(body)));
  const takeOver = async () =>
    JSON.parse((await fresh.earshot(['import', old.dataDir, '--json'])).out);
  const rows = async () =>
    (await fresh.rows(['query'])).map(
      ({ event, productId, source }) => `${event} ${productId} ${source}`,
    );
  return { fresh, takeOver, rows };
}

const modified = (us: number) => ({ event: 'modified' as SubscriptionEvent, eventUs: atUs + us });

describe('earshot import, of recovered events,', () => {
  it('leaves out those that were pushed here, and takes the others once', async () => {
    const { takeOver, rows } = await createHosts(
      [
        [1],
        [2],
        [1, { event: 'deleted' }],
        [1, { subscription: 'andes' }],
        [3, modified(5_999)],
        [4, modified(9_000)],
      ],
      [
        pushed(1, { ProductId: 'PRODUCT-1' }),
        pushed(3, modified(5_000)),
        pushed(4, modified(8_000)),
      ],
    );
    const taken = [
      'created product-2',
      'deleted product-1',
      'created product-1',
      'modified product-4',
    ];
    const counts = { notifications: 6, stored: 4, duplicates: 2, quarantined: 0 };
    expect(await takeOver()).toEqual(counts);
    const all = [
      ...['created PRODUCT-1 push', 'modified product-3 push', 'modified product-4 push'],
      ...taken.map((one) => `${one} reconcile`),
    ].toSorted();
    expect((await rows()).toSorted()).toEqual(all);
    expect(await takeOver()).toEqual({ ...counts, stored: 0, duplicates: 6 });
    expect((await rows()).toSorted()).toEqual(all);
  });

  it('says so in its help', async () => {
    const { fresh } = await createHosts([], []);
    const { out } = await fresh.earshot(['import', '--help']);
    expect(out).toContain('pushed\nhere is known already');
  });
});
