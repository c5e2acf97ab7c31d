/** A data directory that other users can access. */
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { openStore } from '../../src/store/store.ts';
import { createStoreChecks } from '../../src/store/store-checks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

function directoryWith(mode: number): string {
  const dataDir = temporaryDirectory();
  chmodSync(dataDir, mode);
  return dataDir;
}

describe('a data directory that every user may write to', () => {
  it.each([0o777, 0o1777, 0o702])(
    'is refused for writing programs, with the mode %o',
    async (mode) => {
      const dataDir = directoryWith(mode);
      const refusal = {
        code: 'configuration',
        message: expect.stringMatching(
          /^Every user of this machine can write to the data directory .*Run: chmod o-w /,
        ),
      };
      await expect(openStore({ dataDir, nowUs: () => 0 })).rejects.toMatchObject(refusal);
      await expect(createAcquireLock(dataDir)('account', { waitMs: 0 })).rejects.toMatchObject(
        refusal,
      );
      expect(readdirSync(dataDir)).toEqual([]);
    },
  );

  it('fails the doctor’s check', async () => {
    const dataDir = directoryWith(0o777);
    const checks = createStoreChecks({ dataDir, nowUs: () => 0, secretFileNames: [] });
    expect(await checks.directory()).toMatchObject([
      { state: 'fail', advice: `Run: chmod o-w ${dataDir}` },
    ]);
  });

  it('does not include one that a group may write to, or everybody may read', async () => {
    for (const mode of [0o2770, 0o775]) {
      const dataDir = directoryWith(mode);
      await (await openStore({ dataDir, nowUs: () => 0 })).close();
      const checks = createStoreChecks({ dataDir, nowUs: () => 0, secretFileNames: [] });
      expect(await checks.directory()).toMatchObject([{ state: 'pass' }]);
    }
  });
});

it('every file of the store is restricted to its owner, whatever the umask and the folder', () => {
  const dataDir = directoryWith(0o755);
  const child = join(import.meta.dirname, 'open-to-all-child.ts');
  const ran = spawnSync(process.execPath, [child, dataDir], { encoding: 'utf8' });
  expect(ran.stderr).toBe('');
  const modes = JSON.parse(ran.stdout);
  expect(Object.keys(modes)).toEqual(
    expect.arrayContaining(['earshot.db', 'earshot.db-wal', 'earshot.db-shm', 'products-1.db']),
  );
  expect(Object.values(modes).filter((mode) => mode !== 0o600)).toEqual([]);
  expect(statSync(dataDir).mode & 0o777).toBe(0o755);
});
