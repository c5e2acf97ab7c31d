/** The receiver's compaction of the log. */
import { expect, it } from 'vitest';
import { startCompacting } from '../../src/receiver/own-jobs.ts';
import { delivery } from '../helpers/deliveries.ts';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { recordingLog } from '../helpers/recording-log.ts';
import { countOthers, keptRows } from '../store/bodies/bodies-in-file.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

it('merges the small packs of quiet hours, and continues as more arrive', async () => {
  const bodies = generatedBodies(45);
  const { store, dataDir } = await openSqliteStore();
  for (const body of bodies.slice(0, 30)) await store.accept(delivery(body));
  expect(keptRows(dataDir)).toHaveLength(30);
  const { log, lines } = recordingLog();
  const intake = { queue: () => ({ bytes: 0, bytesMax: 1 }) };
  const times = { firstMs: 1, intervalMs: 20 };
  const job = startCompacting({ store: intake, log }, { dataDir }, { random: () => 0.5 }, times);
  await expect.poll(() => keptRows(dataDir).length, { timeout: 10_000 }).toBeLessThan(4);
  for (const body of bodies.slice(30)) await store.accept(delivery(body));
  await expect.poll(() => keptRows(dataDir).length, { timeout: 10_000 }).toBeLessThan(5);
  await job.stop();
  expect(await countOthers(store, bodies)).toBe(0);
  expect(lines.filter(({ level }) => level !== 'debug')).toEqual([]);
});
