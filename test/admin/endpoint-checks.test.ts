/** The doctor's checks of the endpoint: public URL, name, addresses, port, certificate, login. */
import { describe, expect, it } from 'vitest';
import {
  checkAddresses,
  checkEndpoint,
  checkName,
  checkPublicUrl,
  resolveName,
} from '../../src/admin/endpoint-checks.ts';
import { createEndpointProbe } from '../../src/admin/endpoint-probe.ts';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { freePort } from '../helpers/free-ports.ts';
import { answering, createTrust, pair, receiver, startEndpoint } from './endpoint/tls-endpoint.ts';

it.each([
  ['https://earshot.example.org:8443', 'pass', 'on port 8443'],
  ['https://earshot.example.org', 'pass', 'on port 443'],
  ['http://earshot.example.org', 'fail', 'not https'],
  ['https://192.0.2.1', 'warn', 'requires a host name'],
  ['https://[2001:db8::1]:8443', 'warn', 'requires a host name'],
  [undefined, 'fail', 'EARSHOT_PUBLIC_URL is missing'],
])('the public URL %s: %s', (publicUrl, state, words) => {
  const [finding] = checkPublicUrl(publicUrl);
  expect(finding).toMatchObject({ check: 'public URL', state });
  expect(finding?.message).toContain(words);
  expect(finding?.advice === undefined).toBe(state === 'pass');
});

describe('the host name', () => {
  it.each([
    [['93.184.216.34'], true, 'pass', 'resolves to 93.184.216.34.'],
    [['127.0.1.1'], false, 'warn', 'only on this machine'],
    [[], false, 'fail', 'does not resolve'],
  ])('with the addresses %j, in DNS %s: %s', (addresses, isPublic, state, words) => {
    const [finding] = checkName('earshot.example.org', { addresses, isPublic });
    expect(finding).toMatchObject({ check: 'name', state });
    expect(finding?.message).toContain(words);
    if (state !== 'pass') expect(finding?.advice).toContain('dig earshot.example.org');
  });

  it('of this machine, an address and an unknown name are resolved without an error', async () => {
    const { addresses, isPublic } = await resolveName('localhost');
    expect(isPublic).toBe(false);
    expect(['127.0.0.1', '::1']).toContain(addresses[0]);
    expect(await resolveName('2001:db8::1')).toEqual({
      addresses: ['2001:db8::1'],
      isPublic: true,
    });
    expect((await resolveName('earshot.invalid')).addresses).toEqual([]);
  });
});

describe('the addresses', () => {
  const check = (addresses: string[], more: string[] = [], isTest = false) =>
    checkAddresses({ addresses, localAddresses: ['127.0.0.1', '::1', ...more], isTest });

  it.each([
    ['10.0.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['127.0.1.1', 'loopback'],
    ['169.254.169.254', 'linkLocal'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['192.0.2.7', 'reserved'],
    ['fd12:3456::1', 'uniqueLocal'],
    ['::ffff:10.0.0.1', 'private'],
  ])('%s (%s) fail, or cause a warning in a test or next to a public one', (address, range) => {
    const message = expect.stringContaining(`(${range})`);
    expect(check([address])).toMatchObject([{ state: 'fail', message }]);
    expect(check([address], [], true)).toMatchObject([{ state: 'warn', message }]);
    expect(check([address, '1.1.1.1'])).toMatchObject([{ state: 'warn', message }]);
  });

  it.each([
    [['93.184.216.34'], [], null],
    [['100.128.0.1'], ['10.0.0.5', 'fe80::1'], null],
    [['9.9.9.9'], ['::ffff:9.9.9.9'], null],
    [['1.1.1.1', '2606:4700:4700::1111'], ['1.1.1.1'], null],
    [['9.9.9.9'], ['8.8.8.8'], /resolves to 9\.9\.9\.9, but this machine has 8\.8\.8\.8/],
    [['8.8.8.8', '2a00::9'], ['8.8.8.8', '2a00::8'], /resolves to 2a00::9,/],
  ])('%j on a machine with %j: warning %s', (addresses, local, words) => {
    const [finding, ...others] = check(addresses, local);
    expect(others).toEqual([]);
    expect(finding?.state).toBe(words === null ? 'pass' : 'warn');
    if (words !== null) expect(finding?.message).toMatch(words);
  });
});

const endpointAt = (port: number) => `https://localhost:${port}/notifications/default`;

describe('the endpoint', () => {
  const publicly = createEndpointProbe({ timeoutMs: 5_000 });
  const nowUs = () => Date.now() * 1_000;

  it('fails with the port if nothing listens', async () => {
    const endpoint = endpointAt(await freePort());
    const options = { endpoint, publicly, withExtra: null, pairs: [pair], nowUs };
    expect(await checkEndpoint(options)).toMatchObject([
      { check: 'endpoint', state: 'fail', advice: expect.stringMatching(/earshot start/) },
    ]);
  });

  it.each([
    ['pass', 5.5, /TLSv1.3, valid until 20\d\d-\d\d-\d\d \(days left: 5\)\.$/],
    ['warn', 1.5, /days left: 1/],
  ])('%s with %d of 30 days left, and warns without public trust', async (state, days, words) => {
    const authority = await createCertificateAuthority({ now: Date.now });
    const port = await startEndpoint(await authority.issue({ hosts: ['localhost'] }));
    const trusting = createEndpointProbe({ extraCaPems: [authority.certificatePem] });
    const later = () => (Date.now() + (30 - days) * 86_400_000) * 1000;
    const options = { endpoint: endpointAt(port), pairs: [], nowUs: later };
    const [trusted] = await checkEndpoint({ ...options, publicly: trusting, withExtra: null });
    expect(trusted).toMatchObject({ state, message: expect.stringMatching(words) });
    const [extra] = await checkEndpoint({ ...options, publicly, withExtra: trusting });
    const message = expect.stringMatching(/NOT PUBLICLY.*days left:/);
    expect(extra).toMatchObject({ state: 'warn', message });
    const refused = await checkEndpoint({ ...options, publicly, withExtra: publicly });
    expect(refused).toMatchObject([{ check: 'endpoint', state: 'fail' }]);
  });

  async function openTrusted(listener = receiver) {
    const { ca, certificate } = await createTrust();
    const endpoint = endpointAt(await startEndpoint(certificate, listener));
    const probe = createEndpointProbe({ extraCaPems: [ca], timeoutMs: 5_000 });
    return { endpoint, publicly: probe, withExtra: null, nowUs };
  }

  it('is checked with each accepted pair', async () => {
    const wrong = { ...pair, password: 'not the secret' };
    const findings = await checkEndpoint({ ...(await openTrusted()), pairs: [wrong, pair] });
    expect(findings).toMatchObject([
      { check: 'endpoint', state: 'pass' },
      { check: 'login required', state: 'pass' },
      { check: 'endpoint login', state: 'fail', message: expect.stringContaining('pair 1 of 2') },
      { check: 'endpoint login', state: 'pass', message: expect.stringContaining('pair 2 of 2') },
      { check: 'rotation', state: 'warn' },
    ]);
    expect(findings[2]?.advice).toContain('restart the receiver');
    expect(JSON.stringify(findings)).not.toMatch(/secret|catalogue:/);
  });

  it.each([
    [401, 'pass', 'returns 401'],
    [200, 'fail', 'open to everyone'],
    [404, 'fail', 'must return 401'],
  ])('requires a login: %i without credentials is a %s', async (status, state, words) => {
    const options = { ...(await openTrusted(answering(status))), pairs: [] };
    const message = expect.stringContaining(words);
    expect((await checkEndpoint(options))[1]).toMatchObject({ state, message });
  });
});
