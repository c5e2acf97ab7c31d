import { describe, expect, it } from 'vitest';
import { delivery, notification } from '../../helpers/deliveries.ts';
import type { PostgresServer } from '../../helpers/postgres-server.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { createDatabase, hasPostgres, openNode, query, useServer } from './shared-log-context.ts';
import { setStandby, startStandby } from './standby.ts';

/** Resolves with the process that waits for the standby. */
async function waitingBackend(url: string): Promise<number> {
  let pid: number | undefined;
  await expect
    .poll(async () => {
      const rows = await query<{ pid: number }>(
        url,
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%earshot.append%'",
      );
      pid = rows[0]?.pid;
      return rows.length;
    })
    .toBe(1);
  return pid ?? 0;
}

/** Makes commits wait for a standby that does not run. */
async function requireStandby(server: PostgresServer): Promise<void> {
  await setStandby(server, 'near');
  const url = server.url('postgres');
  // Backends know the setting before the checkpointer, which decides whether a commit waits.
  await expect.poll(() => commitWaits(url), { timeout: 30_000 }).toBe(true);
}

async function commitWaits(url: string): Promise<boolean> {
  let isDone = false;
  const commit = query(url, `SELECT pg_logical_emit_message(true, 'test', '')`).finally(() => {
    isDone = true;
  });
  const cancelWaiting = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE wait_event = 'SyncRep' AND query LIKE '%emit_message(%'`;
  let cancelled = 0;
  while (!isDone && cancelled === 0) cancelled = (await query(url, cancelWaiting)).length;
  await commit;
  return cancelled > 0;
}

describe.runIf(hasPostgres)('an append with a synchronous standby', () => {
  const server = useServer();

  it('is refused without a standby when EARSHOT_LOG_SYNC is standby', async () => {
    const url = await createDatabase(server());
    await setStandby(server(), '');
    const { store } = await openNode({ url, needsStandby: true });
    await expectRefused(
      store.accept(delivery(notification(1))),
      'unavailable',
      'no synchronous standby',
    );
    await expectRefused(store.checkWritable(), 'unavailable');
    expect(await query(url, 'SELECT number FROM earshot.entry')).toEqual([]);
  });

  it('is answered only when the standby has it, also after its wait was cancelled', async () => {
    const url = await createDatabase(server());
    const { store } = await openNode({ url, needsStandby: true });
    await requireStandby(server());
    let isAnswered = false;
    const accepted = store.accept(delivery(notification(1))).finally(() => {
      isAnswered = true;
    });
    const first = await waitingBackend(url);
    // PostgreSQL commits here, and reports success with a warning.
    await query(url, 'SELECT pg_cancel_backend($1)', [first]);
    await expect.poll(() => query(url, 'SELECT number FROM earshot.entry')).toHaveLength(1);
    // The repeated append waits, too.
    expect(await waitingBackend(url)).not.toBe(first);
    expect(isAnswered).toBe(false);
    const standby = await startStandby(server(), 'near');
    expect(await accepted).toEqual({ outcome: 'stored', stored: 1, duplicates: 0 });
    const copied = standby.url(new URL(url).pathname.slice(1));
    expect(await query(copied, 'SELECT number, asked FROM earshot.entry')).toEqual([
      { number: '1', asked: expect.any(Number) },
    ]);
    await store.checkWritable();
    await standby.stop();
    await setStandby(server(), '');
  });
});
