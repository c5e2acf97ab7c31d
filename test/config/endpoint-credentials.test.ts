/** The credentials file in the data directory: who may read it, what is in it. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../../src/config/endpoint-credentials.ts';
import { readServeConfig } from '../../src/config/read-config.ts';
import { enough, refusalOf, wholeTextOf } from './environment.ts';

const secret = 'hunter2-not-to-be-told';
const pair = { username: 'catalogue', password: secret };
const anotherPair = { username: 'catalogue', password: 'the next one' };

function createDataDir(text?: string, mode = 0o600) {
  const dataDir = mkdtempSync(join(tmpdir(), 'earshot-config-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const path = join(dataDir, credentialsFileName);
  if (text !== undefined) {
    writeFileSync(path, text);
    chmodSync(path, mode);
  }
  return { dataDir, path };
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

function configOf(dataDir: string, env: Record<string, string> = {}) {
  const { EARSHOT_TLS_CERT, EARSHOT_TLS_KEY } = enough;
  return readServeConfig({
    env: { EARSHOT_TLS_CERT, EARSHOT_TLS_KEY, EARSHOT_DATA_DIR: dataDir, ...env },
    readFile: (path) => readFileSync(path, 'utf8'),
  });
}

describe('the credentials file', () => {
  it.each([1, 2])('with %i pair(s) is read when it is its owner’s alone', (count) => {
    const pairs = [pair, anotherPair].slice(0, count);
    const { dataDir } = createDataDir(JSON.stringify({ pairs }));
    expect(configOf(dataDir).credentials).toEqual(pairs);
  });

  it.each([0o644, 0o640, 0o604, 0o620])('is refused with the mode %o', (mode) => {
    const { dataDir, path } = createDataDir(JSON.stringify({ pairs: [pair] }), mode);
    const error = refusalOf(() => configOf(dataDir));
    expect(error.details).toEqual([
      `${path} holds a secret, and others may read or change it. Run: chmod 600 ${path}`,
    ]);
    expect(wholeTextOf(error)).not.toContain(secret);
  });

  it.each([
    ['nothing', ''],
    ['half a file', JSON.stringify({ pairs: [pair] }).slice(0, -3)],
    ['no pair', '{"pairs":[]}'],
    ['a bare pair', JSON.stringify(pair)],
    ['an empty password', JSON.stringify({ pairs: [{ ...pair, password: '' }, pair] })],
    ['an empty name', JSON.stringify({ pairs: [{ ...pair, username: '' }] })],
    ['a pair without password', JSON.stringify({ pairs: [{ username: secret }] })],
    ['a field too many', JSON.stringify({ pairs: [{ ...pair, role: 'admin' }] })],
    ['a number for a password', '{"pairs":[{"username":"u","password":1}]}'],
  ])('is refused when it holds %s', (_title, text) => {
    const { dataDir, path } = createDataDir(text);
    const error = refusalOf(() => configOf(dataDir));
    expect(error.details).toEqual([expect.stringContaining(`${path} is not as earshot wrote it`)]);
    expect(wholeTextOf(error)).not.toContain(secret);
  });

  it('is refused when it cannot be read, with why', () => {
    const { dataDir, path } = createDataDir();
    mkdirSync(path, { mode: 0o700 });
    expect(refusalOf(() => configOf(dataDir)).details).toEqual([
      expect.stringContaining(`${path} cannot be read (EISDIR).`),
    ]);
  });

  it('says where the credentials come from', () => {
    const { dataDir } = createDataDir(JSON.stringify({ pairs: [pair] }));
    expect(configOf(dataDir).credentialsSource).toBe('file');
    const { EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD } = enough;
    const env = { EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD };
    expect(configOf(dataDir, env).credentialsSource).toBe('variables');
  });

  it('is not looked at when the variables are set', () => {
    const { dataDir } = createDataDir('nonsense', 0o644);
    const { EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD } = enough;
    expect(
      configOf(dataDir, { EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD }),
    ).toMatchObject({ credentials: [{ username: 'catalogue', password: 'a long password' }] });
  });

  it('does not complete half a pair of variables', () => {
    const { dataDir } = createDataDir(JSON.stringify({ pairs: [pair] }));
    const error = refusalOf(() => configOf(dataDir, { EARSHOT_ENDPOINT_USERNAME: 'catalogue' }));
    expect(error.details).toEqual([expect.stringContaining('belong together')]);
  });
});

describe('writing the credentials file', () => {
  it('makes it and its folder for the owner alone, and what is written can be read', async () => {
    const dataDir = join(createDataDir().dataDir, 'not', 'there');
    const pairs = [{ username: 'имя', password: ' with: "blanks"\n and ü ' }, anotherPair];
    await writeCredentialsFile(dataDir, pairs);
    expect(readCredentialsFile(dataDir)).toEqual(pairs);
    expect(modeOf(join(dataDir, credentialsFileName))).toBe(0o600);
    expect(modeOf(dataDir)).toBe(0o700);
  });

  it('replaces what is there in one step, and makes it its owner’s alone again', async () => {
    const { dataDir, path } = createDataDir('nonsense', 0o644);
    const { ino } = statSync(path);
    await writeCredentialsFile(dataDir, [pair]);
    expect(readCredentialsFile(dataDir)).toEqual([pair]);
    expect(modeOf(path)).toBe(0o600);
    expect(statSync(path).ino).not.toBe(ino);
    expect(readdirSync(dataDir)).toEqual([credentialsFileName]);
  });

  it('that fails says why, keeps what was there, and tells no secret', async () => {
    const { dataDir, path } = createDataDir();
    mkdirSync(path);
    const error = await writeCredentialsFile(dataDir, [pair]).catch((cause) => cause);
    expect(error).toMatchObject({ code: 'configuration' });
    expect(error.message).toContain(`${path} cannot be written (`);
    expect(wholeTextOf(error)).not.toContain(secret);
    expect(readdirSync(dataDir)).toEqual([credentialsFileName]);
  });
});

describe('without any credentials', () => {
  it('the receiver does not start: nobody could be let in', () => {
    const { dataDir } = createDataDir();
    expect(refusalOf(() => configOf(dataDir)).details).toEqual([
      expect.stringMatching(/no endpoint credentials.*EARSHOT_ENDPOINT_USERNAME and/),
    ]);
  });

  it('the receiver does not start on a data directory that is still to be made either', () => {
    const { dataDir } = createDataDir();
    expect(refusalOf(() => configOf(join(dataDir, 'not', 'there'))).details).toHaveLength(1);
  });
});
