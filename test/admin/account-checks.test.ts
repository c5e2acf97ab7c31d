/** The doctor's checks of the account: token, catalogue, limits, subscriptions, clock. */

import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  checkCatalogue,
  checkClock,
  checkSubscriptions,
  checkToken,
  type SubscriptionsInput,
} from '../../src/admin/account-checks.ts';
import { digestCredentials } from '../../src/admin/account-context.ts';
import type { Account, Registration } from '../../src/domain/account.ts';
import { AppError } from '../../src/domain/app-error.ts';
import { freePort } from '../helpers/free-ports.ts';
import { listening } from './endpoint/tls-endpoint.ts';
import {
  dayUs,
  desiredState,
  managed,
  startUs as nowUs,
  publicUrl,
  registrationOf,
} from './samples.ts';

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

const tokensThat = (get: () => Promise<string>) => ({ get, refused: async () => undefined });

describe('the token', () => {
  it('passes when it can be obtained, and is not shown', async () => {
    const tokens = tokensThat(async () => 'a.token.of.mine');
    const findings = await checkToken({ account, tokens });
    expect(findings).toMatchObject([{ check: 'token', state: 'pass' }]);
    expect(JSON.stringify(findings)).not.toMatch(/a\.token|secret/);
  });

  it('causes a warning when it is configured directly', async () => {
    const tokens = tokensThat(async () => 'given');
    const given = { kind: 'token', accessToken: 'given' } as const;
    expect(await checkToken({ account: given, tokens })).toMatchObject([
      { state: 'warn', advice: expect.stringContaining('EARSHOT_ACCOUNT_USERNAME') },
    ]);
  });

  it('fails with the message of the refusal', async () => {
    const advice = 'Put in the right one.';
    const refusal = new AppError('unauthorized', 'The password is wrong.', { advice });
    const tokens = tokensThat(() => Promise.reject(refusal));
    expect(await checkToken({ account, tokens })).toEqual([
      {
        check: 'token',
        state: 'fail',
        message: 'The password is wrong.',
        advice: 'Put in the right one.',
        code: 'unauthorized',
      },
    ]);
  });

  it('fails without the message of an unknown error', async () => {
    const tokens = tokensThat(() => Promise.reject(new TypeError('secret')));
    const findings = await checkToken({ account, tokens });
    expect(findings).toMatchObject([
      { state: 'fail', message: expect.stringMatching('TypeError') },
    ]);
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});

describe('the catalogue', () => {
  const limits = { runningMax: 2, totalMax: 4 };

  it.each([
    [[], 'pass', '0 of 2 running, 0 of 4 in total.'],
    [['running', 'running', 'paused'], 'pass', '2 of 2 running, 3 of 4 in total.'],
    [['running', 'paused', 'paused', 'paused'], 'warn', '4 of 4 in total'],
    [['running', 'running', 'running'], 'warn', '3 of 2 running'],
    [['paused', 'paused', 'paused', 'paused', 'paused'], 'warn', '5 of 4 in total'],
    [['cancelled', 'cancelled', 'cancelled', 'cancelled'], 'pass', '0 of 4 in total'],
  ])('with %j: %s', async (statuses, state, words) => {
    const list = statuses.map((status, i) => listedAs({ id: `id-${i}`, status }));
    const { findings, listed } = await checkCatalogue({ list: async () => list }, limits);
    expect(findings).toMatchObject([{ check: 'catalogue', state }]);
    expect(findings[0]?.message).toContain(words);
    expect(findings[0]?.advice === undefined).toBe(state === 'pass');
    expect(listed).toEqual(list);
  });

  it('fails with its own message, including the details', async () => {
    const refusal = new AppError('invalid', 'The catalogue refused. It says:', {
      details: ['query: no', 'path: no'],
    });
    const list = () => Promise.reject(refusal);
    const { findings, listed } = await checkCatalogue({ list }, limits);
    expect(findings).toMatchObject([{ check: 'catalogue', state: 'fail' }]);
    expect(findings[0]?.message).toContain('query: no path: no');
    expect(findings[0]?.advice).not.toBe('');
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

/** The states of the findings, in order. */
const states = (input: Partial<SubscriptionsInput>) => check(input).map(({ state }) => state);

describe('a subscription in the desired state', () => {
  it('passes, with its last notification', () => {
    expect(check({})).toEqual([
      {
        check: 'subscription s2',
        state: 'pass',
        message:
          'The subscription is running, as desired. Last notification: 2026-05-01 11:00 UTC.',
      },
    ]);
  });

  it('passes with our own record of the last notification when the catalogue shows no date', () => {
    const listed = [listedAs({ lastNotificationAtUs: null })];
    const mark = { subscription: 's2', username: 'catalogue', lastAtUs: nowUs - 2 * dayUs };
    const other = { ...mark, subscription: 's1', lastAtUs: nowUs };
    const [finding] = check({ listed, deliveryMarks: [mark, other] });
    expect(finding?.message).toContain('Last notification: 2026-04-29');
    expect(check({ listed })[0]?.message).toContain('Last notification: none yet');
  });

  it('may be paused on purpose', () => {
    const listed = [listedAs({ status: 'paused' })];
    const registrations = [registered({ status: 'paused' })];
    expect(states({ listed, registrations })).toEqual(['pass']);
  });

  it('is skipped when nothing is registered; unmanaged ones are not checked', () => {
    const endpoint = 'https://elsewhere.example/notifications/s2';
    const listed = [listedAs({ id: 'of-others', endpoint })];
    expect(check({ listed, registrations: [] })).toMatchObject([
      { check: 'subscriptions', state: 'skipped', advice: expect.stringContaining('register') },
    ]);
  });
});

describe('a subscription that delivers nothing', () => {
  const longAgo = nowUs - 61 * dayUs;

  it('fails when the service paused it, with the command to resume it', () => {
    const [finding, ...rest] = check({
      listed: [
        listedAs({
          status: 'paused',
          submittedAtUs: longAgo,
          lastNotificationAtUs: longAgo,
        }),
      ],
      registrations: [registered({ activityAtUs: longAgo, notifiedAtUs: longAgo })],
    });
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({ check: 'subscription s2', state: 'fail' });
    expect(finding?.message).toContain('60 days without activity');
    expect(finding?.advice).toContain('earshot maintain');
  });

  it('fails when it no longer exists', () => {
    expect(check({ listed: [] })).toMatchObject([
      { state: 'fail', advice: expect.stringContaining('earshot maintain') },
    ]);
  });

  it('fails when its endpoint is not under the public URL', () => {
    const endpoint = 'https://old.example.org/notifications/s2';
    const findings = check({ listed: [listedAs({ endpoint })] });
    expect(findings).toMatchObject([{ state: 'pass' }, { state: 'fail' }]);
    expect(findings[1]?.message).toContain('endpoint');
  });

  it('fails when the catalogue has other credentials', () => {
    const digestOf = (password: string) => digestCredentials({ ...pair, password }, 'salt');
    const withDigest = (password: string) => [
      registered({ credentialsDigest: digestOf(password) }),
    ];
    expect(states({ registrations: withDigest('secret') })).toEqual(['pass']);
    expect(states({ registrations: withDigest('other'), pairs: [] })).toEqual(['pass']);
    const findings = check({ registrations: withDigest('other') });
    expect(findings).toMatchObject([{ state: 'pass' }, { state: 'fail' }]);
    expect(findings[1]?.message).toContain('does not accept the endpoint credentials');
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});

describe('a subscription that needs attention', () => {
  it.each([
    ['paused by a person', { status: 'paused' }, {}, ['warn']],
    ['resumed by a person', {}, { status: 'paused' }, ['warn']],
    ['in an unknown state', { status: 'suspended' }, {}, ['warn']],
    ['with another filter', { filter: 'x' }, {}, ['pass', 'warn']],
    ['with other events', { events: ['deleted'] }, {}, ['pass', 'warn']],
    ['half changed', {}, { unfinished: true }, ['pass', 'warn']],
  ] as const)('causes a warning: %s', (_what, listed, known, expected) => {
    const findings = check({
      listed: [
        listedAs({
          ...listed,
          events: [...('events' in listed ? listed.events : ['created'])],
        }),
      ],
      registrations: [registered(known)],
    });
    expect(findings.map(({ state }) => state)).toEqual(expected);
    for (const { state, advice } of findings) expect(Boolean(advice)).toBe(state !== 'pass');
  });

  it('is one in the file that is not registered', () => {
    const desired = desiredState({ name: 's1', filter: '' });
    const same = { ...registered(), name: 's2' };
    const findings = check({ inFile: [desired, same] });
    expect(findings.map(({ check, state }) => [check, state])).toEqual([
      ['subscription s1', 'warn'],
      ['subscription s2', 'pass'],
    ]);
    expect(findings[0]?.advice).toContain('earshot register');
  });

  it('is one at our endpoint that this installation does not know', () => {
    const [finding] = check({ registrations: [] });
    expect(finding).toMatchObject({ check: 'subscription s2', state: 'fail' });
    expect(finding?.advice).toContain('To adopt it');
  });
});

const thereMs = Date.UTC(2026, 4, 1, 12);

/** A service with a fixed clock. */
async function startService(headers: Record<string, string> = {}) {
  const requests: unknown[] = [];
  const server = createServer(({ method, headers: { 'cache-control': cache } }, response) => {
    requests.push([method, cache]);
    response.sendDate = false;
    response.writeHead(404, { Date: new Date(thereMs).toUTCString(), ...headers }).end();
  });
  return { url: `http://127.0.0.1:${await listening(server)}`, requests };
}

const at = (secondsAhead: number) => () => (thereMs + secondsAhead * 1000) * 1000;

describe('the clock', () => {
  it.each([
    [0, 'pass', 'agrees'],
    [30, 'pass', 'agrees'],
    [-30, 'pass', 'agrees'],
    [31, 'warn', '31 s ahead of'],
    [-31, 'warn', '31 s behind'],
    [300, 'warn', '300 s ahead of'],
    [301, 'fail', '301 s ahead of'],
    [-7200, 'fail', '7200 s behind'],
  ])('%i seconds ahead: %s', async (seconds, state, words) => {
    const { url, requests } = await startService();
    const [finding] = await checkClock({ urls: [url], fetch, nowUs: at(seconds) });
    expect(finding).toMatchObject({ check: 'clock', state });
    expect(finding?.message).toContain(words);
    expect(finding?.message).toContain(new URL(url).host);
    expect(finding?.advice === undefined).toBe(state === 'pass');
    expect(requests).toEqual([['HEAD', 'no-store']]);
  });

  it('takes the age of a cached answer into account', async () => {
    const { url } = await startService({ Age: '600' });
    expect(await checkClock({ urls: [url], fetch, nowUs: at(600) })).toMatchObject([
      { state: 'pass' },
    ]);
  });

  it('asks the next service when one does not answer or sends no date', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`;
    const silent = await startService({ Date: '' });
    const { url } = await startService();
    const urls = [closed, silent.url, url];
    const [finding] = await checkClock({ urls, fetch, nowUs: at(100) });
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toContain(new URL(url).host);
    expect(silent.requests).toHaveLength(1);
  });

  it('is skipped when no service answers', async () => {
    const urls = [`http://127.0.0.1:${await freePort()}`];
    expect(await checkClock({ urls, fetch, nowUs: at(0) })).toMatchObject([{ state: 'skipped' }]);
    expect(await checkClock({ urls: [], fetch, nowUs: at(0) })).toMatchObject([
      { state: 'skipped' },
    ]);
  });
});
