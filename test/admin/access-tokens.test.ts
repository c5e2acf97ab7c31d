/** The account's session: renewed before it ends, shared by all programs; one-time codes; refused tokens. */
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAccessTokens } from '../../src/admin/access-tokens.ts';
import { isCode, oneTimeCode } from '../../src/admin/identity-provider.ts';
import type { AcquireLock } from '../../src/domain/account.ts';
import { AppError, errorText } from '../../src/domain/app-error.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { wholeTextOf } from '../config/environment.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { failureOf, fileOf, savedBy, startAccount, startMs, type TestAccount } from './account.ts';

describe('a session', () => {
  it('provides a token that the catalogue accepts', async () => {
    const account = await startAccount();
    expect(await account.accepts(await account.tokens().get())).toBe(true);
  });

  it('is shared by fifty concurrent calls in two programs', async () => {
    const account = await startAccount();
    const programs = [account.tokens(), account.tokens()];
    const calls = Array.from({ length: 50 }, (_, index) => programs[index % 2]?.get());
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 0 });
  });

  it('is reused by programs that start later', async () => {
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

  it('refreshes tokens of less than a minute at half of their lifetime', async () => {
    const account = await startAccount({ accessTokenSeconds: 10 });
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(5);
    expect(await tokens.get()).toBe(first);
    account.advance(0.001);
    expect(await tokens.get()).not.toBe(first);
  });

  it('needs one login an hour, and refreshes in between', async () => {
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

  it('that the provider ended is followed by a new login', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.get();
    // The session ends earlier than its file says.
    const saved = savedBy(account);
    saved.session.refreshToken.value = 'an-ended-session';
    account.advance(590);
    writeFileSync(fileOf(account), JSON.stringify(saved));
    expect(await account.accepts(await account.tokens().get())).toBe(true);
    expect(account.grants()).toEqual({ logins: 2, refreshes: 1 });
  });

  it('survives a temporary failure of the provider', async () => {
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

  it('is requested once for concurrent calls, and fails once for all of them', async () => {
    const account = await startAccount({ identityUnavailable: true });
    const tokens = account.tokens();
    const calls = Array.from({ length: 10 }, () => tokens.get());
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    expect(account.sandbox.requests()).toHaveLength(1);
  });
});

describe('the session file', () => {
  it('is readable only by its owner, and names the account', async () => {
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
      'with a token that is not valid in a header',
      (account) => {
        const saved = savedBy(account);
        saved.session.accessToken.value += '\nX-Header: 1';
        writeFileSync(fileOf(account), JSON.stringify(saved));
      },
    ],
  ])('%s is replaced, not used', async (_title, damage) => {
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

  it('that was written with a clock far ahead is ignored', async () => {
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

  it('that is missing does not cause a login for each call', async () => {
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
      { dataDir: join(account.dataDir, 'missing'), acquireLock: createAcquireLock(lockDir) },
    );
    const first = await tokens.get();
    expect(await tokens.get()).toBe(first);
    account.advance(590);
    expect(await account.accepts(await tokens.get())).toBe(true);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });
});

describe('the lock', () => {
  it('held by another program for too long makes a call fail with a retryable error', async () => {
    const account = await startAccount();
    const busy: AcquireLock = () =>
      Promise.reject(new AppError('conflict', 'Another earshot program is logging in.'));
    const error = await failureOf(account.tokens({}, { acquireLock: busy }).get());
    expect([error.code, errorText(error)]).toEqual([
      'unavailable',
      'Another earshot program is logging in.',
    ]);
    expect(account.grants().logins).toBe(0);
  });

  it('that cannot be created in this directory does not prevent a login', async () => {
    const account = await startAccount();
    const none: AcquireLock = () => Promise.reject(new AppError('configuration', 'no such folder'));
    expect(await account.accepts(await account.tokens({}, { acquireLock: none }).get())).toBe(true);
  });

  it('is released after a failure', async () => {
    const account = await startAccount({ identityUnavailable: true });
    await failureOf(account.tokens().get());
    const release = await createAcquireLock(account.dataDir)('account', { waitMs: 0 });
    release();
  });
});

describe('a configured token', () => {
  const given = () =>
    createAccessTokens({
      account: { kind: 'token', accessToken: 'given-token' },
      dataDir: '/nowhere',
      nowUs: () => 0,
      fetch: () => Promise.reject(new Error('Unexpected request.')),
      acquireLock: () => Promise.reject(new Error('Unexpected lock.')),
    });

  it('is returned unchanged', async () => {
    const tokens = given();
    expect([await tokens.get(), await tokens.get()]).toEqual(['given-token', 'given-token']);
  });

  it('is not returned after a refusal', async () => {
    const tokens = given();
    await tokens.refused('another-token');
    expect(await tokens.get()).toBe('given-token');
    await tokens.refused('given-token');
    const error = await failureOf(tokens.get());
    expect(error.code).toBe('unauthorized');
    expect(errorText(error)).toMatch(/EARSHOT_ACCESS_TOKEN.*EARSHOT_ACCOUNT_USERNAME/);
    expect(errorText(error)).not.toContain('given-token');
  });
});

describe('a token that the catalogue refused', () => {
  it('is not returned again, and the session continues with another', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(100);
    await tokens.refused(first);
    expect(savedBy(account).session.accessToken).toBeNull();
    expect(await tokens.get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  it('has no effect when it was already replaced', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(590);
    const second = await tokens.get();
    await tokens.refused(first);
    expect(await tokens.get()).toBe(second);
    expect(savedBy(account).session.accessToken.value).toBe(second);
  });

  it('does not affect the newer token of another program', async () => {
    const account = await startAccount();
    const [one, two] = [account.tokens(), account.tokens()];
    const first = await one.get();
    expect(await two.get()).toBe(first);
    account.advance(100);
    await one.refused(first);
    const second = await one.get();
    await two.refused(first);
    expect(await two.get()).toBe(second);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  it('causes a new login when it was new, and an error the second time', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.refused(await tokens.get());
    await tokens.refused(await tokens.get());
    expect(account.grants()).toEqual({ logins: 2, refreshes: 0 });
    const error = await failureOf(tokens.get());
    expect(error.code).toBe('unauthorized');
    expect(errorText(error)).toContain('The catalogue refuses the tokens');
    await failureOf(tokens.get());
    expect(account.grants().logins).toBe(2);
    expect(error.facts).toEqual({ retryAfterMs: 30_000 });
    // After a while, the catalogue may accept tokens again: half a minute, then longer and longer, up to ten.
    const pauses = [30, 60, 120, 240, 480, 600, 600];
    for (const [i, seconds] of pauses.entries()) {
      account.advance(seconds - 1);
      await failureOf(tokens.get());
      account.advance(1);
      await tokens.refused(await tokens.get());
      expect(account.grants().logins).toBe(3 + i);
    }
  });

  it('causes another login when the previous token was accepted', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.refused(await tokens.get());
    await tokens.get();
    account.advance(590);
    await tokens.refused(await tokens.get());
    await tokens.get();
    expect(account.grants()).toEqual({ logins: 3, refreshes: 1 });
  });

  it('is dropped even if the session file cannot be written', async () => {
    const account = await startAccount();
    const tokens = account.tokens({}, { dataDir: join(account.dataDir, 'missing') });
    const first = await tokens.get();
    await tokens.refused(first);
    expect(await tokens.get()).not.toBe(first);
    expect(existsSync(fileOf(account))).toBe(false);
  });
});

/** The secret of RFC 6238, appendix B: "12345678901234567890". */
const rfcSecret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

/** A clock that moves only by waiting. */
function clockAt(seconds: number, lastWindow: number | null = null) {
  const waits: number[] = [];
  let us = seconds * 1_000_000;
  const wait = async (ms: number) => {
    waits.push(ms);
    us += ms * 1000;
  };
  return { waits, options: { nowUs: () => us, lastWindow, wait } };
}

describe('a code', () => {
  it.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('at second %i equals that of RFC 6238', async (seconds, code) => {
    const { options } = clockAt(seconds);
    const made = await oneTimeCode(rfcSecret, options);
    expect(made).toEqual({ code, window: Math.floor(seconds / 30) });
  });

  it('of six digits is used unchanged, without a window', async () => {
    const { options, waits } = clockAt(59, 1);
    expect(await oneTimeCode('007123', options)).toEqual({ code: '007123', window: null });
    expect(waits).toEqual([]);
    expect([isCode('007123'), isCode('00712'), isCode('ABCDEF'), isCode('0071234')]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('can be computed from a secret in lower case and with padding', async () => {
    const { options } = clockAt(59);
    expect((await oneTimeCode(rfcSecret.toLowerCase(), options)).code).toBe('287082');
    expect((await oneTimeCode('JBSWY3DPEE======', options)).code).toMatch(/^\d{6}$/);
  });

  it('that was used is followed by the code of the next window', async () => {
    const { options, waits } = clockAt(29.5, 0);
    expect(await oneTimeCode(rfcSecret, options)).toEqual({ code: '287082', window: 1 });
    expect(waits).toEqual([500]);
  });

  it('waits for at most half a minute', async () => {
    const { options, waits } = clockAt(30, 1);
    expect((await oneTimeCode(rfcSecret, options)).window).toBe(2);
    expect(waits).toEqual([30_000]);
  });

  it('belongs to the next window when the timer fires early, and to a later one when it fires late', async () => {
    const early = { nowUs: () => 29_500_000, lastWindow: 0, wait: async () => {} };
    expect((await oneTimeCode(rfcSecret, early)).window).toBe(1);
    let us = 29_500_000;
    const wait = async () => {
      us = 95_000_000;
    };
    const late = { nowUs: () => us, lastWindow: 0, wait };
    expect((await oneTimeCode(rfcSecret, late)).window).toBe(3);
  });

  it('does not wait when the last code was used with a clock ahead of this one', async () => {
    const { options, waits } = clockAt(59, 1_000);
    expect((await oneTimeCode(rfcSecret, options)).window).toBe(1);
    expect(waits).toEqual([]);
  });

  it('cannot be computed from an invalid secret, and the error does not show it', async () => {
    const error = await oneTimeCode('wrong-1890', clockAt(59).options).catch((error) => error);
    expect(error).toBeInstanceOf(AppError);
    expect(error.code).toBe('configuration');
    expect(errorText(error)).toContain('EARSHOT_ACCOUNT_TOTP');
    expect(wholeTextOf(error)).not.toContain('1890');
  });
});

describe('an account with two-factor login', () => {
  const secret = 'JBSWY3DPEHPK3PXP';

  /** An account whose token sources wait by advancing the sandbox's clock. */
  async function startTwoFactor() {
    const account = await startAccount({ totpSecret: secret });
    const waits: number[] = [];
    const wait = async (ms: number) => {
      waits.push(ms);
      account.advance(ms / 1000);
    };
    return { account, waits, tokens: () => account.tokens({ totp: secret }, { wait }) };
  }

  it('logs in with codes computed from the secret', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    expect(await account.accepts(await tokens().get())).toBe(true);
    expect(waits).toEqual([]);
  });

  it('logs in twice in a row, the second time in the next window', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    const source = tokens();
    await source.refused(await source.get());
    expect(await account.accepts(await source.get())).toBe(true);
    expect(account.grants().logins).toBe(2);
    expect(waits).toEqual([30_000]);
  });

  it('lets another program log in only in the next window, as recorded in the file', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    const [first, second] = [tokens(), tokens()];
    const token = await first.get();
    await second.get();
    await second.refused(token);
    await second.get();
    expect(account.grants().logins).toBe(2);
    expect(waits).toEqual([30_000]);
  });

  it('does not send a code again after a login that failed', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    const source = tokens();
    account.sandbox.service.change({ identityUnavailable: true });
    await source.get().catch(() => {});
    account.sandbox.service.change({ identityUnavailable: false });
    await source.get();
    expect(waits).toEqual([30_000]);
    expect(account.sandbox.clock.now()).toBe(startMs + 30_000);
  });
});
