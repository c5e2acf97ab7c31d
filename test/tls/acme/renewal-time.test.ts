/** When a certificate is renewed: by its lifetime, by advice, and never too near its end. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CertificateLife, renewalTime } from '../../../src/tls/acme/renewal-time.ts';

const dayMs = 86_400_000;
const beginMs = Date.UTC(2026, 4, 1);

const certificateOf = (lifetimeMs: number, cert = 'a certificate'): CertificateLife => ({
  cert,
  notBefore: new Date(beginMs),
  notAfter: new Date(beginMs + lifetimeMs),
});

/** The share of the lifetime that has passed at a time. */
const shareAt = (atUs: number, lifetimeMs: number) => (atUs / 1000 - beginMs) / lifetimeMs;

const lifetimes = fc.integer({ min: 1, max: 400 * dayMs });
const texts = fc.string({ minLength: 1 });
/** Far around every lifetime above: begun, over, long gone, reversed. */
const timesUs = fc.integer({ min: -500 * dayMs, max: 900 * dayMs }).map((ms) => ms * 1000);
const windows = fc
  .tuple(timesUs, timesUs)
  .map(([start, end]) => ({ startUs: beginMs * 1000 + start, endUs: beginMs * 1000 + end }));

describe('the time of renewal', () => {
  it('is always within the lifetime, whatever the authority advises', () => {
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
  ])('of one that lives %s', (_title, days, share) => {
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

  it('differs between certificates, with advice and without', () => {
    const window = { startUs: beginMs * 1000, endUs: (beginMs + 9 * dayMs) * 1000 };
    for (const advice of [null, window]) {
      const times = Array.from(
        { length: 50 },
        (_, i) => renewalTime(certificateOf(90 * dayMs, `${i}`), advice).atUs,
      );
      expect(new Set(times).size).toBe(50);
    }
  });

  it('is the same each time one is asked about the same certificate', () => {
    fc.assert(
      fc.property(lifetimes, texts, fc.option(windows), (lifetimeMs, cert, advice) => {
        const asked = () => renewalTime(certificateOf(lifetimeMs, cert), advice);
        expect(asked()).toEqual(asked());
      }),
    );
  });
});

describe('advice', () => {
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

  it('is spread over all of its window', () => {
    const shares = Array.from({ length: 400 }, (_, i) =>
      shareAt(advised(0, 9, `${i}`).atUs, 9 * dayMs),
    );
    const quarters = [0, 1, 2, 3].map(
      (quarter) => shares.filter((share) => Math.floor(share * 4) === quarter).length,
    );
    for (const count of quarters) expect(count).toBeGreaterThan(50);
  });

  it('to renew at one moment names that moment', () => {
    expect(advised(30, 30)).toEqual({ atUs: at(30), because: 'authority' });
  });

  it('from before the certificate began means its beginning: at once', () => {
    expect(advised(-40, -30)).toEqual({ atUs: at(0), because: 'authority' });
  });

  it.each([
    ['in the last tenth of the lifetime', 82, 89],
    ['after expiry', 100, 120],
  ])('%s loses to expiry', (_title, start, end) => {
    expect(advised(start, end)).toEqual({ atUs: at(81), because: 'expiry' });
  });

  it('that reaches beyond expiry is followed as long as there is time', () => {
    const drawn = Array.from({ length: 100 }, (_, i) => advised(70, 110, `${i}`));
    expect(new Set(drawn.map(({ because }) => because))).toEqual(new Set(['authority', 'expiry']));
    for (const { atUs } of drawn) expect(atUs).toBeLessThanOrEqual(at(81));
  });

  it('with its end before its start is none', () => {
    expect(advised(30, 20)).toEqual(renewalTime(certificateOf(lifetimeMs), null));
  });
});
