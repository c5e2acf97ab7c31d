/** When an order is tried again, and how many there may be in a day. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterFailure,
  afterIssue,
  afterSuccess,
  type RenewalState,
  renewalStateSchema,
  stateFor,
  withState,
} from '../../../src/tls/acme/renewal-state.ts';
import {
  capEndsAtUs,
  freshUntilUs,
  isWaiting,
  nextTryTime,
} from '../../../src/tls/acme/retry-time.ts';

const minuteUs = 60_000_000;
const hourUs = 60 * minuteUs;
const dayUs = 24 * hourUs;
const startUs = Date.UTC(2026, 4, 1) * 1000;
const order = { directoryUrl: 'https://ca.example.org', host: 'a.example.org' };
const fresh = stateFor(order, null);

const lifeOf = (days: number) => ({
  notBefore: new Date(startUs / 1000),
  notAfter: new Date((startUs + days * dayUs) / 1000),
});

/** The pause after a number of failures, in minutes. */
function pause(failures: number, asked: { retryAfterMs?: number; random?: number } = {}): number {
  const { retryAfterMs = null, random = 0 } = asked;
  const failed = { nowUs: startUs, retryAfterMs, random: () => random };
  return (nextTryTime(failures, failed) - startUs) / minuteUs;
}

describe('the pause after a failure', () => {
  it('grows from a minute to six hours, and stays there', () => {
    const pauses = Array.from({ length: 12 }, (_, i) => pause(i + 1));
    expect(pauses).toEqual([1, 2, 5, 10, 30, 60, 120, 240, 360, 360, 360, 360]);
  });

  it('is longer by a quarter at most, by chance', () => {
    expect(pause(1, { random: 1 })).toBe(1.25);
    expect(pause(100, { random: 0.5 })).toBe(405);
  });

  it('is what the authority asks for where that is longer', () => {
    expect(pause(1, { retryAfterMs: 3_600_000 })).toBe(60);
    expect(pause(9, { retryAfterMs: 1_000 })).toBe(360);
  });

  it('is bounded for every number of failures, and a whole number of microseconds', () => {
    const failures = fc.integer({ min: 1, max: 1e9 });
    fc.assert(
      fc.property(failures, fc.double({ min: 0, max: 1, noNaN: true }), (count, random) => {
        const failed = { nowUs: startUs, retryAfterMs: null, random: () => random };
        const waitUs = nextTryTime(count, failed) - startUs;
        expect(Number.isSafeInteger(waitUs)).toBe(true);
        expect(waitUs).toBeGreaterThanOrEqual(minuteUs);
        expect(waitUs).toBeLessThanOrEqual(7.5 * hourUs);
      }),
    );
  });
});

describe('waiting', () => {
  const failed = afterFailure(fresh, {
    nowUs: startUs,
    words: { message: 'It failed.', advice: undefined },
    isProof: false,
    nextTryAtUs: startUs + hourUs,
  });

  it.each([
    ['just after the failure', 0, true],
    ['a moment before the next try', hourUs - 1, true],
    ['at the time of the next try', hourUs, false],
    ['long after', 400 * dayUs, false],
    ['when the clock was set back before the failure', -1, false],
    ['when the clock was set back by a year', -365 * dayUs, false],
  ])('%s', (_title, afterUs, waits) => {
    expect(isWaiting(failed, startUs + afterUs)).toBe(waits);
  });

  it('is for failures alone', () => {
    expect(isWaiting(fresh, startUs)).toBe(false);
    expect(isWaiting(afterSuccess(failed, startUs + 1), startUs + 2)).toBe(false);
  });

  it('is over wherever the clock jumps to, but within the pause itself', () => {
    fc.assert(
      fc.property(fc.integer({ min: -9 * dayUs, max: 9 * dayUs }), (jumpUs) => {
        expect(isWaiting(failed, startUs + jumpUs)).toBe(jumpUs >= 0 && jumpUs < hourUs);
      }),
    );
  });
});

describe('a certificate that was just issued', () => {
  const issued = afterSuccess(fresh, startUs);

  it.each([
    ['90 days', 90, 48 * hourUs],
    ['6 days', 6, 36 * hourUs],
    ['a day', 1, 6 * hourUs],
    ['6 hours', 0.25, 1.5 * hourUs],
  ])('counts as fresh for a while, of one that lives %s', (_title, days, freshUs) => {
    expect(freshUntilUs(issued, startUs, lifeOf(days))).toBe(startUs + freshUs);
    expect(freshUntilUs(issued, startUs + freshUs - 1, lifeOf(days))).toBe(startUs + freshUs);
    expect(freshUntilUs(issued, startUs + freshUs, lifeOf(days))).toBeNull();
  });

  it('is not fresh when the clock was set back, nor when nothing is known of it', () => {
    expect(freshUntilUs(issued, startUs - 1, lifeOf(90))).toBeNull();
    expect(freshUntilUs(fresh, startUs, lifeOf(90))).toBeNull();
  });
});

describe('the limit of a day', () => {
  const issued = (...hours: number[]): RenewalState => ({
    ...fresh,
    issuedAtUs: hours.map((hour) => startUs + hour * hourUs),
  });
  const now = startUs + 23 * hourUs;

  it('is five certificates, and ends a day after the first of them', () => {
    expect(capEndsAtUs(issued(1, 2, 3, 4), now, lifeOf(90))).toBeNull();
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5), now, lifeOf(90))).toBe(startUs + 25 * hourUs);
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5), now + 2 * hourUs, lifeOf(90))).toBeNull();
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5), now, null)).toBe(startUs + 25 * hourUs);
  });

  it('counts the last five where there are more, as after a change of the limit', () => {
    expect(capEndsAtUs(issued(1, 2, 3, 4, 5, 6), now, lifeOf(90))).toBe(startUs + 26 * hourUs);
  });

  it('leaves room for certificates that live for hours', () => {
    const sixHours = lifeOf(0.25);
    const hourly = Array.from({ length: 15 }, (_, i) => i + 1);
    expect(capEndsAtUs(issued(...hourly), now, sixHours)).toBeNull();
    expect(capEndsAtUs(issued(...hourly, 16), now, sixHours)).toBe(startUs + 25 * hourUs);
  });

  it.each([0, -1, 1 / 86_400])('holds for a certificate that lives %d days', (days) => {
    const many = Array.from({ length: 200 }, (_, i) => 22 + i / 200);
    expect(capEndsAtUs(issued(...many), now, lifeOf(days))).toBeGreaterThan(now);
  });

  it('forgets what a clock that was wrong has put into the future', () => {
    expect(capEndsAtUs(issued(50, 51, 52, 53, 54), now, lifeOf(90))).toBeNull();
  });

  it('never lasts longer than a day', () => {
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
  it('is that of one authority and one name', () => {
    const known = afterSuccess(fresh, startUs);
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
      words: { message: 'It failed.', advice: undefined },
      isProof: false,
      nextTryAtUs: nowUs + hourUs,
    });

  it('counts failures until a success, and remembers the last of them', () => {
    const twice = failing(failing(fresh, startUs), startUs + hourUs);
    expect(twice).toMatchObject({
      failures: 2,
      lastAttemptAtUs: startUs + hourUs,
      lastSuccessAtUs: null,
      nextTryAtUs: startUs + 2 * hourUs,
    });
    const done = afterSuccess(twice, startUs + dayUs);
    expect(done).toMatchObject({
      failures: 0,
      lastAttemptAtUs: startUs + dayUs,
      lastSuccessAtUs: startUs + dayUs,
      nextTryAtUs: null,
      lastFailure: {
        atUs: startUs + hourUs,
        message: 'It failed.',
        isProof: false,
      },
    });
  });

  it('forgets advice on the certificate that was replaced', () => {
    const window = { startUs, endUs: startUs };
    const renewalInfo = { certificateId: 'a.b', window, askAgainAtUs: startUs };
    expect(failing({ ...fresh, renewalInfo }, startUs).renewalInfo).toEqual(renewalInfo);
    expect(afterSuccess({ ...fresh, renewalInfo }, startUs).renewalInfo).toBeNull();
  });

  it('keeps what was issued in a week, and no more', () => {
    let state = fresh;
    for (let day = 0; day < 30; day += 1) state = afterIssue(state, startUs + day * dayUs);
    expect(state.issuedAtUs).toEqual(
      [23, 24, 25, 26, 27, 28, 29].map((day) => startUs + day * dayUs),
    );
  });

  it('can be read again, however it came about', () => {
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
