/** Tokens that the catalogue refuses: not handed out again, and no login without end. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAccessTokens } from '../../../src/admin/session/access-tokens.ts';
import { errorText } from '../../../src/domain/app-error.ts';
import { failureOf, fileOf, savedBy, startAccount } from './account.ts';

describe('a token that is given', () => {
  const given = () =>
    createAccessTokens({
      account: { kind: 'token', accessToken: 'given-token' },
      dataDir: '/nowhere',
      nowUs: () => 0,
      fetch: () => Promise.reject(new Error('Nobody is asked.')),
      takeLock: () => Promise.reject(new Error('No lock is taken.')),
    });

  it('is handed out as it is', async () => {
    const tokens = given();
    expect([await tokens.get(), await tokens.get()]).toEqual(['given-token', 'given-token']);
  });

  it('is not handed out once it was refused', async () => {
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

describe('a token that the catalogue refuses', () => {
  it('is not handed out again, and the session goes on with another', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(100);
    await tokens.refused(first);
    expect(savedBy(account).session.accessToken).toBeNull();
    expect(await tokens.get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  it('and was replaced meanwhile changes nothing', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(590);
    const second = await tokens.get();
    await tokens.refused(first);
    expect(await tokens.get()).toBe(second);
    expect(savedBy(account).session.accessToken.value).toBe(second);
  });

  it('here is left to other programs only when another has replaced it', async () => {
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

  it('when it was fresh leads to a new login, and a second time to an end', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.refused(await tokens.get());
    await tokens.refused(await tokens.get());
    expect(account.grants()).toEqual({ logins: 2, refreshes: 0 });
    const error = await failureOf(tokens.get());
    expect(error.code).toBe('unauthorized');
    expect(errorText(error)).toContain('The catalogue does not accept the token');
    await failureOf(tokens.get());
    expect(account.grants().logins).toBe(2);
    // After a while the catalogue may have come to its senses.
    account.advance(601);
    await tokens.get();
    expect(account.grants().logins).toBe(3);
  });

  it('is no second time when the one before it had done its work', async () => {
    const account = await startAccount();
    const tokens = account.tokens();
    await tokens.refused(await tokens.get());
    await tokens.get();
    account.advance(590);
    await tokens.refused(await tokens.get());
    await tokens.get();
    expect(account.grants()).toEqual({ logins: 3, refreshes: 1 });
  });

  it('may be refused where nothing can be written', async () => {
    const account = await startAccount();
    const tokens = account.tokens({}, { dataDir: join(account.dataDir, 'missing') });
    const first = await tokens.get();
    await tokens.refused(first);
    expect(await tokens.get()).not.toBe(first);
    expect(existsSync(fileOf(account))).toBe(false);
  });
});
