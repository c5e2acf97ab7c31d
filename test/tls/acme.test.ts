/** Renewal times, retry delays and failure texts of certificates from an authority. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failureOf } from '../../src/tls/acme.ts';
import { freshUs, renewalDue, retryDelayUs } from '../../src/tls/acme-state.ts';

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;
const issue = { directoryUrl: 'https://ca.example/dir', host: 'earshot.example.org' };

const validity = fc
  .record({
    begin: fc.integer({ min: 0, max: 4e12 }),
    lifetime: fc.integer({ min: 1e6, max: 1e11 }),
  })
  .map(({ begin, lifetime }) => ({
    notBefore: new Date(begin),
    notAfter: new Date(begin + lifetime),
  }));

describe('the time of a renewal', () => {
  it('is within the lifetime, with a third of it left or half of a short one, or earlier on advice', () => {
    fc.assert(
      fc.property(
        validity,
        fc.option(fc.integer({ min: 0, max: 5e15 })),
        (certificate, advised) => {
          const [beginUs, endUs] = [certificate.notBefore, certificate.notAfter].map(
            (d) => +d * 1000,
          );
          const { atUs, because } = renewalDue(certificate, advised);
          const lifetimeUs = (endUs ?? 0) - (beginUs ?? 0);
          const left = ((endUs ?? 0) - renewalDue(certificate, null).atUs) / lifetimeUs;
          expect(left).toBeCloseTo(lifetimeUs <= 10 * dayUs ? 1 / 2 : 1 / 3, 3);
          expect(atUs).toBe(
            Math.min(advised ?? Number.POSITIVE_INFINITY, renewalDue(certificate, null).atUs),
          );
          expect(because).toBe(
            atUs === advised && atUs !== renewalDue(certificate, null).atUs
              ? 'authority'
              : 'lifetime',
          );
          // A new certificate is not replaced at once, whatever the clock.
          expect(freshUs(certificate)).toBeGreaterThan(0);
          expect(freshUs(certificate)).toBeLessThanOrEqual(lifetimeUs / 4 + 1);
        },
      ),
    );
  });
});

describe('the delay after a failure', () => {
  const delay = (failures: number, retryAfterMs: number | null = null, needsPerson = false) =>
    retryDelayUs(failures, retryAfterMs, { needsPerson, random: () => 0 });

  it('doubles from a minute to six hours, and follows a longer Retry-After up to a week', () => {
    const minutes = Array.from({ length: 11 }, (_, i) => delay(i + 1) / 60e6);
    expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
    expect(delay(5000)).toBe(6 * hourUs);
    expect(delay(1, 3_600_000)).toBe(hourUs);
    expect(delay(10, 3_600_000)).toBe(6 * hourUs);
    expect(delay(1, 1e12)).toBe(7 * dayUs);
    expect(delay(1, null, true)).toBe(6 * hourUs);
    expect(retryDelayUs(1, null, { needsPerson: false, random: () => 1 })).toBe(75e6);
  });
});

const link = `https://portal.letsencrypt.org/sfe/v1/unpause?jwt=HEADER.${'a1B2'.repeat(150)}.${'x_-'.repeat(40)}`;
const pausedText = `Your account is temporarily prevented from requesting certificates for earshot.example.org and possibly others. Please visit: ${link}`;

describe('a failure', () => {
  it('of a paused account has the complete link, and says that only a person can resume it', () => {
    for (const text of [pausedText, `${pausedText}.`, `${pausedText} for more.`]) {
      const failed = failureOf(issue, 'rateLimited', text);
      expect(failed.advice).toBe(`Only a person can resume the account: open ${link}`);
      expect(failed.facts).toMatchObject({ link });
      expect(failed.text).not.toMatch(/automatic|No action/);
    }
  });

  it.each([
    [
      'rateLimited',
      'too many certificates already issued, retry after 2026-11-30: see https://letsencrypt.org/docs/rate-limits/',
      /automatic/,
    ],
    ['rateLimited', 'slow down', /automatic/],
    ['unreachable', 'the connection was refused', /automatic.*EARSHOT_ACME_CA/],
    ['dns', 'no such name', /A or AAAA record/],
    ['connection', 'refused', /port 80/],
    ['incorrectResponse', 'wrong', /A and AAAA records/],
    ['caa', 'forbidden', /CAA record/],
    ['externalAccountRequired', 'x', /EARSHOT_ACME_EAB_KEY_ID/],
    ['noChallenge', 'x', /EARSHOT_ACME_CHALLENGE/],
    ['constructor', 'x', /EARSHOT_PUBLIC_URL/],
  ])('of type %s (%s) has its advice', (type, detail, words) => {
    const failed = failureOf(issue, type, detail);
    expect(failed.advice).toMatch(words);
    expect(failed.message).toContain(`${type}: ${detail}`);
    expect(failed.facts).toMatchObject({ link: null });
  });

  it('contains no control characters and no long text of the authority', () => {
    const { text } = failureOf(issue, 'other\u001b[2J', `\u001b[31m${'x'.repeat(10_000)}`);
    expect(text).not.toContain('\u001b');
    expect(text.length).toBeLessThan(1_000);
  });
});
