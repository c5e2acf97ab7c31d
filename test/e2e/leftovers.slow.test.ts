/** Unfinished files of killed commands: the next start, backup, rebuild or prune removes them. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';
import { fill, openFilled } from '../store/backups/backup-context.ts';

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
  const killAt = async (file: () => string | undefined, ...argv: string[]) => {
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const command = run(...argv);
      let hasEnded = false;
      const ended = command.ended.finally(() => {
        hasEnded = true;
      });
      await expect.poll(() => hasEnded || file() !== undefined, quick).toBe(true);
      command.kill();
      if ((await ended).code === null && file() !== undefined) return;
    }
    throw new Error(`The file was finished before the kill, ${attemptsMax} times.`);
  };
  const parts = () => readdirSync(out).filter((name) => name.includes('.part'));
  const built = () => readdirSync(dataDir).filter((name) => name.startsWith('products.building'));
  const unfinished = () => [...parts(), ...built()];
  const killBackup = () => killAt(() => parts()[0], 'backup', '--to', out);
  const killRebuild = () => killAt(() => built()[0], 'index', 'rebuild');
  return { folder, dataDir, store, out, unfinished, killBackup, killRebuild, succeeds };
}

describe('files of commands that were killed', () => {
  it('are removed by the next backup, to any folder', async () => {
    const { folder, store, unfinished, killBackup, killRebuild, succeeds } = await openContext();
    await killBackup();
    await killRebuild();
    expect(unfinished()).not.toEqual([]);
    await fill(store, { from: 3_000, to: 3_010 });
    await succeeds('backup', '--to', join(folder, 'elsewhere'));
    expect(unfinished()).toEqual([]);
  });

  it('are removed by the next rebuild, or prune', async () => {
    const { unfinished, killBackup, killRebuild, succeeds } = await openContext();
    await killBackup();
    await succeeds('index', 'rebuild');
    expect(unfinished()).toEqual([]);
    await killRebuild();
    expect(unfinished()).not.toEqual([]);
    await succeeds('prune', '--older-than', '9999d', '--yes');
    expect(unfinished()).toEqual([]);
  });

  it('are removed by the next start, except those of a running command', async () => {
    const { folder, dataDir, store, unfinished, killBackup, killRebuild } = await openContext();
    await killRebuild();
    await killBackup();
    await store.close();
    const { start } = await createReceiverContext(folder);
    // The lock of a backup in progress.
    const release = await createAcquireLock(dataDir)('backup', { waitMs: 0 });
    (await start({ EARSHOT_INDEX: 'off' })).child.kill('SIGKILL');
    expect(unfinished().filter((name) => !name.includes('.part'))).toEqual([]);
    expect(unfinished()).not.toEqual([]);
    release();
    await start({ EARSHOT_INDEX: 'off' });
    expect(unfinished()).toEqual([]);
    expect(existsSync(join(dataDir, 'backup-in-progress'))).toBe(false);
  });
});
