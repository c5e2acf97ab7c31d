import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { prune, pruneRequest } from '../pruning/prune-to.ts';
import { contentOf } from './cluster.ts';
import { createDatabase, hasPostgres, openNode, useServer } from './shared-log-context.ts';

const beginUs = 1_795_000_000_000_000;
const at = (second: number) => beginUs + second * 1_000_000;

async function fill({ accept, node }: Store, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i += 1) {
    await accept(delivery(notification(i), { receivedAtUs: at(i) }));
  }
  await node?.caughtUp();
}

/** Removes everything that was received before a time. */
const pruneBefore = (store: Store, second: number) =>
  prune(store, pruneRequest({ ageUs: 0 }, { nowUs: at(second), withQuarantined: true }));

/** Content regardless of the ids of bodies and the order of rows. */
function comparable(dataDir: string): Record<string, string[]> {
  const entries = Object.entries(contentOf(dataDir)).map(([table, rows]) => [
    table,
    rows.map((row) => row.replace(/"body_id":\d+/, '')).sort(),
  ]);
  return Object.fromEntries(entries);
}

describe.runIf(hasPostgres)('pruning a shared log', () => {
  const server = useServer();

  it('removes the same on all nodes, which then decide the same about a pruned notification', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    await fill(a.store, 0, 50);
    await a.store.accept(delivery('not JSON', { receivedAtUs: at(3) }));
    await a.store.accept(delivery('not JSON, later', { receivedAtUs: at(40) }));
    await b.store.node?.caughtUp();
    expect(await pruneBefore(b.store, 30)).toMatchObject({ notifications: 30, quarantine: 1 });
    for (const { store } of [a, b]) {
      await store.node?.caughtUp();
      expect(await store.pruning.logSize()).toMatchObject({ firstPosition: 31, lastPosition: 50 });
      expect(await store.pruning.pruneHorizon()).toMatchObject({ position: 30 });
      expect(await store.counts()).toMatchObject({ notifications: 20, quarantined: 1 });
    }
    // Its key is still in the database.
    expect(await a.store.accept(delivery(notification(7)))).toMatchObject({ outcome: 'duplicate' });
    expect(await b.store.node?.log.maintain(30)).toMatchObject({ keys: 30 });
    expect(await a.store.accept(delivery(notification(7)))).toMatchObject({ outcome: 'stored' });
    for (const { store } of [a, b]) await store.node?.caughtUp();
    expect(comparable(a.dataDir)).toEqual(comparable(b.dataDir));
    expect(await pruneBefore(a.store, 30)).toMatchObject({ notifications: 0, quarantine: 0 });
  });

  it('removes the same on nodes that receive, and on one that fills itself meanwhile', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    await fill(a.store, 0, 500);
    let isPruned = false;
    const receiving = [a, b].map(async ({ store }, k) => {
      for (let i = 0; !isPruned; i += 1) {
        // New ones, and those that are pruned now.
        const some = [1_000 + 2 * i + k, i % 500].map((number) =>
          store.accept(delivery(notification(number), { receivedAtUs: at(number) })),
        );
        await Promise.all(some);
      }
    });
    const late = openNode({ url });
    for (let second = 25; second <= 500; second += 25) {
      await pruneBefore(b.store, second);
      await b.store.node?.log.maintain((await b.store.pruning.pruneHorizon())?.position ?? 0);
    }
    isPruned = true;
    await Promise.all(receiving);
    const nodes = [a, b, await late];
    for (const { store } of nodes) await store.node?.caughtUp();
    const [content, ...others] = nodes.map(({ dataDir }) => comparable(dataDir));
    expect(content?.notification?.length).toBeGreaterThan(100);
    expect(content?.prune_horizon).toHaveLength(1);
    for (const other of others) expect(other).toEqual(content);
  });

  it('is part of the checkpoint of a new node, which has the earlier entries, too', async () => {
    const url = await createDatabase(server());
    const first = await openNode({ url, partitionEntries: 1_000 });
    await fill(first.store, 0, 30);
    await pruneBefore(first.store, 20);
    await first.store.node?.log.maintain(20);
    // Stored again, at a new position, before the checkpoint: the entries contain both.
    await fill(first.store, 5, 8);
    await first.store.node?.saveCheckpoint();
    await fill(first.store, 8, 10);
    const late = await openNode({ url });
    for (const { store } of [first, late]) await store.node?.caughtUp();
    expect(await late.store.pruning.logSize()).toMatchObject({ firstPosition: 21 });
    expect(await late.store.pruning.pruneHorizon()).toMatchObject({ position: 20 });
    expect(comparable(late.dataDir)).toEqual(comparable(first.dataDir));
    expect(late.store.node?.state()).toMatchObject({ fault: null });
  });
});
