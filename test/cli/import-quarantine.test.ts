/** `earshot import` and the quarantine: bodies are told apart by what is in them, and counted. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { importLog, openPushedHere } from '../../src/cli/commands/import.ts';
import type { Delivery } from '../../src/domain/ports.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { openStoreReader } from '../../src/store/store.ts';
import { nowUs } from './fake-io.ts';
import { createWorld, delivery, numbered, rawDelivery, withStore } from './filled-store.ts';

/** An old host that has received these, and a new one that takes them over. */
async function createHosts(received: readonly Delivery[], own: readonly Delivery[] = []) {
  const old = createWorld();
  await old.fill(received);
  const fresh = createWorld();
  await fresh.fill(own);
  const takeOver = async () => {
    const { code, out } = await fresh.earshot(['import', old.dataDir, '--json']);
    expect(code).toBe(0);
    return JSON.parse(out);
  };
  const held = async (): Promise<{ receivedAt: string; subscription: string | null }[]> =>
    JSON.parse((await fresh.earshot(['quarantine', 'list', '--json'])).out);
  const ackIds = async () => (await fresh.rows(['query'])).map(({ ackId }) => ackId);
  return { oldDir: old.dataDir, freshDir: fresh.dataDir, takeOver, held, ackIds };
}

function changeDatabase(dataDir: string, sql: string): void {
  const database = new Sqlite(join(dataDir, databaseFileName));
  database.exec(sql);
  database.close();
}

const bad = (count: number) => Array.from({ length: count }, () => rawDelivery('no notification'));

describe('earshot import, of bodies in quarantine,', () => {
  it('takes a notification that is as long as one of them and came at the same time', async () => {
    const good = delivery({ AckId: 'good' });
    const { takeOver, held, ackIds } = await createHosts([
      rawDelivery('x'.repeat(good.body.byteLength)),
      good,
    ]);
    expect(await takeOver()).toMatchObject({ notifications: 1, stored: 1, quarantined: 1 });
    expect(await ackIds()).toEqual(['good']);
    expect(await held()).toHaveLength(1);
  });

  it('takes as many equal ones as there are, and none of them again', async () => {
    const later = rawDelivery('no notification', { receivedAtUs: nowUs });
    const unnamed = rawDelivery('no notification', { subscription: null });
    const { takeOver, held } = await createHosts([...bad(3), later, unnamed]);
    expect(await takeOver()).toMatchObject({ quarantined: 5 });
    expect(await takeOver()).toMatchObject({ quarantined: 0 });
    const all = await held();
    expect(all).toHaveLength(5);
    expect(all.filter(({ receivedAt }) => receivedAt === '2026-05-02T12:00:00.000000Z')).toEqual([
      all[1],
    ]);
    // In the order in which they came; the newest is listed first.
    expect(all[0]).toMatchObject({ subscription: null });
  });

  it('takes one that is as long as one held here, and came at the same time', async () => {
    const { takeOver, held } = await createHosts(
      [rawDelivery('no notification')],
      [rawDelivery('on notification')],
    );
    expect(await takeOver()).toMatchObject({ quarantined: 1 });
    expect(await takeOver()).toMatchObject({ quarantined: 0 });
    expect(await held()).toHaveLength(2);
  });

  it('takes only what is missing, and nothing that was released here', async () => {
    const { freshDir, takeOver, held } = await createHosts(bad(3), bad(1));
    changeDatabase(freshDir, 'UPDATE quarantine SET released_at_us = 1');
    expect(await takeOver()).toMatchObject({ quarantined: 2 });
    expect(await takeOver()).toMatchObject({ quarantined: 0 });
    expect(await held()).toHaveLength(2);
  });

  it('holds a notification once whose AckId stands for another one here', async () => {
    const { takeOver, held, ackIds } = await createHosts(
      [delivery({ ProductId: 'theirs' })],
      [delivery({ ProductId: 'ours' })],
    );
    await takeOver();
    expect(await held()).toHaveLength(1);
    expect(await takeOver()).toMatchObject({ notifications: 1, stored: 0, duplicates: 1 });
    expect(await held()).toHaveLength(1);
    expect(await ackIds()).toEqual(['ack-1']);
  });

  it.each([
    ['in the log', 100],
    ['in the quarantine', 500],
  ])('goes on where it was interrupted %s', async (_name, stopAfter) => {
    const { oldDir, freshDir, takeOver, held, ackIds } = await createHosts([
      ...numbered(1, 300),
      ...bad(450),
    ]);
    const stopping = new AbortController();
    const from = openStoreReader(oldDir);
    let accepted = 0;
    const interrupted = withStore(freshDir, (store) => {
      const accept = (given: Delivery) => {
        accepted += 1;
        if (accepted === stopAfter) stopping.abort();
        return store.accept(given);
      };
      const stderr = { write: () => true, once: () => undefined };
      const { signal } = stopping;
      const pushedHere = openPushedHere({ dataDir: freshDir }, signal);
      return importLog(from, { ...store, accept }, { stderr, signal, pushedHere });
    });
    await expect(interrupted).rejects.toMatchObject({ code: 'cancelled' });
    await from.close();
    expect((await held()).length).toBeLessThan(450);
    await takeOver();
    expect(await takeOver()).toMatchObject({ stored: 0, duplicates: 300, quarantined: 0 });
    expect(new Set(await ackIds()).size).toBe(300);
    expect(await held()).toHaveLength(450);
  });
});
