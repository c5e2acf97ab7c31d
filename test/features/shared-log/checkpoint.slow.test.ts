/** New nodes that fill themselves from entries and checkpoints, and pruning, which all nodes do alike. */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { prune, pruneRequest } from '../pruning/prune-to.ts';
import { queued } from '../sinks/sink-items.ts';
import { comparableOf, contentOf } from './cluster.ts';
import { createDatabase, hasPostgres, openNode, query, useServer } from './shared-log-context.ts';

const beginUs = 1_795_000_000_000_000;
const at = (second: number) => beginUs + second * 1_000_000;

/** Accepts notifications with these numbers, received in the second of their number. */
async function receive({ accept, shared }: Store, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i += 1) {
    await accept(delivery(notification(i), { receivedAtUs: at(i) }));
  }
  await shared?.caughtUp();
}

/** Removes everything that was received before a time. */
const pruneBefore = (store: Store, second: number) =>
  prune(store, pruneRequest({ ageUs: 0 }, { nowUs: at(second), withQuarantined: true }));

/** Writes rows into most tables. */
async function fill(store: Store, from: number): Promise<void> {
  await receive(store, from, from + 10);
  await store.accept(delivery('not JSON', { subscription: null }));
  await store.accept(delivery(notification(from, { note: 'other content' })));
  await store.administration.markDeliveries([
    { subscription: 'default', username: 'catalogue', lastAtUs: at(from) },
  ]);
  await store.moveCursor(`reader-${from}`, from, beginUs);
  await queued(store, ['product-1'], { sink: `sink-${from}`, upTo: 2 });
}

async function allCaughtUp(nodes: readonly { store: Store }[]): Promise<void> {
  for (const { store } of nodes) await store.shared?.caughtUp();
}

describe.runIf(hasPostgres)('a new node', () => {
  const server = useServer();

  it('gets the same content from all entries, and from a checkpoint', async () => {
    const url = await createDatabase(server());
    const first = await openNode({ url });
    await fill(first.store, 1);
    const fromStart = await openNode({ url });
    await fill(first.store, 100);
    await allCaughtUp([fromStart, first]);
    await first.store.shared?.saveCheckpoint();
    await fill(first.store, 200);
    const fromCheckpoint = await openNode({ url });
    await allCaughtUp([first, fromStart, fromCheckpoint]);
    const content = contentOf(first.dataDir);
    expect(content.quarantine).toHaveLength(6);
    expect(contentOf(fromStart.dataDir)).toEqual(content);
    expect(comparableOf(fromCheckpoint.dataDir)).toEqual(comparableOf(first.dataDir));
    const [entry] = await collect(fromCheckpoint.store.quarantined({}));
    const { body } = await fromCheckpoint.store.quarantineEntry(entry?.id ?? 0);
    expect(Buffer.from(body).toString()).toContain('other content');
    // New ids continue.
    await fromCheckpoint.store.accept(delivery('not JSON, again'));
    await allCaughtUp([first, fromCheckpoint]);
    for (const { store } of [first, fromCheckpoint]) {
      expect((await collect(store.quarantined({})))[0]).toMatchObject({ id: 7 });
    }
  });

  it('begins at the first entry that is left after pruning, and continues with the newest checkpoint', async () => {
    const url = await createDatabase(server());
    const first = await openNode({ url, removableMin: 20 });
    const { store } = first;
    for (const from of [1, 100, 200]) await fill(store, from);
    await store.shared?.caughtUp();
    const before = await store.shared?.log.maintain(15);
    expect(before).toMatchObject({ keys: 15, entries: 0, needsCheckpoint: true });
    await store.shared?.saveCheckpoint();
    expect(await store.shared?.log.maintain(15)).toMatchObject({ keys: 0, entries: 20 });
    expect(await store.shared?.log.head()).toMatchObject({ first: 21 });
    const late = await openNode({ url });
    await late.store.shared?.caughtUp();
    const [content, found] = [comparableOf(first.dataDir), comparableOf(late.dataDir)];
    expect({ ...found, notification: [] }).toEqual({ ...content, notification: [] });
    expect(found.notification?.length).toBeLessThan(content.notification?.length ?? 0);
    expect(found.notification?.length).toBeGreaterThanOrEqual(15);
    // A pruned notification is unknown, as in a log of its own.
    const again = await late.store.accept(delivery(notification(1)));
    expect(again).toMatchObject({ outcome: 'stored' });
    const newest = 'SELECT max(position)::int AS position FROM earshot.notification_key';
    expect(await query(url, newest)).toEqual([{ position: 31 }]);
  });
});

describe.runIf(hasPostgres)('pruning a shared log', () => {
  const server = useServer();

  it('removes the same on nodes that receive, and on one that fills itself meanwhile', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    await receive(a.store, 0, 500);
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
      await b.store.shared?.log.maintain((await b.store.pruning.pruneHorizon())?.position ?? 0);
    }
    isPruned = true;
    await Promise.all(receiving);
    const nodes = [a, b, await late];
    await allCaughtUp(nodes);
    const [content, ...others] = nodes.map(({ dataDir }) => comparableOf(dataDir));
    expect(content?.notification?.length).toBeGreaterThan(100);
    expect(content?.prune_horizon).toHaveLength(1);
    for (const other of others) expect(other).toEqual(content);
  });
});
