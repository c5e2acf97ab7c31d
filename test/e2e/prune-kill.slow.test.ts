/** SIGKILL of `earshot prune` at any moment: nothing is lost, and a repeated command has the same result. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { fillLog, inspectLog } from './prune-context.ts';

const counts = { old: 40_000, kept: 1_000 };
const killsMax = times(4, 16);

it('continues after each kill', async () => {
  const dataDir = temporaryDirectory();
  const { old, kept } = await fillLog(dataDir, counts);
  const fileBytes = () => statSync(join(dataDir, 'earshot.db')).size;
  const before = fileBytes();
  const random = createRandom(20_261_121);
  const prune = () =>
    spawnCommand(['prune', '--older-than', '365d', '--yes', '--json'], {
      env: { EARSHOT_DATA_DIR: dataDir },
      cwd: dataDir,
    });
  const reader = openStoreReader(dataDir);
  const firstPosition = async () => (await reader.pruning.logSize()).firstPosition;
  let midway = 0;
  for (let kills = 0; kills < killsMax; kills += 1) {
    const beganAt = await firstPosition();
    const running = prune();
    // Two of three are killed after they have started to remove rows, the others at any moment.
    const waitsForRemoval = kills % 3 !== 2;
    if (waitsForRemoval) {
      await expect.poll(firstPosition, { timeout: 20_000, interval: 5 }).not.toBe(beganAt);
    }
    // A fast machine removes everything within a fifth of a second.
    await delay(random.integer(0, waitsForRemoval ? 30 : 500));
    running.kill();
    await running.ended;
    const { ackIds, ...found } = inspectLog(dataDir);
    expect(found).toEqual({ unreadable: [], unused: 0, check: 'ok' });
    // The oldest are removed first, and all new ones stay.
    expect(ackIds).toEqual([...old, ...kept].slice(-ackIds.length));
    expect(ackIds.length).toBeGreaterThanOrEqual(counts.kept);
    if (ackIds.length > counts.kept && ackIds.length < counts.old + counts.kept) midway += 1;
    const horizon = await reader.pruning.pruneHorizon();
    expect(horizon?.position ?? 0).toBe(counts.old + counts.kept - ackIds.length);
    if (ackIds.length === counts.kept) break;
  }
  await reader.close();
  expect(midway).toBeGreaterThan(1);
  const { code, err } = await prune().ended;
  expect(code, err).toBe(0);
  expect(inspectLog(dataDir).ackIds).toEqual(kept);
  expect(fileBytes()).toBeLessThan(0.3 * before);
}, 180_000);
