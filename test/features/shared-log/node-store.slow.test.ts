import { describe, expect, it } from 'vitest';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { createDatabase, hasPostgres, openNode, useServer } from './shared-log-context.ts';

describe.runIf(hasPostgres)('the store of a node', () => {
  const server = useServer();

  it('stores a notification once on all nodes', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    const receipts = await Promise.all([
      a.store.accept(delivery(notification(1))),
      b.store.accept(delivery(notification(1))),
    ]);
    expect(receipts.map(({ outcome }) => outcome).sort()).toEqual(['duplicate', 'stored']);
    for (const { store } of [a, b]) {
      await expect.poll(() => store.counts()).toMatchObject({ notifications: 1, duplicates: 1 });
    }
    expect(await collect(a.store.find({}))).toEqual(await collect(b.store.find({})));
  });
});
