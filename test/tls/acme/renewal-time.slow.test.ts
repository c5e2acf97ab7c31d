/** Time of a renewal: by lifetime, by the authority's renewal information (RFC 9773), and never too close to expiry. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { createSelfSigned } from '../../../src/sandbox/certificate-authority.ts';
import {
  type CertificateLife,
  capEndsAtUs,
  certificateIdOf,
  freshUntilUs,
  isWaiting,
  renewalTime,
  retryTime,
} from '../../../src/tls/acme/renewal-time.ts';
import {
  afterFailure,
  afterIssue,
  afterSuccess,
  type RenewalState,
  renewalStateSchema,
  stateFor,
  withState,
} from '../../../src/tls/acme/state.ts';
import { failure, openOrders, orderAtStub, refusal, startUs } from '../../helpers/order-at-stub.ts';
import type { Fault } from '../../helpers/stub-authority.ts';

const dayMs = 86_400_000;

const beginMs = Date.UTC(2026, 4, 1);

const certificateOf = (lifetimeMs: number, cert = 'a certificate'): CertificateLife => ({
  cert,
  notBefore: new Date(beginMs),
  notAfter: new Date(beginMs + lifetimeMs),
});

/** Returns the share of the lifetime that has passed at a time. */
const shareAt = (atUs: number, lifetimeMs: number) => (atUs / 1000 - beginMs) / lifetimeMs;

const lifetimes = fc.integer({ min: 1, max: 400 * dayMs });

const texts = fc.string({ minLength: 1 });

/** Windows before, during and after every lifetime above, some of them reversed. */
const timesUs = fc.integer({ min: -500 * dayMs, max: 900 * dayMs }).map((ms) => ms * 1000);

const windows = fc
  .tuple(timesUs, timesUs)
  .map(([start, end]) => ({ startUs: beginMs * 1000 + start, endUs: beginMs * 1000 + end }));

describe('the time of renewal', () => {
  it('is always within the lifetime, for any renewal information', () => {
    const window = fc.option(windows);
    fc.assert(
      fc.property(lifetimes, texts, window, (lifetimeMs, cert, advice) => {
        const { atUs } = renewalTime(certificateOf(lifetimeMs, cert), advice);
        expect(Number.isSafeInteger(atUs)).toBe(true);
        expect(atUs).toBeGreaterThanOrEqual(beginMs * 1000);
        expect(atUs).toBeLessThanOrEqual((beginMs + lifetimeMs) * 1000);
      }),
    );
  });

  it.each([
    ['90 days: a third is left', 90, 2 / 3],
    ['47 days: a third is left', 47, 2 / 3],
    ['just over 10 days: a third is left', 10.01, 2 / 3],
    ['10 days: half is left', 10, 1 / 2],
    ['6 days: half is left', 6, 1 / 2],
    ['6 hours: half is left', 0.25, 1 / 2],
  ])('of a certificate with a lifetime of %s', (_title, days, share) => {
    fc.assert(
      fc.property(texts, (cert) => {
        const { atUs, because } = renewalTime(certificateOf(days * dayMs, cert), null);
        expect(because).toBe('share');
        const passed = shareAt(atUs, days * dayMs);
        expect(passed).toBeLessThanOrEqual(share + 1e-9);
        expect(passed).toBeGreaterThan(share - 1 / 50 - 1e-9);
      }),
    );
  });

  it('differs between certificates, with and without renewal information', () => {
    const window = { startUs: beginMs * 1000, endUs: (beginMs + 9 * dayMs) * 1000 };
    for (const advice of [null, window]) {
      const times = Array.from(
        { length: 50 },
        (_, i) => renewalTime(certificateOf(90 * dayMs, `${i}`), advice).atUs,
      );
      expect(new Set(times).size).toBe(50);
    }
  });

  it('is always the same for the same certificate', () => {
    fc.assert(
      fc.property(lifetimes, texts, fc.option(windows), (lifetimeMs, cert, advice) => {
        const asked = () => renewalTime(certificateOf(lifetimeMs, cert), advice);
        expect(asked()).toEqual(asked());
      }),
    );
  });
});

describe('renewal information', () => {
  const lifetimeMs = 90 * dayMs;
  const at = (days: number) => (beginMs + days * dayMs) * 1000;
  const advised = (start: number, end: number, cert?: string) =>
    renewalTime(certificateOf(lifetimeMs, cert), { startUs: at(start), endUs: at(end) });

  it('is followed within its window', () => {
    const days = fc.double({ min: 0, max: 81, noNaN: true });
    fc.assert(
      fc.property(texts, days, days, (cert, one, other) => {
        const [start, end] = [Math.min(one, other), Math.max(one, other)];
        const { atUs, because } = advised(start, end, cert);
        expect(because).toBe('authority');
        expect(atUs).toBeGreaterThanOrEqual(Math.floor(at(start)));
        expect(atUs).toBeLessThanOrEqual(Math.ceil(at(end)));
      }),
    );
  });

  it('results in times spread over its whole window', () => {
    const shares = Array.from({ length: 400 }, (_, i) =>
      shareAt(advised(0, 9, `${i}`).atUs, 9 * dayMs),
    );
    const quarters = [0, 1, 2, 3].map(
      (quarter) => shares.filter((share) => Math.floor(share * 4) === quarter).length,
    );
    for (const count of quarters) expect(count).toBeGreaterThan(50);
  });

  it('with an empty window results in that time', () => {
    expect(advised(30, 30)).toEqual({ atUs: at(30), because: 'authority' });
  });

  it('from before the certificate results in an immediate renewal', () => {
    expect(advised(-40, -30)).toEqual({ atUs: at(0), because: 'authority' });
  });

  it.each([
    ['in the last tenth of the lifetime', 82, 89],
    ['after expiry', 100, 120],
  ])('%s is overridden by the expiry', (_title, start, end) => {
    expect(advised(start, end)).toEqual({ atUs: at(81), because: 'expiry' });
  });

  it('with a window beyond expiry is followed while there is time', () => {
    const drawn = Array.from({ length: 100 }, (_, i) => advised(70, 110, `${i}`));
    expect(new Set(drawn.map(({ because }) => because))).toEqual(new Set(['authority', 'expiry']));
    for (const { atUs } of drawn) expect(atUs).toBeLessThanOrEqual(at(81));
  });

  it('with its end before its start is ignored', () => {
    expect(advised(30, 20)).toEqual(renewalTime(certificateOf(lifetimeMs), null));
  });
});

const minuteUs = 60_000_000;

const hourUs = 60 * minuteUs;

const dayUs = 24 * hourUs;

const beginUs = Date.UTC(2026, 4, 1) * 1000;

const order = { directoryUrl: 'https://ca.example.org', host: 'a.example.org' };

const fresh = stateFor(order, null);

const lifeOf = (days: number) => ({
  notBefore: new Date(beginUs / 1000),
  notAfter: new Date((beginUs + days * dayUs) / 1000),
});

/** Returns the delay after a number of failures, in minutes. */
function pause(failures: number, asked: { retryAfterMs?: number; random?: number } = {}): number {
  const { retryAfterMs = null, random = 0 } = asked;
  const failed = { nowUs: beginUs, retryAfterMs, random: () => random };
  return (retryTime(failures, failed) - beginUs) / minuteUs;
}

describe('the delay after a failure', () => {
  it('grows from one minute to six hours', () => {
    const pauses = Array.from({ length: 12 }, (_, i) => pause(i + 1));
    expect(pauses).toEqual([1, 2, 5, 10, 30, 60, 120, 240, 360, 360, 360, 360]);
  });

  it('is randomly longer by at most a quarter', () => {
    expect(pause(1, { random: 1 })).toBe(1.25);
    expect(pause(100, { random: 0.5 })).toBe(405);
  });

  it('is that of the authority if it is longer', () => {
    expect(pause(1, { retryAfterMs: 3_600_000 })).toBe(60);
    expect(pause(9, { retryAfterMs: 1_000 })).toBe(360);
  });

  it('is limited for every number of failures, and a whole number of microseconds', () => {
    const failures = fc.integer({ min: 1, max: 1e9 });
    fc.assert(
      fc.property(failures, fc.double({ min: 0, max: 1, noNaN: true }), (count, random) => {
        const failed = { nowUs: beginUs, retryAfterMs: null, random: () => random };
        const waitUs = retryTime(count, failed) - beginUs;
        expect(Number.isSafeInteger(waitUs)).toBe(true);
        expect(waitUs).toBeGreaterThanOrEqual(minuteUs);
        expect(waitUs).toBeLessThanOrEqual(7.5 * hourUs);
      }),
    );
  });
});

describe('the wait for the next attempt', () => {
  const failed = afterFailure(fresh, {
    nowUs: beginUs,
    error: { message: 'It failed.', advice: undefined },
    isProof: false,
    nextTryAtUs: beginUs + hourUs,
  });

  it.each([
    ['just after the failure', 0, true],
    ['just before the next attempt', hourUs - 1, true],
    ['at the time of the next attempt', hourUs, false],
    ['long after', 400 * dayUs, false],
    ['when the clock was set back before the failure', -1, false],
    ['when the clock was set back by a year', -365 * dayUs, false],
  ])('%s', (_title, afterUs, waits) => {
    expect(isWaiting(failed, beginUs + afterUs)).toBe(waits);
  });

  it('applies only to failures', () => {
    expect(isWaiting(fresh, beginUs)).toBe(false);
    expect(isWaiting(afterSuccess(failed, beginUs + 1), beginUs + 2)).toBe(false);
  });

  it('ends after a jump of the clock to any time outside the delay', () => {
    fc.assert(
      fc.property(fc.integer({ min: -9 * dayUs, max: 9 * dayUs }), (jumpUs) => {
        expect(isWaiting(failed, beginUs + jumpUs)).toBe(jumpUs >= 0 && jumpUs < hourUs);
      }),
    );
  });
});

describe('a certificate that was just issued', () => {
  const issued = afterSuccess(fresh, beginUs);

  it.each([
    ['90 days', 90, 48 * hourUs],
    ['6 days', 6, 36 * hourUs],
    ['a day', 1, 6 * hourUs],
    ['6 hours', 0.25, 1.5 * hourUs],
  ])('counts as new for a while, with a lifetime of %s', (_title, days, freshUs) => {
    expect(freshUntilUs(issued, beginUs, lifeOf(days))).toBe(beginUs + freshUs);
    expect(freshUntilUs(issued, beginUs + freshUs - 1, lifeOf(days))).toBe(beginUs + freshUs);
    expect(freshUntilUs(issued, beginUs + freshUs, lifeOf(days))).toBeNull();
  });

  it('is not new when the clock was set back or its date is unknown', () => {
    expect(freshUntilUs(issued, beginUs - 1, lifeOf(90))).toBeNull();
    expect(freshUntilUs(fresh, beginUs, lifeOf(90))).toBeNull();
  });
});

describe('the daily limit', () => {
  const issued = (...hours: number[]): RenewalState => ({
    ...fresh,
    issuedAtUs: hours.map((hour) => beginUs + hour * hourUs),
  });
  const now = beginUs + 23 * hourUs;

  it('is five certificates, until a day after the first of them', () => {
    expect(capEndsAtUs(issued(1, 2, 3, 4), now, lifeOf(90))).toBeNull();
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5), now, lifeOf(90))).toBe(beginUs + 25 * hourUs);
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5), now + 2 * hourUs, lifeOf(90))).toBeNull();
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5), now, null)).toBe(beginUs + 25 * hourUs);
  });

  it('counts the last five of more certificates, as after a change of the limit', () => {
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5, 6), now, lifeOf(90))).toBe(beginUs + 26 * hourUs);
  });

  it('permits renewals of certificates that are valid for hours', () => {
    const sixHours = lifeOf(0.25);
    const hourly = Array.from({ length: 15 }, (_, i) => i + 1);
    expect(capEndsAtUs(issued(...hourly), now, sixHours)).toBeNull();
    expect(capEndsAtUs(issued(...hourly, 16), now, sixHours)).toBe(beginUs + 25 * hourUs);
  });

  it.each([0, -1, 1 / 86_400])('holds for a certificate that lives %d days', (days) => {
    const many = Array.from({ length: 200 }, (_, i) => 22 + i / 200);
    expect(capEndsAtUs(issued(...many), now, lifeOf(days))).toBeGreaterThan(now);
  });

  it('ignores certificates with a date in the future, from a wrong clock', () => {
    expect(capEndsAtUs(issued(50, 51, 52, 53, 54), now, lifeOf(90))).toBeNull();
  });

  it('never applies for longer than a day', () => {
    const times = fc.array(fc.integer({ min: -100, max: 200 }), { maxLength: 40 });
    fc.assert(
      fc.property(times, fc.double({ min: 0.01, max: 400, noNaN: true }), (hours, days) => {
        const endsUs = capEndsAtUs(issued(...hours), now, lifeOf(days));
        if (endsUs === null) return;
        expect(endsUs).toBeGreaterThan(now);
        expect(endsUs).toBeLessThanOrEqual(now + dayUs);
      }),
    );
  });
});

describe('the state', () => {
  it('is separate for each authority and name', () => {
    const known = afterSuccess(fresh, beginUs);
    const saved = withState(known, null);
    expect(stateFor(order, saved)).toEqual(known);
    for (const other of [
      { ...order, host: 'b.example.org' },
      { ...order, directoryUrl: 'https://other.example.org' },
    ]) {
      expect(stateFor(other, saved)).toEqual({ ...fresh, ...other });
      const failed = { ...fresh, ...other, failures: 3 };
      const both = withState(failed, saved);
      expect(stateFor(other, both)).toEqual(failed);
      expect(stateFor(order, both)).toEqual(known);
      expect(stateFor(order, withState(fresh, both))).toEqual(fresh);
    }
  });

  const failing = (state: RenewalState, nowUs: number) =>
    afterFailure(state, {
      nowUs,
      error: { message: 'It failed.', advice: undefined },
      isProof: false,
      nextTryAtUs: nowUs + hourUs,
    });

  it('counts failures until a success, and keeps the last one', () => {
    const twice = failing(failing(fresh, beginUs), beginUs + hourUs);
    expect(twice).toMatchObject({
      failures: 2,
      lastAttemptAtUs: beginUs + hourUs,
      lastSuccessAtUs: null,
      nextTryAtUs: beginUs + 2 * hourUs,
    });
    const done = afterSuccess(twice, beginUs + dayUs);
    expect(done).toMatchObject({
      failures: 0,
      lastAttemptAtUs: beginUs + dayUs,
      lastSuccessAtUs: beginUs + dayUs,
      nextTryAtUs: null,
      lastFailure: { atUs: beginUs + hourUs, message: 'It failed.', isProof: false },
    });
  });

  it('drops renewal information of a replaced certificate', () => {
    const window = { startUs: beginUs, endUs: beginUs };
    const renewalInfo = { certificateId: 'a.b', window, askAgainAtUs: beginUs };
    expect(failing({ ...fresh, renewalInfo }, beginUs).renewalInfo).toEqual(renewalInfo);
    expect(afterSuccess({ ...fresh, renewalInfo }, beginUs).renewalInfo).toBeNull();
  });

  it('keeps only the certificates issued in the last week', () => {
    let state = fresh;
    for (let day = 0; day < 30; day += 1) state = afterIssue(state, beginUs + day * dayUs);
    expect(state.issuedAtUs).toEqual(
      [23, 24, 25, 26, 27, 28, 29].map((day) => beginUs + day * dayUs),
    );
  });

  it('can be saved and read after any sequence of events', () => {
    const steps = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: -1e15, max: 1e15 })));
    fc.assert(
      fc.property(steps, (taken) => {
        const state = taken.reduce(
          (before, [isSuccess, nowUs]) =>
            isSuccess ? afterSuccess(before, nowUs) : failing(before, nowUs),
          fresh,
        );
        expect(renewalStateSchema.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
      }),
    );
  });
});

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Key identifier of the example in RFC 9773, 4.1. */
const keyIdOfRfc = '69885b6b87464041e1b37b847ba0ae2cde01c8d4';

async function certificate(serialNumber: string, extensions: x509.Extension[]): Promise<string> {
  const { publicKey, privateKey } = await webcrypto.subtle.generateKey(algorithm, true, ['sign']);
  const made = await x509.X509CertificateGenerator.create({
    serialNumber,
    subject: 'CN=earshot.example.org',
    issuer: 'CN=an authority',
    publicKey,
    signingKey: privateKey,
    signingAlgorithm: algorithm,
    extensions,
  });
  return made.toString('pem');
}

const byKeyId = (keyId: string) => [new x509.AuthorityKeyIdentifierExtension(keyId)];

it.each([
  ['whose first bit is set: the example of RFC 9773', '87654321', 'AIdlQyE'],
  ['whose first bit is not set', '7f654321', Buffer.from('7f654321', 'hex').toString('base64url')],
  ['of one byte', '01', 'AQ'],
  ['of one byte with the first bit set', '80', 'AIA'],
  ['of twenty bytes', `7a${'00ff'.repeat(9)}01`, 'egD_AP8A_wD_AP8A_wD_AP8A_wE'],
])('the certificate id contains the serial number %s in DER', async (_title, serial, text) => {
  const pem = await certificate(serial, byKeyId(keyIdOfRfc));
  expect(certificateIdOf(pem)).toBe(`aYhba4dGQEHhs3uEe6CuLN4ByNQ.${text}`);
});

it('the certificate id contains the key identifier in base64url without padding', async () => {
  const pem = await certificate('01', byKeyId('fbff00'));
  expect(certificateIdOf(pem)).toBe('-_8A.AQ');
});

it('the certificate id of a chain is that of its first certificate', async () => {
  const [first, second] = await Promise.all([
    certificate('01', byKeyId('aa')),
    certificate('02', byKeyId('bb')),
  ]);
  expect(certificateIdOf(`${first}\n${second}`)).toBe('qg.AQ');
});

it.each([
  ['no key identifier of the issuer', []],
  [
    'a key identifier that names the issuer instead',
    [new x509.Extension('2.5.29.35', false, hex('3000'))],
  ],
  ['an unreadable key identifier', [new x509.Extension('2.5.29.35', false, hex('04ff'))]],
])('there is no certificate id with %s', async (_title, extensions) => {
  expect(certificateIdOf(await certificate('01', extensions))).toBeNull();
});

it('there is no certificate id for a self-signed certificate', async () => {
  const made = await createSelfSigned({ hosts: ['earshot.example.org'], now: Date.now });
  expect(certificateIdOf(made.certificatePem)).toBeNull();
});

function hex(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, 'hex'));
}

const iso = (atUs: number) => new Date(atUs / 1000).toISOString();
const waitFor = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 10_000 });

/** Orders a first certificate from an authority with configurable renewal information. */
async function withAdvice() {
  const advice = {
    of: (_certificateId: string): { start: unknown; end: unknown } => ({
      start: iso(startUs + 30 * dayUs),
      end: iso(startUs + 40 * dayUs),
    }),
  };
  const opened = await orderAtStub({ renewalInfo: (id) => advice.of(id) });
  await opened.check();
  const first = opened.served[0];
  if (first === undefined) throw new Error('There is no certificate.');
  const asked = () => opened.authority.requests.filter(({ step }) => step === 'renewalInfo');
  const { context } = opened;
  /** Resolves when the loop has saved the result of a request, with the time of the next one. */
  const noted = async (askAgainAtUs: number) => {
    await waitFor(async () => {
      expect((await context.states.read()).renewalInfo?.askAgainAtUs).toBe(askAgainAtUs);
    });
    return (await context.states.read()).renewalInfo;
  };
  const orders = () => opened.authority.requests.filter(({ step }) => step === 'newOrder');
  return { ...opened, first, advice, asked, noted, orders };
}

describe('renewal information', () => {
  it('is requested by the id of the certificate, and followed within its window', async () => {
    const { clock, first, advice, asked, noted, startLoop, orders, served } = await withAdvice();
    const [beginsUs, endUs] = [clock.us + 10 * dayUs, clock.us + 12 * dayUs];
    advice.of = () => ({ start: iso(beginsUs), end: iso(endUs) });
    startLoop(first);
    const info = await noted(clock.us + 6 * hourUs);
    expect(asked().map(({ path }) => path)).toEqual([
      `/renewalInfo/${certificateIdOf(first.cert)}`,
    ]);
    expect(info).toMatchObject({ window: { startUs: beginsUs, endUs } });

    clock.us = beginsUs - minuteUs;
    await noted(clock.us + 6 * hourUs);
    expect(orders()).toHaveLength(1);
    clock.us = endUs;
    await waitFor(() => expect(served).toHaveLength(2));
    expect(orders()).toHaveLength(2);
    expect(orders()[0]?.payload).not.toHaveProperty('replaces');
    expect(orders()[1]?.payload).toMatchObject({ replaces: certificateIdOf(first.cert) });
  });

  it.each([
    ['five hours', '18000', 5 * hourUs],
    ['nothing', undefined, 6 * hourUs],
    ['a second', '1', minuteUs],
    ['a week', '604800', dayUs],
    ['nonsense', 'later', 6 * hourUs],
  ])('is requested again after Retry-After: %s', async (_title, header, afterUs) => {
    const { authority, clock, first, asked, noted, startLoop, awaitChecks } = await withAdvice();
    authority.break('renewalInfo', (answer) => ({
      ...answer,
      headers: header === undefined ? {} : { 'retry-after': header },
    }));
    startLoop(first);
    const begunUs = clock.us;
    await noted(begunUs + afterUs);
    clock.us = begunUs + afterUs - 1;
    await awaitChecks(30);
    expect(asked()).toHaveLength(1);
    clock.us = begunUs + afterUs;
    await waitFor(() => expect(asked()).toHaveLength(2));
  });

  it('with a window in the past causes one immediate renewal', async () => {
    const { clock, first, advice, asked, startLoop, served, orders, awaitChecks } =
      await withAdvice();
    clock.us += 10 * dayUs;
    const past = { start: iso(clock.us - 2 * hourUs), end: iso(clock.us - hourUs) };
    const usual = { start: iso(clock.us + 60 * dayUs), end: iso(clock.us + 61 * dayUs) };
    advice.of = (id) => (id === certificateIdOf(first.cert) ? past : usual);
    startLoop(first);
    await waitFor(() => expect(served).toHaveLength(2));
    await waitFor(() => expect(asked()).toHaveLength(2));
    await awaitChecks(60);
    expect(orders()).toHaveLength(2);
    expect(asked()).toHaveLength(2);
  });

  it('with a window in the past for every certificate causes no flood of orders', async () => {
    const { clock, first, advice, startLoop, orders, awaitChecks } = await withAdvice();
    advice.of = () => ({ start: iso(clock.us - 2 * dayUs), end: iso(clock.us - dayUs) });
    startLoop(first);
    const begunUs = clock.us;
    for (let hours = 6; hours <= 8 * 24; hours += 6) {
      clock.us = begunUs + hours * hourUs;
      await awaitChecks(4);
    }
    // One earlier order, then one every two days.
    expect(orders().length).toBeGreaterThan(3);
    expect(orders().length).toBeLessThanOrEqual(1 + 5);
  });

  it('of another certificate is ignored', async () => {
    const { clock, check, context, first } = await withAdvice();
    const window = { startUs: clock.us - dayUs, endUs: clock.us - dayUs };
    const write = async (certificateId: string | null) => {
      const state = await context.states.read();
      const renewalInfo = { certificateId: certificateId ?? '', window, askAgainAtUs: clock.us };
      await context.states.write({ ...state, renewalInfo });
    };
    clock.us += 10 * dayUs;
    await write('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
    expect(await check()).toMatchObject({ outcome: 'current', due: { because: 'share' } });
    // The same information for this certificate is followed.
    await write(certificateIdOf(first.cert));
    expect(await check()).toMatchObject({ outcome: 'renewed' });
    expect((await context.states.read()).renewalInfo).toBeNull();
  });

  it('with a window after expiry is overridden', async () => {
    const { clock, first, advice, noted, startLoop, served } = await withAdvice();
    const begunUs = clock.us;
    advice.of = () => ({ start: iso(begunUs + 200 * dayUs), end: iso(begunUs + 300 * dayUs) });
    startLoop(first);
    await noted(clock.us + 6 * hourUs);
    clock.us = begunUs + 81 * dayUs - minuteUs;
    await noted(clock.us + 6 * hourUs);
    expect(served).toHaveLength(1);
    clock.us = begunUs + 81 * dayUs;
    await waitFor(() => expect(served).toHaveLength(2));
  });

  it('is kept across a restart, without another request', async () => {
    const { authority, clock, first, noted, asked, startLoop, dataDir } = await withAdvice();
    const loop = startLoop(first);
    await noted(clock.us + 6 * hourUs);
    await loop.stop();
    const again = openOrders(authority, clock, { dataDir });
    const before = await again.check();
    expect(before).toMatchObject({ outcome: 'current', due: { because: 'authority' } });
    again.startLoop(first);
    await again.awaitChecks(30);
    expect(asked()).toHaveLength(1);
  });
});

describe('unavailable renewal information', () => {
  const window =
    (start: unknown, end: unknown): Fault =>
    (answer) => ({ ...answer, body: { suggestedWindow: { start, end } } });

  it.each<[string, Fault]>([
    ['authority down', failure(503)],
    ['too many requests', failure(429, { 'retry-after': '60' })],
    ['unknown certificate', refusal('malformed', { status: 404 })],
    ['refused nonce', refusal('badNonce')],
    ['broken connection', () => 'reset'],
    ['web page', (answer) => ({ ...answer, body: '<html>' })],
    ['empty object', (answer) => ({ ...answer, body: {} })],
    ['null', (answer) => ({ ...answer, body: null })],
    ['window of null', window(null, null)],
    ['window of numbers', window(0, 1)],
    ['window of text', window('soon', 'later')],
    ['window without end', window('2026-06-01T00:00:00Z', undefined)],
    ['window of thousands of years', window('2026-06-01T00:00:00Z', '9999-12-31T23:59:59Z')],
    ['invalid dates', window('2026-02-30T00:00:00Z', '2026-02-31T00:00:00Z')],
  ])('(%s) is replaced by the lifetime and requested again later', async (_title, fault) => {
    const { authority, clock, first, noted, asked, startLoop, awaitChecks, log, dataDir } =
      await withAdvice();
    authority.break('renewalInfo', fault);
    const loop = startLoop(first);
    expect(await noted(clock.us + 6 * hourUs)).toMatchObject({ window: null });
    await awaitChecks(20);
    expect(asked()).toHaveLength(1);
    expect(log.map(({ level }) => level)).toEqual(['debug']);
    await loop.stop();
    const { check } = openOrders(authority, clock, { dataDir });
    expect(await check()).toMatchObject({ outcome: 'current', due: { because: 'share' } });
    clock.us += 61 * dayUs;
    expect(await check()).toMatchObject({ outcome: 'renewed' });
  });

  it('leaves the last information in effect', async () => {
    const { authority, clock, first, noted, startLoop } = await withAdvice();
    startLoop(first);
    const before = await noted(clock.us + 6 * hourUs);
    expect(before?.window).not.toBeNull();
    authority.break('renewalInfo', failure(500));
    clock.us += 7 * hourUs;
    expect(await noted(clock.us + 6 * hourUs)).toMatchObject({ window: before?.window });
  });

  it('that is not supported is requested again after a day', async () => {
    const { clock, check, served, startLoop, authority, context } = await orderAtStub();
    await check();
    startLoop(served[0]);
    await waitFor(async () => {
      expect((await context.states.read()).renewalInfo).toMatchObject({
        window: null,
        askAgainAtUs: clock.us + dayUs,
      });
    });
    expect(authority.count('renewalInfo')).toBe(0);
  });
});

describe('the certificate that an order replaces', () => {
  it.each(['alreadyReplaced', 'conflict', 'malformed', 'unauthorized', 'serverUnknown'])(
    'is omitted from a second order when refused as %s',
    async (type) => {
      const { authority, clock, check, orders } = await withAdvice();
      clock.us += 70 * dayUs;
      authority.break('newOrder', refusal(type, { status: 409 }), 1);
      expect(await check()).toMatchObject({ outcome: 'renewed' });
      expect(orders().map(({ payload }) => 'replaces' in payload)).toEqual([false, true, false]);
    },
  );

  it('is kept in the order when the authority is down or limits requests', async () => {
    const { authority, clock, check, orders } = await withAdvice();
    clock.us += 70 * dayUs;
    authority.break('newOrder', refusal('rateLimited', { status: 429 }));
    await expect(check()).rejects.toMatchObject({ code: 'unavailable' });
    expect(orders()).toHaveLength(2);
  });

  it('is not named when the authority offers no renewal information', async () => {
    const { authority, clock, check } = await orderAtStub();
    await check();
    clock.us += 70 * dayUs;
    await check();
    const orders = authority.requests.filter(({ step }) => step === 'newOrder');
    expect(orders.map(({ payload }) => 'replaces' in payload)).toEqual([false, false]);
  });
});
