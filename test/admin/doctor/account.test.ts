/** The doctor's look at the account: token, catalogue, limits. */
import { describe, expect, it } from 'vitest';
import { checkCatalogue, checkLimits, checkToken } from '../../../src/admin/doctor/account.ts';
import type { Account } from '../../../src/domain/account.ts';
import { AppError } from '../../../src/domain/app-error.ts';
import { listedSubscription } from './subscription-samples.ts';

const account: Account = {
  kind: 'password',
  tokenUrl: 'https://identity.example/token',
  clientId: 'cdse-public',
  username: 'me',
  password: 'secret',
  totp: undefined,
};

const tokensThat = (get: () => Promise<string>) => ({ get, refused: async () => undefined });

describe('the token', () => {
  it('passes when it can be had, and is not shown', async () => {
    const tokens = tokensThat(async () => 'a.token.of.mine');
    const findings = await checkToken({ account, tokens });
    expect(findings).toMatchObject([{ check: 'token', state: 'pass' }]);
    expect(JSON.stringify(findings)).not.toMatch(/a\.token|secret/);
  });

  it('is warned of when it is given as it is', async () => {
    const tokens = tokensThat(async () => 'given');
    const given = { kind: 'token', accessToken: 'given' } as const;
    expect(await checkToken({ account: given, tokens })).toMatchObject([
      { state: 'warn', advice: expect.stringContaining('EARSHOT_ACCOUNT_USERNAME') },
    ]);
  });

  it('fails in the words of the refusal', async () => {
    const advice = 'Put in the right one.';
    const refusal = new AppError('unauthorized', 'The password is wrong.', { advice });
    const tokens = tokensThat(() => Promise.reject(refusal));
    expect(await checkToken({ account, tokens })).toEqual([
      {
        check: 'token',
        state: 'fail',
        message: 'The password is wrong.',
        advice: 'Put in the right one.',
      },
    ]);
  });

  it('fails without the words of an error that is not ours', async () => {
    const tokens = tokensThat(() => Promise.reject(new TypeError('secret')));
    const findings = await checkToken({ account, tokens });
    expect(findings).toMatchObject([
      { state: 'fail', message: expect.stringMatching('TypeError') },
    ]);
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});

describe('the catalogue', () => {
  it('passes when it lists, and hands on what it lists', async () => {
    const one = listedSubscription({ id: 'one' });
    const { findings, listed } = await checkCatalogue({ list: async () => [one] });
    expect(findings).toMatchObject([{ check: 'catalogue', state: 'pass' }]);
    expect(findings[0]?.message).toContain('one subscription');
    expect(listed).toEqual([one]);
  });

  it('fails in its own words, details included', async () => {
    const refusal = new AppError('invalid', 'The catalogue refused. It says:', {
      details: ['query: no', 'path: no'],
    });
    const { findings, listed } = await checkCatalogue({ list: () => Promise.reject(refusal) });
    expect(findings).toMatchObject([{ check: 'catalogue', state: 'fail' }]);
    expect(findings[0]?.message).toContain('query: no path: no');
    expect(findings[0]?.advice).not.toBe('');
    expect(listed).toBeNull();
  });
});

describe('the limits', () => {
  const limits = { runningMax: 2, totalMax: 4 };
  const listOf = (...statuses: string[]) =>
    statuses.map((status, i) => listedSubscription({ id: `id-${i}`, status }));

  it.each([
    [[], 'pass', '0 of 2 running, 0 of 4 in all.'],
    [['running', 'running', 'paused'], 'pass', '2 of 2 running, 3 of 4 in all.'],
    [['running', 'paused', 'paused', 'paused'], 'warn', 'no room for another'],
    [['running', 'running', 'running'], 'warn', '3 of 2 running'],
    [['paused', 'paused', 'paused', 'paused', 'paused'], 'warn', '5 of 4 in all'],
    [['cancelled', 'cancelled', 'cancelled', 'cancelled'], 'pass', '0 of 4 in all'],
  ])('with %j: %s', (statuses, state, words) => {
    const [finding] = checkLimits(listOf(...statuses), limits);
    expect(finding).toMatchObject({ check: 'limits', state });
    expect(finding?.message).toContain(words);
    expect(finding?.advice === undefined).toBe(state === 'pass');
  });
});
