/** Failures of a probe that no server on loopback can bring about. */
import { describe, expect, it } from 'vitest';
import { faultOf, type ProbeStage } from '../../../src/admin/probe-fault.ts';

function failure(code: string): Error {
  return Object.assign(new Error('Authorization: Basic c2VjcmV0'), { code });
}

function faultWith(error: unknown, stage: ProbeStage = 'connection') {
  const host = 'earshot.example.org';
  return faultOf(error, { stage, host, port: '8443', timeoutMs: 15_000, tls: null });
}

describe('a failure', () => {
  it.each([
    ['ENOTFOUND', 'connection', 'name', /does not resolve/],
    ['EAI_AGAIN', 'name', 'name', /does not resolve/],
    ['EHOSTUNREACH', 'connection', 'connection', /No way leads/],
    ['ENETUNREACH', 'connection', 'connection', /No way leads/],
    ['ETIMEDOUT', 'connection', 'connection', /did not answer on port 8443 in time/],
    ['PROBE_TIMEOUT', 'connection', 'connection', /within 15 s, which is what a firewall does/],
    ['PROBE_TIMEOUT', 'name', 'name', /DNS servers do not answer/],
    ['ECONNRESET', 'connection', 'connection', /broken off at once/],
    ['EPIPE', 'answer', 'answer', /broken off before a complete answer/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'certificate', 'certificate', /not publicly trusted/],
    ['CERT_REVOKED', 'certificate', 'certificate', /cannot be trusted \(CERT_REVOKED\)/],
    ['INVALID_PURPOSE', 'certificate', 'certificate', /cannot be trusted/],
    ['EPROTO', 'certificate', 'certificate', /handshake on port 8443 failed/],
  ] as const)('%s while at %s is one of %s', (code, at, stage, words) => {
    const fault = faultWith(failure(code), at);
    expect(fault).toMatchObject({ stage, message: expect.stringMatching(words) });
    expect(fault.advice).not.toBe('');
    expect(JSON.stringify(fault)).not.toMatch(/Basic|c2VjcmV0/);
  });

  it.each([
    [['ETIMEDOUT', 'ECONNREFUSED'], /refuses connections/],
    [['ENETUNREACH', 'ETIMEDOUT'], /did not answer/],
    [['ENETUNREACH', 'EHOSTUNREACH'], /No way leads/],
  ])('of several addresses is the one that says most: %j', (codes, words) => {
    const fault = faultWith(new AggregateError(codes.map(failure), ''));
    expect(fault.message).toMatch(words);
  });

  it('without a code is told without its text', () => {
    for (const error of [new Error('c2VjcmV0'), 'c2VjcmV0', new AggregateError([])]) {
      expect(faultWith(error).message).toContain('broken off at once (unknown)');
    }
  });
});
