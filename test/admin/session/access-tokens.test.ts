/** The account's session: one for all programs, renewed before it ends, kept owner-only. */
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TakeLock } from '../../../src/domain/administration.ts';
import { AppError, errorText } from '../../../src/domain/app-error.ts';
import { createTakeLock } from '../../../src/store/engine/locks.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { failureOf, fileOf, savedBy, startAccount, type TestAccount } from './account.ts';

describe('a session', () => {
  it('gives a token that the catalogue takes', async () => {
    const account = await startAccount();
    expect(await account.accepts(await account.tokens().get())).toBe(true);
  });

  it('is one for fifty calls at once in two programs', async () => {
    const account = await startAccount();
    const programs = [account.tokens(), account.tokens()];
    const calls = Array.from({ length: 50 }, (_, index) => programs[index % 2]?.get());
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 0 });
  });

  it('is taken over by programs that start later', async () => {
    const account = await startAccount();
    const first = await account.tokens().get();
    account.advance(100);
    expect(await account.tokens().get()).toBe(first);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 0 });
  });

  it('is refreshed half a minute before its token ends, not earlier', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(570);
    expect(await tokens.get()).toBe(first);
    account.advance(0.001);
    expect(await tokens.get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  it('with tokens of less than a minute is refreshed half-way', async () => {
    const account = await startAccount({ accessTokenSeconds: 10 });
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(5);
    expect(await tokens.get()).toBe(first);
    account.advance(0.001);
    expect(await tokens.get()).not.toBe(first);
  });

  it('lasts an hour with refreshes only, and is followed by another', async () => {
    const account = await startAccount();
    const programs = [account.tokens(), account.tokens()];
    const hour = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute += 1) {
        const found = await Promise.all(programs.map((tokens) => tokens.get()));
        for (const token of found) expect(await account.accepts(token)).toBe(true);
        account.advance(60);
      }
    };
    await hour(59);
    const { logins, refreshes } = account.grants();
    expect(logins).toBe(1);
    expect(refreshes).toBeLessThanOrEqual(7);
    await hour(60);
    expect(account.grants().logins).toBe(2);
  });

  it('that the provider has ended is followed by a login', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.get();
    // The session lives shorter than its file says.
    const saved = savedBy(account);
    saved.session.refreshToken.value = 'a-session-that-is-over';
    account.advance(590);
    writeFileSync(fileOf(account), JSON.stringify(saved));
    expect(await account.accepts(await account.tokens().get())).toBe(true);
    expect(account.grants()).toEqual({ logins: 2, refreshes: 1 });
  });

  it('is not ended by a provider that cannot be asked for a while', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.get();
    account.advance(590);
    account.sandbox.service.change({ identityUnavailable: true });
    expect((await failureOf(tokens.get())).code).toBe('unavailable');
    account.sandbox.service.change({ identityUnavailable: false });
    await tokens.get();
    // The first refresh was answered 503 before its grant was read.
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  it('is renewed once by many who ask at the same time, and fails once for them', async () => {
    const account = await startAccount({ identityUnavailable: true });
    const tokens = account.tokens();
    const calls = Array.from({ length: 10 }, () => tokens.get());
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(account.sandbox.requests()).toHaveLength(1);
  });
});

describe('the session file', () => {
  it('is for its owner alone, and names whose it is', async () => {
    const account = await startAccount();
    await account.tokens().get();
    expect(statSync(fileOf(account)).mode & 0o777).toBe(0o600);
    expect(savedBy(account).owner).toEqual({
      tokenUrl: account.sandbox.tokenUrl,
      clientId: 'cdse-public',
      username: 'me@example.org',
    });
    expect(readFileSync(fileOf(account), 'utf8')).not.toContain('a long password');
  });

  it.each<[string, (account: TestAccount) => void]>([
    ['that others may read', (account) => chmodSync(fileOf(account), 0o640)],
    ['that is not JSON', (account) => writeFileSync(fileOf(account), '{"session":')],
    ['that is not a session', (account) => writeFileSync(fileOf(account), '[]')],
    ['that is huge', (account) => writeFileSync(fileOf(account), ' '.repeat(300_000))],
    [
      'with a token that no header holds',
      (account) => {
        const saved = savedBy(account);
        saved.session.accessToken.value += '\nX-Header: 1';
        writeFileSync(fileOf(account), JSON.stringify(saved));
      },
    ],
  ])('%s is not used but replaced', async (_title, damage) => {
    const account = await startAccount();
    const first = await account.tokens().get();
    damage(account);
    expect(await account.tokens().get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 2, refreshes: 0 });
    expect(statSync(fileOf(account)).mode & 0o777).toBe(0o600);
    await account.tokens().get();
    expect(account.grants().logins).toBe(2);
  });

  it.each([{ username: 'another' }, { tokenUrl: 'http://127.0.0.1:1/' }, { clientId: 'another' }])(
    'of another account is not used (%j)',
    async (owner) => {
      const account = await startAccount();
      const first = await account.tokens().get();
      const saved = savedBy(account);
      Object.assign(saved.owner, owner);
      writeFileSync(fileOf(account), JSON.stringify(saved));
      expect(await account.tokens().get()).not.toBe(first);
    },
  );

  it('that was written under a clock far ahead is not believed', async () => {
    const account = await startAccount();
    const first = await account.tokens().get();
    const saved = savedBy(account);
    for (const token of [saved.session.accessToken, saved.session.refreshToken]) {
      token.obtainedAtUs += 365 * 86_400e6;
      token.endsAtUs += 365 * 86_400e6;
    }
    writeFileSync(fileOf(account), JSON.stringify(saved));
    expect(await account.tokens().get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 2, refreshes: 0 });
  });

  it('that is gone costs one login, not one for each call', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    const first = await tokens.get();
    rmSync(fileOf(account));
    expect(await tokens.get()).toBe(first);
    account.advance(590);
    await tokens.get();
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  it('that cannot be written leaves the token in memory', async () => {
    const account = await startAccount();
    const lockDir = temporaryDirectory();
    const tokens = account.tokens(
      {},
      { dataDir: join(account.dataDir, 'missing'), takeLock: createTakeLock(lockDir) },
    );
    const first = await tokens.get();
    expect(await tokens.get()).toBe(first);
    account.advance(590);
    expect(await account.accepts(await tokens.get())).toBe(true);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });
});

describe('the lock', () => {
  it('that another program holds for long makes a call fail, to be tried again', async () => {
    const account = await startAccount();
    const busy: TakeLock = () =>
      Promise.reject(new AppError('conflict', 'Another earshot program is logging in.'));
    const error = await failureOf(account.tokens({}, { takeLock: busy }).get());
    expect([error.code, errorText(error)]).toEqual([
      'unavailable',
      'Another earshot program is logging in.',
    ]);
    expect(account.grants().logins).toBe(0);
  });

  it('that cannot be had in a folder like this does not keep anybody out', async () => {
    const account = await startAccount();
    const none: TakeLock = () => Promise.reject(new AppError('configuration', 'no such folder'));
    expect(await account.accepts(await account.tokens({}, { takeLock: none }).get())).toBe(true);
  });

  it('is given back after a failure', async () => {
    const account = await startAccount({ identityUnavailable: true });
    await failureOf(account.tokens().get());
    const release = await createTakeLock(account.dataDir)('account', { waitMs: 0 });
    release();
  });
});
