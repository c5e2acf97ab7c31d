import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { hourUs } from '../../../src/core/terms/dates.ts';
import { copyToSharedLog, leaveSharedLog } from '../../../src/features/shared-log/copy-log.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import type { Store } from '../../../src/store/store.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { openStore } from '../../helpers/store.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { queued } from '../sinks/sink-items.ts';
import { comparableOf, contentOf } from './cluster.ts';
import {
  createDatabase,
  hasPostgres,
  openLog,
  openNode,
  query,
  useServer,
} from './shared-log-context.ts';

const nowUs = 1_795_000_000_000_000;

async function fill(store: Store): Promise<void> {
  const receivedAtUs = nowUs - 2 * hourUs;
  for (let i = 1; i <= 600; i += 1) {
    await store.accept(delivery(notification(i), { receivedAtUs }));
  }
  await store.accept(delivery([notification(601), notification(602), notification(1)]));
  await store.accept(delivery('not JSON'));
  await store.moveCursor('reader', 5, nowUs);
  await queued(store, ['product-1'], { sink: 'hook', upTo: 2 });
}

/** Options of a copy. */
async function copyOptions(url: string, dataDir: string) {
  const nodeId = randomUUID();
  return {
    acquireLock: createAcquireLock(dataDir),
    ...{ dataDir, nodeId, newId: randomUUID, log: await openLog({ url }, nodeId) },
    ...{ nowUs: () => nowUs, signal: new AbortController().signal, onProgress: () => undefined },
  };
}

describe.runIf(hasPostgres)('a log that is copied into a shared log', () => {
  const server = useServer();

  it('keeps its positions, bodies and state, while its receiver writes it', async () => {
    const url = await createDatabase(server());
    const { store, dataDir } = await openSqliteStore();
    await fill(store);
    let isCopied = false;
    const writing = (async () => {
      const stored: string[] = [];
      for (let i = 1_000; !isCopied; i += 1) {
        // New ones, and changes of copied ones.
        const some = [notification(i), notification(1 + (i % 600))];
        const receivedAtUs = nowUs + i;
        const receipts = await Promise.allSettled(
          some.map((one) => store.accept(delivery(one, { receivedAtUs }))),
        );
        if (receipts[0]?.status === 'fulfilled') stored.push(`ack-${i}`);
      }
      return stored;
    })();
    const copied = await copyToSharedLog(await copyOptions(url, dataDir)).finally(() => {
      isCopied = true;
    });
    await expectRefused(
      store.accept(delivery(notification(9_999))),
      'unavailable',
      'EARSHOT_LOG_URL',
    );
    const stored = await writing;
    await store.close();
    const content = contentOf(dataDir);
    expect(copied.notifications).toBe(602 + stored.length);
    const node = await openNode({ url, dataDir });
    const other = await openNode({ url });
    for (const one of [node, other]) await one.store.shared?.caughtUp();
    expect(contentOf(dataDir)).toEqual(content);
    expect(comparableOf(other.dataDir)).toEqual(comparableOf(dataDir));
    const [first] = await collect(other.store.find({ ackId: 'ack-602' }));
    const body = Buffer.from(await other.store.body(first?.position ?? 0)).toString();
    expect(JSON.parse(body)).toHaveLength(3);
    // The decision continues where the copied log was.
    const receipts = await Promise.all([
      other.store.accept(delivery(notification(602))),
      other.store.accept(delivery(notification(7, { note: 'other content' }))),
      node.store.accept(delivery(notification(20_000))),
    ]);
    expect(receipts).toMatchObject([
      { outcome: 'duplicate' },
      { outcome: 'duplicate' },
      { outcome: 'stored' },
    ]);
    expect(await other.store.sinks.counts()).toMatchObject([{ sink: 'hook', waiting: 1 }]);
  });

  it('is refused for a shared log in use, and repeated after an interruption', async () => {
    const url = await createDatabase(server());
    const { store, dataDir } = await openSqliteStore();
    await fill(store);
    const options = await copyOptions(url, dataDir);
    const stop = new AbortController();
    const stopped = copyToSharedLog({
      ...options,
      signal: stop.signal,
      onProgress: ({ done }) => (done > 300 ? stop.abort(new Error('stopped')) : undefined),
    });
    await expect(stopped).rejects.toThrow('stopped');
    await store.accept(delivery(notification(1)));
    await expectRefused(openNode({ url }), 'unavailable');
    const another = await openSqliteStore();
    await another.store.accept(delivery(notification(9_999)));
    const refused = copyToSharedLog(await copyOptions(url, another.dataDir));
    await expectRefused(refused, 'conflict');
    expect(await copyToSharedLog(options)).toMatchObject({ notifications: 602 });
    expect(await copyToSharedLog(options)).toMatchObject({ notifications: 602, wasMoved: true });
    expect(await query(url, 'SELECT FROM earshot.entry')).toHaveLength(2);
    const again = copyToSharedLog(await copyOptions(url, another.dataDir));
    await expectRefused(again, 'conflict');
  });

  it('goes back to one node, with everything that was stored meanwhile', async () => {
    const url = await createDatabase(server());
    const { store: own, dataDir } = await openSqliteStore();
    await fill(own);
    await own.close();
    await copyToSharedLog(await copyOptions(url, dataDir));
    const [node, other] = [await openNode({ url, dataDir }), await openNode({ url })];
    await other.store.accept(delivery(notification(700)));
    const { log } = await copyOptions(url, dataDir);
    const left = await leaveSharedLog({
      ...(await copyOptions(url, dataDir)),
      log,
      caughtUp: async () => node.store.shared?.caughtUp(),
    });
    expect(left.notifications).toBe(603);
    // Nobody works for a closed log.
    await expectRefused(other.store.acquireLock('leader', { waitMs: 0 }), 'unavailable');
    await expectRefused(openNode({ url }), 'configuration');
    await expectRefused(other.store.accept(delivery(notification(701))), 'unavailable');
    await node.store.close();
    const store = await openStore({ dataDir });
    const receipt = await store.accept(delivery(notification(702)));
    expect(receipt).toMatchObject({ outcome: 'stored' });
    expect(await store.lastPosition()).toBe(604);
    expect(await store.accept(delivery(notification(700)))).toMatchObject({ outcome: 'duplicate' });
    await store.close();
  });
});
