/** `earshot compact`, and the receiver's automatic compaction. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { startCompacting } from '../../src/cli/start/storage-jobs.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { delivery } from '../helpers/deliveries.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { countOthers, keptRows, openOldStore } from '../store/bodies/bodies-in-file.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { expectEnd, type FakeIoOptions, printed, printedJson, runCommand } from './fake-io.ts';

const bodies = generatedBodies(300);

const compact = (dataDir: string, argv: string[] = [], options: FakeIoOptions = {}) =>
  runCommand(['compact', ...argv], { ...options, env: { EARSHOT_DATA_DIR: dataDir } });

describe('compact', () => {
  it('compacts while the receiver runs, and prints the result on stderr', async () => {
    const { store, dataDir } = await openOldStore(bodies);
    const [ended] = await Promise.all([
      compact(dataDir),
      ...generatedBodies(20, 5).map((body) => store.accept(delivery(body))),
    ]);
    expect(ended).toMatchObject({ code: 0, out: '' });
    expect(ended.err).toMatch(
      /^Compacted 3\d\d bodies\. earshot\.db: [\d.]+ [KM]iB, [\d.]+ [KM]iB less\.\n$/,
    );
    expect(await countOthers(store, bodies)).toBe(0);
    expect(await store.counts()).toMatchObject({ notifications: 320 });
  });

  it('prints the documented fields as JSON', async () => {
    const { dataDir } = await openOldStore(bodies);
    const out = await printed(compact(dataDir, ['--json']));
    const shown = JSON.parse(out);
    expect(Object.keys(shown)).toEqual([
      ...['bodies', 'unreadable', 'bytesBefore', 'bytesAfter', 'givenBackBytes'],
    ]);
    expect(shown).toMatchObject({ bodies: 300, unreadable: 0 });
    expect(shown.bytesBefore - shown.bytesAfter).toBe(shown.givenBackBytes);
    expect(shown.bytesAfter).toBeLessThan(shown.bytesBefore / 2);
    const again = await printedJson(compact(dataDir, ['--json']));
    expect(again).toMatchObject({ bodies: 0, bytesAfter: shown.bytesAfter });
  });

  it('shows its progress on a terminal', async () => {
    const { dataDir } = await openOldStore(bodies);
    const { err } = await compact(dataDir, [], { isTTY: true, columns: 80 });
    expect(err).toMatch(/^(\rCompacting: \d+ %)+\nCompacted 300 bodies\./);
  });

  it('exits 2 without a log, and creates none', async () => {
    await expectEnd(compact('/nowhere/at/all'), 2, /There is no database|cannot be created/);
  });
});

describe('automatic compaction of a receiver', () => {
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
    for (const body of bodies.slice(30, 45)) await store.accept(delivery(body));
    await expect.poll(() => keptRows(dataDir).length, { timeout: 10_000 }).toBeLessThan(5);
    await stop();
    expect(await countOthers(store, bodies.slice(0, 45))).toBe(0);
    expect(logged).toEqual([]);
  });

  it('waits while a command compacts the log', async () => {
    const { dataDir } = await openOldStore(bodies);
    const release = await createAcquireLock(dataDir)('compact', { waitMs: 0 });
    const { stop, logged } = startLoop(dataDir);
    const command = compact(dataDir);
    release();
    expect(await command).toMatchObject({ code: 0 });
    await stop();
    expect(logged).toEqual([]);
    expect(keptRows(dataDir).every(({ encoding }) => encoding === 'zstd-1')).toBe(true);
  });

  it('waits while notifications are queued for storage', async () => {
    const { store, dataDir } = await openOldStore(generatedBodies(450));
    let asked = 0;
    let bytes = 1;
    startLoop(dataDir, () => {
      asked += 1;
      return { bytes, bytesMax: 1 };
    });
    const whole = () => keptRows(dataDir).filter(({ encoding }) => encoding === 'identity').length;
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(0);
    const left = whole();
    expect(left).toBeGreaterThan(150);
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(2);
    expect(whole()).toBe(left);
    bytes = 0;
    await expect.poll(whole, { timeout: 60_000 }).toBe(0);
    expect(await store.counts()).toMatchObject({ notifications: 450 });
  }, 120_000);
});
