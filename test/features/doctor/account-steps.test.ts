/** The doctor's checks of the account: token, catalogue, limits, subscriptions. */

import { describe, expect, it } from 'vitest';
import type { Account, Registration } from '../../../src/admin/account.ts';
import { digestCredentials } from '../../../src/admin/changes.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import {
  checkAccount,
  checkSubscriptions,
  type SubscriptionsInput,
} from '../../../src/features/doctor/account-steps.ts';
import {
  dayUs,
  desiredState,
  managed,
  startUs as nowUs,
  publicUrl,
  registrationOf,
} from '../../admin/samples.ts';

/** Running; its last notification came an hour ago. */
const listedAs = (fields: Parameters<typeof managed>[0] = {}) =>
  managed({ name: 's2', lastNotificationAtUs: nowUs - dayUs / 24, ...fields });
const tenDaysAgo = { activityAtUs: nowUs - 10 * dayUs, notifiedAtUs: nowUs - 10 * dayUs };
const registered = (fields: Partial<Registration> = {}) =>
  registrationOf({ name: 's2', credentialsDigest: null, ...tenDaysAgo, ...fields });

const account: Account = {
  kind: 'password',
  tokenUrl: 'https://identity.example/token',
  clientId: 'cdse-public',
  username: 'me',
  password: 'secret',
  totp: undefined,
};

const limits = { runningMax: 2, totalMax: 4 };

function checked(changes: Partial<Parameters<typeof checkAccount>[0]> = {}) {
  const tokens = { get: async () => 'a.token.of.mine', refused: async () => undefined };
  return checkAccount({ account, tokens, client: { list: async () => [] }, limits, ...changes });
}

describe('the account', () => {
  it('causes a warning with a token of its own', async () => {
    const { findings } = await checked({ account: { kind: 'token', accessToken: 'given' } });
    const nextStep = expect.stringMatching(/_USERNAME/);
    expect(findings[0]).toMatchObject({ level: 'warning', nextStep });
  });

  it.each([
    [new AppError('unauthorized', 'Wrong.', { advice: 'Correct it.' }), 'unauthorized', 'Wrong.'],
    [new TypeError('secret'), undefined, expect.stringContaining('TypeError')],
  ])('fails without a token: %s', async (error, code, text) => {
    const tokens = { get: () => Promise.reject(error), refused: async () => undefined };
    const { findings, listed } = await checked({ tokens });
    expect(findings).toMatchObject([{ check: 'login', level: 'critical', text }]);
    expect([findings[0]?.code, listed]).toEqual([code, null]);
    expect(JSON.stringify(findings)).not.toContain('secret');
  });

  it.each([
    [['running', 'running', 'paused'], 'ok', '2 of 2 running, 3 of 4 in total.'],
    [['running', 'paused', 'paused', 'paused'], 'warning', '4 of 4 in total'],
    [['cancelled', 'cancelled', 'cancelled', 'cancelled'], 'ok', '0 of 4 in total'],
  ])('with %j: %s', async (statuses, level, words) => {
    const list = statuses.map((status, i) => listedAs({ id: `id-${i}`, status }));
    const { findings, listed } = await checked({ client: { list: async () => list } });
    expect(findings[1]).toMatchObject({ check: 'catalogue', level });
    expect(findings[1]?.text).toContain(words);
    expect(listed).toEqual(list);
  });

  it('fails when the catalogue refuses the list, with the details', async () => {
    const refusal = new AppError('invalid', 'Refused.', { details: ['query: no', 'path: no'] });
    const { findings, listed } = await checked({
      client: { list: () => Promise.reject(refusal) },
    });
    expect(findings).toMatchObject([
      { level: 'ok' },
      { check: 'catalogue', level: 'critical', evidence: ['query: no', 'path: no'] },
    ]);
    expect(findings[1]?.nextStep).not.toBe('');
    expect(listed).toBeNull();
  });
});

const pair = { username: 'catalogue', password: 'secret' };

function check(input: Partial<SubscriptionsInput>) {
  return checkSubscriptions({
    listed: [listedAs()],
    registrations: [registered()],
    deliveryMarks: [],
    inFile: null,
    publicUrl,
    pairs: [pair],
    nowUs,
    ...input,
  });
}

describe('a subscription', () => {
  const longAgo = nowUs - 61 * dayUs;
  const silent = { submittedAtUs: longAgo, lastNotificationAtUs: longAgo };
  const unseen = { listed: [listedAs({ lastNotificationAtUs: null })] };
  const mark = { subscription: 's2', username: 'catalogue', lastAtUs: nowUs - 2 * dayUs };
  const listed = (fields: Parameters<typeof listedAs>[0]) => ({ listed: [listedAs(fields)] });
  const known = (fields: Partial<Registration>) => ({ registrations: [registered(fields)] });
  const withDigest = (password: string) =>
    known({ credentialsDigest: digestCredentials({ ...pair, password }, 'salt') });
  const inFile = [desiredState({ name: 's1', filter: '' }), desiredState({ ...registered() })];
  const [elsewhere, old] = ['https://elsewhere.example', 'https://old.example.org'];
  const foreign = listedAs({ id: 'of-others', endpoint: `${elsewhere}/notifications/s2` });

  it.each<[title: string, Partial<SubscriptionsInput>, levels: string, words: RegExp]>([
    ['as desired', {}, 'ok', /running, as desired. Last notification: 2026-05-01 11:00 UTC/],
    [
      'without a date in the catalogue',
      { ...unseen, deliveryMarks: [mark, { ...mark, subscription: 's1', lastAtUs: nowUs }] },
      'ok',
      /Last notification: 2026-04-29/,
    ],
    ['of others', { listed: [foreign], registrations: [] }, 'unknown', /earshot register/],
    [
      'paused by the service',
      {
        ...listed({ status: 'paused', ...silent }),
        ...known({ activityAtUs: longAgo, notifiedAtUs: longAgo }),
      },
      'critical',
      /60 days without activity.*earshot maintain/,
    ],
    ['that no longer exists', { listed: [] }, 'critical', /earshot maintain/],
    [
      'at another endpoint',
      listed({ endpoint: `${old}/notifications/s2` }),
      'ok critical',
      /endpoint/,
    ],
    ['with other credentials', withDigest('other'), 'ok critical', /earshot register/],
    ['with credentials unknown here', { ...withDigest('other'), pairs: [] }, 'ok', /./],
    ['in an unknown state', listed({ status: 'suspended' }), 'warning', /suspended/],
    ['half changed', known({ unfinished: true }), 'ok warning', /./],
    ['only in the file', { inFile }, 'warning ok', /earshot register/],
    ['unknown here', { registrations: [] }, 'critical', /earshot register/],
  ])('%s', (_title, input, levels, words) => {
    const findings = check(input);
    expect(findings.map(({ level }) => level).join(' ')).toBe(levels);
    for (const { level, nextStep } of findings) expect(Boolean(nextStep)).toBe(level !== 'ok');
    expect(findings.map(({ text, nextStep }) => `${text} ${nextStep}`).join(' ')).toMatch(words);
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});
