/** Findings of the doctor about a data directory. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { createStoreChecks, type StoreCheckOptions } from '../../src/store/store-checks.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runBoundByPermissions } from './bound-by-permissions.ts';
import { openSqliteStore } from './sqlite-store.ts';

const mebibyte = 2 ** 20;

function checksOf(dataDir: string, options: Partial<StoreCheckOptions> = {}) {
  return createStoreChecks({
    dataDir,
    nowUs: () => 0,
    secretFileNames: ['secret.json', 'other-secret.json'],
    ...options,
  });
}

describe('the data directory', () => {
  it('passes when it is writable', async () => {
    const dataDir = temporaryDirectory();
    expect(await checksOf(dataDir).directory()).toEqual([
      { check: 'data directory', state: 'pass', message: `${dataDir} is writable.` },
    ]);
  });

  it('passes when it can be created, and is not created by the check', async () => {
    const dataDir = join(temporaryDirectory(), 'a', 'b');
    const [finding] = await checksOf(dataDir).directory();
    expect(finding).toMatchObject({
      state: 'pass',
      message: expect.stringContaining('does not exist yet'),
    });
    expect(existsSync(join(dataDir, '..'))).toBe(false);
  });

  it.each([['it'], ['what stands in its way']])('fails when %s is a file', async (which) => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const [finding] = await checksOf(which === 'it' ? file : join(file, 'data')).directory();
    expect(finding).toMatchObject({ state: 'fail', message: `${file} is not a directory.` });
    expect(finding?.advice).toContain('EARSHOT_DATA_DIR');
  });

  it.each([
    ['', /is not writable \(EACCES\)/],
    ['new', /cannot be created/],
    // Root can read directories without permission.
    ['locked/in/it', /no access to|cannot be created/],
  ])('fails without the rights to it: "%s"', (below, words) => {
    const parent = temporaryDirectory();
    mkdirSync(join(parent, 'locked'), { mode: 0o600 });
    chmodSync(parent, 0o500);
    const { stdout } = runBoundByPermissions('directory-check-child.ts', join(parent, below));
    chmodSync(parent, 0o700);
    const [finding] = JSON.parse(stdout);
    expect(finding).toMatchObject({ state: 'fail', message: expect.stringMatching(words) });
    expect(finding.advice).toContain('as the user that runs earshot');
  });
});

describe('files that only the owner may read', () => {
  it('pass with these permissions, and when there are none', async () => {
    const dataDir = temporaryDirectory();
    const checks = checksOf(dataDir);
    expect(await checks.ownerOnly()).toMatchObject([{ state: 'pass' }]);
    writeFileSync(join(dataDir, 'secret.json'), '', { mode: 0o600 });
    writeFileSync(join(dataDir, databaseFileName), '', { mode: 0o600 });
    expect(await checks.ownerOnly()).toMatchObject([{ state: 'pass' }]);
  });

  it.each(['', '-wal', '-shm'])('fail when every user can change earshot.db%s', async (suffix) => {
    const dataDir = temporaryDirectory();
    const path = join(dataDir, `${databaseFileName}${suffix}`);
    writeFileSync(path, '');
    chmodSync(path, 0o666);
    const [finding] = await checksOf(dataDir).ownerOnly();
    expect(finding).toMatchObject({ state: 'fail', advice: `Run: chmod 600 ${path}` });
    expect(finding?.message).toContain(`Every user can change ${path}.`);
  });

  it.each([0o640, 0o604, 0o620])('fail when a secret has mode %o', async (mode) => {
    const dataDir = temporaryDirectory();
    const path = join(dataDir, 'other-secret.json');
    writeFileSync(path, '');
    chmodSync(path, mode);
    expect(await checksOf(dataDir).ownerOnly()).toEqual([
      {
        check: 'owner-only files',
        state: 'fail',
        message: `Other users can read ${path}.`,
        advice: `Run: chmod 600 ${path}`,
      },
    ]);
  });

  it('warn when it is the database, including the files next to it', async () => {
    const dataDir = temporaryDirectory();
    const files = ['', '-wal', '-shm'].map((suffix) => join(dataDir, databaseFileName + suffix));
    for (const file of files) {
      writeFileSync(file, '');
      chmodSync(file, 0o644);
    }
    expect(await checksOf(dataDir).ownerOnly()).toMatchObject([
      { state: 'warn', advice: `Run: chmod 600 ${files.join(' ')}` },
    ]);
  });
});

describe('free space', () => {
  it.each([
    [900 * mebibyte, 'pass', '900 MiB free'],
    [899 * mebibyte, 'warn', '899 MiB free'],
    [600 * mebibyte, 'warn', '600 MiB free'],
    [599 * mebibyte, 'fail', '(disk reserve: 300 MiB)'],
  ])('of %i bytes: %s', async (freeBytes, state, words) => {
    const dataDir = temporaryDirectory();
    const found = { freeBytes, totalBytes: 5_120 * mebibyte, reserveBytes: 300 * mebibyte };
    const [finding] = await checksOf(dataDir, { space: () => found }).freeSpace();
    expect(finding).toMatchObject({ state, message: expect.stringContaining(words) });
    expect(finding?.advice === undefined).toBe(state === 'pass');
  });

  it('is read from the file system, even for a directory that does not exist yet', async () => {
    const [finding] = await checksOf(join(temporaryDirectory(), 'new')).freeSpace();
    expect(finding?.message).toMatch(
      /^\d[\d.]* [GM]iB free for .*new \(disk reserve: \d+ [GM]iB\)\.$/,
    );
  });

  it('is skipped when the file system does not report it', async () => {
    const space = () => null;
    const [finding] = await checksOf(temporaryDirectory(), { space }).freeSpace();
    expect(finding?.state).toBe('skipped');
  });
});

describe('the database', () => {
  it('is skipped when it does not exist, and is not created by the check', async () => {
    const dataDir = temporaryDirectory();
    expect(await checksOf(dataDir).database()).toMatchObject([{ state: 'skipped' }]);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('passes while a receiver writes to it', async () => {
    const { store, dataDir } = await openSqliteStore();
    await store.accept(delivery(notification(1)));
    expect(await checksOf(dataDir).database()).toMatchObject([{ state: 'pass' }]);
    await store.accept(delivery(notification(2)));
    expect(await store.counts()).toMatchObject({ notifications: 2 });
  });

  it('fails with reason and advice when it is not a database', async () => {
    const dataDir = temporaryDirectory();
    writeFileSync(join(dataDir, databaseFileName), 'this is no database at all'.repeat(100));
    const [finding] = await checksOf(dataDir).database();
    expect(finding).toMatchObject({ check: 'database', state: 'fail' });
    expect(finding?.message).toMatch(/not a database/);
    expect(finding?.advice).toMatch(/backup/);
  });

  it('that is empty stays empty', async () => {
    const dataDir = temporaryDirectory();
    const file = join(dataDir, databaseFileName);
    writeFileSync(file, '', { mode: 0o600 });
    const [finding] = await checksOf(dataDir).database();
    expect(finding).toMatchObject({
      state: 'fail',
      advice: expect.stringContaining('earshot start'),
    });
    expect(readFileSync(file)).toHaveLength(0);
  });
});
