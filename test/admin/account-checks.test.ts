/** The doctor's checks of the account: token, catalogue, limits, subscriptions, clock. */

import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Account, Registration } from '../../src/admin/account.ts';
import {
  checkAccount,
  checkClock,
  checkSubscriptions,
  type SubscriptionsInput,
} from '../../src/admin/account-checks.ts';
import { digestCredentials } from '../../src/admin/account-context.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
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

const limits = { runningMax: 2, totalMax: 4 };

function checked(changes: Partial<Parameters<typeof checkAccount>[0]> = {}) {
  const tokens = { get: async () => 'a.token.of.mine', refused: async () => undefined };
  return checkAccount({ account, tokens, client: { list: async () => [] }, limits, ...changes });
}

describe('the account', () => {
  it('is ok when the login works, and shows no secret', async () => {
    const { findings } = await checked();
    expect(findings).toMatchObject([
      { check: 'login', level: 'ok' },
      { check: 'catalogue', level: 'ok' },
    ]);
    expect(JSON.stringify(findings)).not.toMatch(/a\.token|secret/);
  });

  it('causes a warning with a token of its own', async () => {
    const given = { kind: 'token', accessToken: 'given' } as const;
    const { findings } = await checked({ account: given });
    expect(findings[0]).toMatchObject({
      level: 'warning',
      nextStep: expect.stringMatching(/_USERNAME/),
    });
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
    [[], 'ok', '0 of 2 running, 0 of 4 in total.'],
    [['running', 'running', 'paused'], 'ok', '2 of 2 running, 3 of 4 in total.'],
    [['running', 'paused', 'paused', 'paused'], 'warning', '4 of 4 in total'],
    [['running', 'running', 'running'], 'warning', '3 of 2 running'],
    [['cancelled', 'cancelled', 'cancelled', 'cancelled'], 'ok', '0 of 4 in total'],
  ])('with %j: %s', async (statuses, level, words) => {
    const list = statuses.map((status, i) => listedAs({ id: `id-${i}`, status }));
    const { findings, listed } = await checked({ client: { list: async () => list } });
    expect(findings[1]).toMatchObject({ check: 'catalogue', level });
    expect(findings[1]?.text).toContain(words);
    expect(findings[1]?.nextStep === null).toBe(level === 'ok');
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

/** The states of the findings, in order. */
const states = (input: Partial<SubscriptionsInput>) => check(input).map(({ level }) => level);

describe('a subscription in the desired state', () => {
  it('passes, with its last notification', () => {
    expect(check({})).toMatchObject([
      {
        check: 'subscription s2',
        level: 'ok',
        text: 'The subscription is running, as desired. Last notification: 2026-05-01 11:00 UTC.',
      },
    ]);
  });

  it('passes with our own record of the last notification when the catalogue shows no date', () => {
    const listed = [listedAs({ lastNotificationAtUs: null })];
    const mark = { subscription: 's2', username: 'catalogue', lastAtUs: nowUs - 2 * dayUs };
    const other = { ...mark, subscription: 's1', lastAtUs: nowUs };
    const [finding] = check({ listed, deliveryMarks: [mark, other] });
    expect(finding?.text).toContain('Last notification: 2026-04-29');
    expect(check({ listed })[0]?.text).toContain('Last notification: none yet');
  });

  it('may be paused on purpose', () => {
    const listed = [listedAs({ status: 'paused' })];
    const registrations = [registered({ status: 'paused' })];
    expect(states({ listed, registrations })).toEqual(['ok']);
  });

  it('is skipped when nothing is registered; unmanaged ones are not checked', () => {
    const endpoint = 'https://elsewhere.example/notifications/s2';
    const listed = [listedAs({ id: 'of-others', endpoint })];
    expect(check({ listed, registrations: [] })).toMatchObject([
      { check: 'subscriptions', level: 'unknown', nextStep: expect.stringContaining('register') },
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
    expect(finding).toMatchObject({ check: 'subscription s2', level: 'critical' });
    expect(finding?.text).toContain('60 days without activity');
    expect(finding?.nextStep).toContain('earshot maintain');
  });

  it('fails when it no longer exists', () => {
    expect(check({ listed: [] })).toMatchObject([
      { level: 'critical', nextStep: expect.stringContaining('earshot maintain') },
    ]);
  });

  it('fails when its endpoint is not under the public URL', () => {
    const endpoint = 'https://old.example.org/notifications/s2';
    const findings = check({ listed: [listedAs({ endpoint })] });
    expect(findings).toMatchObject([{ level: 'ok' }, { level: 'critical' }]);
    expect(findings[1]?.text).toContain('endpoint');
  });

  it('fails when the catalogue has other credentials', () => {
    const digestOf = (password: string) => digestCredentials({ ...pair, password }, 'salt');
    const withDigest = (password: string) => [
      registered({ credentialsDigest: digestOf(password) }),
    ];
    expect(states({ registrations: withDigest('secret') })).toEqual(['ok']);
    expect(states({ registrations: withDigest('other'), pairs: [] })).toEqual(['ok']);
    const findings = check({ registrations: withDigest('other') });
    expect(findings).toMatchObject([{ level: 'ok' }, { level: 'critical' }]);
    expect(findings[1]?.nextStep).toContain('earshot register');
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});

describe('a subscription that needs attention', () => {
  it.each([
    ['paused by a person', { status: 'paused' }, {}, ['warning']],
    ['resumed by a person', {}, { status: 'paused' }, ['warning']],
    ['in an unknown state', { status: 'suspended' }, {}, ['warning']],
    ['with another filter', { filter: 'x' }, {}, ['ok', 'warning']],
    ['with other events', { events: ['deleted'] }, {}, ['ok', 'warning']],
    ['half changed', {}, { unfinished: true }, ['ok', 'warning']],
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
    expect(findings.map(({ level }) => level)).toEqual(expected);
    for (const { level, nextStep } of findings) expect(Boolean(nextStep)).toBe(level !== 'ok');
  });

  it('is one in the file that is not registered', () => {
    const desired = desiredState({ name: 's1', filter: '' });
    const same = { ...registered(), name: 's2' };
    const findings = check({ inFile: [desired, same] });
    expect(findings.map(({ check, level }) => [check, level])).toEqual([
      ['subscription s1', 'warning'],
      ['subscription s2', 'ok'],
    ]);
    expect(findings[0]?.nextStep).toContain('earshot register');
  });

  it('is one at our endpoint that this installation does not know', () => {
    const [finding] = check({ registrations: [] });
    expect(finding).toMatchObject({ check: 'subscription s2', level: 'critical' });
    expect(finding?.nextStep).toContain('earshot register');
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
    [0, 'ok', '0 s'],
    [30, 'ok', '30 s'],
    [-30, 'ok', '30 s'],
    [31, 'warning', '31 s ahead of'],
    [-31, 'warning', '31 s behind'],
    [300, 'warning', '300 s ahead of'],
    [301, 'critical', '301 s ahead of'],
    [-7200, 'critical', '7200 s behind'],
  ])('%i seconds ahead: %s', async (seconds, level, words) => {
    const { url, requests } = await startService();
    const [finding] = await checkClock({ urls: [url], fetch, nowUs: at(seconds) });
    expect(finding).toMatchObject({ check: 'clock', level });
    expect(finding?.text).toContain(words);
    expect(finding?.text).toContain(new URL(url).host);
    expect(finding?.nextStep === null).toBe(level === 'ok');
    expect(requests).toEqual([['HEAD', 'no-store']]);
  });

  it('takes the age of a cached answer into account', async () => {
    const { url } = await startService({ Age: '600' });
    expect(await checkClock({ urls: [url], fetch, nowUs: at(600) })).toMatchObject([
      { level: 'ok' },
    ]);
  });

  it('asks the next service when one does not answer or sends no date', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`;
    const silent = await startService({ Date: '' });
    const { url } = await startService();
    const urls = [closed, silent.url, url];
    const [finding] = await checkClock({ urls, fetch, nowUs: at(100) });
    expect(finding).toMatchObject({ level: 'warning' });
    expect(finding?.text).toContain(new URL(url).host);
    expect(silent.requests).toHaveLength(1);
  });

  it('is skipped when no service answers', async () => {
    const urls = [`http://127.0.0.1:${await freePort()}`];
    expect(await checkClock({ urls, fetch, nowUs: at(0) })).toMatchObject([{ level: 'unknown' }]);
    expect(await checkClock({ urls: [], fetch, nowUs: at(0) })).toMatchObject([
      { level: 'unknown' },
    ]);
  });
});
