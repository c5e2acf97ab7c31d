import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { contentOf } from './cluster.ts';
import { createDatabase, hasPostgres, openNode, query, useServer } from './shared-log-context.ts';

const nowUs = 1_795_000_000_000_000;

/** Writes rows into most tables. */
async function fill(store: Store, from: number): Promise<void> {
  for (let i = from; i < from + 10; i += 1) await store.accept(delivery(notification(i)));
  await store.accept(delivery('not JSON', { subscription: null }));
  await store.accept(delivery(notification(from, { note: 'other content' })));
  await store.administration.markDeliveries([
    { subscription: 'default', username: 'catalogue', lastAtUs: nowUs + from },
  ]);
  await store.moveCursor(`reader-${from}`, from, nowUs);
  const items = [{ position: 1, productId: 'product-1' }];
  await store.sinks.enqueue({
    ...{ sink: `sink-${from}`, replayId: null, after: 0, upTo: 2, items, atUs: nowUs },
  });
}

describe.runIf(hasPostgres)('a new node', () => {
  const server = useServer();

  it('gets the same content from all entries, from a checkpoint, and after entries were removed', async () => {
    const url = await createDatabase(server());
    const first = await openNode({ url, partitionEntries: 20 });
    await fill(first.store, 1);
    const fromStart = await openNode({ url });
    await fromStart.store.node?.caughtUp();
    await fill(first.store, 100);
    await first.store.node?.caughtUp();
    await first.store.node?.saveCheckpoint();
    await fill(first.store, 200);
    const fromCheckpoint = await openNode({ url });
    await fromCheckpoint.store.node?.caughtUp();
    for (const { store } of [first, fromStart]) await store.node?.caughtUp();
    const content = contentOf(first.dataDir);
    expect(content.quarantine).toHaveLength(6);
    expect(contentOf(fromStart.dataDir)).toEqual(content);
    // Bodies have other ids.
    expect(withoutBodyIds(contentOf(fromCheckpoint.dataDir))).toEqual(withoutBodyIds(content));
    const [entry] = await collectQuarantine(fromCheckpoint.store);
    expect(Buffer.from(entry?.body ?? '').toString()).toContain('other content');
    // New ids continue.
    const receipts = [];
    for (const { store } of [first, fromCheckpoint]) {
      receipts.push(await store.accept(delivery('not JSON, again')));
    }
    expect(receipts).toMatchObject([{ quarantineId: 7 }, { quarantineId: 8 }]);
  });

  it('begins at the first entry that is left after pruning, and continues with the newest checkpoint', async () => {
    const url = await createDatabase(server());
    const { store, dataDir } = await openNode({ url, partitionEntries: 20 });
    await fill(store, 1);
    await fill(store, 100);
    await fill(store, 200);
    await store.node?.caughtUp();
    const before = await store.node?.log.maintain(15);
    expect(before).toMatchObject({ keys: 15, partitions: 0, needsCheckpoint: true });
    await store.node?.saveCheckpoint();
    expect(await store.node?.log.maintain(15)).toMatchObject({ keys: 0, partitions: 1 });
    const head = await store.node?.log.head();
    expect(head?.first).toBe(20);
    const late = await openNode({ url });
    await late.store.node?.caughtUp();
    const [content, found] = [contentOf(dataDir), contentOf(late.dataDir)];
    expect(withoutBodyIds({ ...found, notification: [] })).toEqual(
      withoutBodyIds({ ...content, notification: [] }),
    );
    expect(found.notification?.length).toBeLessThan(content.notification?.length ?? 0);
    expect(found.notification?.length).toBeGreaterThanOrEqual(15);
    // A pruned notification is unknown, as in a log of its own.
    const again = await late.store.accept(delivery(notification(1)));
    expect(again).toMatchObject({ outcome: 'stored' });
    const [key] = await query<{ position: string }>(
      url,
      'SELECT max(position) AS position FROM earshot.notification_key',
    );
    expect(Number(key?.position)).toBe(31);
  });
});

function withoutBodyIds(content: Record<string, string[]>): Record<string, string[]> {
  const entries = Object.entries(content).map(([table, rows]) => [
    table,
    rows.map((row) => row.replace(/"body_id":\d+/, '')).sort(),
  ]);
  return Object.fromEntries(entries);
}

async function collectQuarantine(store: Store) {
  const entries = [];
  for await (const { id } of store.quarantined({ released: false })) {
    entries.push(await store.quarantineEntry(id));
  }
  return entries;
}
