/** The doctor's look at our subscriptions: state against wanted, time left, what delivers elsewhere. */
import { describe, expect, it } from 'vitest';
import { checkSubscriptions, type SubscriptionsInput } from '../../../src/admin/account-checks.ts';
import { digestCredentials } from '../../../src/admin/plan-context.ts';
import {
  dayUs,
  listedSubscription,
  nowUs,
  publicUrl,
  registration,
} from './subscription-samples.ts';

const pair = { username: 'catalogue', password: 'secret' };

function check(input: Partial<SubscriptionsInput>) {
  return checkSubscriptions({
    listed: [listedSubscription()],
    registrations: [registration()],
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

describe('a subscription as it should be', () => {
  it('passes, with its last notification and the days left', () => {
    expect(check({})).toEqual([
      {
        check: 'subscription s2',
        state: 'pass',
        message:
          'It is running, as wanted; last notification 2026-05-01 11:00 UTC; without another the catalogue pauses it in 60 days and deletes it in 365 days.',
      },
    ]);
  });

  it('counts from our own records where the catalogue shows nothing', () => {
    const listed = [listedSubscription({ lastNotificationAtUs: null })];
    const mark = { subscription: 's2', username: 'catalogue', lastAtUs: nowUs - 2 * dayUs };
    const other = { ...mark, subscription: 's1', lastAtUs: nowUs };
    const [finding] = check({ listed, deliveryMarks: [mark, other] });
    expect(finding?.message).toMatch(/last notification 2026-04-29 .* in 58 days .* in 363 days/);
    const [silent] = check({ listed });
    expect(silent?.message).toMatch(/no notification yet; .* in 50 days .* in 355 days/);
  });

  it('may be paused, if that is wanted, and then nothing pauses it', () => {
    const [finding, ...rest] = check({
      listed: [listedSubscription({ status: 'paused' })],
      registrations: [registration({ status: 'paused' })],
    });
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({ state: 'pass' });
    expect(finding?.message).toMatch(/paused, as wanted.*another the catalogue deletes it/);
  });

  it('is skipped when nothing is registered, and those of others are not looked at', () => {
    const endpoint = 'https://elsewhere.example/notifications/s2';
    const listed = [listedSubscription({ id: 'of-others', endpoint })];
    expect(check({ listed, registrations: [] })).toMatchObject([
      { check: 'subscriptions', state: 'skipped', advice: expect.stringContaining('register') },
    ]);
  });
});

describe('a subscription that delivers nothing', () => {
  const longAgo = nowUs - 61 * dayUs;

  it('fails when the service paused it, with the way to resume it', () => {
    const [finding, ...rest] = check({
      listed: [
        listedSubscription({
          status: 'paused',
          submittedAtUs: longAgo,
          lastNotificationAtUs: longAgo,
        }),
      ],
      registrations: [registration({ activityAtUs: longAgo, notifiedAtUs: longAgo })],
    });
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({ check: 'subscription s2', state: 'fail' });
    expect(finding?.message).toContain('60 days without activity');
    expect(finding?.advice).toContain('earshot maintain');
  });

  it('fails when the service deleted it, and when somebody else did', () => {
    const yearAgo = nowUs - 366 * dayUs;
    const old = registration({ activityAtUs: yearAgo, notifiedAtUs: yearAgo });
    expect(check({ listed: [], registrations: [old] })).toMatchObject([
      { state: 'fail', advice: expect.stringContaining('earshot maintain') },
    ]);
    expect(check({ listed: [] })).toMatchObject([
      { state: 'fail', advice: expect.stringContaining('earshot register') },
    ]);
  });

  it('fails when its endpoint is not under the public URL', () => {
    const endpoint = 'https://old.example.org/notifications/s2';
    const findings = check({ listed: [listedSubscription({ endpoint })] });
    expect(findings).toMatchObject([{ state: 'pass' }, { state: 'fail' }]);
    expect(findings[1]?.message).toContain('endpoint');
  });

  it('fails when the catalogue was given other credentials', () => {
    const digestOf = (password: string) => digestCredentials({ ...pair, password }, 'salt');
    const withDigest = (password: string) => [
      registration({ credentialsDigest: digestOf(password) }),
    ];
    expect(states({ registrations: withDigest('secret') })).toEqual(['pass']);
    expect(states({ registrations: withDigest('other'), pairs: [] })).toEqual(['pass']);
    const findings = check({ registrations: withDigest('other') });
    expect(findings).toMatchObject([{ state: 'pass' }, { state: 'fail' }]);
    expect(findings[1]?.message).toContain('other endpoint credentials');
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});

describe('a subscription that needs a look', () => {
  it('is one that the service will soon pause', () => {
    const lastSeen = (days: number) => {
      const atUs = nowUs - days * dayUs;
      const listed = [listedSubscription({ submittedAtUs: atUs, lastNotificationAtUs: atUs })];
      const registered = registration({ activityAtUs: atUs, notifiedAtUs: atUs });
      return check({ listed, registrations: [registered] });
    };
    expect(lastSeen(45.5).map(({ state }) => state)).toEqual(['pass']);
    expect(lastSeen(46.5)).toMatchObject([
      { state: 'pass', message: expect.stringContaining('pauses it in 14 days') },
      { state: 'warn', message: expect.stringContaining('pause it in 14 days') },
    ]);
  });

  it('is one that the service will soon delete', () => {
    const atUs = nowUs - 340 * dayUs;
    const [, finding] = check({
      listed: [
        listedSubscription({ status: 'paused', submittedAtUs: atUs, lastNotificationAtUs: atUs }),
      ],
      registrations: [registration({ status: 'paused', notifiedAtUs: atUs })],
    });
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toContain('delete it in 25 days');
  });

  it.each([
    ['paused by hand', { status: 'paused' }, {}, ['warn']],
    ['paused by our command', { status: 'paused' }, { heldBy: 'command' }, ['warn']],
    ['resumed by hand', {}, { status: 'paused' }, ['warn']],
    ['in a state that is new', { status: 'suspended' }, {}, ['warn']],
    ['with another filter', { filter: 'x' }, {}, ['pass', 'warn']],
    ['with other events', { events: ['deleted'] }, {}, ['pass', 'warn']],
    ['half changed', {}, { unfinished: true }, ['pass', 'warn']],
  ] as const)('is warned of: %s', (_what, listed, registered, expected) => {
    const findings = check({
      listed: [
        listedSubscription({
          ...listed,
          events: [...('events' in listed ? listed.events : ['created'])],
        }),
      ],
      registrations: [registration(registered)],
    });
    expect(findings.map(({ state }) => state)).toEqual(expected);
    for (const { state, advice } of findings) expect(Boolean(advice)).toBe(state !== 'pass');
  });

  it('is one that the file names and nobody registered', () => {
    const wanted = { name: 's1', events: ['created'], filter: '', status: 'running' } as const;
    const same = { ...registration(), name: 's2' };
    const findings = check({ inFile: [wanted, same] });
    expect(findings.map(({ check, state }) => [check, state])).toEqual([
      ['subscription s1', 'warn'],
      ['subscription s2', 'pass'],
    ]);
    expect(findings[0]?.advice).toContain('earshot register');
  });

  it('is one at our endpoint that this installation does not know', () => {
    const [finding] = check({ registrations: [] });
    expect(finding).toMatchObject({ check: 'subscription s2', state: 'fail' });
    expect(finding?.advice).toContain('adopts');
  });
});
