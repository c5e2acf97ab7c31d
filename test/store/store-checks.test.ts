/** Findings of the doctor about a data directory. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { createStoreChecks } from '../../src/store/store-checks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runBoundByPermissions } from './bound-by-permissions.ts';

describe('the data directory', () => {
  it('passes when it can be created, and is not created by the check', async () => {
    const dataDir = join(temporaryDirectory(), 'a', 'b');
    const [finding] = await createStoreChecks(dataDir).directory();
    expect(finding).toMatchObject({
      level: 'ok',
      text: expect.stringContaining('is created on first use'),
    });
    expect(existsSync(join(dataDir, '..'))).toBe(false);
  });

  it.each([['it'], ['what stands in its way']])('fails when %s is a file', async (which) => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const [finding] = await createStoreChecks(
      which === 'it' ? file : join(file, 'data'),
    ).directory();
    expect(finding).toMatchObject({ level: 'critical', code: 'configuration' });
    expect(finding?.text).toMatch(new RegExp(`EARSHOT_DATA_DIR.* because of ${file}: .*ENOTDIR`));
  });

  // Root can read directories without permission.
  it.each(['', 'new', 'locked/in/it'])('fails without the rights to it: "%s"', (below) => {
    const parent = temporaryDirectory();
    mkdirSync(join(parent, 'locked'), { mode: 0o600 });
    chmodSync(parent, 0o500);
    const { stdout } = runBoundByPermissions('directory-check-child.ts', join(parent, below));
    chmodSync(parent, 0o700);
    const [finding] = JSON.parse(stdout);
    expect(finding).toMatchObject({ level: 'critical', text: expect.stringContaining('(EACCES)') });
    expect(finding.nextStep).toContain('as the user that runs earshot');
  });
});

it('the database fails with reason and nextStep when it is not a database', async () => {
  const dataDir = temporaryDirectory();
  writeFileSync(join(dataDir, databaseFileName), 'this is no database at all'.repeat(100));
  const [finding] = await createStoreChecks(dataDir).database();
  expect(finding).toMatchObject({ check: 'database', level: 'critical' });
  expect(finding?.text).toMatch(/not a database/);
  expect(finding?.nextStep).toMatch(/backup/);
});
