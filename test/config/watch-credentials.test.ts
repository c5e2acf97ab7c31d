/** Credentials that change while the receiver serves: noticed without a restart, never half. */
import { randomUUID } from 'node:crypto';
import { chmodSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { serve } from '../../src/cli/serve.ts';
import {
  type CredentialPairs,
  credentialsFileName,
  writeCredentialsFile,
} from '../../src/config/endpoint-credentials.ts';
import { readServeConfig } from '../../src/config/read-config.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const first = { username: 'catalogue', password: 'the-first-and-secret' };
const second = { username: 'catalogue-2', password: 'the-second-and-secret' };
const secrets = /and-secret/;
/** The promise is a second or two; a machine that is busy may take its time. */
const noticed = { timeout: 10_000, interval: 200 };

/** From here on looks happen when the test says so. */
function fakeIntervals(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
}

/** With the first pair in the file; `meanwhile` happens between reading the configuration and serving. */
async function startReceiver(
  options: { meanwhile?: (path: string) => void; env?: Record<string, string> } = {},
) {
  const dataDir = temporaryDirectory();
  const path = join(dataDir, credentialsFileName);
  await writeCredentialsFile(dataDir, [first]);
  const env = {
    EARSHOT_TLS: 'off',
    EARSHOT_LISTEN: '127.0.0.1:0',
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_DATA_DIR: dataDir,
    ...options.env,
  };
  const config = readServeConfig({ env, readFile: () => '' });
  options.meanwhile?.(path);
  const log: { level: string; message: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void log.push({ level, message, fields });
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const receiver = await serve(config, logger, {
    nowUs: () => Date.now() * 1000,
    newId: randomUUID,
    random: Math.random,
  });
  onTestFinished(() => receiver.close());
  const statusOf = async ({ username, password }: CredentialPairs[number]) => {
    const login = Buffer.from(`${username}:${password}`).toString('base64');
    const headers = { Authorization: `Basic ${login}` };
    return (await fetch(`${receiver.url}/notifications/alps`, { headers })).status;
  };
  const accepts = async () => [await statusOf(first), await statusOf(second)];
  const problems = () => log.filter(({ level }) => level === 'error');
  const changes = () => log.filter(({ message }) => message === 'endpoint credentials changed');
  return { dataDir, path, log, accepts, problems, changes, close: receiver.close };
}

function text(pairs: CredentialPairs): string {
  return JSON.stringify({ pairs });
}

describe('a receiver with the credentials file', () => {
  it('accepts a pair that is added, and refuses one that is taken away, without a restart', async () => {
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

  it('sees a file that another one replaces, though size and time are the same', async () => {
    const other = { username: first.username, password: first.password.replace('first', 'other') };
    const { path, accepts, changes } = await startReceiver();
    const replace = (pairs: CredentialPairs) => {
      const next = `${path}.next`;
      writeFileSync(next, text(pairs), { mode: 0o600 });
      utimesSync(next, 1_700_000_000, 1_700_000_000);
      renameSync(next, path);
    };
    replace([first, second]);
    await vi.waitFor(async () => expect(await accepts()).toEqual([200, 200]), noticed);
    replace([other, second]);
    await vi.waitFor(async () => expect(await accepts()).toEqual([401, 200]), noticed);
    expect(changes()).toHaveLength(2);
  });

  it('keeps the old pair beside others that are all new: the catalogue still uses it', async () => {
    const { path, accepts } = await startReceiver();
    writeFileSync(path, text([second]));
    await vi.waitFor(async () => expect(await accepts()).toEqual([200, 200]), noticed);
  });

  it('takes what changed while it was starting', async () => {
    const { accepts, changes } = await startReceiver({
      meanwhile: (path) => writeFileSync(path, text([first, second])),
    });
    await vi.waitFor(async () => expect(await accepts()).toEqual([200, 200]), noticed);
    expect(changes()).toHaveLength(1);
  });

  it.each<[string, (path: string) => void, RegExp]>([
    ['broken', (path) => writeFileSync(path, text([second]).slice(0, -2)), /as earshot wrote it/],
    ['empty', (path) => writeFileSync(path, ''), /as earshot wrote it/],
    ['without a pair', (path) => writeFileSync(path, text([])), /as earshot wrote it/],
    [
      'readable for others',
      (path) => {
        writeFileSync(path, text([second]));
        chmodSync(path, 0o644);
      },
      /others may read or change it\. Run: chmod 600 /,
    ],
    ['deleted', (path) => rmSync(path), /the file is gone/],
  ])(
    'keeps its pairs while the file is %s, says so once, and goes on when it is whole',
    async (_title, harm, reason) => {
      fakeIntervals();
      const { dataDir, path, log, accepts, problems, changes } = await startReceiver();
      harm(path);
      vi.advanceTimersByTime(60_000);
      expect(problems()).toMatchObject([
        {
          message: 'the changed credentials cannot be used; those from before stay',
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

  it('says nothing of a file that is written again, or put back, with the same pairs', async () => {
    fakeIntervals();
    const { dataDir, path, accepts, problems, changes } = await startReceiver();
    await writeCredentialsFile(dataDir, [first]);
    vi.advanceTimersByTime(2_000);
    expect(problems()).toEqual([]);
    rmSync(path);
    vi.advanceTimersByTime(2_000);
    await writeCredentialsFile(dataDir, [first]);
    vi.advanceTimersByTime(2_000);
    expect(problems()).toHaveLength(1);
    expect(changes()).toEqual([]);
    expect(await accepts()).toEqual([200, 401]);
  });

  it('looks no more when it has stopped', async () => {
    fakeIntervals();
    const { path, problems, close } = await startReceiver();
    await close();
    rmSync(path);
    vi.advanceTimersByTime(60_000);
    expect(problems()).toEqual([]);
  });
});

describe('a receiver with the credentials of the variables', () => {
  it('keeps to them, whatever the file holds', async () => {
    fakeIntervals();
    const { dataDir, accepts, log } = await startReceiver({
      env: {
        EARSHOT_ENDPOINT_USERNAME: first.username,
        EARSHOT_ENDPOINT_PASSWORD: first.password,
      },
    });
    await writeCredentialsFile(dataDir, [second]);
    vi.advanceTimersByTime(60_000);
    expect(await accepts()).toEqual([200, 401]);
    expect(log.map(({ message }) => message)).toEqual(['wrong or no credentials']);
  });
});
