/** Unfinished files of killed commands: the next backup, start, rebuild or prune removes them. */
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { fill, openFilled } from '../features/backup/backup-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';

const quick = { timeout: 20_000, interval: 1 };
const attemptsMax = 5;

/** A log in which a backup or a rebuild takes long enough to be killed. */
async function openContext() {
  const { folder, dataDir, store, out } = await openFilled(3_000, 4_096);
  const env = { EARSHOT_DATA_DIR: dataDir };
  const run = (...argv: string[]) => spawnCommand(argv, { env, cwd: folder });
  const succeeds = async (...argv: string[]) => {
    const { code, err } = await run(...argv).ended;
    expect(code, err).toBe(0);
  };
  /** Kills the command while the file exists. On a busy machine, the file may be finished first: then once more. */
  const killAt = async (files: () => string[], ...argv: string[]) => {
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const command = run(...argv);
      let hasEnded = false;
      const ended = command.ended.finally(() => {
        hasEnded = true;
      });
      await expect.poll(() => hasEnded || files().length > 0, quick).toBe(true);
      command.kill();
      if ((await ended).code === null && files().length > 0) return;
    }
    throw new Error(`The file was finished before the kill, ${attemptsMax} times.`);
  };
  const parts = () => readdirSync(out).filter((name) => name.includes('.part'));
  const built = () => readdirSync(dataDir).filter((name) => name.startsWith('products.building'));
  const killRebuild = () => killAt(built, 'admin', 'index', 'rebuild');
  const killBackup = () => killAt(parts, 'backup', out);
  return { folder, dataDir, store, out, parts, built, killBackup, killRebuild, succeeds };
}

it('a killed backup is removed by the next one to the same folder', async () => {
  const { store, out, parts, killBackup, succeeds } = await openContext();
  await killBackup();
  await fill(store, { from: 3_000, to: 3_010 });
  await succeeds('backup', out);
  expect(parts()).toEqual([]);
  expect(readdirSync(out)).not.toEqual([]);
});

it('the index of a killed rebuild is removed by the next rebuild, prune or start', async () => {
  const { folder, dataDir, store, built, killRebuild, succeeds } = await openContext();
  await killRebuild();
  await succeeds('prune', '--older-than', '9999d', '--yes');
  expect(built()).toEqual([]);
  await killRebuild();
  await store.close();
  const { start } = await createReceiverContext(folder);
  // The lock of a rebuild in progress.
  const release = await createAcquireLock(dataDir)('index', { waitMs: 0 });
  (await start({ EARSHOT_INDEX: 'off' })).child.kill('SIGKILL');
  expect(built()).not.toEqual([]);
  release();
  await start({ EARSHOT_INDEX: 'off' });
  expect(built()).toEqual([]);
});
