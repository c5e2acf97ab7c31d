import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SharedLog } from '../../../src/features/shared-log/postgres-log.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { startDatabaseProxy } from './database-proxy.ts';
import {
  atPort,
  createDatabase,
  hasPostgres,
  openLog,
  openNode,
  useServer,
} from './shared-log-context.ts';

/** Appends an entry under the current lease. */
function appendUnder(log: SharedLog, lease: { name: string; term: number } | null) {
  const content = { bytes: Buffer.from('content'), encoding: 'test' };
  return log.append({ items: null, checkedPosition: null, ...content, lease });
}

describe.runIf(hasPostgres)('a lease', () => {
  const server = useServer();

  it('has one holder, and passes to the next when it is released', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openLog({ url }), await openLog({ url })];
    const first = await a.acquireLease('reconcile', { waitMs: 0 });
    expect(a.currentLease('reconcile')).toEqual({ name: 'reconcile', term: 1 });
    await expectRefused(b.acquireLease('reconcile', { waitMs: 0 }), 'conflict');
    await expectRefused(a.acquireLease('reconcile', { waitMs: 0 }), 'conflict');
    // Another lease is independent.
    (await b.acquireLease('sinks', { waitMs: 0 }))();
    await appendUnder(a, a.currentLease('reconcile'));
    first();
    const second = await b.acquireLease('reconcile', { waitMs: 5_000 });
    expect(second.since).toBe(1);
    expect(b.currentLease('reconcile')).toEqual({ name: 'reconcile', term: 2 });
    expect(a.currentLease('reconcile')).toBeNull();
    await expect(appendUnder(a, { name: 'reconcile', term: 1 })).rejects.toMatchObject({
      message: expect.stringContaining('taken over'),
    });
    await expect(appendUnder(a, { name: 'reconcile', term: 2 })).rejects.toMatchObject({
      message: expect.stringContaining('taken over'),
    });
    await appendUnder(b, b.currentLease('reconcile'));
  });

  it('is kept while it is renewed, and taken over within 30 seconds from a holder without the database', async () => {
    const url = await createDatabase(server());
    const proxy = await startDatabaseProxy(server().port);
    const [a, b] = [await openLog({ url: atPort(url, proxy.port) }), await openLog({ url })];
    const lease = await a.acquireLease('leader', { waitMs: 0 });
    // Longer than one lease.
    await expectRefused(b.acquireLease('leader', { waitMs: 17_000 }), 'conflict');
    expect(lease.lost.aborted).toBe(false);
    const startedMs = performance.now();
    proxy.stop();
    const next = await b.acquireLease('leader', { waitMs: 60_000 });
    expect(performance.now() - startedMs).toBeLessThan(30_000);
    // The former holder has given up before.
    expect(lease.lost.aborted).toBe(true);
    expect(() => a.currentLease('leader')).toThrow('taken over');
    proxy.resume();
    await expect(appendUnder(a, { name: 'leader', term: 1 })).rejects.toMatchObject({
      message: expect.stringContaining('taken over'),
    });
    expect(next.lost.aborted).toBe(false);
  }, 120_000);

  it('is lost by a node that cannot write its own log, and not acquired by it', async () => {
    const url = await createDatabase(server());
    const [a, b] = [await openNode({ url }), await openNode({ url })];
    const lost = (await a.store.acquireLock('leader', { waitMs: 0 })).lost;
    const blocker = new Sqlite(join(a.dataDir, 'earshot.db'));
    onTestFinished(() => void blocker.close());
    blocker.exec('BEGIN IMMEDIATE');
    await b.store.accept(delivery(notification(1)));
    await new Promise((resolve) => lost?.addEventListener('abort', resolve));
    expect(a.store.shared?.state()).toMatchObject({ isStuck: true });
    await expectRefused(
      a.store.acquireLock('sinks', { waitMs: 0 }),
      'unavailable',
      'has not applied',
    );
    blocker.exec('ROLLBACK');
    const isStuck = () => a.store.shared?.state().isStuck;
    await expect.poll(isStuck, { timeout: 20_000 }).toBe(false);
    (await a.store.acquireLock('sinks', { waitMs: 30_000 }))();
    expect(a.store.shared?.state()).toMatchObject({ fault: null });
  }, 120_000);
});
