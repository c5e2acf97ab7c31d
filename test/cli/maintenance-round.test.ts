/** The round of maintenance that `start` makes beside its receiver, on the receiver's own store. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { maintenanceRound } from '../../src/cli/start/maintenance.ts';
import { loadAccountConfig } from '../../src/config/config.ts';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { type AccountWorld, openAccountWorld } from './account-world.ts';
import { startCommand } from './fake-io.ts';

function roundOf({ env, sandbox, folder, receiver }: AccountWorld) {
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const config = loadAccountConfig({ env, readFile });
  const io = {
    nowUs: () => Math.trunc(sandbox.clock.now()) * 1000,
    random: () => 0.5,
    signal: new AbortController().signal,
    newSecret: () => 'a-secret',
    fetch,
    readFile,
    workingDir: folder,
  };
  return () => maintenanceRound(config, receiver.store, io);
}

describe('a round beside a running receiver', () => {
  it('resumes what the catalogue has paused, with the credentials of that moment', async () => {
    const world = await openAccountWorld();
    const round = roundOf(world);
    expect(await world.run(['register', '--event', 'created', '--yes'])).toMatchObject({ code: 0 });
    const rotated = await world.run(['credentials', 'rotate', '--wait', '1']);
    expect(rotated, rotated.err).toMatchObject({ code: 0 });
    world.passDays(366);
    expect(await round()).toMatchObject([{ name: 'default', status: 'gone', did: 'recreate' }]);
    // Recreated with the new credentials: nothing is left for register to do.
    expect(await world.run(['register', '--check'])).toMatchObject({ code: 0 });
  });

  it('gives way to a command that holds the account', async () => {
    const world = await openAccountWorld();
    const release = await createTakeLock(world.dataDir)('subscriptions', { waitMs: 0 });
    await expect(roundOf(world)()).rejects.toMatchObject({ code: 'conflict' });
    release();
    expect(await roundOf(world)()).toEqual([]);
  });
});

describe('earshot start', () => {
  it('says that maintenance is off, and what it lacks, without an account', async () => {
    const world = await openAccountWorld();
    const { EARSHOT_ACCOUNT_USERNAME: _, EARSHOT_ACCOUNT_PASSWORD: __, ...env } = world.env;
    const start = startCommand(['start'], { env, workingDir: world.folder });
    await expect.poll(start.err).toContain('maintenance of the subscriptions is off');
    expect(start.err()).toContain('EARSHOT_ACCOUNT_USERNAME');
    start.stop();
    expect(await start.ended).toMatchObject({ code: 0 });
  });
});
