/** A data directory that other users can access. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { createStoreChecks } from '../../src/store/store-checks.ts';
import { openStore, openStoreReader } from '../helpers/store.ts';
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
      await expect(openStore({ dataDir })).rejects.toMatchObject(refusal);
      await expect(createAcquireLock(dataDir)('account', { waitMs: 0 })).rejects.toMatchObject(
        refusal,
      );
      expect(readdirSync(dataDir)).toEqual([]);
      const checks = createStoreChecks(dataDir);
      const nextStep = `Run: chmod o-w ${dataDir}`;
      expect(await checks.directory()).toMatchObject([{ level: 'critical', nextStep }]);
    },
  );

  it('does not include one that a group may write to, or everybody may read', async () => {
    for (const mode of [0o2770, 0o775]) {
      const dataDir = directoryWith(mode);
      await (await openStore({ dataDir })).close();
      const checks = createStoreChecks(dataDir);
      expect(await checks.directory()).toMatchObject([{ level: 'ok' }]);
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

const linkTo = (target: string) => (file: string, other: string) => {
  renameSync(file, other);
  symlinkSync(target, file);
};
const links: [string, (file: string, other: string) => void][] = [
  ['a symbolic link', (file, other) => linkTo(other)(file, other)],
  ['a broken link', linkTo('nowhere.db')],
  ['hard links', linkSync],
];

it.each(links)('a database with another name is refused by all programs: %s', async (_, link) => {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  await (await openStore({ dataDir })).close();
  mkdirSync(join(folder, 'elsewhere'));
  link(join(dataDir, databaseFileName), join(folder, 'elsewhere/log.db'));
  const refusal = {
    code: 'configuration',
    message: expect.stringMatching(/earshot\.db is a .*link/),
  };
  await expect(openStore({ dataDir })).rejects.toMatchObject(refusal);
  const reader = openStoreReader(dataDir);
  await expect(reader.counts()).rejects.toMatchObject(refusal);
  await reader.close();
  if (!existsSync(join(dataDir, databaseFileName))) return;
  const [finding] = await createStoreChecks(dataDir).database();
  expect(finding).toMatchObject({ level: 'critical', text: refusal.message });
});
