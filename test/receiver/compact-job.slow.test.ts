/** The receiver's compaction of the log. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { startCompacting } from '../../src/receiver/own-jobs.ts';
import { delivery } from '../helpers/deliveries.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { countOthers, keptRows, openSinglesStore } from '../store/bodies/bodies-in-file.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

describe('the compaction of a receiver', () => {
  const bodies = generatedBodies(45);
  const times = { firstMs: 1, intervalMs: 20 };
  const random = () => 0.5;

  /** Starts the compaction job; `logged` contains its log lines. */
  function startLoop(dataDir: string, queue = () => ({ bytes: 0, bytesMax: 1 })) {
    const logged: string[] = [];
    const record = (_: object, message: string) => void logged.push(message);
    const log = { debug: () => {}, info: record, warn: record, error: record };
    const loop = startCompacting({ store: { queue }, log }, { dataDir }, { random }, times);
    onTestFinished(() => loop.stop());
    return { ...loop, logged };
  }

  it('merges the small packs of quiet hours, and continues as more arrive', async () => {
    const { store, dataDir } = await openSqliteStore();
    for (const body of bodies.slice(0, 30)) await store.accept(delivery(body));
    expect(keptRows(dataDir)).toHaveLength(30);
    const { stop, logged } = startLoop(dataDir);
    await expect.poll(() => keptRows(dataDir).length, { timeout: 10_000 }).toBeLessThan(4);
    for (const body of bodies.slice(30)) await store.accept(delivery(body));
    await expect.poll(() => keptRows(dataDir).length, { timeout: 10_000 }).toBeLessThan(5);
    await stop();
    expect(await countOthers(store, bodies)).toBe(0);
    expect(logged).toEqual([]);
  });

  it('waits while notifications are queued for storage', async () => {
    const { store, dataDir } = await openSinglesStore(generatedBodies(450));
    let asked = 0;
    let bytes = 1;
    startLoop(dataDir, () => {
      asked += 1;
      return { bytes, bytesMax: 1 };
    });
    const single = () => keptRows(dataDir).filter((row) => row.bodies === 1).length;
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(0);
    const left = single();
    expect(left).toBeGreaterThan(150);
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(2);
    expect(single()).toBe(left);
    bytes = 0;
    await expect.poll(single, { timeout: 60_000 }).toBeLessThan(2);
    expect(await store.counts()).toMatchObject({ notifications: 450 });
  }, 120_000);
});
