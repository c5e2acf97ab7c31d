/** `earshot credentials create`: a generated pair in a file that only its owner can read. */

import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadServed } from '../../../src/core/config/config.ts';
import {
  credentialsFileName,
  readCredentialsFile,
} from '../../../src/core/config/endpoint-credentials.ts';
import { expectEnd, expectRefusal, runCommand } from '../../helpers/fake-io.ts';
import { settings } from '../../helpers/settings.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const variables = {
  EARSHOT_ENDPOINT_USERNAME: 'catalogue',
  EARSHOT_ENDPOINT_PASSWORD: 'from: the "variables"',
};
const given = { username: 'catalogue', password: 'from: the "variables"' };

function createIn(dataDir: string, env: Record<string, string> = {}) {
  const whole = { EARSHOT_DATA_DIR: dataDir, ...env };
  return runCommand(['credentials', 'create'], { env: whole });
}

/** A folder that does not exist yet, and the path of the credentials file in it. */
function newDataDir() {
  const dataDir = join(temporaryDirectory(), 'var', 'data');
  return { dataDir, path: join(dataDir, credentialsFileName) };
}

describe('earshot credentials create', () => {
  it('writes a pair to the data directory, readable by the owner only, and prints neither value', async () => {
    const { dataDir, path } = newDataDir();
    const { code, out, err } = await createIn(dataDir);
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toContain(`stored in ${path}.`);
    expect(err).toContain('`earshot register`');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    const [pair, ...more] = readCredentialsFile(dataDir) ?? [];
    expect(more).toEqual([]);
    expect(pair?.username).toMatch(/^earshot-[\w-]{8}$/);
    expect(pair?.password).toMatch(/^[\w-]{43}$/);
    for (const word of [pair?.username, pair?.password]) expect(err).not.toContain(word);
  });

  it('creates another pair each time, which the receiver accepts', async () => {
    const [one, other] = [newDataDir(), newDataDir()];
    for (const { dataDir } of [one, other]) await createIn(dataDir);
    const pairs = readCredentialsFile(one.dataDir) ?? [];
    const env = { EARSHOT_DATA_DIR: one.dataDir, EARSHOT_TLS: 'off' };
    expect(loadServed({ settings, env, readFile: () => '' }, true)).toMatchObject({
      credentials: { source: 'file', pairs },
    });
    const words = [...pairs, ...(readCredentialsFile(other.dataDir) ?? [])].flatMap(Object.values);
    expect(new Set(words).size).toBe(4);
  });

  it('keeps an existing pair, exits 1 and names rotate', async () => {
    const { dataDir, path } = newDataDir();
    await createIn(dataDir);
    const before = readFileSync(path, 'utf8');
    for (const env of [{}, variables]) {
      const reason = /endpoint-credentials\.json already exists.*rotate/;
      await expectRefusal(createIn(dataDir, env), reason, 1);
    }
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it.each([
    ['that others can read', JSON.stringify({ pairs: [given] }), 0o644, /chmod 600/],
    ['that is broken', 'nonsense', 0o600, /is invalid/],
  ])('does not overwrite a file %s, and exits 2', async (_title, text, mode, reason) => {
    const dataDir = temporaryDirectory();
    const path = join(dataDir, credentialsFileName);
    writeFileSync(path, text);
    chmodSync(path, mode);
    for (const env of [{}, variables]) {
      const err = await expectRefusal(createIn(dataDir, env), reason);
      expect(err).not.toContain(given.password);
    }
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('exits 2 with the reason when the folder cannot be created', async () => {
    const file = join(temporaryDirectory(), 'a-file');
    writeFileSync(file, '');
    await expectEnd(createIn(join(file, 'data')), 2, /cannot be created: .*\((ENOTDIR|EEXIST)\)/);
  });
});

const own = { EARSHOT_ACCOUNT_USERNAME: 'me', EARSHOT_ACCOUNT_PASSWORD: given.password };

it('the variables are copied, so that they can be unset', async () => {
  const { dataDir, path } = newDataDir();
  const { err } = await expectEnd(createIn(dataDir, variables), 0, 'Remove the two variables');
  expect(err).not.toContain(given.password);
  expect(readCredentialsFile(dataDir)).toEqual([given]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it.each<[string, Record<string, string>]>([
  ['belong together', { EARSHOT_ENDPOINT_USERNAME: 'catalogue' }],
  ['is the password of your account', { ...variables, ...own }],
])('the variables are refused, and nothing is written: %s', async (reason, env) => {
  const { dataDir, path } = newDataDir();
  const err = await expectRefusal(createIn(dataDir, env), reason);
  expect(err).not.toContain(given.password);
  expect(existsSync(path)).toBe(false);
});
