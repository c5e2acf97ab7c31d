/** Renewal times, retry delays and failure texts of certificates from an authority. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { certificateIdOf, failureOf } from '../../../src/features/certificate/acme.ts';
import { renewalDueUs, retryDelayUs } from '../../../src/features/certificate/renewal.ts';

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;
const issue = { directoryUrl: 'https://ca.example/dir', host: 'earshot.example.org' };

it('a certificate is renewed with a third of its lifetime left, half of a short one, or earlier on advice', () => {
  const times = fc.record({
    notBeforeUs: fc.integer({ min: 0, max: 4e15 }),
    lifetimeUs: fc.integer({ min: 1e9, max: 1e14 }),
    advisedUs: fc.integer({ min: 0, max: 5e15 }),
  });
  fc.assert(
    fc.property(times, ({ notBeforeUs, lifetimeUs, advisedUs }) => {
      const certificate = { notBeforeUs, notAfterUs: notBeforeUs + lifetimeUs };
      const dueUs = renewalDueUs(certificate, null);
      const share = (certificate.notAfterUs - dueUs) / lifetimeUs;
      expect(share).toBeCloseTo(lifetimeUs <= 10 * dayUs ? 1 / 2 : 1 / 3, 3);
      expect(renewalDueUs(certificate, advisedUs)).toBe(Math.min(advisedUs, dueUs));
    }),
  );
});

it('the delay after a failure doubles from a minute to six hours, and follows a longer Retry-After up to a week', () => {
  const delay = (failures: number, requestedUs = 0, random = 0) =>
    retryDelayUs(failures, requestedUs, () => random);
  const minutes = Array.from({ length: 11 }, (_, i) => delay(i + 1) / 60e6);
  expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
  expect(delay(5000)).toBe(6 * hourUs);
  expect(delay(1, hourUs)).toBe(hourUs);
  expect(delay(10, hourUs)).toBe(6 * hourUs);
  expect(delay(1, 1e15)).toBe(7 * dayUs);
  expect(delay(1, 0, 1)).toBe(75e6);
});

it('the id of a certificate is that of the example in RFC 9773', () => {
  const pem = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----
`;
  expect(certificateIdOf(pem)).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
});

describe('a failure', () => {
  const link = `https://portal.letsencrypt.org/sfe/v1/unpause?jwt=HEADER.${'a1B2'.repeat(150)}.${'x_-'.repeat(40)}`;
  const detail = `Your account is temporarily prevented from requesting certificates for earshot.example.org and possibly others. Please visit: ${link}`;

  it('of a paused account has the complete link', () => {
    expect(failureOf(issue, 'rateLimited', detail).text).toContain(link);
  });

  it.each([
    ['rateLimited', 'too many: see https://letsencrypt.org/docs/rate-limits/', 'acme-failed'],
    ['dns', 'no such name', 'name-not-found'],
    ['incorrectResponse', 'wrong', 'acme-connection'],
    ['caa', 'forbidden', 'acme-caa'],
    ['externalAccountRequired', 'x', 'acme-account'],
    ['constructor', 'x', 'acme-failed'],
  ])('of type %s (%s) is the fault %s', (type, detail, fault) => {
    const failed = failureOf(issue, type, detail);
    expect(failed.advice).toMatch(/\w/);
    expect(failed.message).toContain(`${type}: ${detail}`);
    expect(failed.facts).toEqual({ fault, retryAfterMs: null });
  });

  it('contains no control characters and no long text of the authority', () => {
    const { text } = failureOf(issue, 'other\u001b[2J', `\u001b[31m${'x'.repeat(10_000)}`);
    expect(text).not.toContain('\u001b');
    expect(text.length).toBeLessThan(5_000);
  });
});
