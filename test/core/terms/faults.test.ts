/** Faults from outside: platform codes and their meaning. */
import { describe, expect, it } from 'vitest';
import { allFaults, faultError, faultOf, nextStepOf } from '../../../src/core/terms/faults.ts';

describe('a platform code', () => {
  it.each([
    ['ENOTFOUND', 'name-not-found'],
    ['ECONNREFUSED', 'connection-refused'],
    // Several addresses: the one with the most information.
    ['ENETUNREACH, ECONNREFUSED', 'connection-refused'],
    ['EHOSTUNREACH', 'no-route'],
    ['UND_ERR_SOCKET', 'connection-lost'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate-untrusted'],
    ['UNABLE_TO_GET_ISSUER_CERT', 'certificate-chain'],
    ['CERT_HAS_EXPIRED', 'certificate-expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate-name'],
    ['HTTP 302', 'endpoint-redirects'],
    ['HTTP 404', 'endpoint-not-receiver'],
    ['listen EACCES', 'address-not-usable'],
    ['EACCES', 'permission-denied'],
    ['ENOSPC', 'disk-full'],
    ['SQLITE_FULL', 'disk-full'],
    ['SQLITE_IOERR_FSYNC', 'disk-failed'],
    ['SQLITE_BUSY_SNAPSHOT', 'database-locked'],
    ['SQLITE_NOTADB', 'database-damaged'],
    ['E2BIG', 'unknown-fault'],
  ])('%s is the fault %s', (platform, code) => {
    expect(faultOf(platform).code).toBe(code);
  });

  it('is in the message of the error, also if it is unknown', () => {
    for (const platform of ['ENOSPC', 'E2BIG']) {
      const cause = Object.assign(new Error('secret'), { code: platform });
      const error = faultError('unavailable', 'x cannot be written', cause);
      expect(error.message).toMatch(new RegExp(`^x cannot be written: .* \\(${platform}\\)\\.$`));
      expect(error).toMatchObject({
        code: 'unavailable',
        facts: { fault: faultOf(platform).code },
      });
      expect(error.text).not.toContain('secret');
    }
  });
});

it('each fault has its own code, and a next step that names docs/errors.md if there is more to know', () => {
  const codes = allFaults.map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
  for (const fault of allFaults) {
    const link = fault.explanation === '' ? '' : ` See docs/errors.md#${fault.code}.`;
    expect(nextStepOf(fault)).toBe(`${fault.nextStep}${link}`);
    expect(fault.nextStep).toMatch(/\.$/);
    expect(fault.clause).not.toMatch(/\.$/);
  }
});
