/** The doctor's look at the endpoint itself: port, certificate, who is let in. */
import { describe, expect, it } from 'vitest';
import {
  checkCertificate,
  checkLogin,
  checkLoginRequired,
  checkPort,
} from '../../../src/admin/endpoint-checks.ts';
import { createEndpointProbe } from '../../../src/admin/endpoint-probe.ts';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import { freePort } from '../../helpers/free-ports.ts';
import {
  answering,
  createTrust,
  pair,
  receiver,
  startEndpoint,
  startTcp,
} from '../endpoint/tls-endpoint.ts';

const dayMs = 86_400_000;
const nowUs = () => Date.now() * 1000;
const endpointAt = (port: number) => `https://localhost:${port}/notifications/default`;

describe('the port', () => {
  it('passes when it takes connections, and says that this is seen from here', async () => {
    const port = await startTcp(() => undefined);
    const [finding] = await checkPort({ publicUrl: `https://127.0.0.1:${port}` });
    expect(finding).toMatchObject({ check: 'port', state: 'pass' });
    expect(finding?.message).toContain('from this machine');
  });

  it('fails when nothing listens there', async () => {
    const port = await freePort();
    const [finding] = await checkPort({ publicUrl: `https://127.0.0.1:${port}` });
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain(`refuses connections on port ${port}`);
    expect(finding?.advice).toContain('earshot start');
  });
});

describe('the certificate', () => {
  const publicly = createEndpointProbe({ timeoutMs: 5_000 });

  it('passes when it is publicly trusted, with its days left and its TLS version', async () => {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate));
    // Here the "public" authorities are these; the extra ones are not even asked.
    const trusting = createEndpointProbe({ extraCaPems: [ca] });
    const withExtra = () => Promise.reject(new Error('not to be asked'));
    const seen = await checkCertificate({ endpoint, publicly: trusting, withExtra, nowUs });
    expect(seen.probe).toBe(trusting);
    expect(seen.findings).toMatchObject([
      { check: 'certificate', state: 'pass' },
      { check: 'certificate validity', state: 'pass' },
      { check: 'TLS version', state: 'pass', message: 'TLSv1.3.' },
    ]);
    expect(seen.findings[1]?.message).toMatch(/^(29|30) days left, until 20\d\d-\d\d-\d\d\.$/);
  });

  it('is warned of, loudly, when EARSHOT_PROBE_CA alone makes it pass', async () => {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate));
    const withExtra = createEndpointProbe({ extraCaPems: [ca] });
    const seen = await checkCertificate({ endpoint, publicly, withExtra, nowUs });
    expect(seen.probe).toBe(withExtra);
    expect(seen.findings).toMatchObject([
      { check: 'certificate', state: 'warn', message: expect.stringContaining('NOT PUBLICLY') },
      { check: 'certificate validity', state: 'pass' },
      { check: 'TLS version', state: 'pass' },
    ]);
  });

  it('fails when nothing makes it pass', async () => {
    const { certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate));
    for (const withExtra of [null, publicly]) {
      const seen = await checkCertificate({ endpoint, publicly, withExtra, nowUs });
      expect(seen.probe).toBeNull();
      expect(seen.findings).toMatchObject([
        { check: 'certificate', state: 'fail', advice: expect.stringContaining('fullchain') },
      ]);
    }
  });

  it.each([
    [5.5, 'pass', /^5 days left/],
    [4.5, 'warn', /^4 days left/],
    [1.5, 'warn', /^1 day left/],
  ])('of 30 days with %d left: %s', async (days, state, words) => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const certificate = await authority.issue({ hosts: ['localhost'] });
    const nowUs = () => (Date.now() + (30 - days) * dayMs) * 1000;
    const endpoint = endpointAt(await startEndpoint(certificate));
    const trusting = createEndpointProbe({ extraCaPems: [authority.certificatePem] });
    const seen = await checkCertificate({ endpoint, publicly: trusting, withExtra: null, nowUs });
    expect(seen.findings[1]).toMatchObject({
      check: 'certificate validity',
      state,
      message: expect.stringMatching(words),
    });
  });

  it('over TLS 1.2 passes too', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate, receiver, { maxVersion: 'TLSv1.2' });
    const trusting = createEndpointProbe({ extraCaPems: [ca] });
    const options = { publicly: trusting, withExtra: null, nowUs };
    const { findings } = await checkCertificate({ endpoint: endpointAt(port), ...options });
    expect(findings[2]).toMatchObject({ state: 'pass', message: 'TLSv1.2.' });
  });
});

describe('who is let in', () => {
  async function open(listener = receiver) {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate, listener));
    return { endpoint, probe: createEndpointProbe({ extraCaPems: [ca], timeoutMs: 5_000 }) };
  }

  it('is the catalogue, with each pair that is accepted', async () => {
    const options = await open();
    expect(await checkLogin({ ...options, pairs: [pair] })).toMatchObject([
      { check: 'endpoint login', state: 'pass' },
    ]);
    const wrong = { ...pair, password: 'not the secret' };
    const findings = await checkLogin({ ...options, pairs: [wrong, pair] });
    expect(findings).toMatchObject([
      { state: 'fail', message: expect.stringContaining('pair 1 of 2') },
      { state: 'pass', message: expect.stringContaining('pair 2 of 2') },
      { check: 'rotation', state: 'warn' },
    ]);
    expect(findings[0]?.advice).toContain('Restart the receiver');
    expect(JSON.stringify(findings)).not.toMatch(/secret|catalogue:/);
  });

  it('is nobody without credentials', async () => {
    expect(await checkLoginRequired(await open())).toMatchObject([
      { check: 'login required', state: 'pass' },
    ]);
  });

  it.each([
    [200, 'open to anybody'],
    [404, 'must be answered with 401'],
    [503, 'must be answered with 401'],
  ])('fails when strangers get %i', async (status, words) => {
    const [finding] = await checkLoginRequired(await open(answering(status)));
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain(words);
    expect(finding?.advice).not.toBe('');
  });

  it('fails when no answer comes', async () => {
    const [finding] = await checkLoginRequired(await open(({ socket }) => void socket.destroy()));
    expect(finding).toMatchObject({ state: 'fail' });
    expect(finding?.message).toContain('broken off');
  });
});
