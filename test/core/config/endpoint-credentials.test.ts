/**
 * The credentials file in the data directory: permissions, contents, and reloading by a receiver.
 */

import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadServed } from '../../../src/core/config/config.ts';
import {
  type CredentialPairs,
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../../../src/core/config/endpoint-credentials.ts';
import { serve } from '../../../src/receiver/serve.ts';
import { testIo } from '../../helpers/fake-io.ts';
import { fakeIntervals } from '../../helpers/fast-seconds.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { serveConfig } from '../../receiver/serve-config.ts';
import { minimalEnv, refusalOf, wholeTextOf } from './environment.ts';

const secret = 'hunter2-not-to-be-shown';
const pair = { username: 'catalogue', password: secret };
const anotherPair = { username: 'catalogue', password: 'the next one' };

function createDataDir(text?: string, mode = 0o600) {
  const dataDir = temporaryDirectory();
  const path = join(dataDir, credentialsFileName);
  if (text !== undefined) {
    writeFileSync(path, text);
    chmodSync(path, mode);
  }
  return { dataDir, path };
}

function configOf(dataDir: string, env: Record<string, string> = {}) {
  const { EARSHOT_TLS_CERT, EARSHOT_TLS_KEY } = minimalEnv;
  const all = { EARSHOT_TLS_CERT, EARSHOT_TLS_KEY, EARSHOT_DATA_DIR: dataDir, ...env };
  return loadServed({ settings, env: all, readFile: (path) => readFileSync(path, 'utf8') }, true);
}

describe('the credentials file', () => {
  it('is read when only its owner can read it', () => {
    const pairs = [pair, anotherPair];
    const { dataDir } = createDataDir(JSON.stringify({ pairs }));
    expect(configOf(dataDir).credentials).toEqual({ source: 'file', pairs });
  });

  it.each([
    ['half a file', JSON.stringify({ pairs: [pair] }).slice(0, -3)],
    ['a pair that is not in a list', JSON.stringify(pair)],
    ['an empty password', JSON.stringify({ pairs: [{ ...pair, password: '' }, pair] })],
    [
      'a password of 11 characters',
      JSON.stringify({ pairs: [{ ...pair, password: '11character' }] }),
    ],
    ['a pair without password', JSON.stringify({ pairs: [{ username: secret }] })],
    ['a number as password', '{"pairs":[{"username":"u","password":1}]}'],
  ])('is refused when it contains %s', (_title, text) => {
    const { dataDir, path } = createDataDir(text);
    const error = refusalOf(() => configOf(dataDir));
    expect(error.details).toEqual([expect.stringContaining(`${path} is invalid`)]);
    expect(wholeTextOf(error)).not.toContain(secret);
  });

  it('is not read when the variables are set', () => {
    const { dataDir } = createDataDir('nonsense', 0o644);
    const { EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD } = minimalEnv;
    const env = { EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD };
    expect(configOf(dataDir, env).credentials).toEqual({
      source: 'variables',
      pairs: [{ username: 'catalogue', password: 'a long password' }],
    });
  });

  it('does not complete half a pair of variables', () => {
    const { dataDir } = createDataDir(JSON.stringify({ pairs: [pair] }));
    const error = refusalOf(() => configOf(dataDir, { EARSHOT_ENDPOINT_USERNAME: 'catalogue' }));
    expect(error.details).toEqual([expect.stringContaining('belong together')]);
  });
});

it('a written credentials file has its pairs, for the owner alone', async () => {
  const dataDir = join(createDataDir().dataDir, 'not', 'there');
  const pairs = [{ username: 'имя', password: ' with: "blanks"\n and ü ' }, anotherPair];
  await writeCredentialsFile(dataDir, pairs);
  expect(readCredentialsFile(dataDir)).toEqual(pairs);
  expect(statSync(join(dataDir, credentialsFileName)).mode & 0o777).toBe(0o600);
});

it('a failed write of the file is reported without secrets', async () => {
  const { dataDir, path } = createDataDir();
  mkdirSync(path);
  const error = await writeCredentialsFile(dataDir, [pair]).catch((cause) => cause);
  expect(error).toMatchObject({ code: 'configuration', facts: { fault: 'wrong-file-type' } });
  expect(wholeTextOf(error)).not.toContain(secret);
});

it('without any credentials the receiver does not start: no push could be accepted', () => {
  const { dataDir } = createDataDir();
  for (const folder of [dataDir, join(dataDir, 'not', 'there')]) {
    const { details } = refusalOf(() => configOf(folder));
    expect(details).toEqual([expect.stringMatching(/No endpoint credentials.*USERNAME and/)]);
  }
});

const first = { username: 'catalogue', password: 'the-first-and-secret' };
const second = { username: 'catalogue-2', password: 'the-second-and-secret' };
const secrets = /and-secret/;
/** Documented are one or two seconds; a busy machine may take longer. */
const noticed = { timeout: 10_000, interval: 200 };

/** Starts with the first pair in the file. */
async function startReceiver() {
  const dataDir = temporaryDirectory();
  const path = join(dataDir, credentialsFileName);
  const pairs = [first];
  await writeCredentialsFile(dataDir, pairs);
  const config = serveConfig({ dataDir, credentials: { source: 'file', pairs } });
  const { log: logger, lines: log } = recordingLog();
  const receiver = await serve(config, logger, testIo({ nowUs: () => Date.now() * 1000 }));
  onTestFinished(() => receiver.close());
  const statusOf = async ({ username, password }: CredentialPairs[number]) => {
    const login = Buffer.from(`${username}:${password}`).toString('base64');
    const headers = { Authorization: `Basic ${login}` };
    return (await fetch(`${receiver.url}/notifications/alps`, { headers })).status;
  };
  const accepts = async () => [await statusOf(first), await statusOf(second)];
  const problems = () => log.filter(({ level }) => level === 'error');
  const changes = () => log.filter(({ message }) => message === 'reloaded endpoint credentials');
  return { dataDir, path, log, accepts, problems, changes };
}

function text(pairs: CredentialPairs): string {
  return JSON.stringify({ pairs });
}

describe('a receiver with the credentials file', () => {
  it('accepts an added pair and refuses a removed one, without a restart', async () => {
    const { dataDir, log, accepts, problems, changes } = await startReceiver();
    expect(await accepts()).toEqual([200, 401]);
    await writeCredentialsFile(dataDir, [first, second]);
    await vi.waitFor(async () => expect(await accepts()).toEqual([200, 200]), noticed);
    expect(changes()).toMatchObject([{ level: 'info', fields: { accepted: 2 } }]);
    await writeCredentialsFile(dataDir, [second]);
    await vi.waitFor(async () => expect(await accepts()).toEqual([401, 200]), noticed);
    expect(changes()).toMatchObject([{}, { fields: { accepted: 1 } }]);
    expect(problems()).toEqual([]);
    expect(JSON.stringify(log)).not.toMatch(secrets);
  });

  it('keeps the old pair when all others are new: the catalogue still uses it', async () => {
    const { path, accepts } = await startReceiver();
    writeFileSync(path, text([second]));
    await vi.waitFor(async () => expect(await accepts()).toEqual([200, 200]), noticed);
  });

  it.each<[string, (path: string) => void, RegExp]>([
    ['broken', (path) => writeFileSync(path, text([second]).slice(0, -2)), /is invalid/],
    [
      'readable for others',
      (path) => {
        writeFileSync(path, text([second]));
        chmodSync(path, 0o644);
      },
      /other users can read or change the file\. Run: chmod 600 /,
    ],
    ['deleted', (path) => rmSync(path), /the file is missing/],
  ])(
    'keeps its pairs while the file is %s, logs it once, and applies the repaired file',
    async (_title, harm, reason) => {
      fakeIntervals();
      const { dataDir, path, log, accepts, problems, changes } = await startReceiver();
      harm(path);
      vi.advanceTimersByTime(60_000);
      expect(problems()).toMatchObject([
        {
          message: 'failed to reload endpoint credentials; the previous credentials stay valid',
          fields: { reason: expect.stringMatching(reason) },
        },
      ]);
      expect(await accepts()).toEqual([200, 401]);
      await writeCredentialsFile(dataDir, [first, second]);
      vi.advanceTimersByTime(2_000);
      expect(await accepts()).toEqual([200, 200]);
      expect(problems()).toHaveLength(1);
      expect(changes()).toHaveLength(1);
      expect(JSON.stringify(log)).not.toMatch(secrets);
    },
  );
});
