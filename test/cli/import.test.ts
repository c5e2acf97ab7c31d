/** `earshot import`: two data directories become one. */
import { describe, expect, it } from 'vitest';
import { createWorld, delivery, rawDelivery } from './filled-store.ts';

const good = (ackId: string) => ({ SubscriptionEvent: 'created', ProductId: ackId, AckId: ackId });

/** What an old and a new host have received: one notification both, some only one of them. */
async function createHosts() {
  const old = createWorld();
  await old.fill([
    delivery({ AckId: 'both' }),
    delivery({ AckId: 'old-only' }, { subscription: null, receivedAtUs: 1_777_000_000_000_000 }),
    rawDelivery(JSON.stringify([good('array-1'), good('array-2')])),
    rawDelivery(JSON.stringify([good('mixed'), 7]), { headers: ['X-A', '1'] }),
    rawDelivery('no notification'),
  ]);
  const fresh = createWorld();
  await fresh.fill([delivery({ AckId: 'both' }), delivery({ AckId: 'new-only' })]);
  const rows = async () => JSON.parse((await fresh.earshot(['query', '--output', 'json'])).out);
  const held = async () => JSON.parse((await fresh.earshot(['quarantine', 'list', '--json'])).out);
  return { old, fresh, rows, held };
}

describe('earshot import', () => {
  it('stores what only the other has, with path and time of receipt', async () => {
    const { old, fresh, rows, held } = await createHosts();
    const { code, out } = await fresh.earshot(['import', old.dataDir, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      notifications: 5,
      stored: 4,
      duplicates: 1,
      quarantined: 2,
    });
    const all: { ackId: string; receivedAt: string; subscription: string | null }[] = await rows();
    expect(all.map(({ ackId }) => ackId).toSorted()).toEqual(
      ['array-1', 'array-2', 'both', 'mixed', 'new-only', 'old-only'].toSorted(),
    );
    expect(all.find(({ ackId }) => ackId === 'old-only')).toMatchObject({
      subscription: null,
      receivedAt: '2026-04-24T03:06:40.000000Z',
    });
    expect(await held()).toHaveLength(2);
  });

  it('done again adds nothing', async () => {
    const { old, fresh, rows, held } = await createHosts();
    await fresh.earshot(['import', old.dataDir]);
    const before = (await rows()).length;
    const { code, err } = await fresh.earshot(['import', old.dataDir]);
    expect(code).toBe(0);
    expect(err).toMatch(/^5 notifications read: 0 stored, 4 known already\.\n$/);
    expect(await rows()).toHaveLength(before);
    expect(await held()).toHaveLength(2);
  });

  it('takes thousands, in batches', { timeout: 30_000 }, async () => {
    const old = createWorld();
    await old.fill(Array.from({ length: 3_000 }, (_, i) => delivery({ AckId: `ack-${i}` })));
    const fresh = createWorld();
    await fresh.fill([]);
    const { out } = await fresh.earshot(['import', old.dataDir, '--json']);
    expect(JSON.parse(out)).toMatchObject({ notifications: 3_000, stored: 3_000 });
  });

  it('from a folder without a database says so', async () => {
    const fresh = createWorld();
    await fresh.fill([delivery()]);
    const { code, err } = await fresh.earshot(['import', '/nonexistent/earshot']);
    expect(code).toBe(2);
    expect(err).toMatch(/\/nonexistent\/earshot/);
  });
});
